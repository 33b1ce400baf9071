"""The kernel that makes the records of pairs of shells."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import COULOMB_BRA, parse_arguments
from cuanto.kernels.text import Source, assemble

THREADS = 64
"""Threads of a block; each makes the record of a pair of primitives."""
ARGUMENTS = parse_arguments(
    "INDEX begin, INDEX end, const INDEX* u, const INDEX* v, int a_columns, int b_columns, "
    "const double* a_exponent, const double* a_centre, const double* a_coefficient, "
    "const double* b_exponent, const double* b_centre, const double* b_coefficient, "
    "double* record, double* coefficient"
)


@cache
def shell_pairs_source(target: str) -> Source:
    """Records and coefficients of products of primitives."""
    defines = {"THREADS": THREADS, "RECORD": COULOMB_BRA}
    templates = ("pair_record.h", "shell_pairs.h")
    return assemble("shell_pairs", target, "double", ARGUMENTS, defines, templates, threads=THREADS, per_block=THREADS)
