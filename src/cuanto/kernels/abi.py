"""The argument lists of all integral kernels: a batch of bras against a batch of kets.

A bra (uniform) is a shell or a pair of shells: primitives `bra_first[b]` to `bra_first[b + 1]`, each a record of
`BRA_FIELDS` numbers and one coefficient per contraction column; `shell_record` holds what the contracted stage needs
(A - B). Kets (lanes) all have `ket_primitives` primitives: record[k][field][ket]. Results go to
out[component, rows[bra, column, bra function], cols[ket] + ket function]; a negative row is not wanted.
"""

from __future__ import annotations

BRA_FIELDS = {"coulomb": 14, "overlap": 5, "kinetic": 5, "dipole": 5}
KET_FIELDS = 5
SHELL_FIELDS = 3

Arguments = tuple[tuple[str, str], ...]

BATCH: Arguments = (
    ("INDEX", "bra_begin"),
    ("INDEX", "bra_end"),
    ("const int*", "bra_first"),
    ("const REAL*", "bra_record"),
    ("const REAL*", "bra_coefficient"),
    ("int", "columns"),
    ("const REAL*", "shell_record"),
    ("const INDEX*", "rows"),
    ("INDEX", "kets"),
    ("INDEX", "ket_stride"),
    ("int", "ket_primitives"),
    ("const REAL*", "ket_record"),
    ("const int*", "cols"),
    ("REAL*", "out"),
    ("INDEX", "row_stride"),
    ("INDEX", "component_stride"),
    ("const REAL*", "boys_table"),
)


TABLES: Arguments = (
    ("int", "bra_fields"),
    ("int", "width"),
    ("int", "bra_functions"),
    ("const int*", "primitive_table"),
    ("const REAL*", "primitive_constants"),
    ("const int*", "ket_table"),
    ("const REAL*", "ket_constants"),
    ("const int*", "bra_table"),
    ("const REAL*", "bra_constants"),
)


def parameters(arguments: Arguments) -> str:
    """The C parameter list."""
    return ", ".join(f"{kind} {name}" for kind, name in arguments)
