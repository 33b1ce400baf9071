"""Direct minimisation of the energy by orbital rotations: slower than DIIS, but the energy only falls.

T. Van Voorhis and M. Head-Gordon, Mol. Phys. 100, 1713 (2002), doi:10.1080/00268970110103642. Rotations between
occupied and virtual orbitals are expressed in the current orbitals; those of earlier steps keep their elements while
the orbitals rotate, so that a limited-memory quasi-Newton method can use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf import rotations
from cuanto.scf.fixed_point import iterations
from cuanto.scf.loop import Evaluation, ExtrapolationStep, Problem, evaluate
from cuanto.scf.state import State

HANDOVER_GRADIENT = 1e-3
"""Gradient below which DIIS is faster and stays near the minimum."""
MAX_STEP = 0.5
"""Largest norm of a step."""
RIDGE_FACTOR = 3.0
"""Length of a step relative to the last one, if the curvature along the last one was negative."""
MIN_COSINE = 1e-8
"""Cosine between a step and the change of the gradient below which the curvature is not usable."""
ALLOWED_RISE = 2e-14
"""Rise of the energy, relative to it, that is attributed to rounding."""
MAX_STEPS_KEPT = 20
"""Steps kept for the quasi-Newton method."""
MIN_GAP = 0.1
"""Hartree: lower bound on estimated curvatures."""


def descend(
    problem: Problem, start: tuple[Any, Any], max_iterations: int, handover: float = HANDOVER_GRADIENT
) -> Iterator[State]:
    """Yield states of decreasing energy until the gradient is small, including rejected trial steps.

    The last state is the lowest, unless iterations run out. For integer occupations.
    """
    for current in iterations(_Descent(problem, handover, start[1]), start[0], max_iterations):
        yield current.state


@dataclass
class _Descent:
    """A fixed-point map by quasi-Newton steps; remembers the last steps and the last accepted state."""

    problem: Problem
    handover: float
    eps_sm: Any
    memory: list[tuple[Array, Array]] = field(default_factory=list)
    best: State | None = None
    X: Array = field(default_factory=lambda: np.zeros(0))
    slope: float = 0.0
    kept: tuple[Any, Array] | None = None

    def evaluate(self, C_sjm: Any, iteration: int, previous: Evaluation | None) -> Evaluation:
        """The state of orbitals; its energy change refers to the lowest state."""
        lowest = -np.inf if self.best is None else self.best.energy
        point = (C_sjm, self.eps_sm, "descent")
        return evaluate(self.problem, ExtrapolationStep(self.problem), point, iteration, lowest)

    def advance(self, current: Evaluation) -> Any | None:
        """Orbitals of the next trial step, from the last accepted ones."""
        state, (C_sjm, _, F_eff) = current.state, current.kept
        change = state.energy_change
        if self.kept is not None and change > 1e-4 * self.slope + ALLOWED_RISE * abs(state.energy):
            # Too long: step to the minimum of the parabola through both energies and the slope.
            shorter = min(0.5, max(0.1, -0.5 * self.slope / max(change - self.slope, 1e-300)))
            self.X, self.slope = shorter * self.X, shorter * self.slope
            return self._rotate(self.kept[0], state.n_sm)
        gradient, gaps = _gradient(self.problem, F_eff, C_sjm, state.n_sm)
        cosine = 1.0
        if self.kept is not None:
            difference = gradient - self.kept[1]
            norms = float(np.linalg.norm(self.X) * np.linalg.norm(difference))
            cosine = float(self.X @ difference) / max(norms, 1e-300)
            if cosine > MIN_COSINE:
                self.memory = [*self.memory, (self.X, difference)][-MAX_STEPS_KEPT:]
        self.best, self.kept = state, (C_sjm, gradient)
        if state.gradient < self.handover:
            return None
        # With negative curvature there is no predicted minimum along the step: take a longer one.
        X = RIDGE_FACTOR * self.X if cosine <= MIN_COSINE else _direction(gradient, gaps, self.memory)
        if X @ gradient > -1e-3 * np.linalg.norm(X) * np.linalg.norm(gradient):
            self.memory, X = [], -gradient / gaps
        self.X = X * min(1.0, MAX_STEP / max(float(np.linalg.norm(X)), 1e-300))
        self.slope = float(self.X @ gradient)
        return self._rotate(C_sjm, state.n_sm)

    def _rotate(self, C_sjm: Any, n_sm: Array) -> Any:
        frame, n_km = self.problem.frame, self.problem.orbital_occupations(n_sm)
        angles = rotations.split_angles(self.X, n_km)
        return rotations.rotate_spins(C_sjm, n_km, angles, frame.xp, frame.linalg)


def _gradient(problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array) -> tuple[Array, Array]:
    """dE/dX_pq = 2 (n_p - n_q) F_pq of all orbitals, and an estimate of the curvatures, 2 (n_p - n_q) (e_q - e_p)."""
    slopes, curvatures, n_km = [], [], problem.orbital_occupations(n_sm)
    for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, n_km, strict=True):
        F_mm, weight = problem.frame.to_host(C_jm.T @ F_jk @ C_jm), 2.0 * (n_m[:, None] - n_m[None, :])
        eps_m = F_mm.diagonal()
        slopes.append(weight * F_mm)
        curvatures.append(weight * np.maximum(eps_m[None, :] - eps_m[:, None], MIN_GAP))
    return rotations.join_blocks(slopes, n_km), rotations.join_blocks(curvatures, n_km)


def _direction(gradient: Array, curvature: Array, memory: list[tuple[Array, Array]]) -> Array:
    """-H^-1 g with the inverse Hessian of limited-memory BFGS (J. Nocedal, doi:10.1090/S0025-5718-1980-0572855-7).

    Differences of orbital energies overestimate curvatures, most of all with exact exchange: they are divided by the
    factor by which they do along the last step.
    """
    q, factors = gradient.copy(), []
    for s, y in reversed(memory):
        factors.append(float(s @ q) / float(s @ y))
        q = q - factors[-1] * y
    q = q / curvature
    if memory:
        s, y = memory[-1]
        q = q * max(1.0, float(s @ y) / float(y @ (y / curvature)))
    for (s, y), factor in zip(memory, reversed(factors), strict=True):
        q = q + (factor - float(y @ q) / float(s @ y)) * s
    return -q
