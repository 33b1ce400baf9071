"""How a job is launched on a GPU: kernel text, grid, shared memory, arguments. No CuPy here: `simt` uses it as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.backends.base import Job
from cuanto.kernels.abi import BLOCK
from cuanto.kernels.build import (
    Programs,
    Source,
    cost_of,
    integrals_of,
    programs_of,
    straight_source,
    table_source,
    unrolled,
)
from cuanto.kernels.spec import KernelSpec

THREAD_BLOCK = 128
GROUP_BLOCK = 256
SHARED_TARGET = 110_000
"""Bytes of shared memory per block that still let two blocks share a multiprocessor of Ampere or later."""
PASSES_AT_ONCE = 4
"""Passes of a sweep that a block has room for (where the primitive stage does not leave more anyway)."""
WORTH_COMPILING = 1.0e6
"""Operations of a job from which a straight-line kernel repays its compilation."""
ACCUMULATORS = 48
"""Sums a thread may keep in registers."""


@dataclass(frozen=True)
class Launch:
    """A kernel with everything but the device."""

    source: Source
    grid: int
    block: int
    shared_bytes: int
    extra: dict[str, Any]

    def values(self, job: Job) -> list[Any]:
        """Arguments in order, scalars typed as the kernel declares them."""
        given = {"bra_begin": 0, "bra_end": job.bras, **job.arguments, **self.extra}
        casts = {"INDEX": np.int64, "int": np.int32}
        return [casts[kind](given[name]) if kind in casts else given[name] for kind, name in self.source.arguments]


def columns_at_once(job: Job) -> int:
    """Contraction columns a thread sums together; a power of two, to keep the number of kernels small."""
    width = integrals_of(job.operator, job.bra, job.ket, job.algorithm).width
    columns = 1
    while columns < min(job.columns, 16) and 2 * columns * width <= ACCUMULATORS:
        columns *= 2
    return columns


def thread_launch(job: Job) -> Launch:
    """One ket per thread, straight-line code."""
    spec = KernelSpec(job.operator, job.bra, job.ket, job.algorithm, "thread", job.real_name, columns_at_once(job))
    items = job.bras * -(-job.kets // BLOCK) * BLOCK
    return Launch(straight_source(spec), -(-items // THREAD_BLOCK), THREAD_BLOCK, 0, {})


@dataclass(frozen=True)
class GroupNeed:
    """Storage of the group schedule in numbers: per block, and per ket lane (sums, slots)."""

    uniforms: int
    sums: int
    slots: int

    def numbers(self, lanes: int) -> int:
        """All that a block of so many lanes keeps."""
        return self.uniforms + (self.sums + self.slots) * lanes


def group_need(job: Job, programs: Programs) -> GroupNeed:
    """Slots for the primitive stage, and at least for one pass of a sweep; more passes share what is there."""
    integrals = integrals_of(job.operator, job.bra, job.ket, job.algorithm)
    slots = max(program.slots for program in programs)
    wanted = max(program.slots * min(program.repeat, PASSES_AT_ONCE) for program in programs)
    sums = job.columns * integrals.width + integrals.middle
    return GroupNeed(sum(p.uniforms for p in programs), sums, max(slots, wanted))


def group_lanes(job: Job, need: GroupNeed, real_bytes: int, shared_limit: int) -> tuple[int, int]:
    """Kets per block and bytes of shared memory (0: scratch in global memory)."""
    useful = 1
    while useful < min(job.kets, 32):
        useful *= 2
    for limit in (min(SHARED_TARGET, shared_limit), shared_limit):
        lanes = useful
        while lanes >= 1:
            size = need.numbers(lanes) * real_bytes
            if size <= limit and (lanes >= 4 or limit == shared_limit or lanes == useful):
                return lanes, size
            lanes //= 2
    return min(useful, 4), 0


def table_arguments(job: Job, programs: Programs, put: Callable[[Any], Any]) -> dict[str, Any]:
    """Index tables as kernel arguments, copied with `put`."""
    integrals = integrals_of(job.operator, job.bra, job.ket, job.algorithm)
    real = np.dtype(job.arguments["out"].dtype)
    values: dict[str, Any] = {"width": integrals.width, "bra_functions": integrals.bra_functions}
    for prefix, program in zip(("primitive", "ket", "bra"), programs, strict=True):
        values[f"{prefix}_table"] = put(program.table)
        values[f"{prefix}_constants"] = put(program.constants.astype(real))
    return values


class GroupTables:
    """Index tables on the device, one copy per class."""

    def __init__(self, put: Callable[[Any], Any]) -> None:
        self._put = put
        self._known: dict[Any, dict[str, Any]] = {}

    def __call__(self, job: Job) -> tuple[Programs, dict[str, Any]]:
        programs = programs_of(job.operator, job.bra, job.ket, job.algorithm, levels=True)
        key = (job.operator, job.bra, job.ket, job.algorithm, job.real_name)
        if key not in self._known:
            self._known[key] = table_arguments(job, programs, self._put)
        return programs, self._known[key]


def group_launch(
    job: Job, tables: GroupTables, shared_limit: int, multiprocessors: int, zeros: Any, block: int = GROUP_BLOCK
) -> Launch:
    """A few kets per block, their work shared by its threads, from index tables."""
    programs, arguments = tables(job)
    need = group_need(job, programs)
    real_bytes = np.dtype(job.arguments["out"].dtype).itemsize
    lanes, shared = group_lanes(job, need, real_bytes, shared_limit)
    items = job.bras * -(-job.kets // lanes)
    extra = {**arguments, "lanes": lanes, "slots": need.slots, "scratch": job.arguments["out"], "scratch_stride": 0}
    grid = min(items, 2**31 - 1)
    if shared == 0:
        stride = need.numbers(lanes)
        grid = min(items, 4 * multiprocessors)
        dtype = np.dtype(job.arguments["out"].dtype).type
        extra |= {"scratch": zeros((grid * stride,), dtype), "scratch_stride": stride}
    return Launch(table_source("cuda", job.real_name), grid, block, shared, extra)


def straight_is_right(job: Job) -> bool:
    """Below the unrolling threshold one thread does a whole quartet."""
    return unrolled("cuda", cost_of(job.operator, job.bra, job.ket, job.algorithm))


def worth_compiling(job: Job) -> bool:
    """Is there work enough for a kernel of its own?"""
    cost = cost_of(job.operator, job.bra, job.ket, job.algorithm)
    return job.bras * job.kets * cost.total(job.primitives, job.columns) > WORTH_COMPILING
