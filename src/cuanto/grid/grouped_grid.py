"""Weighted points in groups, each with its list of functions: what the kernels of the quadrature work through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NEGLIGIBLE = 1e-14
"""Points of less weight are left out."""


@dataclass(frozen=True, eq=False)
class GroupedGrid:
    """Points by group (`point_first`), each group filled up with points without weight; shells and functions by group.

    `list_shell`, `list_row`: shells of a group and where their functions begin in it; `ao`: its functions. On the CPU
    functions are numbered within the group, large ones first, and none is larger than its `bound` at any point there.
    A grid made on a device has no bounds, and its positions and lists (`Any`) are there. `own_g`: the atom with which
    each point moves (not known of points from elsewhere).
    """

    position_xg: Any
    own_g: Any | None
    w_g: Array
    point_first: Ints
    list_first: Ints
    list_shell: Any
    list_row: Any
    ao_first: Ints
    ao: Any
    bound: Array | None
    cube_edge: float
    sphere_fraction: float

    def __len__(self) -> int:
        return len(self.point_first) - 1

    @property
    def functions(self) -> Ints:
        """Functions of each group."""
        return np.diff(self.ao_first)

    @property
    def points(self) -> Ints:
        """Points of each group, filled up."""
        return np.diff(self.point_first)

    @property
    def mean_functions(self) -> float:
        """Functions at a point."""
        return float((self.functions * self.points).sum() / max(1, self.points.sum()))


def ends(counts: Ints) -> Ints:
    """Where each of so many begins, and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
