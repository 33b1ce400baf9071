"""Restricted Hartree-Fock with density fitting, from cuanto's integrals and plain NumPy.

    python examples/01_ri_hartree_fock.py [MOLECULE.xyz [BASIS]]

Coulomb and exchange matrices come from three-centre integrals only: with the fitted
B_Ppq = sum_Q L^-1_PQ (Q|pq), where (P|Q) = sum_R L_PR L_QR, every (pq|rt) is about sum_P B_Ppq B_Prt
(Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p).
"""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

import cuanto
from cuanto.basis import auxiliary_basis

BACKEND = "cpu"  # this example uses NumPy; with "cuda" integrals would be CuPy arrays on the GPU


def fitted_integrals(basis: cuanto.Basis, aux: cuanto.Basis) -> np.ndarray:
    """B_Ppq."""
    L_PQ = cholesky(cuanto.integrals.eri_2c(aux, backend=BACKEND), lower=True)
    eri_Ppq = cuanto.integrals.eri_3c(basis, aux, backend=BACKEND).reshape(-1, aux.nbf).T
    return solve_triangular(L_PQ, eri_Ppq, lower=True).reshape(aux.nbf, basis.nbf, basis.nbf)


def fock_matrix(H_pq: np.ndarray, B_Ppq: np.ndarray, C_pi: np.ndarray) -> np.ndarray:
    """H + J - K of doubly occupied orbitals C_pi."""
    B_Ppi = B_Ppq @ C_pi
    J_P = 2 * np.einsum("Ppi,pi->P", B_Ppi, C_pi)
    J_pq = np.tensordot(J_P, B_Ppq, axes=1)
    K_pq = np.tensordot(B_Ppi, B_Ppi, axes=((0, 2), (0, 2)))
    return H_pq + J_pq - K_pq


def extrapolate(history: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Pulay's DIIS: the linear combination of Fock matrices with the smallest error (doi:10.1002/jcc.540030413)."""
    n = len(history)
    equations = np.zeros((n + 1, n + 1))
    equations[:n, :n] = [[np.vdot(e, f) for _, f in history] for _, e in history]
    equations[n, :n] = equations[:n, n] = 1
    weights = np.linalg.lstsq(equations, np.eye(n + 1)[n], rcond=None)[0][:n]
    return sum(w * F_pq for w, (F_pq, _) in zip(weights, history, strict=True))


def hartree_fock(molecule: cuanto.Molecule, basis: cuanto.Basis, tolerance: float = 1e-9) -> float:
    """Return the total energy in Hartree; every iteration prints one line."""
    if molecule.multiplicity != 1:
        raise cuanto.errors.InputError("this example treats closed shells only: multiplicity 1")
    S_pq = cuanto.integrals.overlap(basis, backend=BACKEND)
    T_pq = cuanto.integrals.kinetic(basis, backend=BACKEND)
    H_pq = T_pq + cuanto.integrals.nuclear(basis, molecule, backend=BACKEND)
    B_Ppq = fitted_integrals(basis, auxiliary_basis(basis, molecule, kind="jk"))

    energy, history = 0.0, []
    F_pq = H_pq  # the guess: non-interacting electrons
    for iteration in range(1, 51):
        C_pi = eigh(F_pq, S_pq)[1][:, : molecule.nelectron // 2]
        D_pq = 2 * C_pi @ C_pi.T
        F_pq = fock_matrix(H_pq, B_Ppq, C_pi)
        last, energy = energy, np.vdot(D_pq, H_pq + F_pq) / 2 + molecule.nuclear_repulsion()
        error_pq = F_pq @ D_pq @ S_pq - S_pq @ D_pq @ F_pq  # zero when orbitals and Fock matrix agree
        print(f"{iteration:4d} {energy:18.10f} {energy - last:12.2e} {np.abs(error_pq).max():12.2e}")
        if abs(energy - last) < tolerance and np.abs(error_pq).max() < 1e-6:
            return energy
        history = [*history[-7:], (F_pq, error_pq)]
        F_pq = extrapolate(history)
    raise SystemExit("not converged in 50 iterations")


def main(xyz: str | None = None, basis_name: str = "cc-pvdz") -> float:
    shipped = files("cuanto") / "data" / "molecules" / "water.xyz"
    with as_file(shipped) as path:
        molecule = cuanto.Molecule.from_xyz(xyz or path)
    basis = cuanto.Basis(basis_name, molecule)
    print(f"RI-RHF/{basis_name}: {' '.join(molecule.symbols)}, {basis.nbf} functions")
    print(f"{'iter':>4} {'energy / Hartree':>18} {'change':>12} {'error':>12}")
    energy = hartree_fock(molecule, basis)
    print(f"converged: {energy:.10f} Hartree")
    return energy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Restricted Hartree-Fock with density fitting.")
    parser.add_argument("xyz", nargs="?", metavar="MOLECULE.xyz", help="geometry in Angstrom (default: water)")
    parser.add_argument("basis", nargs="?", metavar="BASIS", default="cc-pvdz", help="default: cc-pvdz")
    options = parser.parse_args()
    try:
        main(options.xyz, options.basis)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
