"""Kernels for lists of quartets, and what digests their integrals into J and K."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cuanto.kernels import abi
from cuanto.kernels.abi import declared
from cuanto.kernels.build import RECORDS, TABLE_EXTRAS, integral_source, straight_text
from cuanto.kernels.layout import BRA_CLASS, DENSITIES, KET_CLASS, STORE
from cuanto.kernels.spec import KernelSpec
from cuanto.kernels.text import Source

LIST_KERNEL = (
    "typedef void (*Kernel)(const void* sides, const void* tables, const int* list, INDEX count, REAL* out);\n"
)
"""A kernel for lists on the CPU, as others call it."""
QUARTETS = ("batch_cpu.h", LIST_KERNEL, *(layout.text for layout in (BRA_CLASS, KET_CLASS, DENSITIES, STORE)))

LIST_THREADS = 128
"""Threads of a block of the kernels for lists on a GPU; they go on with the list where there are fewer than items."""

CPU_LIST = declared("const void* sides, const void* tables, const int* list, INDEX count, REAL* out")

CPU_QUARTETS = declared(
    "INDEX begin, INDEX end, const void* densities, const void* kets, const void* bras, INDEX classes, INDEX chunks"
)
CPU_DIGEST: abi.Arguments = (*CPU_QUARTETS, ("double*", "sums"), ("INDEX*", "quartets"))
CPU_FORCES: abi.Arguments = (
    *CPU_DIGEST,
    *declared("INDEX terms, const INDEX* function, const INDEX* parent, const INDEX* target, const double* weight"),
)
CPU_STORE: abi.Arguments = (*CPU_QUARTETS, ("void*", "stores"))
CPU_STORED: abi.Arguments = (*CPU_STORE, ("double*", "sums"))

CPU_BOUNDS = declared(
    "const void* kernel, const void* sides, const void* tables, INDEX columns, INDEX functions, INDEX begin, "
    "INDEX end, const int* pair, const int* column, double* bound"
)

CUDA_LIST = declared(
    "const int* bra_first, const REAL* bra_record, const REAL* bra_coefficient, int columns, const REAL* bra_shell, "
    "const int* ket_first, const REAL* ket_record, const REAL* ket_shell, const REAL* boys_table, double cutoff, "
    "const int* list, const int* count, REAL* out, INDEX stride"
)

CUDA_SELECT = declared(
    "INDEX bra_begin, INDEX bra_end, INDEX kets, INDEX span, int pad, const double* bra_bound, "
    "const double* ket_bound, const int* bra_pair, const int* ket_pair, const int* bra_segment, "
    "const int* ket_segment, INDEX segments, const double* largest, double reach, double lower, double upper, "
    "int same, int want_j, int products, int* list, int* count"
)

CUDA_DIGEST = declared(
    "const int* list, const int* count, const REAL* integrals, INDEX stride, int columns, int na, int nb, int nc, "
    "int nd, const int* bra_ao, const int* ket_ao, const int* bra_pair, const int* ket_pair, int same, INDEX nbf, "
    "INDEX densities, const double* D, double* J, double* K, int want_j, int want_k, INDEX rows"
)


@cache
def cpu_straight(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class for a list of (bra, first of a vector of kets)."""
    return straight_text(spec, (*RECORDS, "batch_cpu.h", "lane_sums.h", "lane_listed.h"), CPU_LIST, SCREENED=1)


@cache
def cpu_table(real: str) -> Source:
    """The general kernel for such a list."""
    body = (*RECORDS, "batch_cpu.h", "program.h", "md_loops_cpu.h", "table_cpu.h", "table_listed.h")
    return integral_source("listed_table", "cpu", real, CPU_LIST, body, SCREENED=1)


@cache
def cpu_digest(real: str) -> Source:
    """Selection of quartets, their integrals by one of the kernels above, and J and K."""
    return integral_source("digest", "cpu", real, CPU_DIGEST, (*QUARTETS, "digest_cpu.h", "direct_cpu.h"))


@cache
def cpu_forces(real: str) -> Source:
    """The same for bras with derivatives of functions, and the forces of exchange."""
    return integral_source(
        "exchange_forces", "cpu", real, CPU_FORCES, (*QUARTETS, "digest_cpu.h", "exchange_forces_cpu.h")
    )


@cache
def cpu_store(real: str) -> Source:
    """Selection of quartets for any density, and their integrals into memory."""
    return integral_source("store", "cpu", real, CPU_STORE, (*QUARTETS, "digest_cpu.h", "store_cpu.h"))


@cache
def cpu_stored(real: str) -> Source:
    """J and K from these."""
    return integral_source("stored", "cpu", real, CPU_STORED, (*QUARTETS, "digest_cpu.h", "stored_cpu.h"))


@cache
def cpu_bounds(real: str) -> Source:
    """Schwarz bounds of pairs by one of these kernels."""
    return integral_source("bounds", "cpu", real, CPU_BOUNDS, ("batch_cpu.h", LIST_KERNEL, "bounds_cpu.h"))


@cache
def cuda_straight(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class for a list of (bra, ket)."""
    body = (*RECORDS, "thread_sums.cuh", "thread_listed.cuh")
    return replace(straight_text(spec, body, CUDA_LIST, SCREENED=1, CUTOFF="cutoff"), threads=LIST_THREADS)


@cache
def cuda_group(real: str, threads: int) -> Source:
    """The general kernel for such a list, by blocks of so many threads."""
    arguments = CUDA_LIST + abi.TABLES + TABLE_EXTRAS["cuda"]
    body = (*RECORDS, "program.h", "group.cuh", "group_listed.cuh")
    return replace(integral_source("listed_group", "cuda", real, arguments, body, CUTOFF="cutoff"), threads=threads)


@cache
def cuda_select() -> Source:
    """The quartets that matter, as a list; an item is a bra with a span of kets, for a warp."""
    text = integral_source("select_quartets", "cuda", "double", CUDA_SELECT, ("select.cuh",))
    return replace(text, threads=LIST_THREADS, per_block=LIST_THREADS // 32)


@cache
def cuda_digest(real: str, sizes: tuple[int, int, int] | None, one_sided: bool = False) -> Source:
    """J and K from the integrals of a list; `sizes`: functions of b, c and d, None for any.

    `one_sided`: K_ac and K_ad alone, for functions a that are not those of the density.
    """
    known = dict(zip(("NB", "NC", "ND"), sizes, strict=True)) if sizes else {}
    entry = "digest_one_sided" if one_sided else "digest"
    macros = {"ONE_SIDED": int(one_sided), "FIXED": len(known), **known}
    text = integral_source(entry, "cuda", real, CUDA_DIGEST, ("digest.cuh",), **macros)
    return replace(text, threads=LIST_THREADS)
