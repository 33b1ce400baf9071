"""Weights of the points in the partition of space among the atoms, and their derivatives: Becke's fuzzy cells, or
Stratmann's.

A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033 (cells, eqs. 19-22; shifts for atoms of different
size, appendix); O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408 (the square root
of the ratio of radii instead); R. E. Stratmann, G. E. Scuseria, M. J. Frisch, Chem. Phys. Lett. 257, 213 (1996),
doi:10.1016/0009-2614(96)00600-8 (cells that are exactly 0 and 1 outside |mu| < 0.64, so that far atoms do not enter).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, Ints, Ints32, range_members
from cuanto.backends.base import Backend, Launch
from cuanto.grid.partition import Boxes
from cuanto.grid.rules import bragg_slater_radii
from cuanto.kernels.grid_setup import (
    BLOCK_POINTS,
    near_source,
    weights_gradient_source,
    weights_scratch,
    weights_source,
)

ENTRIES_AT_ONCE = tuning.size("cpu", "grid.list_entries")
SHIFTED_PARTITIONS = ("becke", "becke-bragg")
"""Partitions whose cells are larger for larger atoms."""


@dataclass(frozen=True, eq=False)
class GroupedPoints:
    """Points [axis, point], their atoms and weights by group, and the boxes of the groups (arrays of the backend).

    `first`: first point of each group (on the host).
    """

    position_xg: Any
    atom_g: Any
    w_g: Any
    first: Ints
    boxes: Boxes


def shifts(numbers: Ints, partition: str) -> Array:
    """a_ij that shifts the border between two atoms away from the larger one (Becke, eqs. A2-A6)."""
    radii = bragg_slater_radii()[numbers]
    size = np.sqrt(radii) if partition == "becke" else radii
    u = (size[:, None] - size) / (size[:, None] + size)
    return np.clip(u / (u**2 - 1), -0.5, 0.5)


def apply_partition(placed: GroupedPoints, R_ax: Array, numbers: Ints, partition: str, backend: Backend) -> None:
    """Multiply the weight of each point by the cell function of its atom."""
    language = backend.traits.language
    program = backend.compile(weights_source(language, partition == "stratmann"))
    for blocks, values in _batches(placed, R_ax, numbers, partition, backend):
        backend.launch(program, blocks, values, weights_scratch(language, len(R_ax)))


def share_gradient(placed: GroupedPoints, R_ax: Array, numbers: Ints, partition: str, backend: Backend) -> Any:
    """sum_g w_g d ln(share_g)/dR_ax [atom, axis] on the device; share_g: cell function of the atom that point g moves
    with."""
    program = backend.compile(weights_gradient_source(backend.traits.language, partition == "stratmann"))
    out = backend.zeros(R_ax.shape, np.float64)
    for blocks, values in _batches(placed, R_ax, numbers, partition, backend):
        backend.launch_all([Launch(program, blocks, {**values, "out": out}, sums="out")])
    return out


def _batches(
    placed: GroupedPoints, R_ax: Array, numbers: Ints, partition: str, backend: Backend
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Batches of groups with their lists of nearby atoms: number of blocks of points, and arguments of a kernel."""
    atoms, groups = len(R_ax), len(placed.first) - 1
    if atoms == 1 or not groups:
        return
    fixed = {"atom": backend.to_device(np.ascontiguousarray(R_ax)), "stride": len(placed.w_g), "atoms": atoms}
    fixed["pair"] = _pairs(fixed["atom"], numbers, partition, backend)
    fixed |= {"position": placed.position_xg, "own": placed.atom_g, "weight": placed.w_g}
    xp = backend.xp
    step = min(groups, max(1, ENTRIES_AT_ONCE // atoms))
    fixed |= {"list_atom": xp.empty((step, atoms), dtype=np.int32), "list_distance": xp.empty((step, atoms))}
    fixed |= {name: xp.empty(step, dtype=np.int32) for name in ("list_rows", "list_count")}
    near = backend.compile(near_source(backend.traits.language, partition == "stratmann"))
    for begin in range(0, groups, step):
        part = slice(begin, min(begin + step, groups))
        point, group = _blocks(placed.first[part.start : part.stop + 1])
        values = {
            **fixed,
            **backend.upload({"block_point": point, "block_list": group}),
            "centre": placed.boxes.centre[part],
            "radius": placed.boxes.radius[part],
        }
        backend.launch(near, part.stop - part.start, values)
        yield len(group), values


def _pairs(R_ax: Any, numbers: Ints, partition: str, backend: Backend) -> Any:
    """1 / R_ij and a_ij of all pairs [i, j, 2]; 1 / R_ii is not used."""
    xp = backend.xp
    square_ij = xp.eye(len(R_ax))
    for x in range(3):
        difference = R_ax[:, x, None] - R_ax[:, x]
        square_ij += difference * difference
    pair_ij = xp.zeros((*square_ij.shape, 2))
    pair_ij[:, :, 0] = 1 / xp.sqrt(square_ij)
    if partition in SHIFTED_PARTITIONS:
        pair_ij[:, :, 1] = backend.to_device(shifts(numbers, partition))
    return pair_ij


def _blocks(first: Ints) -> tuple[Ints32, Ints32]:
    """Groups cut into blocks: their first points (and the end), and the group of each."""
    group, within = range_members(-(-np.diff(first) // BLOCK_POINTS))
    begin = first[group] + BLOCK_POINTS * within
    return np.append(begin, first[-1]).astype(np.int32), group.astype(np.int32)
