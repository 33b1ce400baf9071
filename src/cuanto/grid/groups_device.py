"""A grid made where it is used: points, groups, weights and lists by kernels; the host sees numbers of groups only.

The steps are those of `groups`: shells of points around atoms, spheres and cubes, the functions that matter in each,
weights, groups with equal lists merged, points without weight left out, groups filled up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.grouped_grid import NEGLIGIBLE, GroupedGrid, ends
from cuanto.grid.points import atomic_points
from cuanto.grid.settings import GridSettings
from cuanto.grid.weights import Placed, share_out
from cuanto.kernels.grid_groups import SETUP_THREADS, setup_kernel
from cuanto.kernels.grid_values import THREADS
from cuanto.log import Timings
from cuanto.system import Molecule

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Where the points of the groups are (arrays of the device)."""

    box_low: Any
    box_high: Any
    centre: Any
    radius: Any

    def values(self) -> dict[str, Any]:
        return {"box_low": self.box_low, "box_high": self.box_high, "centre": self.centre, "radius": self.radius}

    def part(self, chosen: Any) -> _Boxes:
        return _Boxes(*(array[chosen] for array in (self.box_low, self.box_high, self.centre, self.radius)))


def device_grid(
    molecule: Molecule,
    basis: Basis,
    reach_s: Array,
    settings: GridSettings,
    partition: tuple[float, float],
    backend: Backend,
    timings: Timings,
) -> GroupedGrid:
    """The grid of a molecule, its large arrays on the device; `partition`: cube edge and sphere fraction."""
    with timings.measure("grid: groups"):
        position, own, weight, first = _grouped_points(molecule, settings, partition, backend)
        boxes = _extents(position, first, backend)
        shells = _shell_tables(basis, reach_s, backend)
        counts, functions, marks = _counts(boxes, shells, backend)
        used = np.flatnonzero(counts)
        kept = _ranges(first[used], np.diff(first)[used], backend)
        first, boxes = ends(np.diff(first)[used]), boxes.part(backend.to_device(used))
        placed = Placed(
            backend.xp.ascontiguousarray(position[:, kept]), own[kept], weight[kept], first, boxes.centre, boxes.radius
        )
    with timings.measure("grid: weights"):
        share_out(placed, molecule.R_ax, molecule.numbers, settings.partition, backend)
    with timings.measure("grid: lists"):
        order, sizes, chosen = _merged(placed, marks[used], backend)
        lists = _lists(boxes, shells, chosen, counts[used][chosen], functions[used][chosen], backend)
        return _filled(placed, order, sizes, lists, partition, backend)


def _grouped_points(
    molecule: Molecule, settings: GridSettings, partition: tuple[float, float], backend: Backend
) -> tuple[Any, Any, Any, Ints]:
    """All points by group: positions [axis, point], atoms, weights; where the groups begin."""
    xp, Z_a = backend.xp, molecule.numbers.tolist()
    edge, fraction = partition
    elements = {Z: atomic_points(Z, settings) for Z in dict.fromkeys(Z_a)}
    size = {Z: len(part[1]) for Z, part in elements.items()}
    begin = dict(zip(elements, ends(np.array(list(size.values()))).tolist(), strict=False))
    extent = {Z: (part[0].min(axis=0), part[0].max(axis=0)) for Z, part in elements.items()}
    low_ax, high_ax = (molecule.R_ax + np.array([extent[Z][i] for Z in Z_a]) for i in range(2))
    low_x = low_ax.min(axis=0)
    atom_first = ends(np.array([size[Z] for Z in Z_a]))
    total = int(atom_first[-1])
    tables = {
        "atom_first": atom_first,
        "pattern_first": np.array([begin[Z] for Z in Z_a], dtype=np.int64),
        "pattern": np.concatenate([part[0] for part in elements.values()]),
        "pattern_weight": np.concatenate([part[1] for part in elements.values()]),
        "pattern_depth": np.concatenate([part[2] for part in elements.values()]),
        "atom": molecule.R_ax,
        "low": low_x,
        "cubes": ((high_ax.max(axis=0) - low_x) / edge).astype(np.int64) + 1,
    }
    made = {
        "position": xp.empty((3, total)),
        "own": xp.empty(total, dtype=np.int32),
        "weight": xp.empty(total),
        "key": xp.empty(total, dtype=np.int64),
    }
    sizes = {"points": total, "atoms": len(Z_a), "edge": edge, "fraction": fraction}
    _launch(backend, "place", -(-total // SETUP_THREADS), {**backend.upload(tables), **made, **sizes})
    key, order = _sorted(made["key"], len(Z_a) + int(tables["cubes"].prod()), xp)
    edges = backend.to_host(xp.flatnonzero(key[1:] != key[:-1])) + 1
    first = np.concatenate([[0], edges, [total]]).astype(np.int64)
    return xp.ascontiguousarray(made["position"][:, order]), made["own"][order], made["weight"][order], first


def _sorted(key: Any, keys: int, xp: Any) -> tuple[Any, Any]:
    """Keys in order and where they come from. Sorting numbers is several times faster than sorting their places."""
    points = len(key)
    if keys > np.iinfo(np.int64).max // points:
        order = xp.argsort(key, kind="stable")
        return key[order], order
    both = xp.sort(key * points + xp.arange(points, dtype=np.int64))
    return both // points, both % points


def _extents(position: Any, first: Ints, backend: Backend) -> _Boxes:
    xp, groups = backend.xp, len(first) - 1
    boxes = _Boxes(xp.empty((groups, 3)), xp.empty((groups, 3)), xp.empty((groups, 3)), xp.empty(groups))
    values = {"points": position.shape[1], "position": position, "first": backend.to_device(first), **boxes.values()}
    _launch(backend, "extents", groups, values)
    return boxes


def _shell_tables(basis: Basis, reach_s: Array, backend: Backend) -> dict[str, Any]:
    """What the kernels know of shells; marks are random numbers, so that equal sums mean equal lists (two different
    ones of 100,000 lists agree with a probability below 1e-9)."""
    atom_s = np.array([shell.atom for shell in basis.shells])
    tables = {
        "shell_centre": basis.R_ax[atom_s],
        "reach": np.asarray(reach_s, dtype=np.float64),
        "shell_size": np.array([shell.nbf for shell in basis.shells], dtype=np.int32),
        "shell_ao": np.asarray(basis.offsets[: len(atom_s)], dtype=np.int32),
        "shell_mark": np.random.default_rng(1).integers(0, 2**64, len(atom_s), dtype=np.uint64),
    }
    return {**backend.upload(tables), "shells": len(atom_s)}


def _counts(boxes: _Boxes, shells: dict[str, Any], backend: Backend) -> tuple[Ints, Ints, NDArray[np.uint64]]:
    """Shells and functions that matter in each group, and the mark of its list."""
    xp, groups = backend.xp, len(boxes.radius)
    made = {
        "group_shells": xp.empty(groups, dtype=np.int32),
        "group_functions": xp.empty(groups, dtype=np.int32),
        "group_mark": xp.empty(groups, dtype=np.uint64),
    }
    _launch(backend, "count", groups, {**shells, **boxes.values(), **made})
    found, functions, marks = (backend.to_host(array) for array in made.values())
    return found.astype(np.int64), functions.astype(np.int64), marks


def _merged(placed: Placed, marks: NDArray[np.uint64], backend: Backend) -> tuple[Any, Ints, Ints]:
    """Points with weight, those of groups with equal lists together; how many these are; a group of each list."""
    xp = backend.xp
    heavy = abs(placed.w_g) > NEGLIGIBLE
    before = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(heavy, dtype=np.int64)])
    start = backend.to_host(before[backend.to_device(placed.first)])
    sizes = np.diff(start)
    full = np.flatnonzero(sizes)
    _, representative, inverse = np.unique(marks[full], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(representative))  # lists in the order in which groups have them
    list_k = rank[inverse.reshape(-1)]
    along = np.argsort(list_k, kind="stable")
    order = xp.flatnonzero(heavy)[_ranges(start[full[along]], sizes[full[along]], backend)]
    return order, np.bincount(list_k, weights=sizes[full]).astype(np.int64), full[np.sort(representative)]


