"""Many molecules at once: those of one composition share kernels, launches and every array operation.

DIIS: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413; orbitals are turned by block rotations (see
`cuanto.scf.rotations`), with a diagonalisation of those molecules for which that is not safe. Stragglers are
handed to the common SCF loop, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.terms import start_density

Array = NDArray[np.float64]

HISTORY = 8
LARGEST_ROTATION = 0.3
SMALLEST_GAP = 0.01
LARGEST_COUPLING = 0.2
"""Hartree; from here on orbitals are diagonalised."""
SHARE = 0.4
"""Of the free memory."""
MOLECULES = {"cpu": 64, "cuda": 1024}
"""Most at once, by the language of the kernels."""
AUFBAU = 1e-5
"""Electrons outside the lowest orbitals of the converged Fock matrix."""


def chunk(layout: Layout, backend: Backend, count: int, threads: int) -> int:
    """Molecules at once: enough to keep the device busy, few enough for its memory (and a CPU's cache and threads)."""
    bytes_each = 8 * (layout.products**2 + (2 * HISTORY + 12) * 2 * layout.orbitals**2)
    room = int(SHARE * backend.memory()[0] / (threads * bytes_each))
    return max(1, min(room, MOLECULES[backend.traits.language], -(-count // threads)))


@dataclass(frozen=True)
class Converged:
    """Results of molecules b of one composition, on the device (energies on the host, Hartree)."""

    energy_b: Array
    converged_b: NDArray[np.bool_]
    iterations_b: NDArray[np.int64]
    D_bspq: Any
    C_bsjm: Any
    eps_bsm: Any
    engine: PairEngine


class _History:
    """Fock matrices and errors of all molecules."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.F: list[Any] = []
        self.e: list[Any] = []

    def next(self, F: Any, e: Any) -> Any:
        """The combination of each molecule with the smallest error."""
        xp = self.xp
        self.F, self.e = [*self.F, F][-HISTORY:], [*self.e, e][-HISTORY:]
        n = len(self.F)
        if n == 1:
            return F
        flat = xp.stack([one.reshape(len(F), -1) for one in self.e], axis=1)
        B = flat @ flat.transpose(0, 2, 1)
        size = xp.sqrt(xp.maximum(xp.diagonal(B, axis1=1, axis2=2), 1e-300))
        M = xp.zeros((len(F), n + 1, n + 1))
        M[:, :n, :n] = B / (size[:, :, None] * size[:, None, :])
        M[:, :n, n] = M[:, n, :n] = size.min(axis=1)[:, None] / size
        values, vectors = xp.linalg.eigh(M)
        weight = xp.where(abs(values) > 1e-13, vectors[:, n, :] / xp.where(values == 0.0, 1.0, values), 0.0)
        c = (vectors[:, :n, :] @ weight[:, :, None])[:, :, 0] / size
        total = c.sum(axis=1, keepdims=True)
        good = xp.isfinite(total) & (total != 0.0)
        c = xp.where(good, c / xp.where(good, total, 1.0), xp.eye(n)[-1])
        mixed = sum(c[:, k].reshape(-1, 1, 1, 1) * one for k, one in enumerate(self.F))
        return mixed


def solve(
    layout: Layout,
    R_bax: Array,
    electrons: tuple[int, int],
    backend: Backend,
    spins: int,
    tolerances: tuple[float, float],
    max_iterations: int = 40,
) -> Converged:
    """SCF of all molecules; tolerances of energy change (Hartree) and of the norm of FD - DF."""
    xp = backend.xp
    engine = PairEngine(layout, R_bax, backend)
    engine.prepare()
    fock, count = Fock(engine), len(R_bax)
    filled = [sum(electrons) // 2] if spins == 1 else list(electrons)
    capacity = 2.0 if spins == 1 else 1.0
    start = start_density(layout, electrons, spins, backend).D_spq
    F = fock.H_bpq[:, None] + fock.two_electron(xp.repeat(start[None], count, axis=0))[1]
    eps, C = xp.linalg.eigh(F)
    history, previous = _History(xp), np.full(count, np.inf)
    done, iterations = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
    for iteration in range(1, max_iterations + 1):
        D = _density(C, filled, capacity, xp)
        repulsion_b, F = fock.two_electron(D)
        energy = backend.to_host(repulsion_b + (D * fock.H_bpq[:, None]).sum(axis=(1, 2, 3))) + fock.screened_b
        F = F + fock.H_bpq[:, None]
        FD = F @ D
        error = FD - FD.transpose(0, 1, 3, 2)
        gradient = np.sqrt(backend.to_host((error**2).sum(axis=(1, 2, 3))))
        now = (np.abs(energy - previous) < tolerances[0]) & (gradient < tolerances[1])
        iterations = np.where(done, iterations, iteration)
        done, previous = done | now, energy
        if done.all() and now.all():
            break
        eps, C = _turn(history.next(F, error), C, filled, xp, backend.to_host)
    eps, C = xp.linalg.eigh(F)
    lowest = _density(C, filled, capacity, xp)
    outside = sum(filled) * capacity - backend.to_host((lowest * D).sum(axis=(1, 2, 3))) / capacity
    return Converged(energy, now & (np.abs(outside) < AUFBAU), iterations, D, C, eps, engine)


def _density(C: Any, filled: list[int], capacity: float, xp: Any) -> Any:
    parts = [C[:, s, :, :o] @ C[:, s, :, :o].transpose(0, 2, 1) for s, o in enumerate(filled)]
    return capacity * xp.stack(parts, axis=1)


def _turn(F: Any, C: Any, filled: list[int], xp: Any, to_host: Any) -> tuple[Any, Any]:
    """Rotated orbitals where that is safe for a molecule, eigenvectors where it is not."""
    turned, energies, safe = [], [], np.ones(len(F), dtype=bool)
    for s, o in enumerate(filled):
        C_s = C[:, s]
        FC = F[:, s] @ C_s
        eps = (C_s * FC).sum(axis=1)
        if 0 < o < C_s.shape[2]:
            C_s, fine = _rotate(C_s, FC, eps, o, xp)
            safe &= to_host(fine)
        turned.append(C_s)
        energies.append(eps)
    C, eps_sm = xp.stack(turned, axis=1), xp.stack(energies, axis=1)
    if not safe.all():
        chosen = xp.asarray(np.flatnonzero(~safe))
        eps_sm[chosen], C[chosen] = xp.linalg.eigh(F[chosen])
    return eps_sm, C


def _rotate(C: Any, FC: Any, eps: Any, o: int, xp: Any) -> tuple[Any, Any]:
    """One block rotation of every molecule, orthonormal by Cholesky's factors of the exact Gram matrices."""
    F_ov = C[:, :, :o].transpose(0, 2, 1) @ FC[:, :, o:]
    gap = eps[:, :o, None] - eps[:, None, o:]
    X = F_ov / xp.minimum(gap, -SMALLEST_GAP)
    largest = abs(X).max(axis=(1, 2))
    fine = (gap.max(axis=(1, 2)) < -SMALLEST_GAP) & (largest < LARGEST_ROTATION)
    fine &= abs(F_ov).max(axis=(1, 2)) < LARGEST_COUPLING
    X = xp.where(fine[:, None, None], X, 0.0)
    T = X.transpose(0, 2, 1)
    occupied, empty = C[:, :, :o] + C[:, :, o:] @ T, C[:, :, o:] - C[:, :, :o] @ X
    parts = []
    for part, gram in ((occupied, X @ T), (empty, T @ X)):
        L = xp.linalg.cholesky(gram + xp.eye(gram.shape[1]))
        parts.append(xp.linalg.solve(L, part.transpose(0, 2, 1)).transpose(0, 2, 1))
    return xp.concatenate(parts, axis=2), fine
