"""From a start to a converged state: DIIS, direct minimisation if DIIS fails, and escape from saddle points."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.options import ScfOptions
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.descent import descend
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem, first_orbitals, iterate
from cuanto.scf.newton import minimise
from cuanto.scf.secants import Secants
from cuanto.scf.stability import Mode, certain_curvature, escape, lowest_mode
from cuanto.scf.state import State

NEWTON_GRADIENT = 0.05
"""Gradient below which Newton steps are more efficient than quasi-Newton steps."""
MAX_DESCENT = 50
"""Quasi-Newton steps before other steps are taken in any case."""
MIN_GAIN = 1e-7
"""Hartree by which a state must lie below the one that was left."""
MAX_RISE = 1e-6
"""Hartree by which DIIS may end above the state where it began."""
CURVATURE = 0.1
"""Typical curvature of the energy, Hartree: the gradient g explains a rise of up to g^2/curvature during DIIS."""
STALLED = 5
"""Iterations of DIIS after a descent within which the smallest gradient must shrink."""
MAX_DESCENTS = 2
"""Further descents after DIIS has left the valley where one ended."""
FURTHER = 0.3
"""Factor by which such a descent reduces the gradient."""
MAX_ESCAPES = 8
"""Saddle points that are left one after the other."""

Start = Density | tuple[Any, Any]
States = Generator[State, None, State | None]
"""Yields the states that are not converged, and returns the last state; None if there is none."""


@dataclass
class Counter:
    """Numbers the iterations of several stages consecutively; changes of the energy refer to the stage before."""

    left: int
    done: int = 0
    energy: float = np.inf

    def __call__(self, states: Iterator[State]) -> Iterator[State]:
        """The states with consecutive numbers."""
        for state in states:
            self.done, self.left = self.done + 1, self.left - 1
            change, known = state.energy_change, np.isfinite(state.energy_change) or not np.isfinite(self.energy)
            change = change if known else state.energy - self.energy
            self.energy = state.energy
            yield replace(state, iteration=self.done, energy_change=change)


@dataclass
class Watch:
    """Watches whether DIIS stays in the valley of `floor`, the state where a descent ended (None: nothing to watch)."""

    floor: State | None
    energy: float = np.inf
    gradient: float = np.inf
    stalled: int = 0

    def climbs(self, state: State) -> bool:
        """Whether the energy rises by more than the gradient explains, or the gradient has stopped shrinking."""
        if self.floor is None or state.converged:
            return False
        rise = state.energy - min(self.energy, self.floor.energy)
        self.stalled = 0 if state.gradient < 0.9 * self.gradient else self.stalled + 1
        self.energy, self.gradient = min(self.energy, state.energy), min(self.gradient, state.gradient)
        return rise > max(MAX_RISE, state.gradient**2 / CURVATURE) or self.stalled >= STALLED


class Convergence:
    """The stages of an SCF, which share a count of iterations."""

    def __init__(
        self,
        problem: Problem,
        options: ScfOptions,
        criteria: Criteria,
        S_pq: Any,
        diagonaliser: Diagonaliser,
        done: int,
    ) -> None:
        self.problem, self.options, self.criteria, self.S_pq = problem, options, criteria, S_pq
        self.diagonaliser, self.counted = diagonaliser, Counter(int(options.max_iterations) - done, done)
        self.watched = options.accelerator in ("auto", "descent") and problem.occupations.integer

    def states(self, start: Start, secants: Secants | None, known: State | None = None) -> Iterator[State]:
        """States until one is converged (and a minimum, if requested), or until iterations run out.

        The last state has the lowest energy of all that converged. `known`: the state of the orbitals `start`, where a
        descent ended, or which is converged.
        """
        if known is not None and known.converged:
            self.counted.energy = known.energy
            yield from self._tested(known)
            return
        floor = known
        if floor is None and self.options.accelerator == "descent" and self.problem.occupations.integer:
            start = self._orbitals(start)
            floor = yield from self._last(descend(self.problem, start, self.counted.left))
            start = start if floor is None else self._continue(floor)
        last = yield from self._extrapolate(start, secants, floor)
        if last is not None and last.converged:
            yield from self._tested(last)

    def _tested(self, state: State) -> Iterator[State]:
        """A converged state, or the states that lead to a lower one."""
        if self._is_examined(state):
            state = (yield from self._examine(state)) or state
        yield replace(state, iteration=self.counted.done)

    def _is_examined(self, state: State) -> bool:
        """Whether to test a converged state and leave it if it is not a minimum: if requested, if DIIS failed, or if a
        quick test of a suspect molecule finds a negative curvature."""
        if not self.problem.occupations.integer or self.options.stability == "none":
            return False
        if self.options.stability != "auto" or state.step == "newton":
            return True
        if not self.problem.suspect:
            return False
        with self.problem.timings.measure("stability"):
            mode = lowest_mode(self.problem, state, sign_only=True)
        return mode is not None and not mode.stable

    def _extrapolate(
        self, start: Start, secants: Secants | None, floor: State | None, descents: int = MAX_DESCENTS
    ) -> States:
        """DIIS, and direct minimisation where that fails or ends above its start.

        If DIIS leaves the valley of the state `floor`, where a descent ended, another descent follows, up to `descents`
        times, and then Newton steps, which take ten times as many Fock matrices.
        """
        last, lowest = yield from self._diis(start, secants, floor)
        if last is None or lowest is None:
            return floor
        rises = floor is not None and last.energy > floor.energy + MAX_RISE
        if (last.converged and not rises) or not self.watched or self.counted.left <= 0:
            return last
        if last.converged:
            yield replace(last, converged=False)
        if floor is None or descents == 0 or 2 * self.counted.left < int(self.options.max_iterations):
            return (yield from self._minimise(self._continue(lowest), lowest.gradient))
        steps, handover = min(MAX_DESCENT, self.counted.left), FURTHER * lowest.gradient
        floor = yield from self._last(descend(self.problem, self._continue(lowest), steps, handover))
        if floor is None or self.counted.left <= 0:
            return floor
        further = descents - 1 if floor.gradient < handover else 0  # a slow descent is not repeated
        return (yield from self._extrapolate(self._continue(floor), None, floor, further))

    def _diis(
        self, start: Start, secants: Secants | None, floor: State | None
    ) -> Generator[State, None, tuple[State | None, State | None]]:
        """DIIS until it converges or leaves the valley of `floor`: the last state and the lowest, also of `floor`."""
        frame = self.problem.frame
        accelerator = Accelerator(self.options, frame, self.watched, frame.free)
        if secants is not None:
            accelerator.history.carry(secants.carried(frame, self.S_pq))
        lowest, last, watch = floor, None, Watch(floor if self.watched else None)
        arguments = (accelerator, self.diagonaliser, self.criteria, self.counted.left)
        for last in self.counted(iterate(self.problem, start, *arguments, floor)):
            if not last.converged:
                yield last
            lowest = last if lowest is None or last.energy < lowest.energy else lowest
            if watch.climbs(last):
                break
        if last is not None and last.converged and secants is not None:
            secants.add(accelerator.history.differences(), frame, self.S_pq)
        return last, lowest

    def _minimise(self, start: tuple[Any, Any], gradient: float = np.inf) -> States:
        """Descend to a minimum from orbitals with this gradient, as far as it is known."""
        if gradient > NEWTON_GRADIENT:
            steps = min(MAX_DESCENT, self.counted.left)
            state = yield from self._last(descend(self.problem, start, steps, NEWTON_GRADIENT))
            if state is None or self.counted.left <= 0:
                return state
            start = self._continue(state)
        return (yield from self._last(minimise(self.problem, start, self.criteria, self.counted.left)))

    def _examine(self, state: State) -> States:
        """Test whether a converged state is a minimum and, if requested, leave it for lower ones."""
        best, follow = None, self.options.stability != "check"
        for _ in range(MAX_ESCAPES):
            certain = self._certain_curvature(state) if self.options.stability == "follow" else None
            mode = self._mode(state) if certain is None else None
            near = mode is not None and (follow or mode.stable) and not self._settled(mode)
            if near and self.counted.left > 0:
                yield replace(state, converged=False)
                further = minimise(self.problem, self._continue(state), self.criteria, self.counted.left)
                better = yield from self._last(further)
                if better is not None and better.converged and better.energy < state.energy:
                    state, mode = better, self._mode(better)
            curvature = certain if mode is None else mode.curvature
            found = replace(state, curvature=curvature, curvature_is_bound=mode is None)
            if best is not None and found.energy > best.energy - MIN_GAIN:
                return best  # nothing was gained
            best = found
            if mode is None or mode.stable or not follow or self.counted.left <= 0:
                return best
            with self.problem.timings.measure("stability"):
                start = escape(self.problem, state, mode, self.S_pq)
            if start is None:
                return best
            yield replace(state, converged=False)
            lower = yield from self._minimise(start)
            if lower is None or not lower.converged:
                return best
            state = lower
        return best

    def _certain_curvature(self, state: State) -> float | None:
        with self.problem.timings.measure("stability"):
            return certain_curvature(self.problem, state)

    def _mode(self, state: State) -> Mode | None:
        with self.problem.timings.measure("stability"):
            return lowest_mode(self.problem, state)

    def _settled(self, mode: Mode) -> bool:
        """Whether energy and dipole moment change by less than the thresholds on the way to the minimum."""
        return mode.gain < self.criteria.energy and self.criteria.keeps_dipole(mode.change_spq)

    def _last(self, states: Iterator[State]) -> States:
        """Yield the states of a stage with consecutive numbers, and return the last one."""
        last: State | None = None
        for last in self.counted(states):
            if not last.converged:
                yield last
        return last

    def _orbitals(self, start: Start) -> tuple[Any, Any]:
        return first_orbitals(self.problem, start) if isinstance(start, Density) else start

    def _continue(self, state: State) -> tuple[Any, Any]:
        """Orbitals of a state in the orthonormal basis, and their energies."""
        return self.problem.frame.coefficients(state.C_spm, self.S_pq), state.eps_sm
