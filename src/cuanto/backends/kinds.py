"""Kernels, index tables and shared memory of classes of integrals on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Job
from cuanto.backends.programs import ClassTables, class_cost, class_tables, load_or_make_source, load_source
from cuanto.kernels import md_blocks
from cuanto.kernels.build import unrolled
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import Source

SHARED_TARGET = tuning.size("cuda", "integrals.shared_bytes")
PASSES_AT_ONCE = tuning.size("cuda", "integrals.passes_at_once")
ACCUMULATORS = tuning.size("cuda", "integrals.accumulators")


class Kind:
    """Properties of jobs of one class and number of columns; cached, because a launch takes microseconds."""

    def __init__(self, operator: str, bra: Shells, ket: Shells, algorithm: str, columns: int) -> None:
        self.class_, self.columns = (operator, bra, ket, algorithm), columns
        self._sources: dict[tuple[str, str], Source] = {}
        self.cost = class_cost(*self.class_)
        self.straight = unrolled("cuda", self.cost)
        self.blocks = by_loops(*self.class_) and max(bra.l + ket.l) <= md_blocks.MAX_BLOCK_L

    @cached_property
    def at_once(self) -> int:
        """Contraction columns that a thread sums together: a power of two, so that there are few kernels."""
        columns = 1
        while columns < min(self.columns, 16) and 2 * columns * self.cost.width <= ACCUMULATORS:
            columns *= 2
        return columns

    @cached_property
    def tables(self) -> ClassTables:
        """Index tables of the group schedule."""
        return class_tables(*self.class_, levels=True)

    @cached_property
    def need(self) -> GroupNeed:
        """Storage for the primitive stage and for at least one pass of a sweep."""
        programs = self.tables.programs
        slots = max(program.slots for program in programs)
        wanted = max(program.slots * min(program.repeat, PASSES_AT_ONCE) for program in programs)
        sums = self.columns * self.tables.width + self.tables.middle
        return GroupNeed(sum(p.uniforms for p in programs), sums, max(slots, wanted))

    def source(self, real: str, consumer: str = "store") -> Source:
        """Straight-line kernel with one ket per thread; for a matrix of integrals or a `list` of quartets."""
        known = self._sources.get((real, consumer))
        if known is None:
            known = self._sources[real, consumer] = load_or_make_source(self._spec(real, consumer))
        return known

    def has_source(self, real: str) -> bool:
        """Whether the straight-line kernel for a matrix of integrals has been generated before."""
        key = real, "store"
        if key not in self._sources and (found := load_source(self._spec(*key))) is not None:
            self._sources[key] = found
        return key in self._sources

    def _spec(self, real: str, consumer: str) -> KernelSpec:
        return KernelSpec(*self.class_, "thread", real, self.at_once, consumer=consumer)


_kind = cache(Kind)


def kind_of(job: Job) -> Kind:
    """Properties that a job shares with others of its class and number of columns."""
    return _kind(job.operator, job.bra, job.ket, job.algorithm, job.columns)


@dataclass(frozen=True)
class GroupNeed:
    """How many values the group schedule stores: `uniforms` per block, `sums` and `slots` per ket lane."""

    uniforms: int
    sums: int
    slots: int

    def numbers(self, lanes: int) -> int:
        """How many values a block with this number of lanes stores."""
        return self.uniforms + (self.sums + self.slots) * lanes


def group_lanes(
    job: Job, need: GroupNeed, real_bytes: int, shared_limit: int, multiprocessors: int = 1
) -> tuple[int, int]:
    """Kets per block, few enough to occupy all multiprocessors, and bytes of shared memory (0: use global memory)."""
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


class GroupTables:
    """Index tables on the device, one copy per class; `put` makes the copies."""

    def __init__(self, put: Callable[[Any], Any]) -> None:
        self._put = put
        self._known: dict[Any, dict[str, Any]] = {}

    def __call__(self, job: Job) -> dict[str, Any]:
        """Arguments of the general kernel."""
        tables = kind_of(job).tables  # one object for a class, for as long as the process lives
        return self.once((id(tables), job.real_name), lambda: tables.arguments(job.arguments["out"].dtype))

    def once(self, key: Any, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return cached arguments by key; `make` creates them at the first call, and arrays are copied to the
        device."""
        if key not in self._known:
            created = make().items()
            self._known[key] = {name: self._put(x) if isinstance(x, np.ndarray) else x for name, x in created}
        return self._known[key]
