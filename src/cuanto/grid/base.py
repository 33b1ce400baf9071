"""The interface of quadratures: densities, Kohn-Sham matrices and gradients of a basis on a grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cuanto.arrays import Array, Ints, Ints32
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.settings import GridSettings
from cuanto.kernels.grid_values import COMPONENTS, ORDER, SHELL_FIELDS, VALUE_COUNTS, ShellKind, ShellTexts


@dataclass(frozen=True, eq=False)
class ShellTable:
    """Shells in the order of the basis: `shell` [kind, primitives, columns, first number], centres, primitives, and the
    atoms of shells and functions."""

    kinds: tuple[ShellKind, ...]
    columns: int
    shell: Ints32
    centre: Array
    primitive: Array
    shell_atom: Ints32
    function_atom: Ints32

    @classmethod
    def of(cls, basis: Basis) -> ShellTable:
        """Make the table of a basis; equal shells share their primitives."""
        found = basis.of_shells(_at_origin)
        return replace(found, centre=np.ascontiguousarray(basis.R_ax[found.shell_atom]))


def _at_origin(basis: Basis) -> ShellTable:
    """The table of a basis with all centres at the origin."""
    kinds = sorted({(shell.l, shell.pure or shell.l < 2) for shell in basis.shells})
    table = np.zeros((len(basis.shells), SHELL_FIELDS), dtype=np.int32)
    known: dict[bytes, int] = {}
    records: list[Array] = []
    end = 0
    for i, shell in enumerate(basis.shells):
        record = np.column_stack([shell.exponents, shell.coefficients])
        key = np.int64(shell.ncol).tobytes() + record.tobytes()
        if key not in known:
            known[key] = end
            records.append(record.reshape(-1))
            end += record.size
        kind = kinds.index((shell.l, shell.pure or shell.l < 2))
        table[i] = (kind, shell.nprim, shell.ncol, known[key])
    atom_s = np.array([shell.atom for shell in basis.shells], dtype=np.int32)
    atom_p = basis.function_atoms.astype(np.int32)
    centre, widest = np.zeros((len(atom_s), 3)), max(shell.ncol for shell in basis.shells)
    return ShellTable(tuple(kinds), widest, table, centre, np.concatenate(records), atom_s, atom_p)


class Quadrature(ABC):
    """The functions of a basis on a grid, for a `family` of functionals: lda, gga or mgga.

    `products`: relative cost of computing the density of each family from a density matrix, and from orbitals; for
    `gradient`, the cost of one of its products. `reading_is_faster`: reading stored values of functions is faster than
    recomputing them.
    Densities and potentials are [spin, component, point]: the density, for gga its gradient, for mgga also the
    kinetic-energy density 1/2 sum_i |grad psi_i|^2.
    """

    products: ClassVar[dict[str, tuple[float, float]]]
    reading_is_faster: ClassVar[bool]

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
        self.nbf, self.atoms, self.components = basis.nbf, len(basis.R_ax), COMPONENTS[family]
        self.values = VALUE_COUNTS[ORDER[family]]
        self.dtype = np.dtype(np.float64 if real == "double" else np.float32)
        self.table = ShellTable.of(basis)
        self.texts: ShellTexts = (self.table.kinds, self.table.columns, family)
        self._prepare(settings, limit)

    @abstractmethod
    def _prepare(self, settings: GridSettings, limit: int) -> None:
        """Set up the tables of the kernels; `limit`: available memory in bytes."""

    @property
    @abstractmethod
    def pairs(self) -> Ints:
        """Pairs of functions that are multiplied at every point of each group."""

    @property
    @abstractmethod
    def kept_bytes(self) -> int:
        """Memory of the values of all functions."""

    @property
    def work_bytes(self) -> int:
        """Memory of a pass besides the values that are stored."""
        return 0

    @abstractmethod
    def keep_values(self, limit: int | None = None) -> int:
        """Compute and store the values of functions, of those parts of the grid that fit into `limit` bytes (None: all
        of them); returns the bytes that are stored."""

    @abstractmethod
    def density(self, D_spq: Any, C_spi: Any | None) -> Any:
        """Densities, from the orbitals C (D = C C^T) if they are given."""

    @abstractmethod
    def matrix(self, potential_scg: Any) -> Any:
        """Kohn-Sham matrices of potentials that contain the weights: sum_g v_0 chi_p chi_q + v . grad chi_p chi_q +
        v_tau grad chi_p . grad chi_q, plus the transpose."""

    @abstractmethod
    def gradient(self, D_spq: Any, C_spi: Any | None, potential_scg: Any, moving: bool) -> Any:
        """dE/dR [atom, axis] on the device at fixed density matrices and weights, from the orbitals if they are given;
        `moving`: points move with their atoms."""

    def prefers_orbitals(self, orbitals: int, step: str | None = None) -> bool:
        """Whether the density, or another step of `products`, is cheaper from this number of orbitals than from the
        matrix."""
        points, functions = self.grid.points.astype(float), self.grid.functions
        by_matrix, by_orbitals = self.products[step or self.family]
        return bool(by_orbitals * orbitals * (points * functions).sum() < by_matrix * (points * self.pairs).sum())
