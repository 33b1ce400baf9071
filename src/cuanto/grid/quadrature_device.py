"""Density and Kohn-Sham matrix on a GPU: groups of similar size in batches, so that few launches do all.

Values of functions, gathering, sums and scattering are kernels; the products are the array library's batched ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.grid.groups import GroupedGrid
from cuanto.grid.shells import ShellTable
from cuanto.kernels.grid_device import ELEMENT_THREADS, SQUARE, device_kernel, device_values
from cuanto.kernels.grid_values import COMPONENTS, THREADS

POINTS = (512, 256, 128, 64)
"""Points of a task: a group is cut into such pieces, the largest first."""
ROWS = 32
"""Functions are filled up to a multiple of this."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Tasks of equal size: points, functions; their tables on the device."""

    tasks: int
    points: int
    rows: int
    tables: dict[str, Any]

    def elements(self, values: int) -> int:
        """Numbers in `values` arrays [task][function][point]."""
        return values * self.tasks * self.points * self.rows


class DeviceQuadrature:
    """A grid and a basis; `family`: lda, gga or mgga; working memory of at most about `batch_bytes`."""

    def __init__(
        self,
        grid: GroupedGrid,
        basis: Basis,
        backend: Any,
        family: str,
        real: str = "double",
        batch_bytes: int = 1 << 30,
    ) -> None:
        self.grid, self.backend, self.family, self.real = grid, backend, family, real
        self.nbf, self.components = basis.nbf, COMPONENTS[family]
        self.values = 1 if family == "lda" else 4
        self.dtype = np.dtype(np.float64 if real == "double" else np.float32)
        self.table = ShellTable.of(basis)
        self._fixed = backend.upload(
            {
                "position": grid.position_xg,
                "list_shell": grid.list_shell,
                "list_row": grid.list_row,
                "shell": self.table.shell,
                "centre": self.table.centre,
                "primitive": self.table.primitive.astype(self.dtype, copy=False),
            }
        )
        self.batches = list(self._batches(batch_bytes))
        self.kept: list[Any] | None = None

    @property
    def kept_bytes(self) -> int:
        """Memory of all values."""
        return sum(batch.elements(self.values) for batch in self.batches) * self.dtype.itemsize

    def keep_values(self) -> None:
        """Make all values once."""
        self.kept = [self._values(batch) for batch in self.batches]

    def density(self, D_spq: Any, C_spi: Any | None) -> Any:
        """Density [spin, component, point], from orbitals where they are given."""
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
                self._launch(
                    "density",
                    THREADS,
                    batch.tasks * batch.points,
                    {**batch.tables, "rows": left.shape[2], "values": left, "product": right, "out": out[s]},
                )
        return out

    def matrix(self, potential_scg: Any) -> Any:
        """Kohn-Sham matrices [spin, p, q] of potentials [spin, component, point] that contain the weights."""
        xp = self.backend.xp
        potential = xp.ascontiguousarray(potential_scg, dtype=self.dtype)
        F_spq = xp.zeros((len(potential), self.nbf, self.nbf))
        pairs = 4 if self.family == "mgga" else 1
        for number, batch in enumerate(self.batches):
            chi = self._chi(number)
            weighed = xp.empty((pairs, batch.tasks, batch.points, batch.rows), dtype=self.dtype)
            for s in range(len(potential)):
                values = {**batch.tables, "values": chi, "potential": potential[s], "weighed": weighed}
                self._launch("weigh", ELEMENT_THREADS, batch.elements(1) // SQUARE * ELEMENT_THREADS, values)
                part = xp.matmul(chi[0], weighed[0])
                for c in range(1, pairs):
                    part += xp.matmul(chi[c], weighed[c])
                values = {**batch.tables, "part": part, "nbf": self.nbf, "out": F_spq[s]}
                self._launch("scatter", ELEMENT_THREADS, batch.tasks * batch.rows**2, values)
        return F_spq + F_spq.transpose(0, 2, 1)

    def _from_matrix(self, batch: Batch, chi: Any, D_pq: Any) -> Any:
        """sum_q D_pq chi_q, for the kinetic-energy density also of the slopes."""
        part = self._gathered("gather_matrix", batch, (batch.rows, batch.rows), D_pq, self.nbf)
        return self._products(part, chi if self.family == "mgga" else chi[:1])

    def _from_orbitals(self, batch: Batch, chi: Any, C_pi: Any) -> tuple[Any, Any]:
        """Orbitals with themselves; for gradients alone it is cheaper to go back to functions."""
        width = C_pi.shape[1]
        turned = self._gathered("gather_turned", batch, (width, batch.rows), C_pi, width)
        if self.family != "gga":
            psi = self._products(turned, chi)
            return psi, psi
        back = self._gathered("gather_orbitals", batch, (batch.rows, width), C_pi, width)
        return chi, self._products(back, self._products(turned, chi[:1]))

    def _products(self, part: Any, values: Any) -> Any:
        """Of every component, one after the other: the library's batches are of three axes."""
        xp = self.backend.xp
        out = xp.empty((len(values), len(part), part.shape[1], values.shape[3]), dtype=self.dtype)
        for one, product in zip(values, out, strict=True):
            xp.matmul(part, one, out=product)
        return out

    def _gathered(self, kernel: str, batch: Batch, shape: tuple[int, int], given: Any, width: int) -> Any:
        part = self.backend.xp.empty((batch.tasks, *shape), dtype=self.dtype)
        columns = batch.rows if kernel == "gather_matrix" else width
        values = {**batch.tables, "columns": columns, "given": given, "width": width, "part": part}
        self._launch(kernel, ELEMENT_THREADS, part.size, values)
        return part

    def _chi(self, number: int) -> Any:
        return self._values(self.batches[number]) if self.kept is None else self.kept[number]

    def _values(self, batch: Batch) -> Any:
        chi = self.backend.xp.empty((self.values, batch.tasks, batch.rows, batch.points), dtype=self.dtype)
        source = device_values(self.table.kinds, self.table.columns, self.family, self.real)
        values = {**self._fixed, **batch.tables, "stride": len(self.grid.w_g), "values": chi}
        self.backend.launch(source, batch.tasks * batch.points // THREADS, THREADS, 0, values)
        return chi

    def _launch(self, name: str, threads: int, items: int, values: dict[str, Any]) -> None:
        source = device_kernel(name, self.family, self.real)
        self.backend.launch(source, -(-items // threads), threads, 0, {"stride": len(self.grid.w_g), **values})

    def _batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Pieces of groups by size; as many at once as fit."""
        grid = self.grid
        pieces: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for i, functions in enumerate(grid.functions.tolist()):
            rows = -(-functions // ROWS) * ROWS
            begin, end = int(grid.point_first[i]), int(grid.point_first[i + 1])
            while begin < end:
                points = next(n for n in POINTS if n <= end - begin)
                pieces.setdefault((rows, points), []).append((i, begin))
                begin += points
        for (rows, points), tasks in sorted(pieces.items(), reverse=True):
            arrays = 2 * self.values + 1
            size = rows * (arrays * points + 2 * rows) * self.dtype.itemsize
            step = max(1, batch_bytes // size)
            for first in range(0, len(tasks), step):
                yield self._batch(tasks[first : first + step], rows, points)

    def _batch(self, tasks: list[tuple[int, int]], rows: int, points: int) -> Batch:
        grid = self.grid
        group_t = np.array([i for i, _ in tasks])
        functions_t = grid.functions[group_t]
        place_tp = grid.ao_first[group_t][:, None] + np.arange(rows)
        valid_tp = np.arange(rows) < functions_t[:, None]
        ao_tp = np.where(valid_tp, grid.ao[np.minimum(place_tp, len(grid.ao) - 1)], -1)
        tables: dict[str, NDArray[Any]] = {
            "task_point": np.array([begin for _, begin in tasks], dtype=np.int64),
            "task_functions": functions_t.astype(np.int32),
            "task_list": grid.list_first[group_t],
            "task_shells": np.diff(grid.list_first)[group_t].astype(np.int32),
            "task_ao": ao_tp.astype(np.int32),
        }
        sizes = {"tasks": len(tasks), "rows": rows, "points": points}
        return Batch(len(tasks), points, rows, {**self.backend.upload(tables), **sizes})
