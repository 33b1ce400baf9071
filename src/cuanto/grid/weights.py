"""Each point's share of its own atom: fuzzy cells of Becke, or of Stratmann and Scuseria.

A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033 (cells, eqs. 19-22; shifts for atoms of different
size, appendix); O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408 (the square root
of the ratio of radii instead); R. E. Stratmann, G. E. Scuseria, M. J. Frisch, Chem. Phys. Lett. 257, 213 (1996),
doi:10.1016/0009-2614(96)00600-8 (cells that are exactly 0 and 1 outside |mu| < 0.64, so that far atoms do not enter).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.grid.partition import Extents, Groups, extents
from cuanto.grid.points import Points
from cuanto.grid.radii import bragg_slater_radii
from cuanto.kernels.build import Source
from cuanto.kernels.grid_weights import BLOCK_POINTS, weights_source

Array = NDArray[np.float64]

HORIZON = (1 + 0.64) / (1 - 0.64)
"""Stratmann: an atom that is this much further away than another does not touch the other's cell."""
ENTRIES_AT_ONCE = 1 << 24
"""Atoms in all lists that are at work together."""
FEW = 600
"""Atoms up to which all are put in order at once, beyond that the nearest are looked up."""
FIRST_NEIGHBOURS = 128
NEAREST = 16
"""Atoms in order: they decide whether an atom has any share of a point."""
PARTS = 64
"""Tasks on the CPU."""


def shifts(numbers: NDArray[np.int64], partition: str) -> Array:
    """a_ij that moves the border between two atoms away from the larger one (Becke, eqs. A2-A6)."""
    if partition in ("becke-plain", "stratmann"):
        return np.zeros((len(numbers), len(numbers)))
    radii = bragg_slater_radii()[numbers]
    size = np.sqrt(radii) if partition == "becke" else radii
    u = (size[:, None] - size) / (size[:, None] + size)
    return np.clip(u / (u**2 - 1), -0.5, 0.5)


def cell_weights(
    points: Points,
    groups: Groups,
    R_ax: Array,
    numbers: NDArray[np.int64],
    partition: str,
    backend: Backend,
    where: Extents | None = None,
) -> Array:
    """Weights in the molecule of the points in the order of the groups; `where` these are, if that is known."""
    weight_g = np.ascontiguousarray(points.w_g[groups.order])
    if len(R_ax) == 1 or not len(weight_g):
        return weight_g
    distance_ij = np.sqrt(((R_ax[:, None] - R_ax) ** 2).sum(axis=2)) + np.eye(len(R_ax))
    common = {
        "position": np.ascontiguousarray(points.r_gx[groups.order].T),
        "own": points.atom_g[groups.order],
        "atom": np.ascontiguousarray(R_ax),
        "pair": np.ascontiguousarray(np.stack([1 / distance_ij, shifts(numbers, partition)], axis=2)),
        "weight": weight_g,
    }
    where = where or extents(points.r_gx, groups)
    return _share(common, groups, where, partition == "stratmann", backend)


