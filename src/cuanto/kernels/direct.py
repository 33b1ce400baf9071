"""Kernels of direct J and K: selection of quartets, digestion of their integrals, stored integrals, Schwarz bounds."""

from __future__ import annotations

from functools import cache, partial

from cuanto.kernels import abi, md_list
from cuanto.kernels.abi import Arguments, parse_arguments
from cuanto.kernels.build import CPU_LIST, LIST_THREADS, RECORDS, Skeleton, integral_source
from cuanto.kernels.layout import BRA_CLASS, DENSITIES, KET_CLASS, MATRICES, PAIR_PLAN, STORE
from cuanto.kernels.text import Source

LIST_KERNEL = (
    "typedef void (*Kernel)(const void* sides, const void* tables, const int* list, INDEX count, REAL* out);\n"
)
"""C type of the CPU's kernels for lists of quartets, which other kernels call."""
QUARTETS = ("batch_cpu.h", LIST_KERNEL, *(layout.text for layout in (BRA_CLASS, KET_CLASS, DENSITIES, STORE)))

CPU_QUARTETS = parse_arguments(
    "INDEX begin, INDEX end, const void* densities, const void* kets, const void* bras, INDEX classes, INDEX chunks"
)
CPU_DIGEST: Arguments = (*CPU_QUARTETS, ("double*", "sums"), ("INDEX*", "quartets"))
CPU_FORCES: Arguments = (
    *CPU_DIGEST,
    *parse_arguments(
        "INDEX terms, const INDEX* function, const INDEX* parent, const INDEX* target, const double* weight"
    ),
)
CPU_STORE: Arguments = (*CPU_QUARTETS, ("void*", "stores"))
CPU_STORED: Arguments = (*CPU_STORE, ("double*", "sums"))

CPU_BOUNDS = parse_arguments(
    "const void* kernel, const void* sides, const void* tables, INDEX columns, INDEX functions, INDEX begin, "
    "INDEX end, const int* pair, const int* column, double* bound"
)

CPU_EXPAND = parse_arguments(
    "INDEX begin, INDEX end, const void* plans, const int* parity, const INDEX* start, const REAL* bra_record, "
    "REAL* out"
)

CUDA_SELECT = parse_arguments(
    "INDEX bra_begin, INDEX bra_end, INDEX kets, INDEX span, int pad, const double* bra_bound, "
    "const double* ket_bound, const int* bra_pair, const int* ket_pair, const int* bra_segment, "
    "const int* ket_segment, INDEX segments, const double* largest, double reach, double lower, double upper, "
    "int same, int want_j, int* list, int* count"
)
CUDA_SELECT_FORCES = (
    *CUDA_SELECT,
    *parse_arguments("const double* bra_slope, const double* ket_slope, double slope_reach"),
)

CUDA_DIGEST = parse_arguments(
    "const int* list, const int* count, const REAL* integrals, INDEX stride, int columns, int na, int nb, int nc, "
    "int nd, const int* bra_ao, const int* ket_ao, const int* bra_pair, const int* ket_pair, int same, INDEX nbf, "
    "INDEX densities, const double* D, double* J, double* K, int want_j, int want_k"
)


@cache
def _cpu_quartets(entry: str, template: str, arguments: Arguments, real: str) -> Source:
    """A kernel that selects quartets, evaluates their integrals by a kernel for lists, and uses them."""
    return integral_source(entry, "cpu", real, Skeleton((*QUARTETS, "digest_cpu.h", template), arguments), {})


cpu_digest = partial(_cpu_quartets, "digest", "direct_cpu.h", CPU_DIGEST)
"""The kernel of J and K for a number type."""
cpu_forces = partial(_cpu_quartets, "exchange_forces", "exchange_forces_cpu.h", CPU_FORCES)
"""The kernel of the forces of exchange, from quartets of derivatives."""
cpu_store = partial(_cpu_quartets, "store", "store_cpu.h", CPU_STORE)
"""The kernel that stores the integrals of quartets that are significant for any density."""
cpu_stored = partial(_cpu_quartets, "stored", "stored_cpu.h", CPU_STORED)
"""The kernel of J and K from stored integrals."""


@cache
def cpu_bounds(real: str) -> Source:
    """Schwarz bounds of pairs by a kernel for lists."""
    return integral_source(
        "bounds", "cpu", real, Skeleton(("batch_cpu.h", LIST_KERNEL, "bounds_cpu.h"), CPU_BOUNDS), {}
    )


PAIR_FIELDS = {"BRA_FIELDS": abi.COULOMB_BRA, "KET_FIELDS": abi.PAIR_KET}


@cache
def cpu_matrices(real: str) -> Source:
    """The kernel that computes any class of four-centre integrals, for lists of quartets, by products of matrices."""
    parts = (
        *RECORDS,
        PAIR_PLAN.text,
        MATRICES.text,
        "batch_cpu.h",
        "hermite_expansion_cpu.h",
        "md_matrices_cpu.h",
        "md_matrices_list_cpu.h",
    )
    return integral_source("matrices_list", "cpu", real, Skeleton(parts, CPU_LIST), PAIR_FIELDS)


@cache
def cpu_expand() -> Source:
    """Hermite expansion coefficients of all primitive pairs of a class, for `cpu_matrices`."""
    parts = (*RECORDS, PAIR_PLAN.text, "hermite_expansion_cpu.h", "md_matrices_cpu.h", "md_matrices_expand_cpu.h")
    return integral_source("expand_pairs", "cpu", "double", Skeleton(parts, CPU_EXPAND), PAIR_FIELDS)


@cache
def cuda_select(forces: bool = False) -> Source:
    """The kernel that lists significant quartets, for J and K or for `forces`; a warp has one bra and some kets."""
    arguments = CUDA_SELECT_FORCES if forces else CUDA_SELECT
    skeleton = Skeleton(("select.cuh",), arguments, LIST_THREADS, LIST_THREADS // 32)
    entry = "select_for_forces" if forces else "select_quartets"
    return integral_source(entry, "cuda", "double", skeleton, {"FORCES": int(forces)})


@cache
def cuda_expand(real: str) -> Source:
    """Hermite expansions of the primitives of a class of pairs, for the kernel with a block of threads per quartet."""
    skeleton = Skeleton(("md_recursion.cuh", "md_expand.cuh"), md_list.EXPAND_ARGUMENTS, md_list.EXPAND_THREADS)
    return integral_source("expand_pairs", "cuda", real, skeleton, {})


@cache
def cuda_digest(real: str, sizes: tuple[int, int, int] | None) -> Source:
    """J and K from the integrals of a list; `sizes`: functions of b, c and d, None for any."""
    known = dict(zip(("NB", "NC", "ND"), sizes, strict=True)) if sizes else {}
    skeleton = Skeleton(("digest.cuh",), CUDA_DIGEST, LIST_THREADS)
    return integral_source("digest", "cuda", real, skeleton, {"FIXED": len(known), **known})
