"""The grid of a molecule, ready for the kernels: weighted points in groups, each with its list of functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.cost import choose_partition, points_near, sample_points
from cuanto.grid.grouped_grid import NEGLIGIBLE, GroupedGrid, ends
from cuanto.grid.groups_device import device_grid
from cuanto.grid.partition import (
    REACH_STEP,
    Extents,
    Groups,
    divide,
    envelopes,
    extents,
    grouped,
    reaches,
    significant,
)
from cuanto.grid.points import Points, molecular_points
from cuanto.grid.settings import GridSettings
from cuanto.grid.weights import cell_weights
from cuanto.kernels.grid_values import PANEL_PAD, THREADS
from cuanto.log import Timings, logger
from cuanto.system import Molecule

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BOUNDS_PER_DECADE = 4
"""Bounds are rounded up so, and functions of equal bounds stay in order: rows are then copied in longer runs."""
CURVE_STEP = 2.0
"""Bohr: cells by which groups are ordered."""


PADDING = {"cpu": PANEL_PAD, "cuda": THREADS}


def padding(backend: Backend) -> int:
    """Groups have a multiple of so many points."""
    return PADDING[backend.traits.language]


def make_grid(
    molecule: Molecule, basis: Basis, settings: GridSettings, backend: Backend, timings: Timings | None = None
) -> GroupedGrid:
    """Points, groups, weights and lists of functions."""
    timings, language = timings or Timings(), backend.traits.language
    with timings.measure("grid: partition"):
        edge, fraction = settings.cube_edge, settings.sphere_fraction
        if edge is None or fraction is None:
            edge, fraction = choose_partition(sample_points(molecule, settings), basis, settings, language)
    grid = SETUPS[language](molecule, basis, settings, (edge, fraction), backend, timings)
    logger.info(
        "grid: %d points in %d groups, %.0f functions at a point; cubes of %.1f Bohr, spheres of %.0f %% of the shells",
        len(grid.w_g),
        len(grid),
        grid.mean_functions,
        edge,
        100 * fraction,
    )
    return grid


def _host_grid(
    molecule: Molecule,
    basis: Basis,
    settings: GridSettings,
    partition: tuple[float, float],
    backend: Backend,
    timings: Timings,
) -> GroupedGrid:
    with timings.measure("grid: groups"):
        points = molecular_points(molecule, settings)
        groups, bits, where = _within_reach(points, divide(points, *partition), basis, settings.threshold)
    with timings.measure("grid: weights"):
        w_g = cell_weights(points, groups, molecule.R_ax, molecule.numbers, settings.partition, backend, where)
    with timings.measure("grid: lists"):
        return _assemble(points.r_gx[groups.order], w_g, groups, bits, basis, partition, padding(backend))


def _device_grid(
    molecule: Molecule,
    basis: Basis,
    settings: GridSettings,
    partition: tuple[float, float],
    backend: Backend,
    timings: Timings,
) -> GroupedGrid:
    reach_s = reaches(basis.shells, settings.threshold)
    return device_grid(molecule, basis, reach_s, settings, partition, backend, timings)


SETUPS = {"cpu": _host_grid, "cuda": _device_grid}


def grid_of_points(r_gx: Array, w_g: Array, basis: Basis, settings: GridSettings, backend: Backend) -> GroupedGrid:
    """Points and weights from elsewhere, in cubes."""
    points = Points(r_gx, w_g, np.zeros(len(w_g), dtype=np.int32), np.ones(len(w_g)))
    edge, _ = choose_partition(points_near(points, basis.R_ax[:1]), basis, settings, backend.traits.language)
    groups, bits, _ = _within_reach(points, divide(points, edge, 0.0), basis, settings.threshold)
    chosen = groups.order
    return _assemble(points.r_gx[chosen], points.w_g[chosen], groups, bits, basis, (edge, 0.0), padding(backend))


def _within_reach(
    points: Points, groups: Groups, basis: Basis, threshold: float
) -> tuple[Groups, NDArray[np.uint8], Extents]:
    """The groups in which any function matters, which these are, and where."""
    where = extents(points.r_gx, groups)
    bits = significant(basis, reaches(basis.shells, threshold), where)
    used = np.asarray(bits.any(axis=1))
    kept = groups.order[np.repeat(used, groups.sizes)]
    return Groups(kept, ends(groups.sizes[used])), bits[used], where.part(used)


def _assemble(
    r_gx: Array,
    w_g: Array,
    groups: Groups,
    bits: NDArray[np.uint8],
    basis: Basis,
    partition: tuple[float, float],
    pad: int,
) -> GroupedGrid:
    """Groups with equal lists become one; neighbours follow each other, so that they find their functions' part of a
    matrix in the cache."""
    distinct, inverse = np.unique(bits, axis=0, return_inverse=True)
    key_g = np.repeat(inverse.reshape(-1), groups.sizes)
    heavy = np.flatnonzero(abs(w_g) > NEGLIGIBLE)
    merged = grouped(key_g[heavy])
    lists = np.unpackbits(distinct[key_g[heavy[merged.order[merged.first[:-1]]]]], axis=1, count=len(basis.shells))
    sizes_s = np.array([shell.nbf for shell in basis.shells])
    middle = np.add.reduceat(r_gx[heavy[merged.order]], merged.first[:-1]) / merged.sizes[:, None]
    along = np.argsort(_along_a_curve(middle), kind="stable")
    # points: those of each group in turn, the last one again until the group is full
    counts = merged.sizes[along]
    full = -(-counts // pad) * pad
    within = _within(full)
    chosen = heavy[merged.order[np.repeat(merged.first[along], full) + np.minimum(within, np.repeat(counts - 1, full))]]
    weight = np.where(within < np.repeat(counts, full), w_g[chosen], 0.0)
    # functions: the shells of each group in turn
    group_k, shell_k = np.nonzero(lists[along])
    bound_k = _bounds(basis, extents(r_gx[heavy], merged).part(along), group_k, shell_k)
    order = np.lexsort((-bound_k, group_k))
    shell_k, bound_k = shell_k[order], bound_k[order]
    shells = np.bincount(group_k, minlength=len(along))
    last_k = np.cumsum(sizes_s[shell_k])
    list_first, ao_first = ends(shells), ends(np.add.reduceat(sizes_s[shell_k], ends(shells)[:-1]))
    row_k = last_k - sizes_s[shell_k] - ao_first[group_k]
    ao = np.repeat(basis.offsets[shell_k], sizes_s[shell_k]) + _within(sizes_s[shell_k])
    return GroupedGrid(
        np.ascontiguousarray(r_gx[chosen].T),
        weight,
        ends(full),
        list_first,
        shell_k.astype(np.int32),
        row_k.astype(np.int32),
        ao_first,
        ao.astype(np.int32),
        np.repeat(bound_k, sizes_s[shell_k]),
        *partition,
    )


def _bounds(basis: Basis, where: Extents, group_k: Ints, shell_k: Ints) -> Array:
    """Largest value of the functions of each shell in its group, from above."""
    rows, kinds = envelopes(basis.shells)
    atom_s = np.array([shell.atom for shell in basis.shells])
    distance_k = where.pair_distances(group_k, basis.R_ax[atom_s[shell_k]])
    step_k = np.minimum((distance_k / REACH_STEP).astype(np.int64), rows.shape[1] - 1)
    size_k = np.maximum(rows[kinds[shell_k], step_k], np.finfo(float).tiny)
    return np.asarray(10 ** (np.ceil(np.log10(size_k) * BOUNDS_PER_DECADE) / BOUNDS_PER_DECADE))


def _along_a_curve(r_gx: Array) -> Ints:
    """Places on a curve that visits cells of space one after the other (Morton's): near points, near numbers."""
    cells = ((r_gx - r_gx.min(axis=0)) / CURVE_STEP).astype(np.int64)
    number = np.zeros(len(cells), dtype=np.int64)
    for bit in range(20):
        for x in range(3):
            number |= (cells[:, x] >> bit & 1) << (3 * bit + x)
    return number


def _within(counts: Ints) -> Ints:
    """0, 1, ... for each of the counts."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