def _lists(
    boxes: _Boxes, shells: dict[str, Any], chosen: Ints, counts: Ints, functions: Ints, backend: Backend
) -> dict[str, Any]:
    """The shells and functions of the chosen groups."""
    xp = backend.xp
    list_first, ao_first = ends(counts), ends(functions)
    made = {
        "list_shell": xp.empty(int(list_first[-1]), dtype=np.int32),
        "list_row": xp.empty(int(list_first[-1]), dtype=np.int32),
        "ao": xp.empty(int(ao_first[-1]), dtype=np.int32),
    }
    tables = backend.upload({"chosen": chosen, "list_first": list_first, "ao_first": ao_first})
    _launch(backend, "fill", len(chosen), {**shells, **boxes.values(), **tables, **made})
    return {**made, "list_first": list_first, "ao_first": ao_first}


def _filled(
    placed: Placed, order: Any, sizes: Ints, lists: dict[str, Any], partition: tuple[float, float], backend: Backend
) -> GroupedGrid:
    """Groups filled up with their last point, without weight."""
    full = -(-sizes // THREADS) * THREADS
    group, within = _numbered(full, backend)
    size_g = backend.to_device(sizes)[group]
    chosen = order[backend.to_device(ends(sizes)[:-1])[group] + backend.xp.minimum(within, size_g - 1)]
    return GroupedGrid(
        position_xg=backend.xp.ascontiguousarray(placed.position_xg[:, chosen]),
        w_g=np.asarray(backend.to_host(backend.xp.where(within < size_g, placed.w_g[chosen], 0.0))),
        point_first=ends(full),
        bound=None,
        cube_edge=partition[0],
        sphere_fraction=partition[1],
        **lists,
    )


def _launch(backend: Backend, name: str, blocks: int, values: dict[str, Any]) -> None:
    backend.launch(backend.compile(setup_kernel(name)), blocks, values)


def _ranges(starts: Ints, sizes: Ints, backend: Backend) -> Any:
    """starts[0], starts[0] + 1, ... and so on, `sizes` of each, on the device."""
    group, within = _numbered(sizes, backend)
    return backend.to_device(starts)[group] + within


def _numbered(sizes: Ints, backend: Backend) -> tuple[Any, Any]:
    """0, 0, ..., 1, 1, ...; and 0, 1, ..., 0, 1, ...: `sizes` of each."""
    xp, first = backend.xp, ends(sizes)
    place = xp.arange(int(first[-1]), dtype=np.int64)
    group = xp.searchsorted(backend.to_device(first[1:]), place, side="right")
    return group, place - backend.to_device(first[:-1])[group]
