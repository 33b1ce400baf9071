"""Second-order minimisation of the energy by orbital rotations: Newton steps within a trust radius.

G. B. Bacskay, Chem. Phys. 61, 385 (1981), doi:10.1016/0301-0104(81)85156-7; B. Helmich-Paris, J. Chem. Phys. 154,
164104 (2021), doi:10.1063/5.0040798. Newton's equations are solved in a growing space of vectors on which the Hessian
has acted. Along directions of negative curvature steps go downhill, as if the curvature were positive. Occupations are
kept: with integer occupations, the state of lowest energy may have an empty orbital below an occupied one, and no
method that fills the lowest orbitals can converge to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.convergence import ENERGY_ROUNDING, Criteria
from cuanto.scf.fixed_point import iterations
from cuanto.scf.hessian import FLAT_CURVATURE, MIN_CURVATURE, Hessian, Subspace
from cuanto.scf.loop import Evaluation, ExtrapolationStep, Problem, canonical_state, evaluate
from cuanto.scf.rotations import rotate_spins, split_angles
from cuanto.scf.state import State

FLAT_GRADIENT = 1e-5
"""Gradient along flat directions that does not prevent convergence, whatever the tolerance. The quadrature makes them
uneven: the energy of an open shell depends a little on its direction."""
FIRST_RADIUS, MAX_RADIUS, MIN_RADIUS = 0.3, 1.0, 1e-7
"""Trust radius (largest norm of the angles of a step): initial and largest value, and that below which to give up."""
GOOD_RATIO, POOR_RATIO = 0.75, 0.25
"""Ratios of actual to predicted gain beyond which the radius grows or shrinks."""
FORCING = 0.1
"""Largest residual of Newton's equations, relative to the gradient; near the minimum it shrinks with the gradient."""
MAX_VECTORS = 25
"""Largest number of vectors on which the Hessian of a state acts."""
TINY = 1e-100
"""Divisor in place of a norm of zero."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A step: angles `x` between all pairs of blocks of different occupation (`rotations.splits`) and their norm, the
    predicted decrease of the energy (`gain`, Hartree), the change of the density, and the fraction of the gradient that
    is `steep`: along directions that are not flat within the error of the quadrature."""

    x: Array
    norm: float
    gain: float
    change_spq: Any
    steep: float


def minimise(problem: Problem, start: tuple[Any, Any], criteria: Criteria, max_iterations: int) -> Iterator[State]:
    """Yield states until one is converged, including rejected trial steps. For integer occupations.

    A state is converged if its gradient is small and the next step would change neither energy nor dipole moment by
    more than the tolerances; its orbitals are canonical.
    """
    for current in iterations(_Newton(problem, criteria, start[1]), start[0], max_iterations):
        yield current.state


