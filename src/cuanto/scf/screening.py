"""Search for the lowest of several starting points: each descends a few steps, and only the lowest one goes on.

Symmetry is broken at the start, because DIIS, and descent from symmetric orbitals, end in symmetric states that often
are saddle points. Random fields on the atoms do that: they mix orbitals that are close in energy, most of all
d orbitals, and decide which of several degenerate ones are occupied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuanto.basis import Basis
from cuanto.scf.descent import descend
from cuanto.scf.diagonalise import eigenvectors
from cuanto.scf.loop import Density, Problem, fock
from cuanto.scf.state import State

FIELD = 0.03
"""Hartree: standard deviation of the elements of the fields. From 0.02 to 0.06 they lead to the same states in most
molecules; 0.3 is too much, and takes a third more steps."""
SEEDS = (10, 12, 11)
"""Random seeds of the fields of the starting points."""
SMALL_GRADIENT, CHEAP_GRADIENT = 1e-3, 1e-4
"""Gradient at which a descent has arrived; the same if Fock matrices are cheap."""
STEPS, LAST_STEPS = 5, 50
"""Steps of every descent before the lowest one is chosen, and of the lowest one after that."""
CANDIDATES, CHEAP_CANDIDATES = 2, 3
"""Largest number of starting points; the same if Fock matrices are cheap."""


@dataclass
class Candidate:
    """A starting point and its descent so far."""

    label: str
    states: Iterator[State]
    best: State | None = None
    steps: int = 0
    finished: bool = False

    @property
    def energy(self) -> float:
        """Lowest energy so far."""
        return np.inf if self.best is None else self.best.energy

    def advance(self, steps: int) -> None:
        """Take steps until there are this many."""
        while self.steps < steps and not self.finished:
            state = next(self.states, None)
            if state is None:
                self.finished = True
                return
            self.steps += 1
            if state.energy < self.energy:
                self.best = state


@dataclass(frozen=True, eq=False)
class Screened:
    """The lowest candidate, and the number of Fock matrices of all of them, including that of each starting density."""

    lowest: Candidate
    matrices: int
    energies: dict[str, float] = field(default_factory=dict)

    def orbitals(self, problem: Problem, S_pq: Any) -> tuple[Any, Any]:
        """Orbitals in the orthonormal basis, and their energies."""
        state = self.lowest.best
        assert state is not None
        return problem.frame.coefficients(state.C_spm, S_pq), state.eps_sm

    @property
    def arrived(self) -> State | None:
        """The state of the lowest candidate if its gradient is small."""
        state = self.lowest.best
        return state if state is not None and state.gradient < SMALL_GRADIENT else None

    @property
    def note(self) -> str:
        """Note for the result."""
        count, energies = len(self.energies), self.energies.values()
        spread = max(energies) - min(energies)
        return (
            f"search: {count} starting points, {self.matrices} Fock matrices; lowest from {self.lowest.label} "
            f"(they differed by up to {spread:.4f} Hartree)"
        )


def screen(problem: Problem, starts: Iterable[tuple[str, Density]], basis: Basis, S_pq: Any, cheap: bool) -> Screened:
    """Follow starting points downwards, and return the lowest one.

    `cheap`: a Fock matrix of this problem takes much less time than one of the SCF that follows, so that more of them
    are affordable.
    """
    candidates = []
    seeds = SEEDS[: CHEAP_CANDIDATES if cheap else CANDIDATES]
    gradient = CHEAP_GRADIENT if cheap else SMALL_GRADIENT
    for (label, density), seed in zip(starts, seeds, strict=False):
        orbitals = perturbed_orbitals(problem, density, basis, S_pq, seed)
        candidates.append(Candidate(label, descend(problem, orbitals, STEPS + LAST_STEPS, gradient)))
        candidates[-1].advance(STEPS)
    energies = {candidate.label: candidate.energy for candidate in candidates}
    lowest = min(candidates, key=lambda candidate: candidate.energy)
    lowest.advance(STEPS + LAST_STEPS)
    return Screened(lowest, len(candidates) + sum(candidate.steps for candidate in candidates), energies)


def perturbed_orbitals(problem: Problem, start: Density, basis: Basis, S_pq: Any, seed: int) -> tuple[Any, Any]:
    """Orbitals of the Fock matrix of a density plus random fields, and their energies."""
    frame = problem.frame
    F_spq = fock(problem, start)[1]
    if problem.shared:
        F_spq = F_spq.mean(axis=0, keepdims=True)
    S = frame.backend.to_host(S_pq)
    V_spq = np.stack([S @ R_pq @ S for R_pq in random_fields(basis, len(F_spq), seed)])
    with frame.blas_threads:
        return eigenvectors(frame.matrix(F_spq + frame.backend.to_device(V_spq)), frame)


def random_fields(basis: Basis, spins: int, seed: int) -> Any:
    """R_spq, symmetric and zero between different atoms: the field is sum_pq |p> R_pq <q|."""
    R_spq = np.random.default_rng(seed).normal(size=(spins, basis.nbf, basis.nbf)) * FIELD
    same = basis.function_atoms[:, None] == basis.function_atoms[None, :]
    return np.sqrt(0.5) * (R_spq + R_spq.transpose(0, 2, 1)) * same
