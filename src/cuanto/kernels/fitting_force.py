"""The kernel that contracts derivatives of three-centre integrals with a two-particle density."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import declared
from cuanto.kernels.text import SUMS, Source, assemble

THREADS = 128
"""Threads of a block: they share the fitting functions."""
ARGUMENTS = declared(
    "INDEX begin, INDEX end, INDEX shells, INDEX functions, INDEX derivatives, INDEX naux, const double* Gamma, "
    "const double* values, const INDEX* first_p, const INDEX* first_raised, const INDEX* first_lowered, "
    "const INDEX* atom, const int* term_first, const int* terms, const double* weight, double* target"
)


@cache
def fit_force_source(target: str) -> Source:
    """Forces on the atoms of a shell's functions, and on fitting functions."""
    arguments = ARGUMENTS + SUMS[target]
    body = ("fit_force.h",)
    return assemble("fit_force", target, "double", arguments, {"THREADS": THREADS}, body, threads=THREADS)
