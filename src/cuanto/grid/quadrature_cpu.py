"""Density and Kohn-Sham matrix on the CPU: one call of a kernel for a part of a group, values in the cache.

Both kernels are products of small matrices; values of functions are made in the kernel, which costs about as much as
reading them from main memory, or kept where that was asked for and there is room.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Basis
from cuanto.grid.blocks_cpu import Block, make_blocks
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.shells import ShellTable
from cuanto.kernels.grid_values import (
    BLOCK_POINTS,
    COMPONENTS,
    CPU_RANGE,
    PANEL_PAD,
    cpu_density,
    cpu_local,
    cpu_matrix,
    cpu_values,
)
from cuanto.kernels.text import Source

TASK_POINTS = 4 * BLOCK_POINTS
"""Points of a call: enough to hide that its part of a matrix is gathered and scattered."""
LINE = 64
"""Bytes of a line of the cache."""
TILE = 4
"""Functions for which kernels get one depth of their products (DEPTH_TILE there)."""
SQUARE = 128
"""Rows of a part of a matrix that is turned over at once."""
ROWS = 24
"""Functions are filled up to a multiple of this."""


@dataclass(frozen=True)
class Task:
    """Points of a group: the first arguments of every kernel, and where its values begin (bytes) when they are kept."""

    arguments: tuple[int, ...]
    offset: int


class CpuQuadrature:
    """A grid and a basis; `family`: lda, gga or mgga.

    Pairs of functions whose product stays below `pair_threshold` in a group are left out there.
    """

    def __init__(
        self,
        grid: GroupedGrid,
        basis: Basis,
        backend: CpuBackend,
        family: str,
        real: str = "double",
        pair_threshold: float = 0.0,
    ) -> None:
        self.grid, self.backend, self.family, self.real = grid, backend, family, real
        self.nbf, self.components = basis.nbf, COMPONENTS[family]
        self.dtype = np.dtype(np.float64 if real == "double" else np.float32)
        self.table = ShellTable.of(basis)
        self.values = 1 if family == "lda" else 4
        self.kept: NDArray[Any] | None = None
        self._local = threading.local()
        self._blocks = make_blocks(grid, basis.nbf)
        self._run_row, self._run_ao, self._run_first = _runs(grid, self._blocks.ao)
        self._depth, self._depth_first = _tile_depths(grid, pair_threshold)
        self.tasks, self.kept_size = self._tasks()

    def _tasks(self) -> tuple[list[list[Task]], int]:
        """Parts of each group; numbers in all their values."""
        tasks: list[list[Task]] = []
        offset = 0
        rows_g = (-(-self.grid.functions // ROWS) * ROWS).tolist()
        for i, (first, last) in enumerate(pairwise(self.grid.point_first.tolist())):
            parts = max(1, round((last - first) / TASK_POINTS))
            step = -(-(last - first) // (parts * PANEL_PAD)) * PANEL_PAD
            tasks.append([])
            for begin in range(first, last, step):
                end = min(begin + step, last)
                tasks[i].append(Task(self._arguments(i, begin, end), offset * self.dtype.itemsize))
                offset += (end - begin) * rows_g[i] * self.values
        return tasks, offset

    def _arguments(self, i: int, begin: int, end: int) -> tuple[int, ...]:
        """Points begin .. end of group i, in the order of `CPU_RANGE`."""
        grid = self.grid
        first, at = int(grid.list_first[i]), int(grid.ao_first[i])
        return (
            begin,
            end,
            grid.position_xg.ctypes.data,
            len(grid.w_g),
            grid.list_shell.ctypes.data + 4 * first,
            grid.list_row.ctypes.data + 4 * first,
            int(grid.list_first[i + 1]) - first,
            self._blocks.ao.ctypes.data + 4 * at,
            int(grid.ao_first[i + 1]) - at,
            self._run_row.ctypes.data + 4 * int(self._run_first[i]),
            self._run_ao.ctypes.data + 4 * int(self._run_first[i]),
            int(self._run_first[i + 1] - self._run_first[i]) - 1,
            self._depth.ctypes.data + 4 * int(self._depth_first[i]),
            self.table.shell.ctypes.data,
            self.table.centre.ctypes.data,
            self.table.primitive.ctypes.data,
        )

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Of functions that are multiplied at every point of each group."""
        whole = np.minimum(self._depth, np.repeat(self.grid.functions, np.diff(self._depth_first)))
        return np.asarray(TILE * np.add.reduceat(whole, self._depth_first[:-1]), dtype=np.int64)

    @property
    def kept_bytes(self) -> int:
        """Memory of all values."""
        return self.kept_size * self.dtype.itemsize

    def keep_values(self) -> None:
        """Make all values once."""
        source = cpu_values(self.table.kinds, self.table.columns, self.family, self.real)
        self.kept = aligned(self.kept_size, self.dtype)
        self._run(source, 0, {})

    def density(self, D_spq: NDArray[Any], C_spi: NDArray[Any] | None) -> NDArray[Any]:
        """Density [spin, component, point], from orbitals where they are given."""
        given = np.ascontiguousarray(D_spq if C_spi is None else C_spi, dtype=self.dtype)
        spins, width = len(given), 0 if C_spi is None else given.shape[2]
        source = cpu_density(self.table.kinds, self.table.columns, self.family, self.real, C_spi is not None)
        out = np.empty((spins, self.components, len(self.grid.w_g)), dtype=self.dtype)
        rows = int(-(-self.grid.functions.max() // ROWS)) * ROWS
        padded = -(-width // 8) * 8  # the kernels' largest tile
        packed = 2 * rows * (rows if C_spi is None else padded)
        room = spins * packed + PANEL_PAD * (2 * self.values * rows + 4 * padded)
        extra = {"given": given, "nbf": self.nbf, "width": width, "spins": spins, "out": out}
        self._run(source, room, extra)
        return out

    def matrix(self, potential_scg: NDArray[Any]) -> NDArray[np.float64]:
        """Kohn-Sham matrices [spin, p, q] of potentials [spin, component, point] that contain the weights."""
        potential = np.ascontiguousarray(potential_scg, dtype=self.dtype)
        spins = len(potential)
        source = cpu_matrix(self.table.kinds, self.table.columns, self.family, self.real)
        F_spq = np.empty((spins, self.nbf, self.nbf))  # large pages, which np.zeros does not ask for
        F_spq.fill(0.0)
        rows = int(-(-self.grid.functions.max() // ROWS)) * ROWS
        room = BLOCK_POINTS * rows * (self.values + 1)
        locks = np.zeros(self.nbf, dtype=np.int32)
        extra = {"potential": potential, "nbf": self.nbf, "spins": spins, "out": F_spq, "locks": locks}
        self._run(source, room, extra, spins * rows * rows * (2 if self.family == "mgga" else 1))
        for F_pq in F_spq:
            add_transpose(F_pq)
        return F_spq

    def _run(self, source: Source, room: int, extra: dict[str, Any], sums: int = 0) -> None:
        """All blocks in the pool; `room` numbers of scratch memory for a call, `sums` more in double precision."""
        function, stop = self.backend.function(source), threading.Event()
        names = [name for _, name in source.arguments[len(CPU_RANGE) :]]
        fixed = {"spins": 1, "keeping": int(self.kept is not None), **extra}
        fixed = {name: _plain(fixed.get(name, 0)) for name in {*names, "spins"}}
        kept, tasks = _plain(self.kept), self.tasks

        def call(block: Block) -> None:
            own = dict(fixed)
            if room:
                own["scratch"] = self._scratch("scratch", room, self.dtype)
            if sums:
                own["sums"] = self._scratch("sums", sums, np.dtype(np.float64))
            finish = self._localise(block, own) if self._blocks.local and "nbf" in own else None
            rest = [own[name] for name in names]
            for group in range(block.begin, block.end):
                for task in tasks[group]:
                    if stop.is_set():
                        return
                    function(*task.arguments, kept + task.offset, *rest)
            if finish is not None:
                finish()

        self.backend.parallel((partial(call, block) for block in self._blocks.blocks), stop)

    def _localise(self, block: Block, own: dict[str, int]) -> Callable[[], None] | None:
        """Let kernels work on the block's own part of the matrices; what is left to do afterwards."""
        adding, size, width = "locks" in own, block.functions, own.get("width", 0)
        target, dtype = ("out", np.dtype(np.float64)) if adding else ("given", self.dtype)
        large, locks, spins, nbf = own[target], own.get("locks", 0), own["spins"], own["nbf"]
        numbers = spins * size * (width or size)
        place = self._scratch(target, numbers, dtype)
        copy = self.backend.function(cpu_local(self.real, adding))
        runs = (block.run_row.ctypes.data, block.run_ao.ctypes.data, len(block.run_ao))
        move = partial(copy, *runs, size, spins, nbf, width, large, place, locks)
        own[target], own["nbf"] = place, size
        if not adding:
            move()
            return None
        own["locks"] = 0  # nobody else adds to it
        ctypes.memset(place, 0, numbers * dtype.itemsize)
        return move

    def _scratch(self, name: str, size: int, dtype: np.dtype[Any]) -> int:
        """Address of memory of this thread, kept between calls."""
        found: tuple[int, int, NDArray[Any]] | None = getattr(self._local, name, None)
        if found is None or found[1] < size:
            memory = aligned(size, dtype)
            found = memory.ctypes.data, size, memory
            setattr(self._local, name, found)
        return found[0]


def _runs(grid: GroupedGrid, ao: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Consecutive functions of each group: first row and function of each run (and the end of the last); by group."""
    start = np.ones(len(ao), dtype=bool)
    start[1:] = np.diff(ao) != 1
    start[grid.ao_first[:-1]] = True
    at = np.flatnonzero(start)
    group = np.searchsorted(grid.ao_first, at, side="right") - 1
    runs = np.bincount(group, minlength=len(grid))
    first = np.concatenate([[0], np.cumsum(runs + 1)])
    place = np.arange(len(at)) + group  # one more for each group before
    row, function = np.zeros((2, int(first[-1])), dtype=np.int32)
    row[place], function[place] = at - grid.ao_first[group], ao[at]
    row[first[1:] - 1] = grid.functions
    return row, function, first


def _tile_depths(grid: GroupedGrid, pair_threshold: float) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For every TILE functions of a group, large ones first: with how many of them they make products that matter."""
    tiles = -(-grid.functions // TILE)
    first = np.concatenate([[0], np.cumsum(tiles)])
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


def aligned(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory that begins with a line of the cache: whole vectors never lie across two."""
    memory = np.empty(size * dtype.itemsize + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)


def _plain(value: Any) -> int:
    if value is None:
        return 0
    return int(value.ctypes.data) if isinstance(value, np.ndarray) else int(value)
