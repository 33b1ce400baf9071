"""Stability of a converged determinant: the lowest curvature of its energy under real rotations of its own orbitals.

R. Seeger and J. A. Pople, J. Chem. Phys. 66, 3045 (1977), doi:10.1063/1.434318. The lowest eigenvector is found by
E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975), doi:10.1016/0021-9991(75)90065-0. Whether all curvatures are
positive takes fewer products with the Hessian (`certain_curvature`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.hessian import FLAT_CURVATURE, MIN_CURVATURE, Hessian, Subspace
from cuanto.scf.loop import ExtrapolationStep, Problem, evaluate
from cuanto.scf.rotations import rotate_spins, rotation_count, split_angles
from cuanto.scf.state import State
from cuanto.terms.base import Term

UNSTABLE_CURVATURE = -5e-6
"""Hartree: curvatures above this are zero within their errors, like those of rotations between degenerate states."""
CLEARLY_UNSTABLE = -1e-4
"""Hartree: curvatures below this are too negative to be errors."""
TOLERANCE = 1e-3
"""Residual at which the eigenvector is accurate enough: only its approximate direction matters."""
TOLERANCE_NEAR_ZERO = 1e-4
"""The same for a curvature near zero, whose error is the residual squared over the distance to the next curvature."""
TOLERANCE_FLAT = 1e-5
"""The same for flat valleys, where a slightly wrong direction would dominate the slope."""
MAX_RELATIVE_RESIDUAL = 0.3
"""Residual, as a fraction of a positive curvature, below which the curvature is certainly positive."""
MIN_VECTORS = 6
"""Smallest number of products with the Hessian after which a curvature may count as positive."""
MAX_VECTORS = 40
"""Largest number of products with the Hessian in a search for the lowest curvature."""
SAME_ENERGY = 1e-7
"""Hartree: energies in both directions of a mode that differ less are equal by symmetry."""
MANY_ROTATIONS = 10_000
"""Smallest number of rotations for which it is worth testing first whether a state is certainly a minimum."""
MAX_DOUBT = 0.01
"""Probability that a negative curvature is missed, for the least favourable Hessian in orthonormal functions."""
ESCAPE_NORMS = (0.3, 0.1, 0.03)
"""Norms of the rotations by which an unstable state is left, tried until one lowers the energy."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Lowest curvature (Hartree) and its direction: angles of all `rotations.splits` as one vector of norm 1.

    `newton`: angles of a Newton step to the lowest energy within the examined space; `gain`: how much lower that energy
    is (Hartree); `change_spq`: the change of the density in that step, on the backend. In a flat valley both are larger
    than a small gradient suggests.
    """

    curvature: float
    direction: Array
    newton: Array
    gain: float
    change_spq: Any
    error: float = 0.0

    @property
    def stable(self) -> bool:
        """Whether no rotation lowers the energy, within the error of curvatures."""
        return _is_stable(self.curvature, self.error)


def stability_note(curvature: float, terms: Sequence[Term], is_bound: bool = False) -> str:
    """Note for a result about the stability of a state with this lowest curvature (Hartree), or with a lower one if
    `is_bound`."""
    error = max((term.curvature_error for term in terms), default=0.0)
    stable = _is_stable(curvature, error)
    if not stable and curvature > CLEARLY_UNSTABLE:
        # Where the energy rises with the fourth power of an angle, the gain is about the curvature squared.
        flat = "the energy surface is flat there, and following it gains almost nothing"
        return f"internal stability: lowest curvature {curvature:.1e} Hartree: {flat}"
    verdict = "stable" if stable else "NOT a minimum"
    bound = "at most " if is_bound else ""
    within = " (zero within the error of the grid)" if abs(curvature) < error else ""
    return f"internal stability: {verdict}, lowest curvature {bound}{curvature:.2g} Hartree{within}"


def lowest_mode(problem: Problem, state: State, sign_only: bool = False) -> Mode | None:
    """Find the rotation along which the energy of a converged state has the lowest curvature; None if nothing can be
    rotated. `sign_only`: stop as soon as the curvature is clearly positive."""
    space = Subspace(hessian := Hessian(problem, state))
    size = len(hessian.diagonal)
    if size == 0:
        return None
    space.add_trials(3)
    while True:
        curvature, vector, product = space.lowest()
        residual = product - curvature * vector
        norm = float(np.linalg.norm(residual))
        clear = sign_only and len(space) >= MIN_VECTORS and norm < MAX_RELATIVE_RESIDUAL * curvature
        shift = hessian.diagonal - curvature
        step = residual / np.where(np.abs(shift) > MIN_CURVATURE, shift, MIN_CURVATURE)
        done = clear or norm < _tolerance(curvature) or len(space) >= min(MAX_VECTORS, size)
        if done or not space.add(step):
            return _mode(space)


def certain_curvature(problem: Problem, state: State) -> float | None:
    """An upper bound on the lowest curvature of a converged state if all are almost certainly positive and none is
    close to zero; None otherwise, and if there are so few rotations that `lowest_mode` takes no time.

    Lanczos' method for P = D^(-1/2) H D^(-1/2), D the diagonal of H, from a random vector. P has as many negative
    eigenvalues as H, most of the others are close to 1, and equal molecules add equal ones: the number of products does
    not depend on the size. The probability that the lowest Ritz value of n x n P after k products is above the lowest
    eigenvalue by more than a fraction t of the width of the spectrum is below 1.648 sqrt(n) exp(-(2k - 1) sqrt(t)):
    J. Kuczynski and H. Wozniakowski, SIAM J. Matrix Anal. Appl. 13, 1094 (1992), doi:10.1137/0613066. This holds for
    uniformly distributed vectors; where functions overlap, the part of `Hessian.random` along low modes is smaller and
    the probability larger, so that with diffuse functions `MAX_DOUBT` is not a bound. The width is estimated as the
    largest Ritz value. Single precision is enough, because curvatures close to zero are left to `lowest_mode`.
    """
    if rotation_count(problem.orbital_occupations(state.n_sm)) < MANY_ROTATIONS:
        return None
    hessian = Hessian(problem, state, np.float32)
    space = Subspace(hessian)
    D = np.maximum(np.abs(hessian.diagonal), MIN_CURVATURE).astype(hessian.kind)
    overlaps = np.zeros((0, 0))
    x, failures = hessian.random(0) / np.sqrt(D), 1.648 * np.sqrt(len(D))
    while space.add(x):
        overlaps = np.pad(overlaps, (0, 1))
        overlaps[-1] = overlaps[:, -1] = space.V @ (D * space.V[-1])
        inverse = np.linalg.inv(np.linalg.cholesky(overlaps))
        values = np.linalg.eigvalsh(inverse @ space.H @ inverse.T)
        if values[0] <= 0.0:
            return None
        enough = 0.5 + 0.5 * np.log(failures / MAX_DOUBT) / np.sqrt(values[0] / values[-1])
        if len(space) >= enough:
            return float(np.linalg.eigvalsh(space.H)[0])
        if enough > MAX_VECTORS:
            return None
        x = space.W[-1] / D
    return None


def _is_stable(curvature: float, error: float) -> bool:
    """Whether a lowest curvature with this error is zero or positive."""
    return curvature > min(UNSTABLE_CURVATURE, -error)


def _tolerance(curvature: float) -> float:
    """Residual that is small enough for an eigenvector of this curvature."""
    if abs(curvature) > TOLERANCE:
        return TOLERANCE
    return TOLERANCE_NEAR_ZERO if abs(curvature) > -CLEARLY_UNSTABLE else TOLERANCE_FLAT


def _mode(space: Subspace) -> Mode:
    """The lowest of approximate eigenvectors, and the minimum of the energy, 2 capacity (g x + x H x/2), in them."""
    hessian, (values, vectors, _) = space.hessian, space.eigenvectors()
    slopes, steep = vectors @ hessian.slope(), values > FLAT_CURVATURE
    steps = np.where(steep, -slopes / np.where(steep, values, 1.0), 0.0)
    direction, newton = vectors[0] / np.linalg.norm(vectors[0]), steps @ vectors
    direction = direction * np.copysign(1.0, direction @ space.V[0])  # the sign of an eigenvector is arbitrary
    gain = -hessian.capacity * float(slopes @ steps)
    return Mode(float(values[0]), direction, newton, gain, hessian.change(newton), hessian.error)


def escape(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any] | None:
    """Orbitals rotated along a mode to where the energy is lower, in the orthonormal basis, and their former energies;
    None if no step in either direction lowers it."""
    frame, n_km = problem.frame, problem.orbital_occupations(state.n_sm)
    C_sjm = frame.coefficients(state.C_spm, S_pq)
    for norm in ESCAPE_NORMS:
        tried = []
        for sign in (1.0, -1.0):
            angles = split_angles(sign * norm * mode.direction, n_km)
            rotated = rotate_spins(C_sjm, n_km, angles, frame.xp, frame.linalg)
            reached = evaluate(problem, ExtrapolationStep(problem), (rotated, state.eps_sm, "")).state
            tried.append((reached.energy, rotated))
        energy, rotated = tried[1] if tried[1][0] < tried[0][0] - SAME_ENERGY else tried[0]
        if energy < state.energy:
            return rotated, state.eps_sm
    return None
