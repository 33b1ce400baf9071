"""The choice of a kernel for the integrals of a list of quartets on a GPU.

Straight-line kernels, with one thread per quartet, are used for classes of low momenta if they are compiled when a
calculation first needs them, or worth waiting for (`backends.tiers`), unless quartets have many primitives, which a
single thread would have to sum. Otherwise one kernel for all classes, with a block of threads per quartet, is used
(`kernels/md_list.py`). It needs the Hermite expansions of all primitives; where these do not fit into memory, index
tables are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Class, Job, Program, real_name
from cuanto.backends.kinds import GroupTables, group_lanes, kind_of
from cuanto.backends.programs import is_cached
from cuanto.backends.tiers import ITERATIONS, choose_once, finish, is_worth_waiting, uses_special
from cuanto.coulomb.pair_classes import DevicePairs, PairClass
from cuanto.kernels import md_list
from cuanto.kernels.abi import BLOCK
from cuanto.kernels.build import LIST_THREADS, choose_algorithm, general_source
from cuanto.kernels.direct import cuda_expand
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.spec import coulomb_operator
from cuanto.kernels.text import Source

BLOCKS_PER_PROCESSOR = tuning.size("cuda", "direct.blocks_per_processor")
SERIAL_OPERATIONS = tuning.number("cuda", "direct.serial_operations")
STATIC_SHARED = 64
"""Bytes of static shared memory of the general kernel."""
EXPANSION_BYTES = tuning.size("cuda", "direct.expansion_bytes")
SIMPLE = 4
"""Largest sum of the angular momenta of a class whose cost and kernel text take only milliseconds to compute."""


@dataclass(frozen=True)
class ListLaunch:
    """A kernel for lists: blocks of threads, bytes of shared memory, further arguments, and scratch memory.

    `pad`: number of consecutive items of the list that share their bra. `scratch`: size in numbers, in global memory.
    """

    program: Program
    blocks: int
    shared: int
    arguments: dict[str, Any]
    pad: int = 1
    scratch: int = 0


@dataclass(frozen=True)
class Choice:
    """The kernel for the quartets of two classes of pairs, whichever of these quartets are in a list.

    `job`: description of the classes; `key`: the same for equal classes; `straight`: straight-line kernel, None to use
    the general one; `wait`: wait until it is compiled.
    """

    job: Job
    key: tuple[Any, ...]
    straight: Program | None
    wait: bool


class ListKernels:
    """Chooses kernels for lists of quartets in numbers of one type.

    `algorithm`: that of straight-line kernels; `room`: bytes for Hermite expansions.
    """

    def __init__(self, backend: Backend, algorithm: str, real: np.dtype[Any], room: int = EXPANSION_BYTES) -> None:
        self.backend, self.algorithm, self.real, self.room = backend, algorithm, real, room
        self.name = real_name(real)
        self._tables = GroupTables(backend.to_device)
        self._choices: dict[tuple[PairClass, PairClass], Choice] = {}
        self._straight: dict[Any, tuple[Program | None, bool]] = {}
        self._general: dict[Any, ListLaunch] = {}
        self.expanded = 0
        """Bytes of the Hermite expansions made so far."""

    @staticmethod
    def general(backend: Backend, real: str) -> tuple[Source, ...]:
        """The kernels for all classes."""
        if backend.traits.schedule == "group":
            return (_group_source(backend, real),)
        return general_source("quartet_block", real, "list"), cuda_expand(real)

    def __call__(self, bra: DevicePairs, ket: DevicePairs, items: int, general: bool = False) -> ListLaunch:
        """The launch for at most `items` quartets; by the `general` kernel even if the class has another one."""
        choice, schedule = self._choose(bra.host, ket.host), self.backend.traits.schedule
        straight = choice.straight
        if straight is not None and (schedule == "thread" or (not general and _is_used(straight, choice.wait))):
            return ListLaunch(straight, blocks_for(self.backend, items, LIST_THREADS), 0, {})
        if schedule == "group" or not (self._expand(bra, "bra") and self._expand(ket, "ket")):
            return self._groups(choice.job, items)
        if choice.key not in self._general:
            self._general[choice.key] = self._blocks(choice.job, ket.host.longest_ket)
        blocks, launch = blocks_for(self.backend, items, 1), self._general[choice.key]
        arguments = {**launch.arguments, "bra_expansion": bra.expansions["bra"]}
        arguments["ket_expansion"] = ket.expansions["ket"]
        return replace(launch, blocks=blocks, arguments=arguments, scratch=blocks * arguments["scratch_stride"])

    def request(self, pairs: Sequence[PairClass]) -> None:
        """Start compiling the kernels of all combinations of pairs."""
        for y, ket in enumerate(pairs):
            for bra in pairs[: y + 1]:
                self._choose(bra, ket)

    def _choose(self, bra: PairClass, ket: PairClass) -> Choice:
        """The choice for two pairs, which is made once."""
        if (known := self._choices.get((bra, ket))) is not None:
            return known
        job, longest = self._job(bra, ket), (bra.longest_bra, ket.longest_ket)
        key = (job.bra, job.ket, job.algorithm, job.columns, job.bras, job.kets, *longest)
        if key not in self._straight:
            self._straight[key] = self._straight_program(job, *longest)
        choice = self._choices[bra, ket] = Choice(job, key, *self._straight[key])
        return choice

    def forget(self) -> None:
        """Let go of all pairs; their expansions have been freed with them."""
        self._choices.clear()
        self.expanded = 0

    def classes(self, pairs: Sequence[PairClass]) -> Iterator[Class]:
        """The classes of all combinations of pairs."""
        for y, ket in enumerate(pairs):
            for bra in pairs[: y + 1]:
                job = self._job(bra, ket)
                yield job.operator, job.bra, job.ket, job.algorithm

    def _job(self, bra: PairClass, ket: PairClass) -> Job:
        """Description of the classes and counts, from which a kernel is chosen."""
        shells = bra.bra.shells, ket.bra.shells
        primitives = len(bra.bra.record) / bra.bra.count * ket.ket.primitives
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = choose_algorithm("cuda", "coulomb", *shells, primitives)
        out = {"out": np.empty(0, dtype=self.real)}
        operator = coulomb_operator(bra.bra.attenuated, algorithm)
        return Job(operator, *shells, algorithm, bra.columns, bra.bra.count, ket.ket.count, primitives, out)

    def _straight_program(self, job: Job, longest_bra: int, longest_ket: int) -> tuple[Program | None, bool]:
        """A straight-line kernel if it is the fastest and its text takes little time, and whether to wait for it."""
        schedule, wait = self.backend.traits.schedule, False
        if schedule not in ("auto", "thread"):
            return None, False
        if schedule == "auto":
            class_ = (job.operator, job.bra, job.ket, job.algorithm)
            simple = sum(job.bra.l) + sum(job.ket.l) <= SIMPLE
            if not (simple or choose_once(("cost", class_), lambda: is_cached(*class_, levels=True))):
                self.backend.expect_kernel(class_, job.columns, self.name, "list")
                return None, False
            cost, at_once = kind_of(job).cost, kind_of(job).at_once
            serial = cost.total(longest_bra * longest_ket) * -(-job.columns // at_once)
            work = job.bras * job.kets * cost.total(job.primitives, job.columns)
            if not kind_of(job).straight or serial > SERIAL_OPERATIONS or work < self.backend.traits.worth_compiling:
                return None, False
            wait = is_worth_waiting(self.backend, "integrals.worth_waiting", ITERATIONS * work, cost.text_operations)
        return self.backend.compile(kind_of(job).source(self.name, "list"), later=not wait), wait

    def _blocks(self, job: Job, longest: int) -> ListLaunch:
        """The launch of the general kernel, with a block of threads for each quartet."""
        traits, size = self.backend.traits, self.real.itemsize
        block = md_list.block_of(job.bra, job.ket, job.columns, longest, size, traits.shared_limit)
        tables = self._tables.once((job.bra, job.ket), lambda: md_list.list_arguments(job.bra, job.ket))
        program = self.backend.compile(_block_source(self.name, traits.quartet_threads or block.threads))
        sizes = {name: getattr(block, name) for name in ("batch", "ahead", "stage", "groups", "pitch")}
        return ListLaunch(program, 0, block.numbers * size, {**tables, **sizes, "scratch_stride": block.sums})

    def _expand(self, pairs: DevicePairs, side: str) -> bool:
        """Make the Hermite expansions of all primitives, as bras or as kets; returns whether they fit into memory."""
        if side in pairs.expansions:
            return True
        shells, is_ket = pairs.host.bra.shells, side == "ket"
        record, lanes = (pairs.ket["ket_record"], BLOCK) if is_ket else (pairs.bra["bra_record"], 1)
        fields = pairs.ket["ket_fields"] if is_ket else pairs.bra["bra_fields"]
        functions = prod(pairs.host.functions)
        width = md_list.padded_width(functions) if is_ket else functions
        primitives = record.size // fields
        numbers = primitives * hermite_count(sum(shells.l)) * width
        if self.expanded + numbers * self.real.itemsize > self.room:
            return False
        self.expanded += numbers * self.real.itemsize
        out = self.backend.xp.empty(numbers, dtype=self.real)
        tables = self._tables.once(shells, lambda: md_list.expand_arguments(shells, self.real))
        values = {
            **tables,
            "ket": int(is_ket),
            "primitives": primitives,
            "record": record,
            "fields": fields,
            "lanes": lanes,
            "width": width,
            "out": out,
        }
        memory = md_list.expand_memory(shells) * self.real.itemsize
        program = self.backend.compile(cuda_expand(self.name))
        self.backend.launch(program, blocks_for(self.backend, primitives, 1), values, memory)
        pairs.expansions[side] = out
        return True

    def _groups(self, job: Job, items: int) -> ListLaunch:
        """The launch of the kernel with index tables, with a few kets of one bra for each block of threads."""
        kind = kind_of(job)
        lanes, shared = group_lanes(
            job, kind.need, self.real.itemsize, self.backend.traits.shared_limit - STATIC_SHARED
        )
        blocks = blocks_for(self.backend, items // lanes + 1, 1)
        stride = 0 if shared else kind.need.numbers(lanes)
        sizes = {"lanes": lanes, "slots": kind.need.slots, "scratch_stride": stride}
        program = self.backend.compile(_group_source(self.backend, self.name))
        return ListLaunch(program, blocks, shared, {**self._tables(job), **sizes}, lanes, max(1, blocks * stride))


def _is_used(straight: Program, wait: bool) -> bool:
    """Whether the calculation uses a straight-line kernel; waits for it if necessary."""
    if not uses_special(straight, wait):
        return False
    if not straight.ready:
        finish(straight)
    return not straight.failed


@cache
def _block_source(real: str, threads: int) -> Source:
    """The general kernel for a number of threads per block; cached, because hashing its text takes time."""
    return replace(general_source("quartet_block", real, "list"), threads=threads)


def _group_source(backend: Backend, real: str) -> Source:
    return replace(general_source("group", real, "list"), threads=backend.traits.group_threads)


def blocks_for(backend: Backend, items: int, block: int) -> int:
    """Blocks of threads that keep all multiprocessors busy."""
    return max(1, min(-(-items // block), BLOCKS_PER_PROCESSOR * backend.traits.workers))
