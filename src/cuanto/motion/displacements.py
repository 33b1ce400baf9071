"""Displacements of atoms that a Hessian needs in view of symmetry, and the Hessian from their gradients.

If an operation maps the molecule onto itself, it maps the gradient of a displaced molecule onto that of the molecule
with the image of the displacement. One atom of each set of equivalent ones is displaced, along as few directions as
span space together with their images, and only forwards if an operation reverses the direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cuanto.arrays import Array
from cuanto.motion.symmetry import Operation

SAME_DIRECTION = 1e-6
"""Largest difference of two directions that are the same."""
WELL_SPREAD = 0.3
"""Smallest singular value of directions, relative to the largest, from which derivatives are computed."""


@dataclass(frozen=True, eq=False)
class Displacement:
    """Atom, unit vector, and +1 or -1."""

    atom: int
    direction: tuple[float, float, float]
    sign: int

    def apply(self, R_ax: Array, step: float) -> Array:
        """Displaced positions, Bohr."""
        moved_ax = R_ax.copy()
        moved_ax[self.atom] += self.sign * step * np.array(self.direction)
        return moved_ax


Slopes = tuple[Array, Array]
"""Gradient (Hartree/Bohr) and dipole moment (e Bohr) at one geometry, or their derivative along a direction."""


class DisplacementPlan:
    """Which displacements to compute, and the derivatives that follow from them."""

    def __init__(self, atoms: int, operations: Sequence[Operation], step: float) -> None:
        self.atoms, self.operations, self.step = atoms, list(operations), step
        self.displacements = list(self._select())

    def _select(self) -> Iterator[Displacement]:
        for a in self.representatives():
            site = [one for one in self.operations if one.image_a[a] == a]
            for direction_x in independent_directions([one.R_xy for one in site]):
                x, y, z = (float(value) for value in direction_x)
                yield Displacement(a, (x, y, z), 1)
                if _reversing(site, direction_x) is None:
                    yield Displacement(a, (x, y, z), -1)

    def representatives(self) -> list[int]:
        """The first atom of every set of equivalent atoms."""
        first = np.min([one.image_a for one in self.operations], axis=0)
        return sorted(set(first.tolist()))

    def hessian(self, R_ax: Array, gradient: Callable[[Array], Array]) -> Array:
        """Hessian [3N, 3N] at the positions R_ax (Bohr) of a function that returns gradients."""
        moved = (one.apply(R_ax, self.step) for one in self.displacements)
        return self.derivatives({k: (gradient(place), np.zeros(3)) for k, place in enumerate(moved)})[0]

    def derivatives(self, slopes: Mapping[int, Slopes]) -> tuple[Array, Array, float]:
        """Hessian [3N, 3N], derivatives of the dipole moment [3N, 3], and the largest asymmetry of the raw Hessian.

        `slopes`: gradient and dipole moment by the number of the displacement.
        """
        n = self.atoms
        H_axby, P_axy = np.zeros((n, 3, n, 3)), np.zeros((n, 3, 3))
        for a in self.representatives():
            block_xby, block_xy = self._at_atom(a, slopes)
            seen = set()
            for one in self.operations:
                c, R_xy = int(one.image_a[a]), one.R_xy
                if c in seen:
                    continue
                seen.add(c)
                H_axby[c][:, one.image_a] = np.einsum("xz,zbw,yw->xby", R_xy, block_xby, R_xy)
                P_axy[c] = R_xy @ block_xy @ R_xy.T
        H_pq = H_axby.reshape(3 * n, 3 * n)
        asymmetry = float(np.abs(H_pq - H_pq.T).max())
        return 0.5 * (H_pq + H_pq.T), P_axy.reshape(3 * n, 3), asymmetry

    def _at_atom(self, a: int, slopes: Mapping[int, Slopes]) -> tuple[Array, Array]:
        """Derivatives with respect to the position of an atom, from all images of its displacements."""
        site = [one for one in self.operations if one.image_a[a] == a]
        directions, gradients, dipoles = [], [], []
        for direction_x, slope_bx, change_x in self._central(a, site, slopes):
            for one in site:
                directions.append(one.R_xy @ direction_x)
                image_bx = np.empty_like(slope_bx)
                image_bx[one.image_a] = slope_bx @ one.R_xy.T
                gradients.append(image_bx.reshape(-1))
                dipoles.append(one.R_xy @ change_x)
        inverse = np.linalg.pinv(np.array(directions))
        return (inverse @ np.array(gradients)).reshape(3, self.atoms, 3), inverse @ np.array(dipoles)

    def _central(
        self, a: int, site: Sequence[Operation], slopes: Mapping[int, Slopes]
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Directions, and central differences of gradient and dipole moment along them."""
        numbered = [(k, one) for k, one in enumerate(self.displacements) if one.atom == a]
        for k, one in numbered:
            if one.sign < 0:
                continue
            direction_x, (plus_bx, plus_x) = np.array(one.direction), slopes[k]
            if (reverse := _reversing(site, direction_x)) is not None:
                minus_bx, minus_x = np.empty_like(plus_bx), reverse.R_xy @ plus_x
                minus_bx[reverse.image_a] = plus_bx @ reverse.R_xy.T
            else:
                minus_bx, minus_x = slopes[k + 1]
            yield direction_x, (plus_bx - minus_bx) / (2 * self.step), (plus_x - minus_x) / (2 * self.step)


