"""Write tests/data/direct_jk.json: elements of J and K of five systems by PySCF (see tests/data/README.md).

    python tools/make_direct_reference.py

PySCF gets the contraction coefficients of our own Basis, so that only the integrals are compared. Takes some minutes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
os.environ["CUANTO_BASIS_PATH"] = str(ROOT / "tests" / "data" / "basis")

from cuanto import Basis  # noqa: E402
from direct_reference import (  # noqa: E402
    ELEMENTS,
    FILE,
    SYSTEMS,
    Array,
    Record,
    System,
    basis_of,
    density,
    fingerprint,
)
from oracle import _libcint_arrays  # noqa: E402

TOLERANCE = 1e-15
"""Bound on the contribution of quartets that PySCF neglects."""


def pyscf_jk(basis: Basis, D_pq: Array) -> tuple[Array, Array]:
    """J and K by libcint's quartets."""
    from pyscf import gto
    from pyscf.scf import _vhf

    mol: Any = gto.Mole()
    centres = [basis.R_ax[shell.atom] for shell in basis.shells]
    mol._atm, mol._bas, mol._env = _libcint_arrays(basis.shells, centres)
    mol.cart, mol._built = not basis.spherical, True
    screening = _vhf._VHFOpt(mol, "int2e", "CVHFnrs8_prescreen", "CVHFnr_int2e_q_cond", "CVHFnr_dm_cond")
    screening.direct_scf_tol = TOLERANCE
    J, K = _vhf.direct(D_pq, mol._atm, mol._bas, mol._env, screening, hermi=1, cart=mol.cart)
    return np.asarray(J), np.asarray(K)


def record(system: System, rng: np.random.Generator) -> Record:
    """Record of one system: random positions, the elements there, norms and traces."""
    basis = basis_of(system)
    D_pq = density(basis)
    indices = rng.integers(basis.nbf, size=(ELEMENTS, 2))
    start = time.perf_counter()
    J_pq, K_pq = pyscf_jk(basis, D_pq)
    print(f"{system}: {basis.nbf} functions, {time.perf_counter() - start:.0f} s", flush=True)
    return {
        "molecule": system.molecule,
        "basis": system.basis,
        "cartesian": not system.spherical,
        "nbf": basis.nbf,
        "places": indices.tolist(),
        "J": fingerprint(J_pq, D_pq, indices),
        "K": fingerprint(K_pq, D_pq, indices),
    }


def main() -> None:
    """Write the records of all systems."""
    import pyscf

    rng = np.random.default_rng(23)
    systems = [record(system, rng) for system in SYSTEMS]
    result = {"program": f"PySCF {pyscf.__version__}", "direct_scf_tol": TOLERANCE, "systems": systems}
    FILE.write_text(json.dumps(result) + "\n")
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
