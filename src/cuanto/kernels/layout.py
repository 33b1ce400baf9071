"""Records that host and kernels share: the fields of each, as a C structure and as a NumPy type.

Every field takes 8 bytes (a pointer, a 64-bit integer or a double), so that both have the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = {"INDEX": np.int64, "double": np.float64}
"""Kinds of fields that are no pointers."""

Field = tuple[str, str] | tuple[str, str, str]
"""Kind and name as in C, and what is to be said about it."""


@dataclass(frozen=True)
class Layout:
    """The fields of a record in their order."""

    name: str
    about: str
    fields: tuple[Field, ...]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Pointers are addresses."""
        return np.dtype([(name, NUMBERS.get(kind, np.int64)) for kind, name, *_ in self.fields])

    @cached_property
    def text(self) -> str:
        """The C structure; numbers that need no comment share a line."""
        lines = []
        for (kind, single), some in groupby(self.fields, lambda field: (field[0], field if self._alone(field) else ())):
            names, about = ", ".join(name for _, name, *_ in some), f"  // {single[2]}" if len(single) > 2 else ""
            lines.append(f"    {kind} {names};{about}")
        return "\n".join([f"// {self.about}", f"struct {self.name} {{", *lines, "};", ""])

    @staticmethod
    def _alone(field: Field) -> bool:
        return field[0] not in NUMBERS or len(field) > 2


class Records:
    """Records of one layout in main memory, and what they point to, which lives as long as they do."""

    def __init__(self, layout: Layout, rows: Sequence[Mapping[str, Any]], address: Callable[[Any], int]) -> None:
        """`rows`: values by name; for pointers arrays, kernels, other records, None or addresses."""
        self._alive = rows
        self.array: NDArray[Any] = np.zeros(len(rows), dtype=layout.dtype)
        for kind, name, *_ in layout.fields:
            values = [row[name] for row in rows]
            self.array[name] = values if kind in NUMBERS else [_pointer(value, address) for value in values]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A field of all records."""
        return self.array[name]


def _pointer(value: Any, address: Callable[[Any], int]) -> int:
    if value is None or isinstance(value, int):
        return value or 0
    return address(value.array if isinstance(value, Records) else value)


SIDES = Layout(
    "Sides",
    "Records of both sides, as kernels.abi describes them.",
    (
        ("const int*", "bra_first"),
        ("const REAL*", "bra_record"),
        ("const REAL*", "bra_coefficient"),
        ("INDEX", "columns"),
        ("const REAL*", "bra_shell"),
        ("const int*", "ket_first"),
        ("const REAL*", "ket_record"),
        ("const REAL*", "ket_shell"),
        ("const REAL*", "boys_table"),
        ("double", "cutoff", "with SCREENED: primitive quartets of a smaller size are left out"),
    ),
)

TABLES = Layout(
    "Tables",
    "Index tables of a class.",
    (
        ("INDEX", "bra_fields"),
        ("INDEX", "ket_fields"),
        ("INDEX", "width"),
        ("INDEX", "bra_functions"),
        ("const int*", "primitive_table"),
        ("const REAL*", "primitive_constants"),
        ("const int*", "ket_table"),
        ("const REAL*", "ket_constants"),
        ("const int*", "bra_table"),
        ("const REAL*", "bra_constants"),
    ),
)

BRA_CLASS = Layout(
    "BraClass",
    "Bras that meet the kets of a class.",
    (
        ("Kernel", "kernel"),
        ("const void*", "sides"),
        ("const void*", "tables"),
        ("INDEX", "bras"),
        ("INDEX", "columns"),
        ("INDEX", "na"),
        ("INDEX", "nb"),
        ("INDEX", "same", "are bras and kets the same pairs?"),
        ("const double*", "bound", "[bra], descending"),
        ("const int*", "pair", "[bra]: number of the pair, counted as for kets"),
        ("const int*", "ao", "[bra, column, 2]: first functions of a and b"),
        ("const int*", "segment", "[bra, 2]"),
    ),
)

KET_CLASS = Layout(
    "KetClass",
    "Kets of a class; all classes of bras up to the same number meet them.",
    (
        ("INDEX", "kets"),
        ("INDEX", "nc"),
        ("INDEX", "nd"),
        ("const double*", "bound", "[ket]"),
        ("const int*", "pair", "[ket]"),
        ("const int*", "ao", "[ket, 2]"),
        ("const int*", "segment", "[ket, 2]"),
    ),
)

DENSITIES = Layout(
    "Densities",
    "Densities, and the quartets that are wanted.",
    (
        ("INDEX", "nbf"),
        ("INDEX", "segments"),
        ("INDEX", "count"),
        ("const double*", "D", "[density, row, column], transposed"),
        ("const double*", "largest", "[segment, segment]"),
        ("double", "lower"),
        ("double", "upper", "quartets whose bound lies between"),
        ("INDEX", "want_j"),
        ("INDEX", "want_k"),
    ),
)

STORE = Layout(
    "Store",
    "Integrals of a chunk that are kept.",
    (
        ("int*", "head"),
        ("REAL*", "value"),
        ("INDEX", "heads"),
        ("INDEX", "values"),
        ("INDEX", "limit", "values at which counting may stop"),
        ("INDEX", "quartets"),
    ),
)
