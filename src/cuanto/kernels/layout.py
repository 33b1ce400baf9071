"""Records that host and kernels share: the fields of each, as a C structure and as a NumPy type.

Every field takes 8 bytes (a pointer, a 64-bit integer or a double), so that both have the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.abi import Arguments, parse_arguments

NUMBERS = {"INDEX": np.int64, "double": np.float64}
"""Types of fields that are not pointers."""


@dataclass(frozen=True)
class Layout:
    """A record; `body` declares its fields in C, with comments."""

    name: str
    comment: str
    body: str

    @cached_property
    def fields(self) -> Arguments:
        """Kind and name of each field."""
        found = []
        for line in self.body.strip().splitlines():
            (kind, name), *more = parse_arguments(line.partition(";")[0])
            found += [(kind, name), *((kind, name) for _, name in more)]
        return tuple(found)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of the record; pointers are stored as addresses."""
        return np.dtype([(name, NUMBERS.get(kind, np.int64)) for kind, name in self.fields])

    @property
    def text(self) -> str:
        """The C structure."""
        return f"// {self.comment}\nstruct {self.name} {{{self.body}}};\n"

    def expression(self, arguments: Arguments) -> str:
        """C expression for the record: from a pointer to it if the arguments have one, else from arguments named like
        its fields."""
        names = {name for _, name in arguments}
        if self.name.lower() in names:
            return f"*(const {self.name}*){self.name.lower()}"
        values = (name if name in names else "0" for _, name in self.fields)
        return f"{self.name}{{{', '.join(values)}}}"


class Records:
    """Records of one layout in main memory; they keep the objects they point to alive."""

    def __init__(self, layout: Layout, rows: Sequence[Mapping[str, Any]], address: Callable[[Any], int]) -> None:
        """`rows`: values by name; for pointers arrays, kernels, other records, None or addresses."""
        self._alive = rows
        self.array: NDArray[Any] = np.zeros(len(rows), dtype=layout.dtype)
        for kind, name in layout.fields:
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
    """
    const int* bra_first;
    const REAL* bra_record;
    const REAL* bra_coefficient;
    INDEX columns;
    const REAL* bra_shell;
    const int* ket_first;
    const REAL* ket_record;
    const REAL* ket_shell;
    const REAL* boys_table;
    double cutoff;  // with SCREENED: primitive quartets of a smaller size are left out
""",
)

TABLES = Layout(
    "Tables",
    "Index tables of a class.",
    """
    INDEX bra_fields, ket_fields, width, bra_functions;
    const int* primitive_table;
    const REAL* primitive_constants;
    const int* ket_table;
    const REAL* ket_constants;
    const int* bra_table;
    const REAL* bra_constants;
""",
)

PAIR_PLAN = Layout(
    "PairPlan",
    "Panels of the functions of a pair and the terms of their coefficients (kernels.md_matrices.Plan).",
    """
    INDEX la, lb, panels;
    INDEX coefficients;  // 0: there is no plan
    const int* rows;  // [panel, PANEL]: functions, -1 for padding
    const int* start;  // [panel + 1]
    const int* hermites;
    const int* first;  // [coefficient + 1]
    const int* factors;  // [term, axis]
    const double* weights;  // [term]
""",
)

MATRICES = Layout(
    "Matrices",
    "Tables of a class for products of matrices (kernels.md_matrices).",
    """
    INDEX order, cube, bra_functions, ket_functions, bra_hermites, ket_hermites;
    const int* bra_places;  // [Hermite Gaussian]: places in the cube
    const int* ket_places;
    const int* identity;  // [Hermite Gaussian]: places in a row of potentials
    const int* ket_columns;  // [ket function]: rows of potentials
    const void* bra_plans;  // [parity]
    const void* ket_plans;
    const INDEX* bra_start;  // [primitive]: its coefficients
    const REAL* bra_expansion;
    INDEX stamp;  // of the pairs, different for every set of records
""",
)

BRA_CLASS = Layout(
    "BraClass",
    "Bras that are combined with the kets of a class.",
    """
    Kernel kernel;
    const void* sides;
    const void* tables;
    INDEX bras, columns, na, nb;
    INDEX same;  // whether bras and kets are the same pairs
    const double* bound;  // [bra], descending
    const int* pair;  // [bra]: number of the pair, counted as for kets
    const int* ao;  // [bra, column, 2]: first functions of a and b
    const int* segment;  // [bra, 2]
""",
)

KET_CLASS = Layout(
    "KetClass",
    "Kets of a class.",
    """
    INDEX kets, nc, nd;
    INDEX first_bras, bra_classes;  // classes of bras they are combined with
    const double* bound;  // [ket]
    const int* pair;  // [ket]
    const int* ao;  // [ket, 2]
    const int* segment;  // [ket, 2]
""",
)

DENSITIES = Layout(
    "Densities",
    "Densities and the range of bounds of the quartets.",
    """
    INDEX nbf, segments, count;
    const double* D;  // [density, row, column], transposed: of matrices K
    const double* D_j;  // the same of matrices J
    const double* largest;  // [segment, segment]
    double lower;
    double upper;  // quartets with lower <= bound < upper
    INDEX coulombs;  // number of matrices J
    INDEX want_k;
    INDEX rows;  // of K
    INDEX products;  // whether bounds contain the product of two densities instead of one
""",
)

STORE = Layout(
    "Store",
    "Stored integrals of a chunk.",
    """
    int* head;
    REAL* value;
    INDEX heads, values;
    INDEX limit;  // number of values at which counting may stop
    INDEX quartets;
""",
)
