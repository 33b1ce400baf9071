"""Extents of groups and their significant shells in NumPy: the oracle of the kernels that set up a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.grid.partition import REACH_STEP, Boxes, Groups, envelopes
from cuanto.grid.points import Points
from cuanto.grid.weights import GroupedPoints, apply_partition
from cuanto.system import Molecule

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Extents:
    """Extents of groups of points: the box around each group, and its radius about the centre of the box."""

    low_gx: Array
    high_gx: Array
    centre_gx: Array
    radius_g: Array

    def part(self, chosen: NDArray[np.bool_] | Ints) -> Extents:
        """Extents of some groups."""
        return Extents(*(array[chosen] for array in (self.low_gx, self.high_gx, self.centre_gx, self.radius_g)))

    def pair_distances(self, group_k: Ints, R_kx: Array) -> Array:
        """Lower bounds of the distances of the points of group `group_k` from the positions `R_kx`."""
        outside = np.maximum(self.low_gx[group_k] - R_kx, R_kx - self.high_gx[group_k])
        to_box = np.sqrt((np.maximum(outside, 0.0) ** 2).sum(axis=1))
        to_centre = np.sqrt(((self.centre_gx[group_k] - R_kx) ** 2).sum(axis=1))
        return np.asarray(np.maximum(to_box, to_centre - self.radius_g[group_k]))

    def distances(self, R_ax: Array, part: slice) -> Array:
        """Lower bounds of the distances of the points of some groups from each atom."""
        box, centre = (np.zeros((len(self.radius_g[part]), len(R_ax))) for _ in range(2))
        for x in range(3):  # axis by axis: no array is larger than the result
            R = R_ax[:, x]
            outside = np.maximum(self.low_gx[part, x, None] - R, R - self.high_gx[part, x, None])
            box += np.maximum(outside, 0.0, out=outside) ** 2
            centre += (self.centre_gx[part, x, None] - R) ** 2
        return np.asarray(np.maximum(np.sqrt(box), np.sqrt(centre) - self.radius_g[part, None]))


def extents(r_gx: Array, groups: Groups) -> Extents:
    """Boxes and radii of all groups."""
    sorted_gx, starts = r_gx[groups.order], groups.first[:-1]
    low, high = np.minimum.reduceat(sorted_gx, starts), np.maximum.reduceat(sorted_gx, starts)
    centre = (low + high) / 2
    away = ((sorted_gx - np.repeat(centre, groups.sizes, axis=0)) ** 2).sum(axis=1)
    return Extents(low, high, centre, np.sqrt(np.maximum.reduceat(away, starts)))


def reaches(shells: Sequence[Shell], threshold: float) -> Array:
    """Distances beyond which no function of a shell is larger than `threshold`."""
    rows, kinds = envelopes(shells)
    return np.asarray(REACH_STEP * (rows > threshold).sum(axis=1)[kinds])


def significant(basis: Basis, reach_s: Array, where: Extents) -> NDArray[np.bool_]:
    """Significant shells of every group."""
    atom_s = np.array([shell.atom for shell in basis.shells])
    near: NDArray[np.bool_] = where.distances(basis.R_ax, slice(None))[:, atom_s] < reach_s
    return near


def cell_weights(points: Points, groups: Groups, molecule: Molecule, partition: str, backend: Backend) -> Array:
    """Weights in the molecule of points in the order of the groups, by the kernels of a backend."""
    put = backend.to_device
    position = put(np.ascontiguousarray(points.r_gx[groups.order].T))
    own, weight = put(points.atom_g[groups.order]), put(points.w_g[groups.order])
    placed = GroupedPoints(position, own, weight, groups.first, Boxes.of(position, groups.first, backend))
    apply_partition(placed, molecule.R_ax, molecule.numbers, partition, backend)
    return np.asarray(backend.to_host(placed.w_g))
