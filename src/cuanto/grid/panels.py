"""Density and Kohn-Sham matrix by panels of points: a thread per block of groups, values in the cache.

Both kernels are products of small matrices; values of functions are made in the kernel, which costs about as much as
reading them from main memory, or kept where that was asked for and there is room.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.grid.blocks import Tasks, make_blocks
from cuanto.grid.grouped_grid import GroupedGrid, ends
from cuanto.grid.settings import GridSettings
from cuanto.grid.shells import ShellTable
from cuanto.kernels.grid_values import (
    BLOCK_POINTS,
    COMPONENTS,
    ORDER,
    PANEL_PAD,
    VALUES,
    ShellTexts,
    cpu_density,
    cpu_gradient,
    cpu_matrix,
    cpu_values,
)
from cuanto.kernels.text import Source

PAIR = 0.03
"""Threshold for products of two functions, relative to that for one."""
TASK_POINTS = 4 * BLOCK_POINTS
"""Points of a task: enough to hide that a group's part of a matrix is gathered and scattered."""
TILE = 4
"""Functions for which kernels get one depth of their products (DEPTH_TILE there)."""
SQUARE = 128
"""Rows of a part of a matrix that is transposed at once."""
ROWS = 24
"""Functions are filled up to a multiple of this."""


class PanelQuadrature:
    """A grid and a basis; `family`: lda, gga or mgga.

    Pairs of functions whose product stays below the threshold of the settings in a group are left out there.
    """

    products: ClassVar[dict[str, tuple[float, float]]] = {
        "lda": (0.5, 1.0),
        "gga": (1.0, 2.0),
        "mgga": (2.5, 4.0),
        "gradient": (1.0, 2.0),
    }
    """Of matrices for the density, or of a product for the gradient: functions by functions from a density matrix,
    functions by orbitals. Only half of a symmetric product is made where that is enough."""
    reading_pays: ClassVar[bool] = False

    def __init__(
        self,
        grid: GroupedGrid,
        basis: Basis,
        backend: Backend,
        family: str,
        real: str,
        settings: GridSettings,
        limit: int,
    ) -> None:
        self.grid, self.backend, self.family, self.real = grid, backend, family, real
        self.nbf, self.components = basis.nbf, COMPONENTS[family]
        self.dtype = np.dtype(np.float64 if real == "double" else np.float32)
        self.values = VALUES[ORDER[family]]
        self.kept: NDArray[Any] | None = None
        self._atoms, self._shell_atom = len(basis.R_ax), np.array([s.atom for s in basis.shells], dtype=np.int32)
        table = ShellTable.of(basis)
        self._texts: ShellTexts = (table.kinds, table.columns, family)
        tasks = _cut_into_tasks(grid)
        self._blocks = make_blocks(grid, basis.nbf, tasks)
        self._depth, self._depth_first = _tile_depths(grid, PAIR * settings.threshold)
        run_row, run_ao, run_first = _runs(grid, self._blocks.ao)
        rows = (-(-grid.functions // ROWS) * ROWS)[tasks.group]
        self._task_kept = ends(np.diff(tasks.point) * rows * self.values)
        self._arguments: dict[str, Any] = {
            "position": grid.position_xg,
            "stride": len(grid.w_g),
            "list_first": grid.list_first,
            "list_shell": grid.list_shell,
            "list_row": grid.list_row,
            "ao_first": grid.ao_first,
            "ao": self._blocks.ao,
            "run_first": run_first,
            "run_row": run_row,
            "run_ao": run_ao,
            "depth_first": self._depth_first,
            "tile_depth": self._depth,
            "part_first": self._blocks.part_first,
            "part_row": self._blocks.part_row,
            "part_ao": self._blocks.part_ao,
            "shell": table.shell,
            "centre": table.centre,
            "primitive": table.primitive,
            "block_task": self._blocks.first,
            "task_point": tasks.point,
            "task_group": tasks.group,
            "task_kept": self._task_kept,
        }

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Pairs of functions that are multiplied at every point of each group."""
        whole = np.minimum(self._depth, np.repeat(self.grid.functions, np.diff(self._depth_first)))
        return np.asarray(TILE * np.add.reduceat(whole, self._depth_first[:-1]), dtype=np.int64)

    @property
    def kept_bytes(self) -> int:
        """Memory of all values."""
        return int(self._task_kept[-1]) * self.dtype.itemsize

    def keep_values(self) -> None:
        """Make all values once."""
        self.kept = np.empty(self.kept_bytes // self.dtype.itemsize, self.dtype)
        self._run(cpu_values(self._texts, self.real), {})

    def density(self, D_spq: NDArray[Any], C_spi: NDArray[Any] | None) -> NDArray[Any]:
        """Density [spin, component, point], from orbitals where they are given."""
        given = np.ascontiguousarray(D_spq if C_spi is None else C_spi, dtype=self.dtype)
        spins, width = len(given), 0 if C_spi is None else given.shape[2]
        out = np.empty((spins, self.components, len(self.grid.w_g)), dtype=self.dtype)
        rows = self._most_rows
        padded = -(-width // 8) * 8  # the kernels' largest tile
        packed = 2 * rows * (rows if C_spi is None else padded)
        room = spins * packed + PANEL_PAD * (2 * self.values * rows + 4 * padded)
        local = self._local_numbers(spins, width)
        values = {"given": given, "nbf": self.nbf, "width": width, "spins": spins, "local": local, "out": out}
        source = cpu_density(self._texts, self.real, C_spi is not None)
        self._run(source, values, self.dtype.itemsize * (local + room))
        return out

    def matrix(self, potential_scg: NDArray[Any]) -> NDArray[np.float64]:
        """Kohn-Sham matrices [spin, p, q] of potentials [spin, component, point] that contain the weights."""
        potential = np.ascontiguousarray(potential_scg, dtype=self.dtype)
        spins, rows = len(potential), self._most_rows
        F_spq = np.zeros((spins, self.nbf, self.nbf))
        group_sums = spins * rows * rows * (2 if self.family == "mgga" else 1)
        room = 8 * group_sums + self.dtype.itemsize * BLOCK_POINTS * rows * (self.values + 1)
        values = {"potential": potential, "nbf": self.nbf, "spins": spins, "group_sums": group_sums, "out": F_spq}
        block_sums = spins * int(self._blocks.functions.max(initial=0)) ** 2
        self._run(cpu_matrix(self._texts, self.real), values, room, sums="out", sums_size=block_sums)
        for F_pq in F_spq:
            add_transpose(F_pq)
        return F_spq

    def gradient(
        self, D_spq: NDArray[Any], C_spi: NDArray[Any] | None, potential_scg: NDArray[Any], moving: bool
    ) -> NDArray[np.float64]:
        """dE/dR [atom, axis] at fixed density matrices and weights; `moving`: points move with their atoms."""
        given, potential = (np.ascontiguousarray(array) for array in (D_spq if C_spi is None else C_spi, potential_scg))
        spins, rows, width = len(given), self._most_rows, 0 if C_spi is None else given.shape[2]
        padded, local = -(-width // 8) * 8, self._local_numbers(spins, width)
        products = {"lda": 1, "gga": 2, "mgga": 4}[self.family]
        room = spins * (rows * rows if C_spi is None else 2 * rows * padded)
        room += PANEL_PAD * (rows * (VALUES[ORDER[self.family] + 1] + 2 * products + 1) + padded)
        gradient = np.zeros((self._atoms, 3))
        values = {"given": given, "nbf": self.nbf, "width": width, "spins": spins, "local": local}
        values |= {"potential": potential, "shell_atom": self._shell_atom, "out": gradient}
        values |= {"own": self.grid.own_g if moving else None}
        self._run(cpu_gradient(self._texts, C_spi is not None), values, 8 * (local + room), sums="out")
        return gradient

    def _local_numbers(self, spins: int, width: int) -> int:
        """Room for matrices, or orbitals, of a block."""
        if not self._blocks.local:
            return 0
        most = int(self._blocks.functions.max())
        return -(-spins * most * (width or most) // 16) * 16

    @property
    def _most_rows(self) -> int:
        return int(-(-self.grid.functions.max(initial=0) // ROWS)) * ROWS

    def _run(self, source: Source, values: dict[str, Any], scratch: int = 0, **sums: Any) -> None:
        """All blocks."""
        arguments = {**self._arguments, "kept": self.kept, "keeping": int(self.kept is not None), **values}
        blocks = len(self._blocks.first) - 1
        self.backend.launch_all([Launch(self.backend.compile(source), blocks, arguments, scratch, grain=1, **sums)])


def _cut_into_tasks(grid: GroupedGrid) -> Tasks:
    """Every group in parts of about TASK_POINTS points."""
    point, group = [0], []
    for i, (first, last) in enumerate(pairwise(grid.point_first.tolist())):
        parts = max(1, round((last - first) / TASK_POINTS))
        step = -(-(last - first) // (parts * PANEL_PAD)) * PANEL_PAD
        point += [min(begin + step, last) for begin in range(first, last, step)]
        group += [i] * len(range(first, last, step))
    return Tasks(np.array(point), np.array(group, dtype=np.int32))


def _runs(grid: GroupedGrid, ao: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Consecutive functions of each group: first row and function of each run (and the end of the last); by group."""
    start = np.ones(len(ao), dtype=bool)
    start[1:] = np.diff(ao) != 1
    start[grid.ao_first[:-1]] = True
    at = np.flatnonzero(start)
    group = np.searchsorted(grid.ao_first, at, side="right") - 1
    runs = np.bincount(group, minlength=len(grid))
    first = ends(runs + 1)
    place = np.arange(len(at)) + group  # one more for each group before
    row, function = np.zeros((2, int(first[-1])), dtype=np.int32)
    row[place], function[place] = at - grid.ao_first[group], ao[at]
    row[first[1:] - 1] = grid.functions
    return row, function, first


def _tile_depths(grid: GroupedGrid, pair_threshold: float) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For every TILE functions of a group, large ones first: with how many of them they make products that matter."""
    tiles = -(-grid.functions // TILE)
    first = ends(tiles)
    depth = np.repeat(grid.functions, tiles).astype(np.int32)
    if pair_threshold > 0 and grid.bound is not None:
        for i, (a, b) in enumerate(pairwise(grid.ao_first.tolist())):
            descending = -grid.bound[a:b]
            # b_p b_q > threshold
            depth[first[i] : first[i + 1]] = np.searchsorted(descending, pair_threshold / descending[::TILE])
    return depth, first


def add_transpose(F_pq: NDArray[np.float64]) -> None:
    """F + F^T in its place, by squares that fit in the cache."""
    steps = [slice(k, k + SQUARE) for k in range(0, len(F_pq), SQUARE)]
    for i, a in enumerate(steps):
        for b in steps[: i + 1]:
            both = F_pq[a, b] + F_pq[b, a].T
            F_pq[a, b], F_pq[b, a] = both, both.T