def _share(common: dict[str, Any], groups: Groups, where: Extents, stratmann: bool, backend: Backend) -> Array:
    """Groups in batches whose lists of atoms fit in memory."""
    work = _on_cpu if backend.name == "cpu" else _on_device
    source, R_ax = weights_source("cpu" if backend.name == "cpu" else "cuda", stratmann), common["atom"]
    values = {**backend.upload(common), "stride": len(common["weight"]), "atoms": len(R_ax)}
    step = max(1, ENTRIES_AT_ONCE // len(R_ax))
    for begin in range(0, len(groups), step):
        part = slice(begin, min(begin + step, len(groups)))
        block_point, block_list = _blocks(groups.first[part.start : part.stop + 1])
        first, atom, distance = (_near_atoms if stratmann else _all_atoms)(where, part, R_ax)
        lists = {
            "block_point": block_point,
            "block_list": block_list,
            "list_radius": where.radius_g[part],
            "list_first": first,
            "list_atom": atom,
            "list_distance": distance,
        }
        work(backend, source, len(block_list), int(np.diff(first).max()), {**values, **backend.upload(lists)})
    return np.asarray(backend.to_host(values["weight"]))


def _blocks(first: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Groups cut into blocks: where these begin and, at the end, end; the group of each."""
    count = -(-np.diff(first) // BLOCK_POINTS)
    group = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    begin = first[group] + BLOCK_POINTS * within
    return np.append(begin, first[-1]).astype(np.int32), group.astype(np.int32)


def _all_atoms(where: Extents, part: slice, R_ax: Array) -> tuple[Any, Any, Any]:
    """All atoms for each group, the nearest first: where each list begins, atoms; distances are not needed."""
    centre_bx, nearest = where.centre_gx[part], min(NEAREST, len(R_ax))
    d_ba = _distances(centre_bx, R_ax)
    atom_bk = np.argpartition(d_ba, nearest - 1, axis=1).astype(np.int32)
    first_bk = atom_bk[:, :nearest]
    order = np.argsort(np.take_along_axis(d_ba, first_bk, axis=1), axis=1)
    atom_bk[:, :nearest] = np.take_along_axis(first_bk, order, axis=1)
    return np.arange(len(centre_bx) + 1) * len(R_ax), atom_bk.reshape(-1), np.zeros(1)


def _distances(r_bx: Array, R_ax: Array) -> Array:
    d_ba = np.zeros((len(r_bx), len(R_ax)))
    for x in range(3):
        d_ba += (r_bx[:, x, None] - R_ax[:, x]) ** 2
    return np.asarray(np.sqrt(d_ba))


def _near_atoms(where: Extents, part: slice, R_ax: Array) -> tuple[Any, Any, Any]:
    """Atoms that may matter by distance from the middle of each group: where each list begins, atoms, distances."""
    from scipy.spatial import cKDTree  # here, because it is slow to import

    tree, atoms = cKDTree(R_ax), len(R_ax)
    centre_bx, radius_b = where.centre_gx[part], where.radius_g[part]
    count_b = np.zeros(len(centre_bx), dtype=np.int64)
    found: list[tuple[Any, Any, Any]] = []
    pending, neighbours = np.arange(len(centre_bx)), atoms if atoms <= FEW else FIRST_NEIGHBOURS
    while len(pending):
        if neighbours == atoms:
            d_ba = _distances(centre_bx[pending], R_ax)
            atom_bk = np.argsort(d_ba, axis=1)
            distance_bk = np.take_along_axis(d_ba, atom_bk, axis=1)
        else:
            distance_bk, atom_bk = tree.query(centre_bx[pending], neighbours)
        radius = radius_b[pending]
        rows_end = HORIZON * (distance_bk[:, 0] + radius) + radius
        end_b = HORIZON * (rows_end + radius) + radius
        complete = (distance_bk[:, -1] > end_b) | (neighbours == atoms)
        used = (distance_bk <= end_b[:, None]) & complete[:, None]
        count_b[pending] = used.sum(axis=1)
        found.append((np.repeat(pending, count_b[pending]), atom_bk[used], distance_bk[used]))
        pending, neighbours = pending[~complete], min(atoms, 2 * neighbours)
    block_k, atom_k, distance_k = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.argsort(block_k, kind="stable")
    first = np.concatenate([[0], np.cumsum(count_b)])
    return first, atom_k[order].astype(np.int32), distance_k[order]


def _on_cpu(backend: Any, source: Source, blocks: int, longest: int, values: dict[str, Any]) -> None:
    """Ranges of blocks in the pool."""
    function = backend.function(source)
    arguments = [
        x.ctypes.data if isinstance(x := values[name], np.ndarray) else x for _, name in source.arguments[2:-1]
    ]
    span = max(1, blocks // PARTS)

    def call(begin: int, end: int) -> None:
        scratch = np.empty(8 * longest)
        function(begin, end, *arguments, scratch.ctypes.data)

    backend.parallel(partial(call, b, min(b + span, blocks)) for b in range(0, blocks, span))


def _on_device(backend: Any, source: Source, blocks: int, longest: int, values: dict[str, Any]) -> None:
    """A block of threads for each block of points; the lists live until it is done."""
    backend.launch(source, blocks, BLOCK_POINTS, 0, values)
    backend.synchronize()
