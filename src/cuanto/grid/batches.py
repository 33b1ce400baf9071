"""Density, Kohn-Sham matrix and gradient on a GPU: groups in pieces of few different sizes, in batches of equal pieces.

Values of functions, gathering, sums and scattering are kernels; the products are the array library's batched ones.
A piece has as many points as one of `SIZES`, and functions padded to a multiple of `ROWS`. Rare sizes are padded to the
next one, if that costs less than separate launches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array, Ints, range_members
from cuanto.backends.base import Backend
from cuanto.backends.exact_sums import ExactSums
from cuanto.grid.base import Quadrature
from cuanto.grid.cost import COSTS, DeviceCost
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.settings import GridSettings
from cuanto.kernels.grid_values import (
    DENSITY_POINTS,
    ELEMENT_THREADS,
    ORDER,
    SQUARE,
    VALUE_COUNTS,
    device_kernel,
    device_values,
)

MIN_BATCH = tuning.size("cuda", "grid.least_batch_bytes")
WORK_SHARE = 0.75
"""Fraction of the available memory for a batch. Launches take 0.27 ms per batch and iteration, so that 256 instead of
16 MiB save 116 ms per iteration of 16 waters (def2-SVP, H200); all values of functions, 2.3 GiB, save about 2 ms."""
ROWS = 32
SIZES = ((512, 256, 128, 64), (512, 128, 64), (512, 64), (256, 64), (128, 64))
"""Numbers of points of a piece, the largest first; the combination with the shortest predicted time is used."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Pieces (tasks) of equal size, with their tables on the device."""

    tasks: int
    points: int
    rows: int
    tables: dict[str, Any]

    def elements(self, values: int) -> int:
        """Numbers in `values` arrays [task][function][point]."""
        return values * self.tasks * self.points * self.rows


