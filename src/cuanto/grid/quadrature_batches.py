"""Density and Kohn-Sham matrix on a GPU: groups of similar size in batches, so that few launches do all.

Values of functions, gathering, sums and scattering are kernels; the products are the array library's batched ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.batches import cut
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.settings import GridSettings
from cuanto.grid.shells import ShellTable
from cuanto.kernels.grid_device import DENSITY_POINTS, ELEMENT_THREADS, SQUARE, device_kernel, device_values
from cuanto.kernels.grid_values import COMPONENTS, ORDER, VALUES, ShellTexts

LEAST_BATCH = 1 << 24
"""Bytes of working memory below which batches would be too small to be worth a launch."""


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


class BatchQuadrature:
    """A grid and a basis; `family`: lda, gga or mgga; working memory by the settings, or an eighth of the limit."""

    products: ClassVar[dict[str, tuple[float, float]]] = {
        "lda": (1.0, 1.0),
        "gga": (1.0, 2.0),
        "mgga": (4.0, 4.0),
        "gradient": (1.0, 2.0),
    }
    reading_pays: ClassVar[bool] = True

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
        self.values = VALUES[ORDER[family]]
        self.dtype = np.dtype(np.float64 if real == "double" else np.float32)
        table = ShellTable.of(basis)
        self._texts: ShellTexts = (table.kinds, table.columns, family)
        tables: dict[str, NDArray[Any]] = {"shell": table.shell, "centre": table.centre, "primitive": table.primitive}
        self._fixed = {
            **backend.upload(tables),
            "position": resident(grid.position_xg, backend),
            "list_shell": resident(grid.list_shell, backend),
            "list_row": resident(grid.list_row, backend),
        }
        self._ao = resident(grid.ao, backend)
        atom_p = np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])
        self._atoms, self._function_atom = len(basis.R_ax), atom_p.astype(np.int32)
        self._batch_bytes = min(settings.batch_bytes, max(LEAST_BATCH, limit // 8))
        self.batches = list(self._batches(2 * self.values + 1))
        self.kept: list[Any] | None = None

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Of functions that are multiplied at every point of each group."""
        return np.asarray(self.grid.functions, dtype=np.int64) ** 2

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
                values = {**batch.tables, "rows": left.shape[2], "values": left, "product": right, "out": out[s]}
                self._launch("density", batch.tasks * batch.points // DENSITY_POINTS, values)
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
                self._launch("weigh", batch.elements(1) // SQUARE, values)
                part = xp.matmul(chi[0], weighed[0])
                for c in range(1, pairs):
                    part += xp.matmul(chi[c], weighed[c])
                values = {**batch.tables, "part": part, "nbf": self.nbf, "out": F_spq[s]}
                self._launch("scatter", batch.tasks * batch.rows, values)
        return F_spq + F_spq.transpose(0, 2, 1)

    def gradient(self, D_spq: Any, C_spi: Any | None, potential_scg: Any, moving: bool) -> NDArray[np.float64]:
        """dE/dR [atom, axis] at fixed density matrices and weights; `moving`: points move with their atoms."""
        xp = self.backend.xp
        given, potential = (xp.ascontiguousarray(X) for X in (D_spq if C_spi is None else C_spi, potential_scg))
        out, point_xg = xp.zeros((self._atoms, 3)), xp.zeros((3, len(self.grid.w_g)))
        fixed = {"function_atom": self.backend.to_device(self._function_atom), "out": out}
        for batch in self._gradient_batches:
            chi = self._values(batch, higher=1)
            place = batch.tables["task_point"][:, None] + xp.arange(batch.points)
            for s in range(len(given)):
                common = {**batch.tables, "values": chi, "potential": potential[s], **fixed}
                weighed, force = (xp.empty((n, *chi.shape[1:])) for n in (4 if self.family == "mgga" else 1, 3))
                self._launch("right", batch.elements(1) // ELEMENT_THREADS, {**common, "weighed": weighed})
                right = (weighed[0], chi[0]) if self.family == "gga" else weighed
                if C_spi is None:
                    part = self._gathered("gather_matrix", batch, (batch.rows, batch.rows), given[s], self.nbf)
                    product = self._products(part, right)
                else:
                    product = self._by_orbitals(batch, right, given[s])
                self._launch("force", batch.tasks * batch.rows, {**common, "product": product, "force": force})
                if moving:
                    point_xg[:, place] += force.sum(axis=2)
        gradient = np.asarray(self.backend.to_host(out))
        return gradient + self._sums_by_owner(point_xg) if moving else gradient

    @cached_property
    def _gradient_batches(self) -> list[Batch]:
        """Room for values, what the density matrix is multiplied by, products, and forces."""
        products = {"lda": 2, "gga": 3, "mgga": 8}[self.family]
        return list(self._batches(VALUES[ORDER[self.family] + 1] + products + 3))

    def _sums_by_owner(self, point_xg: Any) -> NDArray[np.float64]:
        sums = [self.backend.xp.bincount(self.grid.own_g, row, minlength=self._atoms) for row in point_xg]
        return np.stack(self.backend.download(sums), axis=1)

    def _from_matrix(self, batch: Batch, chi: Any, D_pq: Any) -> Any:
        """sum_q D_pq chi_q, for the kinetic-energy density also of the slopes."""
        part = self._gathered("gather_matrix", batch, (batch.rows, batch.rows), D_pq, self.nbf)
        return self._products(part, chi if self.family == "mgga" else chi[:1])

    def _from_orbitals(self, batch: Batch, chi: Any, C_pi: Any) -> tuple[Any, Any]:
        """Orbitals with themselves; for gradients alone it is cheaper to go back to functions."""
        width = C_pi.shape[1]
        if self.family != "gga":
            turned = self._gathered("gather_turned", batch, (width, batch.rows), C_pi, width)
            psi = self._products(turned, chi)
            return psi, psi
        return chi, self._by_orbitals(batch, chi[:1], C_pi)

    def _by_orbitals(self, batch: Batch, values: Any, C_pi: Any) -> Any:
        """C (C^T values)"""
        width = C_pi.shape[1]
        turned = self._gathered("gather_turned", batch, (width, batch.rows), C_pi, width)
        back = self._gathered("gather_orbitals", batch, (batch.rows, width), C_pi, width)
        return self._products(back, self._products(turned, values))

    def _products(self, part: Any, values: Any) -> Any:
        """Of every component, one after the other: the library's batches are of three axes."""
        xp = self.backend.xp
        out = xp.empty((len(values), len(part), part.shape[1], values[0].shape[2]), dtype=self.dtype)
        for one, product in zip(values, out, strict=True):
            xp.matmul(part, one, out=product)
        return out

    def _gathered(self, kernel: str, batch: Batch, shape: tuple[int, int], given: Any, width: int) -> Any:
        part = self.backend.xp.empty((batch.tasks, *shape), dtype=self.dtype)
        values = {**batch.tables, "columns": shape[1], "given": given, "width": width, "part": part}
        self._launch(kernel, batch.tasks * shape[0], values)
        return part

    def _chi(self, number: int) -> Any:
        return self._values(self.batches[number]) if self.kept is None else self.kept[number]

    def _values(self, batch: Batch, higher: int = 0) -> Any:
        """Of functions and their derivatives, with `higher` ones than the density needs."""
        count = VALUES[ORDER[self.family] + higher]
        chi = self.backend.xp.empty((count, batch.tasks, batch.rows, batch.points), dtype=self.dtype)
        program = self.backend.compile(device_values(self._texts, self.real, higher))
        values = {**self._fixed, **batch.tables, "stride": len(self.grid.w_g), "values": chi}
        self.backend.launch(program, batch.tasks * batch.points, values)
        return chi

    def _launch(self, name: str, blocks: int, values: dict[str, Any]) -> None:
        program = self.backend.compile(device_kernel(name, self.family, self.real))
        self.backend.launch(program, blocks, {"stride": len(self.grid.w_g), "ao": self._ao, **values})

    def _batches(self, arrays: int) -> Iterator[Batch]:
        """Pieces of equal size, as many at once as fit with so many arrays. One copy takes the tables of all to the
        device."""
        grid, pieces = self.grid, cut(self.grid)
        group_t = pieces.group_t
        tables = self.backend.upload(
            {
                "task_point": pieces.point_t,
                "task_functions": grid.functions[group_t].astype(np.int32),
                "task_list": grid.list_first[group_t],
                "task_shells": np.diff(grid.list_first)[group_t].astype(np.int32),
                "task_ao": grid.ao_first[group_t],
            }
        )
        for begin, end in pairwise(pieces.bounds()):
            rows, points = int(pieces.rows_t[begin]), int(pieces.size_t[begin])
            size = rows * (arrays * points + 2 * rows) * self.dtype.itemsize
            step = max(1, self._batch_bytes // size)
            for first in range(begin, end, step):
                tasks = min(step, end - first)
                part = {name: table[first : first + tasks] for name, table in tables.items()}
                yield Batch(tasks, points, rows, {**part, "tasks": tasks, "rows": rows, "points": points})


def resident(array: Any, backend: Backend) -> Any:
    """On the device, where it may be already."""
    return array if isinstance(array, backend.xp.ndarray) else backend.to_device(array)
