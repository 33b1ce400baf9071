"""Kernels for forces of three-centre integrals: pairs, their expansions in Hermite Gaussians, and their contraction."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.abi import COULOMB_BRA, SCRATCH, parse_arguments
from cuanto.kernels.recurrences.components import shift_power
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from cuanto.kernels.text import SUMS, Source, assemble

EXPANSION_THREADS = 32
"""Threads of a block that expands a pair of primitives."""
FORCE_THREADS = 64
"""Threads of a block that contracts: they share the fitting functions."""
VECTORS = {"cpu": 1, "cuda": 4}
"""Vectors of fitting functions that a thread contracts at once."""
SPAN = {"cpu": 2**30, "cuda": FORCE_THREADS * VECTORS["cuda"]}
"""Fitting functions of an item: as many as a block of threads processes; a core processes all."""
PADDING = 16
"""Fitting functions are padded to a multiple of this number, the lanes of all vectors contracted at once."""
PAIRS = parse_arguments(
    "INDEX begin, INDEX end, const INDEX* u, const INDEX* v, int a_columns, int b_columns, int rows, int columns, "
    "int same, double smearing, "
    "const double* a_exponent, const double* a_centre, const double* a_coefficient, const INDEX* a_owner, "
    "const double* b_exponent, const double* b_centre, const double* b_coefficient, const INDEX* b_owner, "
    "double* record, double* coefficient, double* bra_coefficient, INDEX* a_place, INDEX* b_place"
)
PAIR_TEMPLATES = ("pair_record.h", "fit_pairs.h")
AT_ONCE = 2
"""Hermite tuples are padded to a multiple of this number."""
EXPANSION = parse_arguments(
    "INDEX begin, INDEX end, int la, int lb, int a_columns, int b_columns, int a_functions, int b_functions, "
    "const double* record, const double* coefficient, const int* a_start, const int* a_power, const double* a_value, "
    "const int* b_start, const int* b_power, const double* b_value, int tuples, const int* table, double* E, "
    "double* share"
)
FORCE = parse_arguments(
    "INDEX begin, INDEX end, INDEX first, const INDEX* item_first, const INDEX* atom_a, const INDEX* atom_b, "
    "INDEX parts, int rows, int columns, int tuples, int hermites, const int* table, const double* E, "
    "const double* share, INDEX width, const INDEX* a_place, const INDEX* b_place, INDEX a_base, INDEX b_base, "
    "INDEX a_stride, INDEX b_stride, const double* Gamma, const double* W, double* target"
)


@cache
def fit_pairs_source(target: str) -> Source:
    """Records and coefficients of pairs of primitives."""
    defines = {"THREADS": FORCE_THREADS, "RECORD": COULOMB_BRA}
    threads = FORCE_THREADS
    return assemble("fit_pairs", target, "double", PAIRS, defines, PAIR_TEMPLATES, threads=threads, per_block=threads)


@cache
def fit_expand_source(target: str) -> Source:
    """Hermite expansions of the products of contracted shells, and their derivatives."""
    defines = {"THREADS": EXPANSION_THREADS, "RECORD": COULOMB_BRA}
    arguments = EXPANSION + SCRATCH[target]
    return assemble("fit_expand", target, "double", arguments, defines, ("fit_expand.h",), threads=EXPANSION_THREADS)


def expansion_memory(la: int, lb: int) -> int:
    """Bytes of fast memory for the expansion of a pair."""
    return 8 * 6 * (la + 1) * (lb + 1) * (la + lb + 1)


@cache
def fit_force_source(target: str) -> Source:
    """Forces on the atoms of pairs, and on fitting functions."""
    arguments = FORCE + SUMS
    defines = {"THREADS": FORCE_THREADS, "VECTORS": VECTORS[target]}
    return assemble("fit_force", target, "double", arguments, defines, ("fit_force.h",), threads=FORCE_THREADS)


def force_parts(target: str, width: int) -> int:
    """Number of parts into which the fitting functions of an item are divided."""
    return -(-width // SPAN[target])


@cache
def raised_tuples(order: int) -> NDArray[np.int32]:
    """Table of the tuples up to an order, padded to a multiple of AT_ONCE.

    Rows (t, u, v, 1, number of the tuple, numbers of the tuple raised along each axis); zeros for padding.
    """
    number = {t: k for k, t in enumerate(hermite_tuples(order + 1))}
    rows = [(*t, 1, number[t], *(number[shift_power(t, x)] for x in range(3))) for t in hermite_tuples(order)]
    rows += [(0,) * 8] * (-len(rows) % AT_ONCE)
    return np.array(rows, dtype=np.int32)