class BatchQuadrature(Quadrature):
    """Quadrature in batches; their memory is that of the settings, or most of the limit if that is less.

    `kept`: values of the functions of the first batches; those of the others are recomputed in every pass.
    """

    products: ClassVar[dict[str, tuple[float, float]]] = {
        "lda": (1.0, 1.0),
        "gga": (1.0, 2.0),
        "mgga": (4.0, 4.0),
        "gradient": (1.0, 2.0),
    }
    reading_is_faster: ClassVar[bool] = True

    def _prepare(self, settings: GridSettings, limit: int) -> None:
        grid, backend = self.grid, self.backend
        table: dict[str, NDArray[Any]] = {
            "shell": self.table.shell,
            "centre": self.table.centre,
            "primitive": self.table.primitive,
        }
        self._fixed = {
            **backend.upload(table),
            "position": ensure_on_device(grid.position_xg, backend),
            "list_shell": ensure_on_device(grid.list_shell, backend),
            "list_row": ensure_on_device(grid.list_row, backend),
        }
        self._ao = ensure_on_device(grid.ao, backend)
        least = min(MIN_BATCH, max(limit, MIN_BATCH // 16))
        self._batch_bytes = min(settings.batch_bytes, max(least, int(WORK_SHARE * limit)))
        self._arrays = 2 * self.values + 1
        self.batches = list(self._batches(self._arrays))
        self.kept: list[Any] = []

    @cached_property
    def pairs(self) -> Ints:
        """All pairs of functions of a group."""
        return np.asarray(self.grid.functions, dtype=np.int64) ** 2

    @property
    def kept_bytes(self) -> int:
        """Memory of the values of all functions."""
        return sum(self._sizes)

    @property
    def work_bytes(self) -> int:
        """Memory of the largest batch."""
        sizes = [batch.tasks * self._piece_bytes(batch.rows, batch.points, self._arrays) for batch in self.batches]
        return max(sizes, default=0)

    @property
    def _sizes(self) -> list[int]:
        """Bytes of the values of each batch."""
        return [batch.elements(self.values) * self.dtype.itemsize for batch in self.batches]

    def keep_values(self, limit: int | None = None) -> int:
        """Compute and store the values of the first batches, as many as fit into `limit` bytes."""
        ends = np.cumsum(self._sizes)
        count = len(ends) if limit is None else int(np.searchsorted(ends, limit, side="right"))
        self.kept = [self._values(batch) for batch in self.batches[:count]]
        return int(ends[count - 1]) if count else 0

    def density(self, D_spq: Any, C_spi: Any | None) -> Any:
        """Densities, from orbitals if they are given."""
        xp = self.backend.xp
        given = xp.ascontiguousarray(D_spq if C_spi is None else C_spi, dtype=self.dtype)
        out = xp.zeros((len(given), self.components, len(self.grid.w_g)), dtype=self.dtype)
        for number, batch in enumerate(self.batches):
            chi = self._chi(number)
            for s in range(len(given)):
                if C_spi is None:
                    left, right = chi, self._from_matrix(batch, chi, given[s])
                else:
                    left, right = self._from_orbitals(batch, chi, given[s])
                values = {**batch.tables, "rows": left.shape[2], "values": left, "product": right, "out": out[s]}
                self._launch("density", batch.tasks * batch.points // DENSITY_POINTS, values)
        return out

    def matrix(self, potential_scg: Any) -> Any:
        """Kohn-Sham matrices of potentials that contain the weights."""
        xp = self.backend.xp
        potential = xp.ascontiguousarray(potential_scg, dtype=self.dtype)
        sums = ExactSums(self.backend, (len(potential), self.nbf, self.nbf))
        pairs = 4 if self.family == "mgga" else 1
        for number, batch in enumerate(self.batches):
            chi = self._chi(number)
            weighted = xp.empty((pairs, batch.tasks, batch.points, batch.rows), dtype=self.dtype)
            for s in range(len(potential)):
                values = {**batch.tables, "values": chi, "potential": potential[s], "weighed": weighted}
                self._launch("weigh", batch.elements(1) // SQUARE, values)
                part = xp.matmul(chi[0], weighted[0])
                for c in range(1, pairs):
                    part += xp.matmul(chi[c], weighted[c])
                values = {**batch.tables, "part": part, "nbf": self.nbf, "sums": sums.numbers[s]}
                self._launch("scatter", batch.tasks * batch.rows, values)
        F_spq = sums.total()
        return F_spq + F_spq.transpose(0, 2, 1)

    def gradient(self, D_spq: Any, C_spi: Any | None, potential_scg: Any, moving: bool) -> Any:
        """dE/dR at fixed density matrices and weights; `moving`: points move with their atoms."""
        xp = self.backend.xp
        given, potential = (xp.ascontiguousarray(X) for X in (D_spq if C_spi is None else C_spi, potential_scg))
        sums = ExactSums(self.backend, (self.atoms, 3))
        fixed = {"function_atom": self.backend.to_device(self.table.function_atom), "sums": sums.numbers}
        for batch in self._gradient_batches:
            chi = self._values(batch, higher=1)
            for s in range(len(given)):
                common = {**batch.tables, "values": chi, "potential": potential[s], **fixed}
                weighted, force = (xp.empty((n, *chi.shape[1:])) for n in (4 if self.family == "mgga" else 1, 3))
                self._launch("right", batch.elements(1) // ELEMENT_THREADS, {**common, "weighed": weighted})
                right = (weighted[0], chi[0]) if self.family == "gga" else weighted
                if C_spi is None:
                    part = self._gather("gather_matrix", batch, (batch.rows, batch.rows), given[s], self.nbf)
                    product = self._products(part, right)
                else:
                    product = self._by_orbitals(batch, right, given[s])
                self._launch("force", batch.tasks * batch.rows, {**common, "product": product, "force": force})
                if moving:
                    own = {"own": self.grid.atom_g, "force": force, "sums": sums.numbers}
                    self._launch("atoms", batch.tasks * batch.points, {**batch.tables, **own})
        return sums.total()

    @cached_property
    def _gradient_batches(self) -> list[Batch]:
        """Batches with room for values, right-hand sides, products and forces."""
        products = {"lda": 2, "gga": 3, "mgga": 8}[self.family]
        return list(self._batches(VALUE_COUNTS[ORDER[self.family] + 1] + products + 3))

    def _from_matrix(self, batch: Batch, chi: Any, D_pq: Any) -> Any:
        """sum_q D_pq chi_q, for the kinetic-energy density also of the gradients."""
        part = self._gather("gather_matrix", batch, (batch.rows, batch.rows), D_pq, self.nbf)
        return self._products(part, chi if self.family == "mgga" else chi[:1])

    def _from_orbitals(self, batch: Batch, chi: Any, C_pi: Any) -> tuple[Any, Any]:
        """The two factors of the density: orbitals twice, or, cheaper for gga, functions and sum_i C_pi psi_i."""
        if self.family == "gga":
            return chi, self._by_orbitals(batch, chi[:1], C_pi)
        psi = self._orbitals(batch, chi, C_pi)
        return psi, psi

    def _orbitals(self, batch: Batch, values: Any, C_pi: Any) -> Any:
        """C^T values: the orbitals, if the values are those of the functions."""
        width = C_pi.shape[1]
        return self._products(self._gather("gather_transposed", batch, (width, batch.rows), C_pi, width), values)

    def _by_orbitals(self, batch: Batch, values: Any, C_pi: Any) -> Any:
        """C (C^T values)"""
        width, psi = C_pi.shape[1], self._orbitals(batch, values, C_pi)
        return self._products(self._gather("gather_orbitals", batch, (batch.rows, width), C_pi, width), psi)

    def _products(self, part: Any, values: Any) -> Any:
        """Batched products of every component; the library's batches have three axes."""
        xp = self.backend.xp
        out = xp.empty((len(values), len(part), part.shape[1], values[0].shape[2]), dtype=self.dtype)
        for one, product in zip(values, out, strict=True):
            xp.matmul(part, one, out=product)
        return out

    def _gather(self, kernel: str, batch: Batch, shape: tuple[int, int], given: Any, width: int) -> Any:
        part = self.backend.xp.empty((batch.tasks, *shape), dtype=self.dtype)
        values = {**batch.tables, "columns": shape[1], "given": given, "width": width, "part": part}
        self._launch(kernel, batch.tasks * shape[0], values)
        return part

    def _chi(self, number: int) -> Any:
        return self.kept[number] if number < len(self.kept) else self._values(self.batches[number])

    def _values(self, batch: Batch, higher: int = 0) -> Any:
        """Values and derivatives of functions; `higher`: orders beyond those of the density."""
        count = VALUE_COUNTS[ORDER[self.family] + higher]
        chi = self.backend.xp.empty((count, batch.tasks, batch.rows, batch.points), dtype=self.dtype)
        program = self.backend.compile(device_values(self.texts, self.real, higher))
        values = {**self._fixed, **batch.tables, "stride": len(self.grid.w_g), "values": chi}
        self.backend.launch(program, batch.tasks * batch.points, values)
        return chi

    def _launch(self, name: str, blocks: int, values: dict[str, Any]) -> None:
        program = self.backend.compile(device_kernel(name, self.family, self.real))
        self.backend.launch(program, blocks, {"stride": len(self.grid.w_g), "ao": self._ao, **values})

    @cached_property
    def _pieces(self) -> tuple[Pieces, dict[str, Any]]:
        """Pieces of the grid, and their tables on the device."""
        grid, pieces = self.grid, cut_into_pieces(self.grid)
        group_t = pieces.group_t
        tables: dict[str, NDArray[Any]] = {
            "task_point": pieces.point_t,
            "task_functions": grid.functions[group_t].astype(np.int32),
            "task_list": grid.list_first[group_t],
            "task_shells": np.diff(grid.list_first)[group_t].astype(np.int32),
            "task_ao": grid.ao_first[group_t],
        }
        return pieces, dict(self.backend.upload(tables))

    def _piece_bytes(self, rows: int, points: int, arrays: int) -> int:
        """Memory of a piece with some arrays [function][point] and two matrices."""
        return rows * (arrays * points + 2 * rows) * self.dtype.itemsize

    def _batches(self, arrays: int) -> Iterator[Batch]:
        """Pieces of equal size, as many in a batch as fit.

        `arrays`: arrays [task][function][point] that a batch needs at the same time.
        """
        pieces, tables = self._pieces
        for begin, end in pairwise(pieces.bounds()):
            rows, points = int(pieces.rows_t[begin]), int(pieces.size_t[begin])
            step = max(1, self._batch_bytes // self._piece_bytes(rows, points, arrays))
            for first in range(begin, end, step):
                tasks = min(step, end - first)
                part = {name: table[first : first + tasks] for name, table in tables.items()}
                yield Batch(tasks, points, rows, {**part, "tasks": tasks, "rows": rows, "points": points})


def ensure_on_device(array: Any, backend: Backend) -> Any:
    """Copy an array to the device unless it is there already."""
    return array if isinstance(array, backend.xp.ndarray) else backend.to_device(array)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Group, first point, points and padded functions of every piece, sorted by size."""

    group_t: Ints
    point_t: Ints
    size_t: Ints
    rows_t: Ints

    def bounds(self) -> list[int]:
        """First piece of every size, and the number of pieces."""
        changes = (np.diff(self.rows_t) != 0) | (np.diff(self.size_t) != 0)
        return [0, *(np.flatnonzero(changes) + 1).tolist(), len(self.rows_t)]


@dataclass(frozen=True, eq=False)
class _Cut:
    """Pieces of `points` points: number of `pieces` of every group, and number of functions after padding (`rows`) for
    every number of functions in units of `ROWS`."""

    points: int
    pieces: Ints
    rows: Ints


def cut_into_pieces(grid: GroupedGrid, cost: DeviceCost = COSTS["cuda"]) -> Pieces:
    """Cut all groups of a grid into pieces."""
    units_g = -(-grid.functions // ROWS)
    _, best = min((_cut(grid.points, units_g, sizes, cost) for sizes in SIZES), key=lambda found: found[0])
    begin, parts = grid.point_first[:-1].copy(), []
    for cut in best:
        group, within = range_members(cut.pieces)
        parts.append(
            (group, begin[group] + cut.points * within, np.full(len(group), cut.points), cut.rows[units_g[group]])
        )
        begin += cut.pieces * cut.points
    group_t, point_t, size_t, rows_t = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True))
    order = np.lexsort((point_t, -size_t, -rows_t))
    return Pieces(*(array[order] for array in (group_t, point_t, size_t, rows_t)))


def _cut(points_g: Ints, units_g: Ints, sizes: tuple[int, ...], cost: DeviceCost) -> tuple[float, list[_Cut]]:
    """Pieces of some sizes, the largest first, and the predicted time of a pass."""
    left, seconds, cuts = points_g.copy(), 0.0, []
    for points in sizes:
        pieces_g = left // points
        left -= pieces_g * points
        counts: Array = np.bincount(units_g, weights=pieces_g).astype(np.float64)
        rows, more = _merge_sizes(counts, points, cost)
        cuts.append(_Cut(points, pieces_g, rows))
        seconds += more
    return seconds, cuts


def _merge_sizes(counts: Array, points: int, cost: DeviceCost) -> tuple[Ints, float]:
    """Pad rare numbers of functions to larger ones: the padded number for every number, and the predicted time of a
    pass; `counts`: numbers of pieces for every number of functions, in units of `ROWS`."""
    target, seconds, waiting, first = ROWS * np.arange(len(counts)), 0.0, 0.0, 0
    used = np.flatnonzero(counts).tolist()
    for k, unit in enumerate(used):
        waiting += counts[unit]
        alone = waiting * cost.piece_seconds(points, ROWS * unit)
        last = k + 1 == len(used)
        if last or waiting * cost.piece_seconds(points, ROWS * used[k + 1]) - alone > cost.batch:
            target[first : unit + 1] = ROWS * unit
            seconds += alone + cost.batch
            first, waiting = unit + 1, 0.0
    return target, seconds
