"""Density, Kohn-Sham matrix and gradient on a CPU, by panels of points whose functions stay in the cache.

The kernels are products of small matrices; values of functions are computed in the kernel, which costs about as much
as reading them from main memory, or stored if that is required and there is room.

A block of neighbouring groups is the work of one thread. In a large molecule a matrix of all functions does not fit
into the cache, and fetching a group's part of it from main memory would take a large share of the time: there the
functions of a block have a small matrix, copied once for all its groups. In a small molecule every block has a whole
matrix. Blocks do not depend on the number of threads, so neither does the order of their sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array, Flags, Ints, Ints32, add_transpose, range_starts
from cuanto.backends.base import Launch
from cuanto.grid.base import Quadrature
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.settings import GridSettings
from cuanto.kernels.grid_values import (
    BLOCK_POINTS,
    ORDER,
    PANEL_PAD,
    VALUE_COUNTS,
    cpu_density,
    cpu_gradient,
    cpu_matrix,
    cpu_values,
)
from cuanto.kernels.text import Source

PAIR_THRESHOLD = 0.03
"""Threshold for products of two functions, relative to that for one."""
TASK_POINTS = 4 * BLOCK_POINTS
"""Points of a task: enough to hide the cost of gathering and scattering a group's part of a matrix."""
TILE = 4
"""Functions that kernels multiply by the same number of other functions, their depth (DEPTH_TILE there)."""
TRANSPOSE_TILE = tuning.size("cpu", "grid.transposed_rows")
ROWS = 24
"""Functions are padded to a multiple of this."""
ORBITAL_TILE = 8
"""Orbitals in the largest tile of the kernels, which pad them to a multiple of it."""
LOCAL_FUNCTIONS = tuning.size("cpu", "grid.local_functions")
GROWTH = tuning.number("cpu", "grid.block_growth")
MAX_GROUPS = tuning.size("cpu", "grid.block_groups")
BLOCKS = tuning.size("cpu", "grid.blocks")
SHRINKING = tuning.number("cpu", "grid.block_shrinking")


