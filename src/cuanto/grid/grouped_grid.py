"""Weighted points in groups, each with its list of functions: the input of the kernels of the quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class GroupedGrid:
    """Points by group (`point_first`), each group padded with points without weight; shells and functions by group.

    `list_shell`, `list_row`: shells of a group and the first of their functions in it; `ao`: its functions. On the CPU
    the functions of a group are sorted by size, and `bound` is an upper bound of each at the points of the group.
    A grid on a device has no bounds, and its positions and lists (`Any`) are arrays of the device.
    `atom_g`: the atom that each point moves with; None for given points, which have no atom.
    """

    position_xg: Any
    atom_g: Any | None
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
        """Points of each group, with padding."""
        return np.diff(self.point_first)

    @property
    def mean_functions(self) -> float:
        """Average number of functions at a point."""
        return float((self.functions * self.points).sum() / max(1, self.points.sum()))
