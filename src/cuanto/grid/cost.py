"""How long a pass over the groups takes: a model with constants that were measured, from which the partition is chosen.

A group of n points and f functions costs n f^2 (products with matrices), n f (values of functions) and, for every piece
that is worked through at once, f^2 (its part of a matrix is gathered and scattered) and a constant; points and
functions are filled up to what the device works with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.grid.partition import divide, extents, function_counts, reaches, significant
from cuanto.grid.points import Points
from cuanto.grid.settings import GridSettings

Ints = NDArray[np.int64]

SAMPLE = 15_000
"""Points around each of a few atoms that are enough to compare partitions."""
SAMPLED_ATOMS = 3
SAMPLED_FROM = 40
"""Neighbours whose points are looked at."""
EDGES = (1.5, 2.0, 3.0, 4.5, 7.0, 12.0)
FRACTIONS = (0.0, 0.4, 0.6, 0.75)


@dataclass(frozen=True)
class DeviceCost:
    """Seconds per unit of work of one iteration; groups are worked through in pieces of so many points.

    `points` and `functions`: multiples to which groups are filled up.
    """

    product: float
    value: float
    element: float
    group: float
    piece: int
    points: int
    functions: int

    def seconds(self, points: Ints, functions: Ints) -> float:
        """Of all groups."""
        n = -(-points // self.points) * float(self.points)
        f = -(-functions // self.functions) * float(self.functions)
        pieces = np.maximum(1.0, np.round(n / self.piece))
        work = n * f * (f * self.product + self.value) + pieces * (f * f * self.element + self.group)
        return float(work[functions > 0].sum())


COSTS = {
    "cpu": DeviceCost(8.5e-11, 4.0e-9, 8.0e-9, 2.0e-5, 768, 24, 8),
    "cuda": DeviceCost(1.2e-13, 3.0e-11, 1.0e-11, 1.0e-7, 512, 64, 32),
}
"""CPU: one core at 2.4 GHz with AVX-512, GGA. CUDA: an H200, from its rates for matrix products and copies."""


def choose_partition(points: Points, basis: Basis, settings: GridSettings, device: str) -> tuple[float, float]:
    """Cube edge and sphere fraction: as given, otherwise those of least predicted time on a sample of the points."""
    edges = EDGES if settings.cube_edge is None else (settings.cube_edge,)
    fractions = FRACTIONS if settings.sphere_fraction is None else (settings.sphere_fraction,)
    if len(edges) == len(fractions) == 1:
        return edges[0], fractions[0]
    sample = _sample(points, basis)
    reach_s = reaches(basis.shells, settings.threshold)
    cost = COSTS.get(device, COSTS["cuda"])
    best = (np.inf, 0.0, 0.0)
    for edge in edges:
        for fraction in fractions:
            groups = divide(sample, edge, fraction)
            counts = function_counts(basis, significant(basis, reach_s, extents(sample.r_gx, groups)))
            best = min(best, (cost.seconds(groups.sizes, counts), edge, fraction))
    return best[1], best[2]


def _sample(points: Points, basis: Basis) -> Points:
    """All points near some of the atoms (thinning them out everywhere would make every group look small)."""
    if len(points) <= SAMPLED_ATOMS * SAMPLE:
        return points
    chosen = np.zeros(len(points), dtype=bool)
    for a in np.linspace(0, len(basis.R_ax) - 1, SAMPLED_ATOMS).astype(int):
        neighbours = np.argsort(((basis.R_ax - basis.R_ax[a]) ** 2).sum(axis=1))[:SAMPLED_FROM]
        near = np.flatnonzero(np.isin(points.atom_g, neighbours))
        if len(near) > SAMPLE:
            distance = ((points.r_gx[near] - basis.R_ax[a]) ** 2).sum(axis=1)
            near = near[np.argpartition(distance, SAMPLE)[:SAMPLE]]
        chosen[near] = True
    return Points(points.r_gx[chosen], points.w_g[chosen], points.atom_g[chosen], points.depth_g[chosen])
