"""Launches of integral jobs on a GPU: kernel, grid, shared memory and arguments.

This module does not import CuPy, because the `simt` backend uses it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Job, Launch, Program
from cuanto.backends.kinds import GroupTables, group_lanes, kind_of
from cuanto.backends.tiers import choose_once, divide, is_worth_waiting, uses_special
from cuanto.kernels import md_blocks
from cuanto.kernels.abi import BLOCK, Arguments
from cuanto.kernels.build import general_source
from cuanto.kernels.spec import BLOCK_SCHEDULES
from cuanto.kernels.text import Source

WORTH_COMPILING = tuning.number("cuda", "integrals.worth_compiling")
"""Operations of a job above which a straight-line kernel is compiled for its class."""
SUMS_TARGET = tuning.size("cuda", "integrals.block_sums_bytes")
"""Bytes of shared memory of a block above which its sums are kept in global memory."""
MAX_GRID = 2**31 - 1
SCRATCH_LIMIT = tuning.size("cuda", "integrals.block_scratch_bytes")
"""Bytes of global memory for the sums of all blocks of a launch."""
_known_casts: dict[str, list[tuple[Callable[[Any], Any] | None, str]]] = {}


def cast_arguments(source: Source, items: int, values: Mapping[str, Any]) -> list[Any]:
    """Put arguments in the kernel's order and cast scalars to its types; `begin` and `end` span all items by
    default."""
    known = {"begin": 0, "end": items, **values}
    casts = _known_casts.get(source.hash) or _known_casts.setdefault(source.hash, _casts(source.arguments))
    return [known[name] if cast is None else cast(known[name]) for cast, name in casts]


def blocks_of(source: Source, items: int) -> int:
    """Number of thread blocks of a launch."""
    return -(-items // source.per_block)


def compiled_first(groups: Iterable[Sequence[Launch]]) -> Iterator[list[Launch]]:
    """The same launches; those that can wait for the compilation of their kernels come last."""
    waiting = list[Launch]()
    for launches in groups:
        now, later = divide(launches, lambda launch: launch.otherwise is None or launch.program.ready)
        waiting += later
        yield now
    if waiting:
        yield waiting


def _casts(arguments: Arguments) -> list[tuple[Callable[[Any], Any] | None, str]]:
    casts: dict[str, Callable[[Any], Any]] = {"INDEX": np.int64, "int": np.int32, "double": np.float64}
    return [(casts.get(kind), name) for kind, name in arguments]


def _block_arguments(job: Job) -> dict[str, Any]:
    """Arguments of the kernels with a block of threads per integral or quartet: momenta, and tables of bra and ket."""
    md_blocks.check(job.operator, job.bra, job.ket)
    K = sum(job.bra.l) + sum(job.ket.l)
    momenta = (*job.bra.l, 0)[:2] + (*job.ket.l, 0)[:2]
    values: dict[str, Any] = dict(zip(("la", "lb", "lc", "ld"), momenta, strict=True))
    values |= {"tuples": md_blocks.tuple_table(K), "room": md_blocks.largest_batch(K)}
    for name, side in (("bra", job.bra), ("ket", job.ket)):
        functions = md_blocks.functions_of(side)
        values[f"{name}_functions"] = functions.count
        values[f"{name}_start"], values[f"{name}_monomial"] = functions.start, functions.monomial
        values[f"{name}_value"] = functions.value.astype(job.arguments["out"].dtype)
    return values


class JobLaunches:
    """Turns jobs into launches: chooses schedule, kernel and shared memory, and copies tables to the device."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._tables = GroupTables(backend.to_device)

    def __call__(self, job: Job) -> Launch:
        """The launch of a job by the kernel that the calculation has chosen for its class."""
        schedule = self._backend.traits.schedule
        # decided before `kind_of(job)`, which may take seconds
        if schedule in BLOCK_SCHEDULES and job.operator == "coulomb" and not job.bra.hermite:
            return self._blocks(job, schedule)
        kind = kind_of(job)
        if schedule == "auto" and kind.blocks:
            return self._blocks(job, "quartet_block")
        work = job.bras * job.kets * kind.cost.total(job.primitives, job.columns)
        worth_compiling = kind.straight and work > self._backend.traits.worth_compiling
        if schedule == "thread" or (schedule == "auto" and worth_compiling):
            wait = is_worth_waiting(
                self._backend, "integrals.worth_waiting", job.calls * work, kind.cost.text_operations
            )
            program = self._straight(job, wait)
            if program is not None and (schedule == "thread" or uses_special(program, wait)):
                items = job.bras * -(-job.kets // BLOCK) * BLOCK
                otherwise = None if schedule == "thread" or program.ready else partial(self._groups, job)
                return Launch(program, items, {**job.arguments, "begin": 0, "end": job.bras}, otherwise=otherwise)
        return self._groups(job)

    def _straight(self, job: Job, wait: bool) -> Program | None:
        """The straight-line kernel of a class. None if its text has not been generated before, and the calculation
        would not `wait` for the kernel: another process makes both."""
        kind, real, required = kind_of(job), job.real_name, self._backend.traits.schedule == "thread"
        if required or choose_once((kind, real), lambda: wait or kind.has_source(real)):
            return self._backend.compile(kind.source(real), later=not (wait or required))
        self._backend.expect_kernel(kind.class_, job.columns, real, "store")
        return None

    def _groups(self, job: Job) -> Launch:
        """Launch the general kernel: the threads of a block share the work of a few kets, following index tables."""
        traits, need, dtype = self._backend.traits, kind_of(job).need, np.dtype(job.arguments["out"].dtype)
        lanes, shared = group_lanes(job, need, dtype.itemsize, traits.shared_limit, traits.workers)
        items = job.bras * -(-job.kets // lanes)
        extra = {
            **self._tables(job),
            "lanes": lanes,
            "slots": need.slots,
            "scratch": job.arguments["out"],
            "scratch_stride": 0,
        }
        grid = min(items, MAX_GRID)
        if shared == 0:
            stride = need.numbers(lanes)
            grid = min(items, 4 * traits.workers)
            extra |= {"scratch": self._backend.zeros((grid * stride,), dtype.type), "scratch_stride": stride}
        source = _general("group", job.real_name, traits.group_threads)
        return Launch(self._backend.compile(source), grid, _arguments(job, extra), shared)

    def _blocks(self, job: Job, schedule: str) -> Launch:
        """Launch a kernel with a block for each contracted integral, or for each contracted quartet of shells."""
        traits = self._backend.traits
        arguments = self._tables.once((job.bra, job.ket, job.real_name), lambda: _block_arguments(job))
        threads = traits.quartet_threads or md_blocks.block_threads(job.bra, job.ket)
        per_integral = schedule == "integral_block"
        need = md_blocks.storage(job.bra, job.ket, job.columns, threads, per_integral)
        dtype = np.dtype(job.arguments["out"].dtype)
        grid = job.bras * job.kets
        if per_integral:
            grid *= job.columns * arguments["bra_functions"] * arguments["ket_functions"]
        grid, shared, scratch, stride = min(grid, MAX_GRID), need.shared + need.sums, job.arguments["out"], 0
        if need.sums and shared * dtype.itemsize > SUMS_TARGET:
            shared, stride = need.shared, need.sums
            grid = min(grid, 4 * traits.workers, max(1, SCRATCH_LIMIT // (stride * dtype.itemsize)))
            scratch = self._backend.zeros((grid * stride,), dtype.type)
        extra = {**arguments, "at_once": need.at_once, "scratch": scratch, "scratch_stride": stride}
        source = _general(schedule, job.real_name, threads)
        return Launch(self._backend.compile(source), grid, _arguments(job, extra), shared * dtype.itemsize)


@cache
def _general(schedule: str, real: str, threads: int) -> Source:
    """The general kernel for a number of threads per block; cached, because hashing its text takes time."""
    return replace(general_source(schedule, real), threads=threads)


def _arguments(job: Job, extra: dict[str, Any]) -> dict[str, Any]:
    return {**job.arguments, "begin": 0, "end": job.bras, **extra}
