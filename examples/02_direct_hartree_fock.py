"""Restricted Hartree-Fock without stored integrals: direct J and K, then incremental builds.

    python examples/02_direct_hartree_fock.py [MOLECULE.xyz [BASIS]]

The second run uses `IncrementalJK`: as the density converges, its change becomes small and fewer and fewer interactions
of charge distributions (in large molecules also fewer shell quartets) contribute. Both runs end at the same energy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.resources import as_file, files

import numpy as np
from scipy.linalg import eigh

import cuanto
from cuanto.coulomb import DirectJK, IncrementalJK

BACKEND = "cpu"  # this example uses NumPy; with "cuda" densities, J and K would be CuPy arrays


def extrapolate(history: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Pulay's DIIS: the linear combination of Fock matrices with the smallest error (doi:10.1002/jcc.540030413)."""
    n = len(history)
    equations = np.zeros((n + 1, n + 1))
    equations[:n, :n] = [[np.vdot(e, f) for _, f in history] for _, e in history]
    equations[n, :n] = equations[:n, n] = 1
    weights = np.linalg.lstsq(equations, np.eye(n + 1)[n], rcond=None)[0][:n]
    return sum(w * F_pq for w, (F_pq, _) in zip(weights, history, strict=True))


def hartree_fock(
    molecule: cuanto.Molecule,
    basis: cuanto.Basis,
    coulomb_and_exchange: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    interactions: Callable[[], int],
    tolerance: float = 1e-9,
) -> float:
    """Return the total energy in Hartree; every iteration prints one line, with the number of interactions in J."""
    if molecule.multiplicity != 1:
        raise cuanto.errors.InputError("this example treats closed shells only: multiplicity 1")
    S_pq = cuanto.integrals.overlap(basis, backend=BACKEND)
    T_pq = cuanto.integrals.kinetic(basis, backend=BACKEND)
    H_pq = T_pq + cuanto.integrals.nuclear(basis, molecule, backend=BACKEND)

    energy, history = 0.0, []
    F_pq = H_pq  # the guess: non-interacting electrons
    for iteration in range(1, 51):
        C_pi = eigh(F_pq, S_pq)[1][:, : molecule.nelectron // 2]
        D_pq = 2 * C_pi @ C_pi.T
        J_pq, K_pq = coulomb_and_exchange(D_pq)
        F_pq = H_pq + J_pq - K_pq / 2
        last, energy = energy, np.vdot(D_pq, H_pq + F_pq) / 2 + molecule.nuclear_repulsion()
        error_pq = F_pq @ D_pq @ S_pq - S_pq @ D_pq @ F_pq  # zero when orbitals and Fock matrix agree
        error = np.abs(error_pq).max()
        print(f"{iteration:4d} {energy:18.10f} {energy - last:12.2e} {error:12.2e} {interactions():12d}")
        if abs(energy - last) < tolerance and error < 1e-6:
            return energy
        history = [*history[-7:], (F_pq, error_pq)]
        F_pq = extrapolate(history)
    raise SystemExit("not converged in 50 iterations")


def main(xyz: str | None = None, basis_name: str = "cc-pvdz") -> tuple[float, float]:
    shipped = files("cuanto") / "data" / "molecules" / "water.xyz"
    with as_file(shipped) as path:
        molecule = cuanto.Molecule.from_xyz(xyz or path)
    basis = cuanto.Basis(basis_name, molecule)
    print(f"direct RHF/{basis_name}: {' '.join(molecule.symbols)}, {basis.nbf} functions")
    direct = DirectJK(basis, backend=BACKEND, threshold=1e-11)

    def interactions() -> int:
        statistics = direct.statistics.coulomb
        return statistics.interactions if statistics else 0

    energies = []
    for title, jk in (("from the whole density", direct), ("from its change", IncrementalJK(direct, restart=20))):
        print(f"J and K {title}")
        print(f"{'iter':>4} {'energy / Hartree':>18} {'change':>12} {'error':>12} {'interactions':>12}")
        energies.append(hartree_fock(molecule, basis, jk, interactions))
    print(f"converged: {energies[0]:.10f} Hartree, and {energies[1]:.10f} Hartree with incremental builds")
    return energies[0], energies[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Restricted Hartree-Fock with direct J and K.")
    parser.add_argument("xyz", nargs="?", metavar="MOLECULE.xyz", help="geometry in Angstrom (default: water)")
    parser.add_argument("basis", nargs="?", metavar="BASIS", default="cc-pvdz", help="default: cc-pvdz")
    options = parser.parse_args()
    try:
        main(options.xyz, options.basis)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
