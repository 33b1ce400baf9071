"""Kernels for lists of quartets, and what digests their integrals into J and K."""

from __future__ import annotations

from functools import cache

from cuanto.kernels import abi
from cuanto.kernels.build import TABLE_EXTRAS, integral_source, straight_text
from cuanto.kernels.spec import KernelSpec
from cuanto.kernels.text import Source

CPU_LIST: abi.Arguments = (
    ("const void*", "sides"),
    ("const void*", "tables"),
    ("const int*", "list"),
    ("INDEX", "count"),
    ("REAL*", "out"),
)

CPU_DIGEST: abi.Arguments = (
    ("const void*", "densities"),
    ("const void*", "kets"),
    ("const void*", "bras"),
    ("INDEX", "classes"),
    ("INDEX", "begin"),
    ("INDEX", "step"),
    ("double*", "J"),
    ("double*", "K"),
    ("INDEX*", "quartets"),
)

CPU_STORE: abi.Arguments = (*CPU_DIGEST[:6], ("void*", "store"), ("INDEX*", "quartets"))
CPU_STORED: abi.Arguments = (*CPU_DIGEST[:8], ("const void*", "head"), ("const void*", "value"))

CPU_BOUNDS: abi.Arguments = (
    ("const void*", "kernel"),
    ("const void*", "sides"),
    ("const void*", "tables"),
    ("INDEX", "columns"),
    ("INDEX", "functions"),
    ("INDEX", "begin"),
    ("INDEX", "end"),
    ("const int*", "pair"),
    ("const int*", "column"),
    ("double*", "bound"),
)

CUDA_LIST: abi.Arguments = (
    ("const int*", "bra_first"),
    ("const REAL*", "bra_record"),
    ("const REAL*", "bra_coefficient"),
    ("int", "columns"),
    ("const REAL*", "bra_shell"),
    ("const int*", "ket_first"),
    ("const REAL*", "ket_record"),
    ("const REAL*", "ket_shell"),
    ("const REAL*", "boys_table"),
    ("double", "cutoff"),
    ("const int*", "list"),
    ("const int*", "count"),
    ("REAL*", "out"),
    ("INDEX", "stride"),
)

CUDA_SELECT: abi.Arguments = (
    ("INDEX", "bra_begin"),
    ("INDEX", "bra_end"),
    ("INDEX", "kets"),
    ("INDEX", "span"),
    ("int", "pad"),
    ("const double*", "bra_bound"),
    ("const double*", "ket_bound"),
    ("const int*", "bra_pair"),
    ("const int*", "ket_pair"),
    ("const int*", "bra_segment"),
    ("const int*", "ket_segment"),
    ("INDEX", "segments"),
    ("const double*", "largest"),
    ("double", "reach"),
    ("double", "lower"),
    ("double", "upper"),
    ("int", "same"),
    ("int", "want_j"),
    ("int*", "list"),
    ("int*", "count"),
)

CUDA_DIGEST: abi.Arguments = (
    ("const int*", "list"),
    ("const int*", "count"),
    ("const REAL*", "integrals"),
    ("INDEX", "stride"),
    ("int", "columns"),
    ("int", "na"),
    ("int", "nb"),
    ("int", "nc"),
    ("int", "nd"),
    ("const int*", "bra_ao"),
    ("const int*", "ket_ao"),
    ("const int*", "bra_pair"),
    ("const int*", "ket_pair"),
    ("int", "same"),
    ("INDEX", "nbf"),
    ("INDEX", "densities"),
    ("const double*", "D"),
    ("double*", "J"),
    ("double*", "K"),
    ("int", "want_j"),
    ("int", "want_k"),
)


@cache
def cpu_straight(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class for a list of (bra, first of a vector of kets)."""
    return straight_text(spec, ("sides.h", "batch_cpu.h", "lane_sums.h", "lane_listed.h"), CPU_LIST, SCREENED=1)


@cache
def cpu_table(real: str) -> Source:
    """The general kernel for such a list."""
    body = ("sides.h", "batch_cpu.h", "program.h", "md_loops_cpu.h", "table_cpu.h", "table_listed.h")
    return integral_source("listed_table", "cpu", real, CPU_LIST, body, SCREENED=1)


@cache
def cpu_digest(real: str) -> Source:
    """Selection of quartets, their integrals by one of the kernels above, and J and K."""
    return integral_source("digest", "cpu", real, CPU_DIGEST, ("batch_cpu.h", "digest_cpu.h", "direct_cpu.h"))


@cache
def cpu_store(real: str) -> Source:
    """Selection of quartets for any density, and their integrals into memory."""
    return integral_source("store", "cpu", real, CPU_STORE, ("batch_cpu.h", "digest_cpu.h", "store_cpu.h"))


@cache
def cpu_stored(real: str) -> Source:
    """J and K from these."""
    return integral_source("stored", "cpu", real, CPU_STORED, ("batch_cpu.h", "digest_cpu.h", "stored_cpu.h"))


@cache
def cpu_bounds(real: str) -> Source:
    """Schwarz bounds of pairs by one of these kernels."""
    return integral_source("bounds", "cpu", real, CPU_BOUNDS, ("batch_cpu.h", "bounds_cpu.h"))


@cache
def cuda_straight(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class for a list of (bra, ket)."""
    body = ("sides.h", "thread_sums.cuh", "thread_listed.cuh")
    return straight_text(spec, body, CUDA_LIST, SCREENED=1, CUTOFF="cutoff")


@cache
def cuda_group(real: str) -> Source:
    """The general kernel for such a list."""
    arguments = CUDA_LIST + abi.TABLES + TABLE_EXTRAS["cuda"]
    body = ("sides.h", "program.h", "group.cuh", "group_listed.cuh")
    return integral_source("listed_group", "cuda", real, arguments, body, CUTOFF="cutoff")


@cache
def cuda_select() -> Source:
    """The quartets that matter, as a list."""
    return integral_source("select_quartets", "cuda", "double", CUDA_SELECT, ("select.cuh",))


@cache
def cuda_digest(real: str, sizes: tuple[int, int, int] | None) -> Source:
    """J and K from the integrals of a list; `sizes`: functions of b, c and d, None for any."""
    known = dict(zip(("NB", "NC", "ND"), sizes, strict=True)) if sizes else {}
    return integral_source("digest", "cuda", real, CUDA_DIGEST, ("digest.cuh",), FIXED=len(known), **known)
