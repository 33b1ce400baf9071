"""Many molecules at once: those of one composition share kernels, launches and every array operation.

Fock matrices are extrapolated by DIIS (`cuanto.scf.diis`) and orbitals rotated (`cuanto.scf.rotations`), with a
diagonalisation of those molecules for which that is not safe. Stragglers are handed to the common SCF, one by one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends.base import Backend
from cuanto.backends.linalg import transpose
from cuanto.scf import rotations
from cuanto.scf.convergence import Criteria
from cuanto.scf.diis import History
from cuanto.scf.fixed_point import iterations
from cuanto.scf.rotations import Limits
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.terms import start_density

Array = NDArray[np.float64]

HISTORY = 8
LIMITS = Limits(norm=np.inf)
"""Beyond them orbitals are diagonalised."""
SHARE = 0.4
"""Of the free memory."""
MOLECULES = tuning.sizes("semiempirical.molecules")
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


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """One iteration of all molecules: which of them meet the criteria `now`, and how many each has taken so far."""

    energy_b: Array
    now_b: NDArray[np.bool_]
    done_b: NDArray[np.bool_]
    iterations_b: NDArray[np.int64]
    C_bsjm: Any
    D_bspq: Any
    F_bspq: Any

    @property
    def converged(self) -> bool:
        """All of them do."""
        return bool(self.now_b.all())


@dataclass(frozen=True)
class _BatchScf:
    """The fixed-point map of many molecules: from their orbitals to the next ones."""

    fock: Fock
    filled: list[int]
    capacity: float
    criteria: Criteria
    backend: Backend
    history: History

    def evaluate(self, C_bsjm: Any, iteration: int, before: _Evaluation | None) -> _Evaluation:
        """Densities, energies and Fock matrices; energies and gradients are read in one transfer."""
        fock, D = self.fock, self.density(C_bsjm)
        electronic_b, F = fock.two_electron(D)
        electronic_b = electronic_b + (D * fock.H_bpq[:, None]).sum(axis=(1, 2, 3))
        F = F + fock.H_bpq[:, None]
        FD = F @ D
        norm_b = self.history.absorb(self.history.push(F, FD - transpose(FD)))
        electronic_b, norm_b = self.backend.download([electronic_b, norm_b])
        energy_b = electronic_b + fock.screened_b
        change_b = energy_b - (np.inf if before is None else before.energy_b)
        now_b = self.criteria.met(change_b, norm_b, energy_b)
        if before is None:
            return _Evaluation(energy_b, now_b, now_b, np.ones(len(D), dtype=np.int64), C_bsjm, D, F)
        taken_b = np.where(before.done_b, before.iterations_b, iteration)
        return _Evaluation(energy_b, now_b, before.done_b | now_b, taken_b, C_bsjm, D, F)

    def advance(self, made: _Evaluation) -> Any:
        """Orbitals rotated where that is safe for a molecule, eigenvectors where it is not."""
        xp, C, F = self.backend.xp, made.C_bsjm, self.history.extrapolate()
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
        """Orbitals of one spin, as they are where it is not safe to rotate them; and where it is."""
        xp = self.backend.xp
        _, F_ov, eps = rotations.couple(F, C, o)
        X = F_ov / xp.minimum(rotations.gaps(eps, o), -LIMITS.gap)
        fine_b = LIMITS.allow(rotations.measure(F_ov, eps, X, xp))
        safe = xp.where(fine_b[:, None, None], X, 0.0)
        return rotations.rotate_by_factors(C, safe, xp, self.backend.linalg), fine_b

    def density(self, C_bsjm: Any) -> Any:
        """Of the lowest orbitals."""
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
    both = backend.to_host((scf.density(C) * last.D_bspq).sum(axis=(1, 2, 3))) / scf.capacity
    aufbau_b = np.abs(sum(filled) * scf.capacity - both) < AUFBAU
    return Converged(last.energy_b, last.now_b & aufbau_b, last.iterations_b, last.D_bspq, C, eps, engine)
