"""What the tests of density fitting share: systems, orbitals, J and K written out, a device that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import Basis, Molecule, integrals
from cuanto.backends.cpu.backend import CpuBackend

Array = NDArray[np.float64]
DATA = Path(__file__).parent / "data"


class _Module:
    """NumPy under another name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Device(CpuBackend):
    """The CPU taken for a GPU: code that asks whether arrays are NumPy's takes the other way."""

    xp = _Module()


def molecule(name: str) -> Molecule:
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def random_orbitals(nbf: int, occupied: int, spins: int = 1, seed: int = 3) -> tuple[Array, Array]:
    """C_spi and D_spq of elements of about one."""
    C_spi = np.random.default_rng(seed).normal(size=(spins, nbf, occupied)) / np.sqrt(nbf)
    return C_spi, C_spi @ C_spi.transpose(0, 2, 1)


def fitted_jk(basis: Basis, aux: Basis, D_pq: Array, K_of: Array) -> tuple[Array, Array]:
    """J of D and K of D = K_of, by the definition."""
    I_pqP = integrals.eri_3c(basis, aux, backend="cpu")
    V_PQ = integrals.eri_2c(aux, backend="cpu")
    c_Ppq = np.linalg.solve(V_PQ, I_pqP.reshape(-1, aux.nbf).T).reshape(aux.nbf, basis.nbf, basis.nbf)
    J_pq = np.einsum("pqP,P->pq", I_pqP, np.einsum("Ppq,pq->P", c_Ppq, D_pq))
    half = np.einsum("prP,rt->ptP", I_pqP, K_of)
    return J_pq, np.einsum("ptP,Pqt->pq", half, c_Ppq)
