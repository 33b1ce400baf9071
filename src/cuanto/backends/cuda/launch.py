"""How a job is launched on a GPU: kernel text, grid, shared memory, arguments. No CuPy here: `simt` uses it as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from cuanto.backends.base import Job
from cuanto.backends.programs import ClassTables, class_cost, class_tables
from cuanto.kernels import md_blocks
from cuanto.kernels.abi import BLOCK, Arguments
from cuanto.kernels.build import block_source, straight_source, table_source, unrolled
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import Source

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
SUMS_TARGET = 48 * 1024
"""Bytes of shared memory up to which a block per quartet keeps its sums there, too."""
SCRATCH_LIMIT = 1 << 29
"""Bytes of sums in global memory that blocks may have together."""


@dataclass(frozen=True)
class Launch:
    """A kernel with everything but the device."""

    source: Source
    grid: int
    block: int
    shared_bytes: int
    extra: dict[str, Any]

    def values(self, job: Job) -> dict[str, Any]:
        """Arguments by name."""
        return {"bra_begin": 0, "bra_end": job.bras, **job.arguments, **self.extra}


def typed(source: Source, values: dict[str, Any]) -> list[Any]:
    """Arguments in order, scalars typed as the kernel declares them."""
    return [values[name] if cast is None else cast(values[name]) for cast, name in _casts(source.arguments)]


@cache
def _casts(arguments: Arguments) -> list[tuple[Callable[[Any], Any] | None, str]]:
    casts: dict[str, Callable[[Any], Any]] = {"INDEX": np.int64, "int": np.int32, "double": np.float64}
    return [(casts.get(kind), name) for kind, name in arguments]


class Kind:
    """What jobs of one class and number of columns have in common: found once, for a launch takes microseconds."""

    def __init__(self, operator: str, bra: Shells, ket: Shells, algorithm: str, columns: int) -> None:
        self._class, self.columns = (operator, bra, ket, algorithm), columns
        self.cost = class_cost(*self._class)
        self.straight = unrolled("cuda", self.cost)
        self.blocks = by_loops(*self._class) and max(bra.l + ket.l) <= md_blocks.MAX_BLOCK_L
        self._sources: dict[str, Source] = {}

    @cached_property
    def at_once(self) -> int:
        """Contraction columns a thread sums together; a power of two, to keep the number of kernels small."""
        columns = 1
        while columns < min(self.columns, 16) and 2 * columns * self.cost.width <= ACCUMULATORS:
            columns *= 2
        return columns

    @cached_property
    def tables(self) -> ClassTables:
        """Of the group schedule."""
        return class_tables(*self._class, levels=True)

    @cached_property
    def need(self) -> GroupNeed:
        """Slots for the primitive stage, and at least for one pass of a sweep; more passes share what is there."""
        programs = self.tables.programs
        slots = max(program.slots for program in programs)
        wanted = max(program.slots * min(program.repeat, PASSES_AT_ONCE) for program in programs)
        sums = self.columns * self.tables.width + self.tables.middle
        return GroupNeed(sum(p.uniforms for p in programs), sums, max(slots, wanted))

    def source(self, real: str) -> Source:
        """Straight-line code, one ket per thread."""
        if real not in self._sources:
            self._sources[real] = straight_source(KernelSpec(*self._class, "thread", real, self.at_once))
        return self._sources[real]


_kind = cache(Kind)


def kind_of(job: Job) -> Kind:
    """Of a job."""
    return _kind(job.operator, job.bra, job.ket, job.algorithm, job.columns)


def columns_at_once(job: Job) -> int:
    """Contraction columns a thread sums together."""
    return kind_of(job).at_once


def thread_launch(job: Job) -> Launch:
    """One ket per thread, straight-line code."""
    items = job.bras * -(-job.kets // BLOCK) * BLOCK
    return Launch(kind_of(job).source(job.real_name), -(-items // THREAD_BLOCK), THREAD_BLOCK, 0, {})


@dataclass(frozen=True)
class GroupNeed:
    """Storage of the group schedule in numbers: per block, and per ket lane (sums, slots)."""

    uniforms: int
    sums: int
    slots: int

    def numbers(self, lanes: int) -> int:
        """All that a block of so many lanes keeps."""
        return self.uniforms + (self.sums + self.slots) * lanes


def group_lanes(
    job: Job, need: GroupNeed, real_bytes: int, shared_limit: int, multiprocessors: int = 1
) -> tuple[int, int]:
    """Kets per block and bytes of shared memory (0: scratch in global memory); a block for every multiprocessor."""
    useful = 1
    while useful < min(job.kets, 32) and job.bras * -(-job.kets // (2 * useful)) >= multiprocessors:
        useful *= 2
    for limit in (min(SHARED_TARGET, shared_limit), shared_limit):
        lanes = useful
        while lanes >= 1:
            size = need.numbers(lanes) * real_bytes
            if size <= limit and (lanes >= 4 or limit == shared_limit or lanes == useful):
                return lanes, size
            lanes //= 2
    return min(useful, 4), 0


def table_arguments(job: Job, tables: ClassTables, put: Callable[[Any], Any]) -> dict[str, Any]:
    """Index tables as kernel arguments, copied with `put`."""
    real = np.dtype(job.arguments["out"].dtype)
    values: dict[str, Any] = {"width": tables.width, "bra_functions": tables.bra_functions}
    for prefix, program in zip(("primitive", "ket", "bra"), tables.programs, strict=True):
        values[f"{prefix}_table"] = put(program.table)
        values[f"{prefix}_constants"] = put(program.constants.astype(real))
    return values


class GroupTables:
    """Index tables on the device, one copy per class."""

    def __init__(self, put: Callable[[Any], Any]) -> None:
        self._put = put
        self._known: dict[Any, dict[str, Any]] = {}

    def __call__(self, job: Job) -> tuple[ClassTables, dict[str, Any]]:
        tables = kind_of(job).tables  # one object for a class, for as long as the process lives
        key = (id(tables), job.real_name)
        if key not in self._known:
            self._known[key] = table_arguments(job, tables, self._put)
        return tables, self._known[key]


def group_launch(
    job: Job, tables: GroupTables, shared_limit: int, multiprocessors: int, zeros: Any, block: int = GROUP_BLOCK
) -> Launch:
    """A few kets per block, their work shared by its threads, from index tables."""
    need, arguments = kind_of(job).need, tables(job)[1]
    real_bytes = np.dtype(job.arguments["out"].dtype).itemsize
    lanes, shared = group_lanes(job, need, real_bytes, shared_limit, multiprocessors)
    items = job.bras * -(-job.kets // lanes)
    extra = {**arguments, "lanes": lanes, "slots": need.slots, "scratch": job.arguments["out"], "scratch_stride": 0}
    grid = min(items, 2**31 - 1)
    if shared == 0:
        stride = need.numbers(lanes)
        grid = min(items, 4 * multiprocessors)
        dtype = np.dtype(job.arguments["out"].dtype).type
        extra |= {"scratch": zeros((grid * stride,), dtype), "scratch_stride": stride}
    return Launch(table_source("cuda", job.real_name), grid, block, shared, extra)


class BlockTables:
    """Tuples and functions of both sides on the device, one copy per class."""

    def __init__(self, put: Callable[[Any], Any]) -> None:
        self._put = put
        self._known: dict[Any, dict[str, Any]] = {}

    def __call__(self, job: Job) -> dict[str, Any]:
        key = (job.bra, job.ket, job.real_name)
        if key not in self._known:
            md_blocks.check(job.operator, job.bra, job.ket)
            self._known[key] = self._arguments(job)
        return self._known[key]

    def _arguments(self, job: Job) -> dict[str, Any]:
        K = sum(job.bra.l) + sum(job.ket.l)
        momenta = (*job.bra.l, 0)[:2] + (*job.ket.l, 0)[:2]
        values: dict[str, Any] = dict(zip(("la", "lb", "lc", "ld"), momenta, strict=True))
        values |= {"tuples": self._put(md_blocks.tuple_table(K)), "room": md_blocks.largest_batch(K)}
        for name, side in (("bra", job.bra), ("ket", job.ket)):
            functions = md_blocks.functions_of(side)
            values[f"{name}_functions"] = functions.count
            values[f"{name}_start"] = self._put(functions.start)
            values[f"{name}_monomial"] = self._put(functions.monomial)
            values[f"{name}_value"] = self._put(functions.value.astype(job.arguments["out"].dtype))
        return values


def block_launch(
    job: Job, schedule: str, tables: BlockTables, multiprocessors: int, zeros: Any, threads: int | None = None
) -> Launch:
    """A block for each contracted integral, or for each contracted quartet of shells."""
    arguments = tables(job)
    threads = threads or md_blocks.block_threads(job.bra, job.ket)
    per_integral = schedule == "integral_block"
    need = md_blocks.storage(job.bra, job.ket, job.columns, threads, per_integral)
    dtype = np.dtype(job.arguments["out"].dtype)
    grid = job.bras * job.kets
    if per_integral:
        grid *= job.columns * arguments["bra_functions"] * arguments["ket_functions"]
    grid, shared, scratch, stride = min(grid, 2**31 - 1), need.shared + need.sums, job.arguments["out"], 0
    if need.sums and shared * dtype.itemsize > SUMS_TARGET:
        shared, stride = need.shared, need.sums
        grid = min(grid, 4 * multiprocessors, max(1, SCRATCH_LIMIT // (stride * dtype.itemsize)))
        scratch = zeros((grid * stride,), dtype.type)
    extra = {**arguments, "at_once": need.at_once, "scratch": scratch, "scratch_stride": stride}
    return Launch(block_source(schedule, job.real_name), grid, threads, shared * dtype.itemsize, extra)


def blocks_are_right(job: Job) -> bool:
    """McMurchie-Davidson between pairs of high momenta: a block per quartet needs no tables, and theirs are huge."""
    return kind_of(job).blocks


def straight_is_right(job: Job) -> bool:
    """Below the unrolling threshold one thread does a whole quartet."""
    return kind_of(job).straight


def worth_compiling(job: Job) -> bool:
    """Is there work enough for a kernel of its own?"""
    return job.bras * job.kets * kind_of(job).cost.total(job.primitives, job.columns) > WORTH_COMPILING
