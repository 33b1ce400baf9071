"""SCF of many molecules of one composition at once: they share kernels, launches and every array operation.

Fock matrices are extrapolated by DIIS (`cuanto.scf.diis`) and orbitals rotated (`cuanto.scf.rotations`), or
diagonalised for molecules for which rotations are not safe. Molecules that do not converge are computed one by one
with the SCF of all other methods.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.backends.linalg import transpose
from cuanto.memory import Budget
from cuanto.scf import rotations
from cuanto.scf.convergence import Criteria
from cuanto.scf.diis import History
from cuanto.scf.fixed_point import iterations
from cuanto.scf.rotations import Limits
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.terms import start_density

HISTORY = 8
LIMITS = Limits(norm=np.inf)
"""Limits of rotations, beyond which orbitals are diagonalised."""
MEMORY_FRACTION = 0.45
"""Part of the budget that a batch may take."""
BATCH = "batch of molecules"
"""Name of the reservation."""
MOLECULES = tuning.sizes("semiempirical.molecules")
ROTATED = tuning.sizes("semiempirical.batch_orbitals")
"""Orbitals of a molecule from which rotations are faster than a full diagonalisation."""
AUFBAU_TOLERANCE = 1e-5
"""Largest number of electrons outside the lowest orbitals of the converged Fock matrix that still counts as aufbau."""


def batch_size(layout: Layout, budget: Budget, count: int, threads: int = 1) -> int:
    """Molecules per batch: enough to keep the device busy, few enough for its memory (and a CPU's cache and threads).

    Memory is reserved for them; the reservation of the batch before is released.
    """
    budget.release(BATCH)
    bytes_each = 8 * (layout.products**2 + (2 * HISTORY + 12) * 2 * layout.orbitals**2)
    room = int(MEMORY_FRACTION * budget.available() / (threads * bytes_each))
    size = max(1, min(room, MOLECULES[budget.backend.traits.language], -(-count // threads)))
    budget.reserve(BATCH, min(size * threads * bytes_each, budget.available()))
    return size


@dataclass(frozen=True)
class Converged:
    """Results of molecules b of one composition, on the device (energies and gradients on the host, Hartree).

    `gradient_b`: norms of FD - DF. `magnitude_b`: sums of the sizes of the terms of the energy.
    """

    energy_b: Array
    gradient_b: Array
    magnitude_b: Array
    converged_b: NDArray[np.bool_]
    iterations_b: NDArray[np.int64]
    D_bspq: Any
    C_bsjm: Any
    eps_bsm: Any
    engine: PairEngine


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """One iteration of all molecules: which meet the criteria `now`, which have met them so far, and after how many
    iterations."""

    energy_b: Array
    norm_b: Array
    now_b: NDArray[np.bool_]
    done_b: NDArray[np.bool_]
    iterations_b: NDArray[np.int64]
    C_bsjm: Any
    D_bspq: Any
    F_bspq: Any

    @property
    def converged(self) -> bool:
        """Whether all molecules meet the criteria."""
        return bool(self.now_b.all())


@dataclass(frozen=True)
class _BatchScf:
    """The fixed-point map of the orbitals of many molecules."""

    fock: Fock
    filled: list[int]
    capacity: float
    criteria: Criteria
    backend: Backend
    history: History

    def evaluate(self, C_bsjm: Any, iteration: int, previous: _Evaluation | None) -> _Evaluation:
        """Densities, energies and Fock matrices; energies and gradients are read in one transfer."""
        fock, D = self.fock, self.density(C_bsjm)
        electronic_b, F = fock.two_electron(D)
        electronic_b = electronic_b + (D * fock.H_bpq[:, None]).sum(axis=(1, 2, 3))
        F = F + fock.H_bpq[:, None]
        FD = F @ D
        norm_b = self.history.absorb(self.history.push(F, FD - transpose(FD)))
        electronic_b, norm_b = self.backend.download([electronic_b, norm_b])
        energy_b = electronic_b + fock.screened_b
        change_b = energy_b - (np.inf if previous is None else previous.energy_b)
        now_b = self.criteria.met(change_b, norm_b, energy_b)
        if previous is None:
            return _Evaluation(energy_b, norm_b, now_b, now_b, np.ones(len(D), dtype=np.int64), C_bsjm, D, F)
        taken_b = np.where(previous.done_b, previous.iterations_b, iteration)
        return _Evaluation(energy_b, norm_b, now_b, previous.done_b | now_b, taken_b, C_bsjm, D, F)

    def advance(self, current: _Evaluation) -> Any:
        """New orbitals: rotated ones for molecules for which that is safe, eigenvectors for the others."""
        xp, C, F = self.backend.xp, current.C_bsjm, self.history.extrapolate()
        if C.shape[-1] < ROTATED[self.backend.traits.language]:
            return xp.linalg.eigh(F)[1]
        found, safe_b = [], np.ones(len(F), dtype=bool)
        for s, o in enumerate(self.filled):
            rotated = C[:, s]
            if 0 < o < C.shape[-1]:
                rotated, fine_b = self._rotate(F[:, s], C[:, s], o)
                safe_b &= self.backend.to_host(fine_b)
            found.append(rotated)
        C = xp.stack(found, axis=1)
        if not safe_b.all():
            chosen = xp.asarray(np.flatnonzero(~safe_b))
            C[chosen] = xp.linalg.eigh(F[chosen])[1]
        return C

    def _rotate(self, F: Any, C: Any, o: int) -> tuple[Any, Any]:
        """Orbitals of one spin, rotated in the molecules for which that is safe, and a mask of these molecules."""
        xp = self.backend.xp
        _, F_ov, eps = rotations.couple(F, C, o)
        X = F_ov / xp.minimum(rotations.gaps(eps, o), -LIMITS.gap)
        fine_b = LIMITS.allow(rotations.measure(F_ov, eps, X, xp))
        safe = xp.where(fine_b[:, None, None], X, 0.0)
        return rotations.rotate_by_factors(C, safe, xp, self.backend.linalg), fine_b

    def density(self, C_bsjm: Any) -> Any:
        """Density of the lowest orbitals."""
        occupied = [C_bsjm[:, s, :, :o] for s, o in enumerate(self.filled)]
        return self.capacity * self.backend.xp.stack([C @ transpose(C) for C in occupied], axis=1)


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
    fock = Fock(engine)
    filled = [sum(electrons) // 2] if spins == 1 else list(electrons)
    history = History(HISTORY, backend, batched=True)
    scf = _BatchScf(fock, filled, 2.0 / spins, Criteria(*tolerances), backend, history)
    start = start_density(layout, electrons, spins, backend).D_spq
    F = fock.H_bpq[:, None] + fock.two_electron(xp.repeat(start[None], len(R_bax), axis=0))[1]
    (last,) = deque(iterations(scf, xp.linalg.eigh(F)[1], max_iterations), maxlen=1)
    eps, C = xp.linalg.eigh(last.F_bspq)
    shared_b = backend.to_host((scf.density(C) * last.D_bspq).sum(axis=(1, 2, 3))) / scf.capacity
    aufbau_b = np.abs(sum(filled) * scf.capacity - shared_b) < AUFBAU_TOLERANCE
    core_b = backend.to_host((last.D_bspq * fock.H_bpq[:, None]).sum(axis=(1, 2, 3)))
    magnitude_b = abs(core_b) + abs(last.energy_b - fock.screened_b - core_b) + abs(fock.screened_b)
    energies = (last.energy_b, last.norm_b, magnitude_b)
    return Converged(*energies, last.now_b & aufbau_b, last.iterations_b, last.D_bspq, C, eps, engine)
