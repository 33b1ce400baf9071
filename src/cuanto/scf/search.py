"""From a guess to a converged state: DIIS, descent if DIIS fails, and escape from saddle points."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.options import ScfOptions
from cuanto.scf import rotations
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.descent import HANDOVER_GRADIENT, descend
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem, first_orbitals, iterate
from cuanto.scf.secants import Secants
from cuanto.scf.stability import CLEARLY_UNSTABLE, Mode, improve, leave, lowest_mode
from cuanto.scf.state import State

HANDOVER_FACTOR = 0.03
"""Factor on the gradient at which descent ends, after DIIS has failed or raised the energy again."""
MIN_GAIN = 1e-7
"""Hartree by which a solution must lie below the saddle point that was left."""
CLOSE_GRADIENT = 1e-4
"""Gradient below which curvatures predict the stationary point."""
MAX_IMPROVEMENTS = 5
"""Maximum number of attempts to move from a converged state to a predicted minimum beyond the tolerances."""

Start = Density | tuple[Any, Any]


@dataclass
class Counter:
    """Numbers the iterations of several stages consecutively."""

    left: int
    done: int = 0

    def __call__(self, states: Iterator[State]) -> Iterator[State]:
        """The states with consecutive numbers."""
        for state in states:
            self.done, self.left = self.done + 1, self.left - 1
            yield replace(state, iteration=self.done)


def search(
    problem: Problem,
    start: Start,
    options: ScfOptions,
    diagonaliser: Diagonaliser,
    criteria: Criteria,
    S_pq: Any,
    secants: Secants | None = None,
) -> Iterator[State]:
    """States until one is converged (and a minimum, if requested), or until iterations run out."""
    frame, counted = problem.frame, Counter(int(options.max_iterations))
    watched = options.accelerator in ("auto", "descent") and problem.occupations.integer
    accelerator = Accelerator(options, frame, watched, frame.free)
    if secants is not None:
        accelerator.history.carry(secants.carried(frame, S_pq))
    start = mix_guess(problem, start, options)
    handover, saddle, improvements = HANDOVER_GRADIENT, np.inf, 0
    if options.accelerator == "descent":
        start = yield from _descend(problem, start, counted, handover, S_pq)
    while counted.left > 0:
        best: State | None = None
        for state in counted(iterate(problem, start, accelerator, diagonaliser, criteria, counted.left)):
            best = state if best is None or state.energy < best.energy else best
            if not state.converged:
                yield state
        if best is None or not (state.converged or accelerator.lost):
            return
        if secants is not None and state.converged:
            secants.add(accelerator.history.differences(), frame, S_pq)
        escape = frame.coefficients(best.C_spm, S_pq), best.eps_sm
        nearest = state if state.converged else best
        with problem.timings.measure("stability"):
            examined = options.stability in ("check", "follow") and (state.converged or best.gradient < CLOSE_GRADIENT)
            mode = lowest_mode(problem, nearest) if examined else None
        accepted = mode is None or mode.stable or options.stability != "follow"
        if mode is not None and accepted and improvements < MAX_IMPROVEMENTS and not _settled(mode, criteria):
            if state.converged:
                yield replace(state, converged=False)
            improvements += 1
            start = improve(problem, nearest, mode, S_pq)
            accelerator.restart()
            diagonaliser.restart()
            continue
        if state.converged:
            yield replace(state, curvature=None if mode is None else mode.curvature)
            if mode is None or accepted:
                return
            if mode.curvature > CLEARLY_UNSTABLE and state.energy > saddle - MIN_GAIN:
                return  # was left before without finding a lower state
            escape = leave(problem, state, mode, S_pq)
        if accelerator.lost:
            handover = min(handover, HANDOVER_FACTOR * best.gradient)
        elif state.energy > saddle - MIN_GAIN:
            handover = HANDOVER_FACTOR * handover
        handover = max(handover, 0.5 * criteria.gradient)
        saddle = min(saddle, state.energy) if state.converged else saddle
        start = yield from _descend(problem, escape, counted, handover, S_pq)
        accelerator.restart()
        diagonaliser.restart()


def _settled(mode: Mode, criteria: Criteria) -> bool:
    """Whether energy and dipole moment change by less than the thresholds on the way to the minimum."""
    return mode.gain < criteria.energy and criteria.keeps_dipole(mode.change_spq)


def _descend(
    problem: Problem, start: Start, counted: Counter, handover: float, S_pq: Any
) -> Generator[State, None, tuple[Any, Any]]:
    """Descend until DIIS is safe; returns orbitals and energies."""
    orbitals = first_orbitals(problem, start) if isinstance(start, Density) else start
    state: State | None = None
    for state in counted(descend(problem, orbitals, counted.left, handover)):
        yield state
    return orbitals if state is None else (problem.frame.coefficients(state.C_spm, S_pq), state.eps_sm)


def mix_guess(problem: Problem, start: Start, options: ScfOptions) -> Start:
    """The start with random rotations of its occupied orbitals, whose norm is `guess_mixing`.

    They come from a random antisymmetric matrix in the basis functions, so that signs of orbitals and the choice among
    degenerate ones, which differ between machines, do not matter.
    """
    if not options.guess_mixing:
        return start
    frame, xp = problem.frame, problem.frame.xp
    C_sjm, eps_sm = first_orbitals(problem, start) if isinstance(start, Density) else start
    n_sm, _ = problem.occupations(frame.to_host(eps_sm))
    rng, angles = np.random.default_rng(int(options.seed)), []
    levels = problem.levels(n_sm)
    for C_jm, n_m in zip(C_sjm, levels, strict=True):
        C_pm = frame.X_pm @ C_jm
        A_pq = rng.normal(size=(len(C_pm), len(C_pm)))
        T_mm = frame.to_host(C_pm.T @ xp.asarray(A_pq - A_pq.T) @ C_pm)
        parts = [T_mm[:mid, mid:end] for mid, end in rotations.splits(n_m)]
        norm = float(np.sqrt(sum(float(np.sum(X**2)) for X in parts))) or 1.0
        angles += [X * (options.guess_mixing / norm) for X in parts]
    return rotations.rotate_spins(C_sjm, levels, angles, xp), eps_sm
