"""Converged RHF densities for the benchmarks: direct J and K with DIIS, started from screened atoms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import cuanto
from cuanto import integrals
from cuanto.coulomb import DirectJK, IncrementalJK

ERROR = 1e-6
"""Largest element of the commutator of Fock and density matrix (orthonormal functions) at the end."""
ITERATIONS = 40
HISTORY = 8


def converged_density(
    molecule: cuanto.Molecule, basis: cuanto.Basis, backend: Any, threshold: float, cache: Path | None
) -> tuple[Any, float, int]:
    """D_pq on the device, energy and iterations; read from the file `cache`, or computed and written there."""
    if cache is not None and cache.exists():
        with np.load(cache) as kept:
            if kept["D"].shape == (basis.nbf, basis.nbf) and np.array_equal(kept["R_ax"], basis.R_ax):
                return backend.to_device(kept["D"]), float(kept["energy"]), int(kept["iterations"])
    D_pq, energy, iterations = hartree_fock(molecule, basis, backend, threshold)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        D = backend.to_host(D_pq)
        np.savez_compressed(cache, D=D, R_ax=basis.R_ax, energy=energy, iterations=iterations)
    return D_pq, energy, iterations


def hartree_fock(
    molecule: cuanto.Molecule, basis: cuanto.Basis, backend: Any, threshold: float
) -> tuple[Any, float, int]:
    """Closed-shell Hartree-Fock; linear algebra uses the array module, so that it runs on a GPU as well."""
    xp = backend.xp
    S_pq = integrals.overlap(basis, backend=backend)
    H_pq = integrals.kinetic(basis, backend=backend) + integrals.nuclear(basis, molecule, backend=backend)
    s, U = xp.linalg.eigh(S_pq)
    X_pm = U / xp.sqrt(s)
    jk = IncrementalJK(DirectJK(basis, backend=backend, threshold=threshold))
    D_pq = backend.to_device(atomic_guess(molecule, basis))
    history: list[tuple[Any, Any]] = []
    for iteration in range(1, ITERATIONS + 1):
        J_pq, K_pq = jk(D_pq)
        F_pq = H_pq + J_pq - 0.5 * K_pq
        energy = 0.5 * float(((H_pq + F_pq) * D_pq).sum()) + molecule.nuclear_repulsion()
        FDS = F_pq @ D_pq @ S_pq
        error = X_pm.T @ (FDS - FDS.T) @ X_pm
        size = float(abs(error).max())
        print(f"  {iteration:3d} {energy:18.9f} {size:10.2e}", flush=True)
        if size < ERROR:
            return D_pq, energy, iteration
        history = [*history[1 - HISTORY :], (F_pq, error)]
        _, C = xp.linalg.eigh(X_pm.T @ extrapolate(history) @ X_pm)
        C_pi = (X_pm @ C)[:, : molecule.nelectron // 2]
        D_pq = 2.0 * C_pi @ C_pi.T
    raise SystemExit(f"RHF of {'-'.join(molecule.symbols[:3])}... did not converge in {ITERATIONS} iterations")


def extrapolate(history: list[tuple[Any, Any]]) -> Any:
    """Extrapolate by Pulay's DIIS (doi:10.1002/jcc.540030413)."""
    n = len(history)
    equations = np.zeros((n + 1, n + 1))
    equations[:n, :n] = [[float((e * f).sum()) for _, f in history] for _, e in history]
    equations[:n, :n] /= equations[n - 1, n - 1]
    equations[n, :n] = equations[:n, n] = 1.0
    weights = np.linalg.lstsq(equations, np.eye(n + 1)[n], rcond=None)[0][:n]
    return sum(float(w) * F_pq for w, (F_pq, _) in zip(weights, history, strict=True))


def atomic_guess(molecule: cuanto.Molecule, basis: cuanto.Basis) -> Any:
    """Block-diagonal density of free atoms."""
    D_pq = np.zeros((basis.nbf, basis.nbf))
    first = np.concatenate([[0], np.cumsum([shell.nbf for shell in basis.shells])])
    atom = np.repeat([shell.atom for shell in basis.shells], np.diff(first))
    for number in set(molecule.numbers.tolist()):
        same = np.flatnonzero(molecule.numbers == number)
        shells = [shell for shell in basis.shells if shell.atom == same[0]]
        block = atomic_density(number, shells)
        for a in same:
            mine = np.flatnonzero(atom == a)
            D_pq[np.ix_(mine, mine)] = block
    return D_pq


def atomic_density(number: int, shells: list[Any]) -> Any:
    """Electrons of H to Ne in the field of a nucleus screened by Slater's rules (doi:10.1103/PhysRev.36.57)."""
    from dataclasses import replace

    from scipy.linalg import eigh

    if number > 10:
        raise SystemExit(f"the guess supports H to Ne only, not element {number}")
    basis = cuanto.Basis.from_shells([replace(shell, atom=0) for shell in shells], [[0.0, 0.0, 0.0]])
    l = np.repeat([shell.l for shell in shells], [shell.nbf for shell in shells])
    S, T = (function(basis, backend="cpu") for function in (integrals.overlap, integrals.kinetic))
    V = integrals.nuclear(basis, charges=[1.0], positions=[[0.0, 0.0, 0.0]], backend="cpu")
    D = np.zeros_like(S)
    inner = 0.3 * (min(number, 2) - 1)
    outer = 1.7 + 0.35 * (number - 3)
    # number of radial nodes, angular momentum, electrons, screening
    for n, momentum, electrons, screening in (
        (0, 0, min(number, 2), inner),
        (1, 0, min(max(number - 2, 0), 2), outer),
        (0, 1, max(number - 4, 0), outer),
    ):
        if electrons:
            mine = np.ix_(l == momentum, l == momentum)
            degenerate = 2 * momentum + 1
            C = eigh(T[mine] + (number - screening) * V[mine], S[mine])[1]
            C = C[:, n * degenerate : (n + 1) * degenerate]
            D[mine] += electrons / degenerate * C @ C.T
    return D
