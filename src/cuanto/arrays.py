"""Array types and index arithmetic that several packages share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """The nonzero elements of a matrix; several for the same row and column are added."""

    row: Ints
    column: Ints
    value: Array
    shape: tuple[int, int]

    @cached_property
    def T(self) -> SparseMatrix:
        """The transpose."""
        return SparseMatrix(self.column, self.row, self.value, self.shape[::-1])

    @cached_property
    def compressed_rows(self) -> tuple[Ints, Ints, Array]:
        """Compressed rows: start of each row and end of the last, columns (ascending in a row), values."""
        order = np.lexsort((self.column, self.row))
        return range_starts(np.bincount(self.row, minlength=self.shape[0])), self.column[order], self.value[order]

    def toarray(self) -> Array:
        """The full matrix."""
        full = np.zeros(self.shape)
        np.add.at(full, (self.row, self.column), self.value)
        return full


def range_starts(sizes: Any) -> Ints:
    """Return the first index of each of several consecutive ranges, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def range_members(sizes: Any) -> tuple[Ints, Ints]:
    """Return, for each member of several consecutive ranges, the number of its range and its position in it."""
    sizes = np.asarray(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def morton_codes(r_gx: Array, cell: float) -> Ints:
    """Return the cell number of each point along Morton's space-filling curve: nearby points have similar numbers."""
    cells = ((r_gx - r_gx.min(axis=0)) / cell).astype(np.int64)
    code = np.zeros(len(cells), dtype=np.int64)
    for bit in range(int(cells.max(initial=0)).bit_length()):
        for x in range(3):
            code |= (cells[:, x] >> bit & 1) << (3 * bit + x)
    return code


def add_transpose(matrix: Any, tile: int) -> None:
    """Replace M by M + M^T, tile by tile."""
    tiles = [slice(first, first + tile) for first in range(0, len(matrix), tile)]
    for i, rows in enumerate(tiles):
        for columns in tiles[: i + 1]:
            total = matrix[rows, columns] + matrix[columns, rows].T
            matrix[rows, columns] = total
            matrix[columns, rows] = total.T