@dataclass
class _Newton:
    """A fixed-point map by Newton steps.

    It keeps the last accepted state (`lowest`, `orbitals`) and the vectors on which its Hessian has acted (`space`).
    """

    problem: Problem
    criteria: Criteria
    eps_sm: Any
    radius: float = FIRST_RADIUS
    lowest: State | None = None
    orbitals: Any = None
    space: Subspace | None = None
    proposal: Proposal | None = None

    def evaluate(self, C_sjm: Any, iteration: int, previous: Evaluation | None) -> Evaluation:
        """Compute the state of orbitals; propose the next step from it or, if rejected, from the last accepted one."""
        before = np.inf if self.lowest is None else self.lowest.energy
        current = evaluate(
            self.problem, ExtrapolationStep(self.problem), (C_sjm, self.eps_sm, "newton"), iteration, before
        )
        state = current.state
        if not self._accept(state):
            self.proposal = self._propose()
            return current
        C_sjm, state, sound, _ = canonical_state(self.problem, current)
        if not sound:  # the canonical orbitals have another density: angles relative to them would be meaningless
            self.proposal = None
            return current
        with self.problem.timings.measure("second order"):
            self.lowest, self.orbitals, self.space = state, C_sjm, Subspace(Hessian(self.problem, state))
            self.proposal = self._propose()
        step = self.proposal
        settled = step.gain < self.criteria.energy and self.criteria.keeps_dipole(step.change_spq)
        tolerance = self.criteria.gradient
        small = step.steep * state.gradient < tolerance and state.gradient < max(tolerance, FLAT_GRADIENT)
        return replace(current, state=replace(state, converged=settled and small))

    def advance(self, current: Evaluation) -> Any | None:
        """Orbitals after the proposed step; None if steps have become too short."""
        if self.proposal is None or self.lowest is None or self.radius < MIN_RADIUS:
            return None
        frame, n_km = self.problem.frame, self.problem.orbital_occupations(self.lowest.n_sm)
        return rotate_spins(self.orbitals, n_km, split_angles(self.proposal.x, n_km), frame.xp, frame.linalg)

    def _accept(self, state: State) -> bool:
        """Whether the energy has fallen; adapts the trust radius."""
        if self.lowest is None or self.proposal is None:
            return True
        step, change = self.proposal, state.energy - self.lowest.energy
        rounding = max(ENERGY_ROUNDING * abs(state.energy), 0.1 * self.criteria.energy)
        if step.gain < rounding:  # too small to be judged by the energy
            # A step along a flat, curved valley raises a gradient that is below its tolerance.
            accepted = change < rounding and state.gradient < max(2.0 * self.lowest.gradient, self.criteria.gradient)
            ratio = 1.0 if accepted else 0.0
        else:
            ratio = -change / step.gain
            accepted = change < rounding
        if ratio < POOR_RATIO:
            self.radius = (0.5 if accepted else 0.25) * step.norm
        elif ratio > GOOD_RATIO and step.norm > 0.8 * self.radius:
            self.radius = min(2.0 * self.radius, MAX_RADIUS)
        return accepted

    def _propose(self) -> Proposal:
        """The step to the minimum of the quadratic model within the trust radius."""
        assert self.space is not None
        space, hessian = self.space, self.space.hessian
        slope = hessian.slope()
        size = float(np.linalg.norm(slope))
        if len(space) == 0:
            space.add(-slope / np.maximum(np.abs(hessian.diagonal), MIN_CURVATURE))
            space.add_trials(2)
        enough = min(FORCING, np.sqrt(size)) * size
        while True:
            values, vectors, products = space.eigenvectors()
            slopes = vectors @ slope
            flat = FLAT_CURVATURE if size > self.criteria.gradient else max(FLAT_CURVATURE, hessian.error)
            y, raised = _step(values, slopes, self.radius, flat)
            residual = space.outside(slope + y @ products)
            if np.linalg.norm(residual) < enough or len(space) >= min(MAX_VECTORS, len(slope)):
                break
            if not space.add(residual / np.maximum(np.abs(hessian.diagonal) + raised, MIN_CURVATURE)):
                break
        gain = -2.0 * hessian.capacity * float(slopes @ y + 0.5 * y @ (values * y))
        x = y @ vectors
        flat_slopes = slopes[np.abs(values) <= max(FLAT_CURVATURE, hessian.error)]
        steep = np.sqrt(max(0.0, 1.0 - float(flat_slopes @ flat_slopes) / max(size, TINY) ** 2))
        return Proposal(x, float(np.linalg.norm(x)), gain, hessian.change(x), steep)


def _step(values: Array, slopes: Array, radius: float, flat: float) -> tuple[Array, float]:
    """Coefficients of a downhill step along eigenvectors, at most as long as the radius, and the shift of curvatures.

    Curvatures (`values`) are replaced by their absolute values and raised by the shift until the step is short enough.
    Directions with curvatures from -`flat` to FLAT_CURVATURE, which would gain nothing, are left out.
    """
    size = np.where((values > FLAT_CURVATURE) | (values < -flat), np.abs(values), np.inf)

    def length(shift: float) -> float:
        return float(np.linalg.norm(slopes / (size + shift)))

    low, high = 0.0, 0.0
    if length(0.0) > radius:
        high = float(np.linalg.norm(slopes)) / radius
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if length(middle) > radius else (low, middle)
    return -slopes / (size + high), high
