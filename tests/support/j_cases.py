"""Helpers for tests of the J engine: systems, densities, and reference values of J."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import Basis, Molecule
from cuanto.backends import Backend
from cuanto.coulomb.j_engine import JEngine
from oracle import _libcint_arrays
from paths import DATA

Array = NDArray[np.float64]
EXACT = 1e-10
"""Tolerance of J with the screening threshold 1e-12 against PySCF."""
PER_THRESHOLD = 30.0
"""Largest error of an element of J in units of the threshold: errors of the primitive pairs of an AO pair add up."""
MIXED = 1e-8
"""Tolerance of elements of J in mixed precision."""
MIXED_ENERGY = 1e-7


def molecule(name: str) -> Molecule:
    if name == "H_atom":
        return Molecule(["H"], [[0.0, 0.0, 0.0]], multiplicity=2)
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def random_density(nbf: int, count: int = 1, seed: int = 7) -> Array:
    """Random symmetric densities with elements of order one and both signs."""
    rng = np.random.default_rng(seed)
    A_npq = rng.normal(size=(count, nbf, nbf))
    return 0.5 * (A_npq + A_npq.transpose(0, 2, 1))


def decaying_density(basis: Basis, length: float = 2.0) -> Array:
    """Like the density of an insulator: it decays with the distance of the functions' atoms."""
    atoms = np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])
    distance = np.linalg.norm(basis.R_ax[atoms][:, None] - basis.R_ax[atoms][None, :], axis=2)
    D: Array = random_density(basis.nbf)[0] * np.exp(-distance / length)
    return D


def ours(basis: Basis, D: Array, device: str | Backend = "cpu", compiled: bool = True, **options: Any) -> Array:
    """J on any device, with the specialised kernels when `compiled`."""
    engine = JEngine(basis, backend=device, **options)
    J = engine(engine.backend.to_device(D))
    if compiled:
        engine.finish_compiling()
        J = engine(engine.backend.to_device(D))
    host: Array = engine.backend.to_host(J)
    return host


@cache
def _pyscf(basis: Basis) -> tuple[Any, bool]:
    from pyscf import gto

    mol = gto.Mole()
    centres = [basis.R_ax[shell.atom] for shell in basis.shells]
    mol._atm, mol._bas, mol._env = _libcint_arrays(basis.shells, centres)
    kinds = {shell.pure for shell in basis.shells if shell.l > 1} or {True}
    assert len(kinds) == 1
    mol.cart = not kinds.pop()
    mol._built = True
    return mol, mol.cart


def pyscf_j(basis: Basis, D_pq: Array) -> Array:
    """J by libcint's quartets, negligible ones (1e-13) dropped."""
    from pyscf.scf import _vhf

    mol, cart = _pyscf(basis)
    screening = _vhf._VHFOpt(mol, "int2e", "CVHFnrs8_prescreen", "CVHFnr_int2e_q_cond", "CVHFnr_dm_cond")
    screening.direct_scf_tol = 1e-13
    J, _ = _vhf.direct(D_pq, mol._atm, mol._bas, mol._env, screening, hermi=1, cart=cart, with_k=False)
    return np.asarray(J)
