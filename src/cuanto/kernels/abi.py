"""The argument lists of all integral kernels: a batch of bras against a batch of kets.

A bra (uniform) is a shell or a pair of shells: primitives `bra_first[b]` to `bra_first[b + 1]`, each a record of
`bra_fields` numbers and one coefficient per contraction column; `bra_shell` holds the input of the contracted stage (A
- B). Kets (lanes) come in blocks of `BLOCK`: block k has the primitives `ket_first[k]` to `ket_first[k + 1]`, each a
record [field][lane], and `ket_shell` [axis][lane] (C - D). Results go to
out[component, rows[bra, column, bra function], cols[ket function, ket]]; for a pair of a shell with itself, pq and qp
go to the same element.
"""

from __future__ import annotations

from cuanto.kernels.spec import COULOMB, Shells

BLOCK = 32
"""Kets of a block, padded to the same number of primitives: a warp, or four vectors of eight lanes."""
SHELL_FIELDS = 3
COULOMB_BRA, ONE_ELECTRON_BRA = 15, 5
SINGLE_KET, PAIR_KET = 5, 15
"""Numbers in the record of a primitive, by kind of bra or ket."""
SIZE = 14
"""Field of a pair's primitive: its largest contribution, descending within a pair, for screening."""


def bra_fields(operator: str) -> int:
    """Numbers in the record of a bra primitive."""
    return COULOMB_BRA if operator in COULOMB else ONE_ELECTRON_BRA


def ket_fields(ket: Shells) -> int:
    """Numbers in the record of a ket primitive."""
    return PAIR_KET if len(ket.l) == 2 else SINGLE_KET


Arguments = tuple[tuple[str, str], ...]
"""Types and names of a kernel's arguments."""


def parse_arguments(text: str) -> Arguments:
    """Parse a C parameter list."""
    pairs = (argument.strip().rpartition(" ") for argument in text.split(","))
    return tuple((kind, name) for kind, _, name in pairs)


SCRATCH: dict[str, Arguments] = {"cpu": parse_arguments("double* scratch"), "cuda": ()}
"""Fast memory of a team by language: an argument on a CPU, shared memory on a GPU."""
BATCH = parse_arguments(
    "INDEX begin, INDEX end, const int* bra_first, const REAL* bra_record, const REAL* bra_coefficient, int columns, "
    "const REAL* bra_shell, const INDEX* rows, INDEX kets, const int* ket_first, const REAL* ket_record, "
    "const REAL* ket_shell, const int* cols, REAL* out, INDEX row_stride, INDEX component_stride, "
    "const REAL* boys_table"
)


TABLES = parse_arguments(
    "int bra_fields, int ket_fields, int width, int bra_functions, const int* primitive_table, "
    "const REAL* primitive_constants, const int* ket_table, const REAL* ket_constants, const int* bra_table, "
    "const REAL* bra_constants"
)
