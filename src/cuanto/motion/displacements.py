"""Displacements of atoms that a Hessian needs if the molecule has symmetry, and the Hessian from their gradients.

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
from cuanto.system.symmetry import Operation

SAME_DIRECTION = 1e-6
"""Largest difference of two directions that are the same."""
WELL_SPREAD = 0.3
"""Least ratio of the smallest to the largest singular value of directions from which derivatives are accurate."""


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


GradientAndDipole = tuple[Array, Array]
"""Gradient (Hartree/Bohr) and dipole moment (e Bohr) of one geometry."""


class DisplacementPlan:
    """Which displacements to compute, and the derivatives that follow from them."""

    def __init__(self, atoms: int, operations: Sequence[Operation], step: float) -> None:
        self.atoms, self.operations, self.step = atoms, list(operations), step
        self.displacements = list(self._select())

    def _select(self) -> Iterator[Displacement]:
        for a in self.representatives():
            site = self._site(a)
            for direction_x in independent_directions([operation.R_xy for operation in site]):
                x, y, z = (float(value) for value in direction_x)
                yield Displacement(a, (x, y, z), 1)
                if _reversing(site, direction_x) is None:
                    yield Displacement(a, (x, y, z), -1)

    def _site(self, a: int) -> list[Operation]:
        """The operations that leave an atom in its place."""
        return [operation for operation in self.operations if operation.image_a[a] == a]

    def representatives(self) -> list[int]:
        """The first atom of every set of equivalent atoms."""
        first = np.min([operation.image_a for operation in self.operations], axis=0)
        return sorted(set(first.tolist()))

    def hessian(self, R_ax: Array, gradient: Callable[[Array], Array]) -> Array:
        """Hessian [3N, 3N] at the positions R_ax (Bohr) of a function that returns gradients."""
        moved = (displacement.apply(R_ax, self.step) for displacement in self.displacements)
        return self.derivatives({k: (gradient(place), np.zeros(3)) for k, place in enumerate(moved)})[0]

    def derivatives(self, computed: Mapping[int, GradientAndDipole]) -> tuple[Array, Array, float]:
        """Hessian [3N, 3N], derivatives of the dipole moment [3N, 3], and the largest asymmetry of the raw Hessian.

        `computed`: gradient and dipole moment of each displaced geometry, by its index in `displacements`.
        """
        n = self.atoms
        H_axby, P_axy = np.zeros((n, 3, n, 3)), np.zeros((n, 3, 3))
        for a in self.representatives():
            block_xby, block_xy = self._at_atom(a, computed)
            seen = set()
            for operation in self.operations:
                c, R_xy = int(operation.image_a[a]), operation.R_xy
                if c in seen:
                    continue
                seen.add(c)
                H_axby[c][:, operation.image_a] = np.einsum("xz,zbw,yw->xby", R_xy, block_xby, R_xy)
                P_axy[c] = R_xy @ block_xy @ R_xy.T
        H_pq = H_axby.reshape(3 * n, 3 * n)
        asymmetry = float(np.abs(H_pq - H_pq.T).max())
        return 0.5 * (H_pq + H_pq.T), P_axy.reshape(3 * n, 3), asymmetry

    def _at_atom(self, a: int, computed: Mapping[int, GradientAndDipole]) -> tuple[Array, Array]:
        """Derivatives with respect to the position of an atom, from all images of its displacements."""
        site = self._site(a)
        directions, gradients, dipoles = [], [], []
        for direction_x, slope_bx, change_x in self._central(a, site, computed):
            for operation in site:
                directions.append(operation.R_xy @ direction_x)
                image_bx = np.empty_like(slope_bx)
                image_bx[operation.image_a] = slope_bx @ operation.R_xy.T
                gradients.append(image_bx.reshape(-1))
                dipoles.append(operation.R_xy @ change_x)
        inverse = np.linalg.pinv(np.array(directions))
        return (inverse @ np.array(gradients)).reshape(3, self.atoms, 3), inverse @ np.array(dipoles)

    def _central(
        self, a: int, site: Sequence[Operation], computed: Mapping[int, GradientAndDipole]
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Directions, and central differences of gradient and dipole moment along them."""
        for k, displacement in enumerate(self.displacements):
            if displacement.atom != a or displacement.sign < 0:
                continue
            direction_x, (plus_bx, plus_x) = np.array(displacement.direction), computed[k]
            if (reverse := _reversing(site, direction_x)) is not None:
                minus_bx, minus_x = np.empty_like(plus_bx), reverse.R_xy @ plus_x
                minus_bx[reverse.image_a] = plus_bx @ reverse.R_xy.T
            else:
                minus_bx, minus_x = computed[k + 1]
            yield direction_x, (plus_bx - minus_bx) / (2 * self.step), (plus_x - minus_x) / (2 * self.step)


def _reversing(site: Sequence[Operation], direction_x: Array) -> Operation | None:
    """An operation of the site that reverses a direction."""
    return next((operation for operation in site if _reverses(operation.R_xy, direction_x)), None)


def _reverses(R_xy: Array, direction_x: Array) -> bool:
    return bool(np.abs(R_xy @ direction_x + direction_x).max() < SAME_DIRECTION)


def independent_directions(site: Sequence[Array]) -> list[Array]:
    """Directions that span space together with their images under the matrices of a site, at the lowest cost.

    A direction costs two gradients, or one if a matrix reverses it.
    """
    axes = list(np.eye(3))
    if len(site) == 1:
        return axes
    candidates = _candidate_directions(site)
    images = [np.array([R_xy @ direction_x for R_xy in site]) for direction_x in candidates]
    costs = [_cost(site, direction_x) for direction_x in candidates]
    best, found = (float(sum(_cost(site, axis_x) for axis_x in axes)), 0.0), axes
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
    return 1 if any(_reverses(R_xy, direction_x) for R_xy in site) else 2


def _candidate_directions(site: Sequence[Array]) -> list[Array]:
    """Axes of the coordinates, of rotations and of mirror planes, and the bisectors of every two of them."""
    first = list(np.eye(3))
    for R_xy in site[1:]:
        values, vectors = np.linalg.eig(R_xy * np.sign(np.linalg.det(R_xy)))
        first.append(np.real(vectors[:, int(np.argmax(np.real(values)))]))
    found: list[Array] = []
    for vector_x in [*first, *(sign * b + a for a, b in combinations(_distinct(first), 2) for sign in (1, -1))]:
        if np.linalg.norm(vector_x) > 0.1:
            found.append(vector_x / np.linalg.norm(vector_x))
    return _distinct(found)


def _distinct(vectors: Sequence[Array]) -> list[Array]:
    """Drop vectors that are parallel to an earlier one."""
    units = np.array([vector_x / np.linalg.norm(vector_x) for vector_x in vectors])
    parallel = 1 - np.abs(units @ units.T) < SAME_DIRECTION**2 + 1e-12
    return [vector_x for k, vector_x in enumerate(vectors) if not parallel[k, :k].any()]
