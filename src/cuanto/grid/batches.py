"""Groups cut into pieces of few different sizes, so that a device works through all of them in few launches.

A piece has as many points as one of `SIZES` and functions filled up to a multiple of `ROWS`. Sizes that few pieces have
are filled up further until they join others, when that costs less than launches of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.grid.cost import COSTS, DeviceCost
from cuanto.grid.grouped_grid import GroupedGrid

Ints = NDArray[np.int64]

ROWS = 32
SIZES = ((512, 256, 128, 64), (512, 128, 64), (512, 64), (256, 64), (128, 64))
"""Points of pieces, the largest first: the choice of least predicted time is taken."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Group, first point, points and (filled up) functions of every piece; pieces of equal sizes follow each other."""

    group_t: Ints
    point_t: Ints
    size_t: Ints
    rows_t: Ints

    def bounds(self) -> list[int]:
        """Where pieces of one size begin, and the end."""
        changes = (np.diff(self.rows_t) != 0) | (np.diff(self.size_t) != 0)
        return [0, *(np.flatnonzero(changes) + 1).tolist(), len(self.rows_t)]


def cut(grid: GroupedGrid, cost: DeviceCost = COSTS["cuda"]) -> Pieces:
    """All groups of a grid in pieces."""
    rows_g = -(-grid.functions // ROWS) * ROWS
    best: tuple[float, Pieces] | None = None
    for sizes in SIZES:
        group_t, point_t, size_t = _split(grid, sizes)
        rows_t, seconds = _joined(rows_g[group_t], size_t, cost)
        if best is None or seconds < best[0]:
            order = np.lexsort((point_t, -size_t, -rows_t))
            best = seconds, Pieces(*(array[order] for array in (group_t, point_t, size_t, rows_t)))
    assert best is not None
    return best[1]


def _split(grid: GroupedGrid, sizes: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
    """Group, first point and points of each piece."""
    left, begin = grid.points.copy(), grid.point_first[:-1].copy()
    parts = []
    for points in sizes:
        count = left // points
        group = np.repeat(np.arange(len(grid)), count)
        within = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
        parts.append((group, begin[group] + points * within, np.full(len(group), points)))
        begin += count * points
        left -= count * points
    group_t, point_t, size_t = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True))
    return group_t, point_t, size_t


def _joined(rows_t: Ints, size_t: Ints, cost: DeviceCost) -> tuple[Ints, float]:
    """Functions of the pieces when rare sizes have joined larger ones, and the predicted time of a pass."""
    out, seconds = rows_t.copy(), 0.0
    for points in np.unique(size_t).tolist():
        here = np.flatnonzero(size_t == points)
        kinds, which = np.unique(rows_t[here], return_inverse=True)
        counts = np.bincount(which.reshape(-1)).astype(float)
        target = kinds.copy()
        first, waiting = 0, 0.0
        for k, rows in enumerate(kinds.tolist()):
            waiting += counts[k]
            alone = waiting * cost.piece_seconds(points, rows)
            last = k + 1 == len(kinds)
            if last or waiting * cost.piece_seconds(points, int(kinds[k + 1])) - alone > cost.batch:
                target[first : k + 1] = rows
                seconds += alone + cost.batch
                first, waiting = k + 1, 0.0
        out[here] = target[which.reshape(-1)]
    return out, seconds