def _reversing(site: Sequence[Operation], direction_x: Array) -> Operation | None:
    """An operation of the site that reverses a direction."""
    return next((one for one in site if np.abs(one.R_xy @ direction_x + direction_x).max() < SAME_DIRECTION), None)


def independent_directions(site: Sequence[Array]) -> list[Array]:
    """Directions that span space together with their images under the matrices of a site, at the lowest cost.

    A direction costs two gradients, or one if a matrix reverses it.
    """
    axes = list(np.eye(3))
    if len(site) == 1:
        return axes
    candidates = _candidate_directions(site)
    images = [np.array([R_xy @ one for R_xy in site]) for one in candidates]
    costs = [_cost(site, one) for one in candidates]
    best, found = (float(sum(_cost(site, one) for one in axes)), 0.0), axes
    for size in (1, 2):
        if best[0] <= size:  # one gradient for each direction is the least
            break
        for chosen in combinations(range(len(candidates)), size):
            cost = float(sum(costs[k] for k in chosen))
            if cost > best[0]:
                continue
            values = np.linalg.svd(np.concatenate([images[k] for k in chosen]), compute_uv=False)
            spread = float(values[2] / values[0]) if len(values) == 3 else 0.0
            if spread > WELL_SPREAD and (cost, -round(spread, 6)) < best:
                best, found = (cost, -round(spread, 6)), [candidates[k] for k in chosen]
    return found


def _cost(site: Sequence[Array], direction_x: Array) -> int:
    return 1 if any(np.abs(R_xy @ direction_x + direction_x).max() < SAME_DIRECTION for R_xy in site) else 2


def _candidate_directions(site: Sequence[Array]) -> list[Array]:
    """Axes of the coordinates, of rotations and of mirror planes, and the bisectors of every two of them."""
    first = list(np.eye(3))
    for R_xy in site[1:]:
        values, vectors = np.linalg.eig(R_xy * np.sign(np.linalg.det(R_xy)))
        first.append(np.real(vectors[:, int(np.argmax(np.real(values)))]))
    found: list[Array] = []
    for one in [*first, *(sign * b + a for a, b in combinations(_distinct(first), 2) for sign in (1, -1))]:
        if np.linalg.norm(one) > 0.1:
            found.append(one / np.linalg.norm(one))
    return _distinct(found)


def _distinct(vectors: Sequence[Array]) -> list[Array]:
    """Drop vectors that are parallel to an earlier one."""
    units = np.array([one / np.linalg.norm(one) for one in vectors])
    parallel = 1 - np.abs(units @ units.T) < SAME_DIRECTION**2 + 1e-12
    return [one for k, one in enumerate(vectors) if not parallel[k, :k].any()]
