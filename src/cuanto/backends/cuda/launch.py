"""How a job is launched on a GPU: kernel text, grid, shared memory, arguments. No CuPy here: `simt` uses it as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np

from cuanto.backends.base import Job, Launch, Program
from cuanto.backends.programs import ClassTables, class_cost, class_tables
from cuanto.kernels import md_blocks
from cuanto.kernels.abi import BLOCK, Arguments
from cuanto.kernels.build import block_source, straight_source, table_source, unrolled
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.spec import BLOCK_SCHEDULES, KernelSpec, Shells
from cuanto.kernels.text import Source

THREAD_BLOCK = 128
GROUP_THREADS = 256
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
LARGEST_GRID = 2**31 - 1
SCRATCH_LIMIT = 1 << 29
"""Bytes of sums in global memory that blocks may have together."""


def typed(source: Source, items: int, values: Mapping[str, Any]) -> list[Any]:
    """Arguments in order, scalars typed as the kernel declares them; `begin` and `end` are those of all items."""
    known = {"begin": 0, "end": items, **values}
    return [known[name] if cast is None else cast(known[name]) for cast, name in _casts(source.arguments)]


def blocks_of(source: Source, items: int) -> int:
    """Blocks of threads of a launch."""
    return -(-items // source.per_block)


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


def thread_source(job: Job) -> Source:
    """One ket per thread, straight-line code."""
    return replace(kind_of(job).source(job.real_name), threads=THREAD_BLOCK, per_block=THREAD_BLOCK)


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


class Device(Protocol):
    """What decides how jobs are launched; `threads` of a group of the general kernel, and of a quartet (0: by class).

    `worth_compiling`: operations of a job from which a straight-line kernel repays its compilation.
    """

    schedule: str
    shared_limit: int
    multiprocessors: int
    group_threads: int
    quartet_threads: int
    worth_compiling: float

    def compile(self, source: Source) -> Program: ...

    def to_device(self, array: Any) -> Any: ...

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any: ...


class JobLaunches:
    """Turns jobs into launches: the schedule, the kernel, its shared memory, its tables on the device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._tables = GroupTables(device.to_device)
        self._block_tables = BlockTables(device.to_device)

    def __call__(self, job: Job) -> Launch:
        """With the best kernel there is now."""
        kind, wanted = kind_of(job), self._device.schedule
        schedule = "quartet_block" if wanted == "auto" and kind.blocks else wanted
        if schedule == "thread" or (schedule == "auto" and kind.straight and self._pays(job)):
            program = self._device.compile(thread_source(job))
            if schedule == "thread" or program.ready:
                items = job.bras * -(-job.kets // BLOCK) * BLOCK
                return Launch(program, items, {**job.arguments, "begin": 0, "end": job.bras})
        if schedule in BLOCK_SCHEDULES and job.operator == "coulomb":
            return self._blocks(job, schedule)
        return self._groups(job)

    def _pays(self, job: Job) -> bool:
        work = job.bras * job.kets * kind_of(job).cost.total(job.primitives, job.columns)
        return work > self._device.worth_compiling

    def _groups(self, job: Job) -> Launch:
        """A few kets per block, their work shared by its threads, from index tables."""
        device, need, (_, arguments) = self._device, kind_of(job).need, self._tables(job)
        dtype = np.dtype(job.arguments["out"].dtype)
        lanes, shared = group_lanes(job, need, dtype.itemsize, device.shared_limit, device.multiprocessors)
        items = job.bras * -(-job.kets // lanes)
        extra = {**arguments, "lanes": lanes, "slots": need.slots, "scratch": job.arguments["out"], "scratch_stride": 0}
        grid = min(items, LARGEST_GRID)
        if shared == 0:
            stride = need.numbers(lanes)
            grid = min(items, 4 * device.multiprocessors)
            extra |= {"scratch": device.zeros((grid * stride,), dtype.type), "scratch_stride": stride}
        source = replace(table_source("cuda", job.real_name), threads=device.group_threads)
        return Launch(device.compile(source), grid, _arguments(job, extra), shared)

    def _blocks(self, job: Job, schedule: str) -> Launch:
        """A block for each contracted integral, or for each contracted quartet of shells."""
        device, arguments = self._device, self._block_tables(job)
        threads = device.quartet_threads or md_blocks.block_threads(job.bra, job.ket)
        per_integral = schedule == "integral_block"
        need = md_blocks.storage(job.bra, job.ket, job.columns, threads, per_integral)
        dtype = np.dtype(job.arguments["out"].dtype)
        grid = job.bras * job.kets
        if per_integral:
            grid *= job.columns * arguments["bra_functions"] * arguments["ket_functions"]
        grid, shared, scratch, stride = min(grid, LARGEST_GRID), need.shared + need.sums, job.arguments["out"], 0
        if need.sums and shared * dtype.itemsize > SUMS_TARGET:
            shared, stride = need.shared, need.sums
            grid = min(grid, 4 * device.multiprocessors, max(1, SCRATCH_LIMIT // (stride * dtype.itemsize)))
            scratch = device.zeros((grid * stride,), dtype.type)
        extra = {**arguments, "at_once": need.at_once, "scratch": scratch, "scratch_stride": stride}
        source = replace(block_source(schedule, job.real_name), threads=threads)
        return Launch(device.compile(source), grid, _arguments(job, extra), shared * dtype.itemsize)


def _arguments(job: Job, extra: dict[str, Any]) -> dict[str, Any]:
    return {**job.arguments, "begin": 0, "end": job.bras, **extra}


straight_is_right = None  # TEMPORARY
GROUP_BLOCK = GROUP_THREADS
worth_compiling = columns_at_once = None  # TEMPORARY