class PanelQuadrature(Quadrature):
    """Quadrature by panels; products of functions below the threshold of the settings in a group are neglected there.

    Only half of a symmetric product is computed where that suffices.
    """

    products: ClassVar[dict[str, tuple[float, float]]] = {
        "lda": (0.5, 1.0),
        "gga": (1.0, 2.0),
        "mgga": (2.5, 4.0),
        "gradient": (1.0, 2.0),
    }
    reading_is_faster: ClassVar[bool] = False

    def _prepare(self, settings: GridSettings, limit: int) -> None:
        grid = self.grid
        self.kept: NDArray[Any] | None = None
        tasks = _cut_into_tasks(grid)
        self._blocks = make_blocks(grid, self.nbf, tasks)
        self._depth, self._depth_first = _tile_depths(grid, PAIR_THRESHOLD * settings.threshold)
        run_row, run_ao, run_first = _runs(grid, self._blocks.ao)
        rows = (-(-grid.functions // ROWS) * ROWS)[tasks.group]
        self._task_kept = range_starts(np.diff(tasks.point) * rows * self.values)
        self._arguments: dict[str, Any] = {
            **vars(grid),
            **vars(self.table),
            **vars(self._blocks),
            "position": grid.position_xg,
            "stride": len(grid.w_g),
            "run_first": run_first,
            "run_row": run_row,
            "run_ao": run_ao,
            "depth_first": self._depth_first,
            "tile_depth": self._depth,
            "block_task": self._blocks.first,
            "task_point": tasks.point,
            "task_group": tasks.group,
            "task_kept": self._task_kept,
        }

    @cached_property
    def pairs(self) -> Ints:
        """Pairs of functions whose products are significant."""
        whole = np.minimum(self._depth, np.repeat(self.grid.functions, np.diff(self._depth_first)))
        return np.asarray(TILE * np.add.reduceat(whole, self._depth_first[:-1]), dtype=np.int64)

    @property
    def kept_bytes(self) -> int:
        """Memory of the values of all functions."""
        return int(self._task_kept[-1]) * self.dtype.itemsize

    def keep_values(self, limit: int | None = None) -> int:
        """Compute and store the values of all functions, or none: recomputing them takes no more time."""
        if limit is not None and self.kept_bytes > limit:
            return 0
        self.kept = np.empty(self.kept_bytes // self.dtype.itemsize, self.dtype)
        self._run(cpu_values(self.texts, self.real), {})
        return self.kept_bytes

    def density(self, D_spq: NDArray[Any], C_spi: NDArray[Any] | None) -> NDArray[Any]:
        """Densities, from orbitals if they are given."""
        given = np.ascontiguousarray(D_spq if C_spi is None else C_spi, dtype=self.dtype)
        spins, width = len(given), 0 if C_spi is None else given.shape[2]
        out = np.empty((spins, self.components, len(self.grid.w_g)), dtype=self.dtype)
        rows = self._most_rows
        padded = -(-width // ORBITAL_TILE) * ORBITAL_TILE
        packed = 2 * rows * (rows if C_spi is None else padded)
        room = spins * packed + PANEL_PAD * (2 * self.values * rows + 4 * padded)
        local = self._local_numbers(spins, width)
        values = {"given": given, "nbf": self.nbf, "width": width, "spins": spins, "local": local, "out": out}
        source = cpu_density(self.texts, self.real, C_spi is not None)
        self._run(source, values, self.dtype.itemsize * (local + room))
        return out

    def matrix(self, potential_scg: NDArray[Any]) -> Array:
        """Kohn-Sham matrices of potentials that contain the weights."""
        potential = np.ascontiguousarray(potential_scg, dtype=self.dtype)
        spins, rows = len(potential), self._most_rows
        F_spq = np.zeros((spins, self.nbf, self.nbf))
        group_sums = spins * rows * rows * (2 if self.family == "mgga" else 1)
        room = 8 * group_sums + self.dtype.itemsize * BLOCK_POINTS * rows * (self.values + 1)
        values = {"potential": potential, "nbf": self.nbf, "spins": spins, "group_sums": group_sums, "out": F_spq}
        block_sums = spins * int(self._blocks.functions.max(initial=0)) ** 2
        self._run(cpu_matrix(self.texts, self.real), values, room, sums="out", sums_size=block_sums)
        for F_pq in F_spq:
            add_transpose(F_pq, TRANSPOSE_TILE)
        return F_spq

    def gradient(
        self, D_spq: NDArray[Any], C_spi: NDArray[Any] | None, potential_scg: NDArray[Any], moving: bool
    ) -> Array:
        """dE/dR at fixed density matrices and weights; `moving`: points move with their atoms."""
        given, potential = (np.ascontiguousarray(array) for array in (D_spq if C_spi is None else C_spi, potential_scg))
        spins, rows, width = len(given), self._most_rows, 0 if C_spi is None else given.shape[2]
        padded, local = -(-width // ORBITAL_TILE) * ORBITAL_TILE, self._local_numbers(spins, width)
        products = {"lda": 1, "gga": 2, "mgga": 4}[self.family]
        room = spins * (rows * rows if C_spi is None else 2 * rows * padded)
        room += PANEL_PAD * (rows * (VALUE_COUNTS[ORDER[self.family] + 1] + 2 * products + 1) + padded)
        gradient = np.zeros((self.atoms, 3))
        values = {"given": given, "nbf": self.nbf, "width": width, "spins": spins, "local": local}
        values |= {"potential": potential, "own": self.grid.atom_g if moving else None, "out": gradient}
        self._run(cpu_gradient(self.texts, C_spi is not None), values, 8 * (local + room), sums="out")
        return gradient

    def _local_numbers(self, spins: int, width: int) -> int:
        """Numbers in the matrices, or orbitals (`width`), of a block."""
        if not self._blocks.local:
            return 0
        most = int(self._blocks.functions.max())
        return -(-spins * most * (width or most) // 16) * 16

    @property
    def _most_rows(self) -> int:
        return int(-(-self.grid.functions.max(initial=0) // ROWS)) * ROWS

    def _run(self, source: Source, values: dict[str, Any], scratch: int = 0, **sums: Any) -> None:
        """Run a kernel on all blocks."""
        arguments = {**self._arguments, "kept": self.kept, "keeping": int(self.kept is not None), **values}
        blocks = len(self._blocks.first) - 1
        self.backend.launch_all([Launch(self.backend.compile(source), blocks, arguments, scratch, grain=1, **sums)])


def _cut_into_tasks(grid: GroupedGrid) -> Tasks:
    """Cut every group into tasks of about TASK_POINTS points."""
    point, group = [0], []
    for i, (first, last) in enumerate(pairwise(grid.point_first.tolist())):
        parts = max(1, round((last - first) / TASK_POINTS))
        step = -(-(last - first) // (parts * PANEL_PAD)) * PANEL_PAD
        point += [min(begin + step, last) for begin in range(first, last, step)]
        group += [i] * len(range(first, last, step))
    return Tasks(np.array(point), np.array(group, dtype=np.int32))


def _runs(grid: GroupedGrid, ao: Ints32) -> tuple[Ints32, Ints32, Ints]:
    """Runs of consecutive functions of each group: first rows (and the end), first functions, offsets."""
    start = np.ones(len(ao), dtype=bool)
    start[1:] = np.diff(ao) != 1
    start[grid.ao_first[:-1]] = True
    at = np.flatnonzero(start)
    group = np.searchsorted(grid.ao_first, at, side="right") - 1
    runs = np.bincount(group, minlength=len(grid))
    first = range_starts(runs + 1)
    position = np.arange(len(at)) + group  # one more for each group before
    row, function = np.zeros((2, int(first[-1])), dtype=np.int32)
    row[position], function[position] = at - grid.ao_first[group], ao[at]
    row[first[1:] - 1] = grid.functions
    return row, function, first


def _tile_depths(grid: GroupedGrid, pair_threshold: float) -> tuple[Ints32, Ints]:
    """For every TILE functions of a group, large ones first: the number of functions with significant products."""
    tiles = -(-grid.functions // TILE)
    first = range_starts(tiles)
    depth = np.repeat(grid.functions, tiles).astype(np.int32)
    if pair_threshold > 0 and grid.bound is not None:
        for i, (a, b) in enumerate(pairwise(grid.ao_first.tolist())):
            descending = -grid.bound[a:b]
            # b_p b_q > threshold
            depth[first[i] : first[i + 1]] = np.searchsorted(descending, pair_threshold / descending[::TILE])
    return depth, first


@dataclass(frozen=True, eq=False)
class Tasks:
    """Task t has the points `point[t]` to `point[t + 1]`, all of one group."""

    point: Ints
    group: Ints32


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block b has the tasks `first[b]` to `first[b + 1]`; `ao`: functions of every group, numbered within its block.

    `part_first[b]` to `part_first[b + 1]`: runs of consecutive functions of a block, by first row (and the number of
    rows at the end) and first function. `local`: every block has a small matrix.
    """

    first: Ints
    ao: Ints32
    part_first: Ints
    part_row: Ints32
    part_ao: Ints32
    local: bool

    @property
    def functions(self) -> Ints32:
        """Functions of each block."""
        return self.part_row[self.part_first[1:] - 1]


def make_blocks(grid: GroupedGrid, nbf: int, tasks: Tasks) -> Blocks:
    """Blocks of consecutive tasks that share most functions; in a small molecule, blocks of about the same work, with
    less for the last ones."""
    if nbf <= LOCAL_FUNCTIONS * GROWTH:
        first = _portions(grid, tasks)
        blocks, whole = len(first) - 1, np.array([0, nbf], dtype=np.int32)
        ao = np.ascontiguousarray(grid.ao, dtype=np.int32)
        rows, starts = np.tile(whole, blocks), np.zeros(2 * blocks, dtype=np.int32)
        return Blocks(first, ao, 2 * np.arange(blocks + 1), rows, starts, False)
    groups = [np.asarray(grid.ao[a:b]) for a, b in pairwise(grid.ao_first.tolist())]
    position, ao = np.zeros(nbf, dtype=np.int32), np.empty(len(grid.ao), dtype=np.int32)
    part_rows, part_starts, begins = [], [], []
    for begin, end, member in _unions(groups, nbf):
        functions = np.flatnonzero(member)
        position[functions] = np.arange(len(functions))
        part = slice(int(grid.ao_first[begin]), int(grid.ao_first[end]))
        ao[part] = position[grid.ao[part]]
        run = np.flatnonzero(np.diff(functions, prepend=-2) != 1)
        part_rows.append(np.append(run, len(functions)))
        part_starts.append(np.append(functions[run], 0))
        begins.append(begin)
    first = np.searchsorted(tasks.group, [*begins, len(groups)])
    part_first = range_starts(np.array([len(row) for row in part_rows], dtype=np.int64))
    part_row, part_ao = (np.concatenate(some).astype(np.int32) for some in (part_rows, part_starts))
    return Blocks(first, ao, part_first, part_row, part_ao, True)


def _portions(grid: GroupedGrid, tasks: Tasks) -> Ints:
    """Divide the tasks by their work; portions shrink towards the end, so that threads finish together."""
    if not len(tasks.group):
        return np.zeros(1, dtype=np.int64)
    work = np.cumsum(np.diff(tasks.point) * grid.functions[tasks.group].astype(float) ** 2 + 1.0)
    left = (1 - np.arange(1, BLOCKS) / BLOCKS) ** SHRINKING
    cuts = np.searchsorted(work, work[-1] * (1 - left))
    return np.unique(np.concatenate([[0], cuts, [len(work)]])).astype(np.int64)


def _unions(groups: list[Any], nbf: int) -> list[tuple[int, int, Flags]]:
    """First group of each block, the first one after it, and which functions the block has."""
    found = []
    begin, count, limit, member = 0, 0, 0.0, np.zeros(nbf, dtype=bool)
    for i, functions in enumerate(groups):
        more = functions[~member[functions]]
        if i > begin and (count + len(more) > limit or i - begin == MAX_GROUPS):
            found.append((begin, i, member))
            begin, count, member, more = i, 0, np.zeros(nbf, dtype=bool), functions
        if i == begin:
            limit = max(LOCAL_FUNCTIONS, GROWTH * len(functions))
        member[more] = True
        count += len(more)
    return [*found, (begin, len(groups), member)] if groups else found
