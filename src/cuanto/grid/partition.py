"""Points in groups: a sphere around each atom, cubes elsewhere; and the functions that matter in each group.

R. E. Stratmann, G. E. Scuseria, M. J. Frisch, Chem. Phys. Lett. 257, 213 (1996), doi:10.1016/0009-2614(96)00600-8; the
spheres: a group with the innermost radial shells of an atom has many points and few functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.grid.points import Points

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

REACH_STEP, REACH_END = 0.05, 80.0
"""Bohr: where the size of a function is looked at."""
PAIRS_AT_ONCE = 1 << 19
"""Groups times shells that are compared at once."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Points `order[first[i]:first[i + 1]]` belong to group i."""

    order: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def sizes(self) -> Ints:
        """Points of each group."""
        return np.diff(self.first)


@dataclass(frozen=True, eq=False)
class Extents:
    """Where the points of each group are: in a box, and within a radius of its centre."""

    low_gx: Array
    high_gx: Array
    centre_gx: Array
    radius_g: Array

    def part(self, chosen: NDArray[np.bool_] | Ints) -> Extents:
        """Of some groups."""
        return Extents(*(array[chosen] for array in (self.low_gx, self.high_gx, self.centre_gx, self.radius_g)))

    def pair_distances(self, group_k: Ints, R_kx: Array) -> Array:
        """Least distances of the points of group `group_k` to the places `R_kx`, from below."""
        outside = np.maximum(self.low_gx[group_k] - R_kx, R_kx - self.high_gx[group_k])
        to_box = np.sqrt((np.maximum(outside, 0.0) ** 2).sum(axis=1))
        to_centre = np.sqrt(((self.centre_gx[group_k] - R_kx) ** 2).sum(axis=1))
        return np.asarray(np.maximum(to_box, to_centre - self.radius_g[group_k]))

    def distances(self, R_ax: Array, part: slice) -> Array:
        """Least distances of the points of some groups to each atom, from below."""
        box, centre = (np.zeros((len(self.radius_g[part]), len(R_ax))) for _ in range(2))
        for x in range(3):  # axis by axis: no array is larger than the result
            R = R_ax[:, x]
            outside = np.maximum(self.low_gx[part, x, None] - R, R - self.high_gx[part, x, None])
            box += np.maximum(outside, 0.0, out=outside) ** 2
            centre += (self.centre_gx[part, x, None] - R) ** 2
        return np.asarray(np.maximum(np.sqrt(box), np.sqrt(centre) - self.radius_g[part, None]))


def divide(points: Points, edge: float, fraction: float) -> Groups:
    """Inner shells (`fraction` of them) by atom, all other points by cubes of this edge; near points stay together."""
    atoms = int(points.atom_g.max()) + 1
    low_x = points.r_gx.min(axis=0)
    index_gx = ((points.r_gx - low_x) / edge).astype(np.int64)
    counts_x = index_gx.max(axis=0) + 1
    cube_g = (index_gx[:, 0] * counts_x[1] + index_gx[:, 1]) * counts_x[2] + index_gx[:, 2]
    key_g = np.where(points.depth_g < fraction, points.atom_g, atoms + cube_g)
    return grouped(key_g)


def grouped(key_g: Ints) -> Groups:
    """Points of equal keys together, in their order."""
    order = _stable_order(key_g)
    sorted_keys = key_g[order]
    edges = np.flatnonzero(np.diff(sorted_keys)) + 1
    first = np.concatenate([[0], edges, [len(order)]]) if len(order) else np.zeros(1, dtype=np.int64)
    return Groups(order, first)


def _stable_order(key_g: Ints) -> Ints:
    """As np.argsort(kind="stable"), by 16 bits at a time: that is NumPy's radix sort, several times faster."""
    highest = int(key_g.max(initial=0))
    order = np.argsort((key_g & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, highest.bit_length(), 16):
        order = order[np.argsort((key_g[order] >> shift & 0xFFFF).astype(np.uint16), kind="stable")]
    return order


def extents(r_gx: Array, groups: Groups) -> Extents:
    """Boxes and radii of all groups."""
    sorted_gx, starts = r_gx[groups.order], groups.first[:-1]
    low, high = np.minimum.reduceat(sorted_gx, starts), np.maximum.reduceat(sorted_gx, starts)
    centre = (low + high) / 2
    away = ((sorted_gx - np.repeat(centre, groups.sizes, axis=0)) ** 2).sum(axis=1)
    return Extents(low, high, centre, np.sqrt(np.maximum.reduceat(away, starts)))


def envelope(shell: Shell) -> Array:
    """Size of the shell's functions at and beyond the distances 0, REACH_STEP, 2 REACH_STEP, ...

    A maximum between two steps may be higher by a few parts in ten thousand; in the tails, which decide, there is none.
    """
    r = np.arange(0.0, REACH_END, REACH_STEP)
    angular = sqrt((2 * shell.l + 1) / (4 * pi)) if shell.pure or shell.l < 2 else 1.0
    size = np.zeros_like(r)
    for q in range(shell.ncol):
        terms = np.exp(-np.outer(shell.exponents, r**2)) * abs(shell.coefficients[:, q, None])
        np.maximum(size, angular * r**shell.l * terms.sum(axis=0), out=size)
    return np.maximum.accumulate(size[::-1])[::-1]


def envelopes(shells: Sequence[Shell]) -> tuple[Array, Ints]:
    """Of all different shells, and which of them each shell is: those of equal atoms are looked at once."""
    known: dict[tuple[int, bool, bytes, bytes], int] = {}
    rows: list[Array] = []
    kinds: list[int] = []
    for shell in shells:
        key = (shell.l, shell.pure, shell.exponents.tobytes(), shell.coefficients.tobytes())
        if key not in known:
            known[key] = len(rows)
            rows.append(envelope(shell))
        kinds.append(known[key])
    return np.array(rows), np.array(kinds)


def reaches(shells: Sequence[Shell], threshold: float) -> Array:
    """Distances beyond which no function of a shell is larger than `threshold`."""
    rows, kinds = envelopes(shells)
    return np.asarray(REACH_STEP * (rows > threshold).sum(axis=1)[kinds])


def significant(basis: Basis, reach_s: Array, where: Extents) -> NDArray[np.uint8]:
    """For every group the shells that matter, as bits (`np.unpackbits` gives one row per group)."""
    atom_s = np.array([shell.atom for shell in basis.shells])
    total, step = len(where.radius_g), max(1, PAIRS_AT_ONCE // len(atom_s))
    rows = [
        np.packbits(where.distances(basis.R_ax, slice(g, g + step))[:, atom_s] < reach_s, axis=1)
        for g in range(0, total, step)
    ]
    return np.concatenate(rows)


def function_counts(basis: Basis, bits: NDArray[np.uint8]) -> Ints:
    """Functions that matter in each group."""
    sizes = np.array([shell.nbf for shell in basis.shells])
    step = max(1, PAIRS_AT_ONCE // len(sizes))
    counts = [np.unpackbits(bits[g : g + step], axis=1, count=len(sizes)) @ sizes for g in range(0, len(bits), step)]
    return np.concatenate(counts).astype(np.int64)
