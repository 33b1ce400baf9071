"""The grid of a molecule in groups: points, their weights, and the significant functions of each group.

Groups with the same functions are merged. Where products of functions are screened (on a CPU), the functions of a group
are sorted by size, large ones first, and neighbouring groups follow each other, so that their part of a matrix stays in
the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array, Ints, morton_codes, range_starts
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.cost import choose_partition, points_near, sample_points
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.partition import Boxes, ShellReaches, divide, launch, sort_keys
from cuanto.grid.points import NEGLIGIBLE_ENERGY, Pattern, Points, atomic_points
from cuanto.grid.settings import GridSettings
from cuanto.grid.weights import GroupedPoints, apply_partition
from cuanto.kernels.grid_values import PANEL_PAD, THREADS
from cuanto.log import Timings, logger
from cuanto.system import Molecule

PADDING = {"cpu": PANEL_PAD, "cuda": THREADS}
"""The points of a group are padded to a multiple of this."""
SCREENS_PRODUCTS = {"cpu": True, "cuda": False}
"""Whether products of small functions are neglected, by language; a GPU multiplies whole matrices."""
BOUNDS_PER_DECADE = 4
"""Resolution to which bounds are rounded up: functions with equal bounds keep their order, so that runs are longer."""
CURVE_STEP = 2.0
"""Side of the cells by which groups are sorted, in Bohr."""


def make_grid(
    molecule: Molecule,
    basis: Basis,
    settings: GridSettings,
    backend: Backend,
    timings: Timings | None = None,
    patterns: Sequence[Pattern] | None = None,
) -> GroupedGrid:
    """Points, groups, weights and lists of functions; `bound`s are on the host, large arrays on the backend.

    `patterns`: points of every atom, by default those of the settings.
    """
    timings = timings or Timings()
    with timings.measure("grid: partition"):
        reaches = ShellReaches(basis, settings.threshold, backend)
        edge, fraction = settings.cube_edge, settings.sphere_fraction
        if edge is None or fraction is None:
            edge, fraction = choose_partition(sample_points(molecule, settings), reaches, settings)
    with timings.measure("grid: groups"):
        if patterns is None:
            elements = {
                Z: atomic_points(Z, settings, NEGLIGIBLE_ENERGY) for Z in dict.fromkeys(molecule.numbers.tolist())
            }
            patterns = [elements[Z] for Z in molecule.numbers.tolist()]
        position, own, weight, first = _molecular_groups(molecule, patterns, (edge, fraction), backend)
        placed, marks = _within_reach(position, own, weight, first, reaches)
    with timings.measure("grid: weights"):
        apply_partition(placed, molecule.R_ax, molecule.numbers, settings.partition, backend)
    with timings.measure("grid: lists"):
        grid = _assemble(placed, marks, reaches, (edge, fraction))
    logger.info(
        "grid: %d points in %d groups, %.0f functions at a point; cubes of %.1f Bohr, spheres of %.0f %% of the shells",
        len(grid.w_g),
        len(grid),
        grid.mean_functions,
        edge,
        100 * fraction,
    )
    return grid


def grid_of_points(r_gx: Array, w_g: Array, basis: Basis, settings: GridSettings, backend: Backend) -> GroupedGrid:
    """A grid of given points and weights, in cubes."""
    points = Points(r_gx, w_g, np.zeros(len(w_g), dtype=np.int32), np.ones(len(w_g)))
    reaches = ShellReaches(basis, settings.threshold, backend)
    edge, _ = choose_partition(points_near(points, basis.R_ax[:1]), reaches, settings)
    groups, put = divide(points, edge, 0.0), backend.to_device
    position = put(points.r_xg.take(groups.order, axis=1))
    own, weight = put(points.atom_g[groups.order]), put(points.w_g[groups.order])
    grid = _assemble(*_within_reach(position, own, weight, groups.first, reaches), reaches, (edge, 0.0))
    return replace(grid, atom_g=None)


def _molecular_groups(
    molecule: Molecule, patterns: Sequence[Pattern], partition: tuple[float, float], backend: Backend
) -> tuple[Any, Any, Any, Ints]:
    """All points by group: positions [axis, point], atoms, weights; first points of the groups."""
    xp, atoms = backend.xp, len(patterns)
    edge, fraction = partition
    distinct = {id(pattern): pattern for pattern in patterns}  # atoms of an element share one pattern
    starts = range_starts(np.array([len(part[1]) for part in distinct.values()]))
    begin = dict(zip(distinct, starts.tolist(), strict=False))
    extent = {i: _extent(r_gx) for i, (r_gx, _, _) in distinct.items()}
    low_ax, high_ax = (molecule.R_ax + np.array([extent[id(pattern)][i] for pattern in patterns]) for i in range(2))
    low_x = low_ax.min(axis=0)
    atom_first = range_starts(np.array([len(pattern[1]) for pattern in patterns]))
    total = int(atom_first[-1])
    tables = {
        "atom_first": atom_first,
        "pattern_first": np.array([begin[id(pattern)] for pattern in patterns], dtype=np.int64),
        "pattern": np.concatenate([part[0] for part in distinct.values()]),
        "pattern_weight": np.concatenate([part[1] for part in distinct.values()]),
        "pattern_depth": np.concatenate([part[2] for part in distinct.values()]),
        "atom": molecule.R_ax,
        "low": low_x,
        "cubes": ((high_ax.max(axis=0) - low_x) / edge).astype(np.int64) + 1,
    }
    arrays = {
        "position": xp.empty((3, total)),
        "own": xp.empty(total, dtype=np.int32),
        "weight": xp.empty(total),
        "key": xp.empty(total, dtype=np.int64),
    }
    sizes = {"points": total, "atoms": atoms, "edge": edge, "fraction": fraction}
    launch(backend, "place", total, {**backend.upload(tables), **arrays, **sizes})
    key, order = sort_keys(arrays["key"], atoms + int(tables["cubes"].prod()), xp)
    edges = backend.to_host(xp.flatnonzero(key[1:] != key[:-1])) + 1
    first = np.concatenate([[0], edges, [total]]).astype(np.int64)
    return xp.ascontiguousarray(arrays["position"][:, order]), arrays["own"][order], arrays["weight"][order], first


def _extent(r_gx: Array) -> tuple[Array, Array]:
    """Smallest and largest coordinates of points and of the origin; NumPy is slow along columns, fast along rows."""
    r_xg = np.ascontiguousarray(r_gx.T)
    return r_xg.min(axis=1, initial=0.0), r_xg.max(axis=1, initial=0.0)


def _within_reach(
    position: Any, own: Any, weight: Any, first: Ints, reaches: ShellReaches
) -> tuple[GroupedPoints, NDArray[np.uint64]]:
    """The groups with significant functions, and the marks of their lists."""
    backend = reaches.backend
    boxes = Boxes.of(position, first, backend)
    counts, _, marks = reaches.count(boxes)
    used = np.flatnonzero(counts)
    kept = _ranges(first[used], np.diff(first)[used], backend)
    position = backend.xp.ascontiguousarray(position[:, kept])
    boxes = boxes.part(backend.to_device(used))
    return GroupedPoints(position, own[kept], weight[kept], range_starts(np.diff(first)[used]), boxes), marks[used]


def _assemble(
    placed: GroupedPoints, marks: NDArray[np.uint64], reaches: ShellReaches, partition: tuple[float, float]
) -> GroupedGrid:
    """Merge groups of equal lists, and pad them with their last point, without weight."""
    backend, xp = reaches.backend, reaches.backend.xp
    order, sizes, chosen = _merge_lists(placed, marks, backend)
    full = -(-sizes // PADDING[backend.traits.language]) * PADDING[backend.traits.language]
    group, within = _number_members(full, backend)
    size_g = backend.to_device(sizes)[group]
    taken = order[backend.to_device(range_starts(sizes)[:-1])[group] + xp.minimum(within, xp.subtract(size_g, 1))]
    position = xp.ascontiguousarray(placed.position_xg[:, taken])
    boxes = placed.boxes.part(backend.to_device(chosen))
    counts, functions, _ = reaches.count(boxes)
    list_first, ao_first = range_starts(counts), range_starts(functions)
    lists = reaches.fill(boxes, np.arange(len(chosen)), list_first, ao_first)
    bound = None
    if SCREENS_PRODUCTS[backend.traits.language]:
        merged = Boxes.of(position, range_starts(full), backend)
        lists, bound = _by_size(lists, list_first, ao_first, reaches, merged)
    return GroupedGrid(
        position_xg=position,
        atom_g=placed.atom_g[taken],
        w_g=np.asarray(backend.to_host(xp.where(within < size_g, placed.w_g[taken], 0.0))),
        point_first=range_starts(full),
        list_first=list_first,
        ao_first=ao_first,
        bound=bound,
        cube_edge=partition[0],
        sphere_fraction=partition[1],
        **lists,
    )


def _merge_lists(placed: GroupedPoints, marks: NDArray[np.uint64], backend: Backend) -> tuple[Any, Ints, Ints]:
    """Points with weight, sorted by list; number of points of each list; one group of each list."""
    xp = backend.xp
    weighted = xp.not_equal(placed.w_g, 0.0)  # negligible weights are zero
    before = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(weighted, dtype=np.int64)])
    start = backend.to_host(before[backend.to_device(placed.first)])
    sizes = np.diff(start)
    full = np.flatnonzero(sizes)
    _, representative, inverse = np.unique(marks[full], return_index=True, return_inverse=True)
    middle = backend.to_host(placed.boxes.centre)[full[representative]]
    by_curve = np.argsort(morton_codes(middle, CURVE_STEP), kind="stable")
    rank = np.empty_like(by_curve)
    rank[by_curve] = np.arange(len(by_curve))
    list_k = rank[inverse.reshape(-1)]
    groups = np.argsort(list_k, kind="stable")
    order = xp.flatnonzero(weighted)[_ranges(start[full[groups]], sizes[full[groups]], backend)]
    return order, np.bincount(list_k, weights=sizes[full]).astype(np.int64), full[representative[by_curve]]


def _by_size(
    lists: dict[str, Any], list_first: Ints, ao_first: Ints, reaches: ShellReaches, boxes: Boxes
) -> tuple[dict[str, Any], Array]:
    """Shells of each list sorted by the bound of their functions, and the bound of every function."""
    backend = reaches.backend
    shell_k, size_k = backend.download([lists["list_shell"], reaches.bounds(boxes, list_first, lists["list_shell"])])
    tiny = np.finfo(float).tiny
    bound_k = 10 ** (np.ceil(np.log10(np.maximum(size_k, tiny)) * BOUNDS_PER_DECADE) / BOUNDS_PER_DECADE)
    group_k = np.repeat(np.arange(len(list_first) - 1), np.diff(list_first))
    order = np.lexsort((-bound_k, group_k))
    shell_k, bound_k = shell_k[order], bound_k[order]
    functions_k = reaches.sizes[shell_k].astype(np.int64)
    row_k = np.cumsum(functions_k) - functions_k
    ao = np.repeat(reaches.first[shell_k] - row_k, functions_k) + np.arange(int(functions_k.sum()))
    host = {"list_shell": shell_k, "list_row": (row_k - ao_first[group_k]).astype(np.int32), "ao": ao.astype(np.int32)}
    return dict(backend.upload(host)), np.repeat(bound_k, functions_k)


def _ranges(starts: Ints, sizes: Ints, backend: Backend) -> Any:
    """starts[0], starts[0] + 1, ... and so on, `sizes` of each, on the backend."""
    group, within = _number_members(sizes, backend)
    return backend.to_device(starts)[group] + within


def _number_members(sizes: Ints, backend: Backend) -> tuple[Any, Any]:
    """0, 0, ..., 1, 1, ...; and 0, 1, ..., 0, 1, ...: `sizes` of each, none of which is zero."""
    xp, first = backend.xp, range_starts(sizes)
    step = xp.zeros(int(first[-1]), dtype=np.int64)
    step[backend.to_device(first[1:-1])] = 1
    group = xp.cumsum(step)
    return group, xp.arange(len(step), dtype=np.int64) - backend.to_device(first[:-1])[group]
