"""Cost model of a pass over the groups, with measured constants; it determines the partition.

A group of n points and f functions costs n f^2 (products with matrices), n f (values of functions) and, for every piece
that is treated at once, f^2 (its part of a matrix is gathered and scattered) and a constant; points and functions are
padded to the units of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, Ints, range_starts
from cuanto.grid.partition import Boxes, ShellReaches, divide
from cuanto.grid.points import Points, molecular_points
from cuanto.grid.settings import GridSettings
from cuanto.system import Molecule

SAMPLE_POINTS = 6_000
"""Points around each of a few atoms by which partitions are compared."""
SAMPLED_ATOMS = 2
SAMPLED_FROM = 5
"""Number of atoms nearest to each of them, itself included, whose points are considered."""
EDGES = (1.5, 2.0, 3.0, 4.5, 7.0, 12.0)
FRACTIONS = (0.0, 0.4, 0.6, 0.75)
"""Candidates for the cube edge (Bohr) and for the sphere fraction."""
FIRST_EDGE, FIRST_FRACTION = 1, 1
"""Indices of the candidates from which the search starts."""


@dataclass(frozen=True)
class DeviceCost:
    """Seconds per unit of work of one iteration, and sizes of the units.

    Seconds per point and pair of functions (`product`), per point and function (`value`), per element of a piece's
    matrix (`element`), per piece (`overhead`), and per batch of pieces of one size (`batch`).
    `piece`: points that are treated at once; `points` and `functions`: multiples to which groups are padded.
    """

    product: float
    value: float
    element: float
    overhead: float
    piece: int
    points: int
    functions: int
    batch: float = 0.0

    def seconds(self, points: Ints, functions: Ints) -> float:
        """Time of all groups."""
        n = -(-points // self.points) * float(self.points)
        f = -(-functions // self.functions) * float(self.functions)
        pieces = np.maximum(1.0, np.round(n / self.piece))
        work = n * f * (f * self.product + self.value) + pieces * (f * f * self.element + self.overhead)
        return float(work[functions > 0].sum())

    def piece_seconds(self, points: int, functions: int) -> float:
        """Time of one piece."""
        product = points * functions * (functions * self.product + self.value)
        return product + functions**2 * self.element + self.overhead


def _measured(language: str, points: int, functions: int) -> DeviceCost:
    names = ("product", "value", "element", "piece", "batch")
    product, value, element, overhead, batch = (tuning.number(language, f"grid.{name}_seconds") for name in names)
    piece = tuning.size(language, "grid.piece_points")
    return DeviceCost(product, value, element, overhead, piece, points, functions, batch)


COSTS = {"cpu": _measured("cpu", 24, 8), "cuda": _measured("cuda", 64, 32)}
"""The CPU's predictions are right within 18 % (16 to 128 waters in 15 partitions)."""


def choose_partition(points: Points, reaches: ShellReaches, settings: GridSettings) -> tuple[float, float]:
    """Cube edge and sphere fraction of the settings, or those of least predicted time for some points.

    Neighbours of the best candidate are tried until none is better: the cost has one minimum.
    """
    edges = EDGES if settings.cube_edge is None else (settings.cube_edge,)
    fractions = FRACTIONS if settings.sphere_fraction is None else (settings.sphere_fraction,)
    if len(edges) == len(fractions) == 1:
        return edges[0], fractions[0]
    seconds: dict[tuple[int, int], float] = {}
    best = min(FIRST_EDGE, len(edges) - 1), min(FIRST_FRACTION, len(fractions) - 1)
    while True:
        e, f = best
        near = [(e + i, f + j) for i, j in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))]
        near = [(i, j) for i, j in near if 0 <= i < len(edges) and 0 <= j < len(fractions)]
        if unknown := [choice for choice in near if choice not in seconds]:
            predicted = _predict(points, [(edges[i], fractions[j]) for i, j in unknown], reaches)
            seconds |= zip(unknown, predicted, strict=True)
        best = min(near, key=seconds.__getitem__)
        if best == (e, f):
            return edges[e], fractions[f]


def _predict(points: Points, partitions: Sequence[tuple[float, float]], reaches: ShellReaches) -> list[float]:
    """Time of each partition; the functions of all groups are counted together, because a GPU waits for every count."""
    backend = reaches.backend
    groups = [divide(points, edge, fraction) for edge, fraction in partitions]
    order = np.concatenate([one.order for one in groups])
    sizes = np.concatenate([one.sizes for one in groups])
    position_xg = backend.to_device(points.r_xg.take(order, axis=1))
    _, functions, _ = reaches.count(Boxes.of(position_xg, range_starts(sizes), backend))
    cost, ends = COSTS[backend.traits.language], np.cumsum([len(one) for one in groups])[:-1]
    return [cost.seconds(n, f) for n, f in zip(np.split(sizes, ends), np.split(functions, ends), strict=True)]


def sample_points(molecule: Molecule, settings: GridSettings) -> Points:
    """All points near some of the atoms (a random sample would make every group look small)."""
    R_ax = molecule.R_ax
    middles = np.unique(np.linspace(0, len(R_ax) - 1, SAMPLED_ATOMS).astype(int)).tolist()
    order_ma = [np.argsort(((R_ax - R_ax[a]) ** 2).sum(axis=1))[:SAMPLED_FROM] for a in middles]
    points = molecular_points(molecule, settings, np.unique(np.concatenate(order_ma)))
    return points_near(points, R_ax[middles])


def points_near(points: Points, R_mx: Array) -> Points:
    """The points nearest to some positions, or all if they are few."""
    if len(points) <= len(R_mx) * SAMPLE_POINTS:
        return points
    chosen = np.zeros(len(points), dtype=bool)
    for R_x in R_mx:
        away_xg = points.r_xg - R_x[:, None]
        chosen[np.argpartition(np.einsum("xg,xg->g", away_xg, away_xg), SAMPLE_POINTS)[:SAMPLE_POINTS]] = True
    taken = np.flatnonzero(chosen)
    w_g, depth_g = points.w_g[taken], points.depth_g[taken]
    return Points(points.r_gx.take(taken, axis=0), w_g, points.atom_g[taken], depth_g)
