"""How classes of Hermite distributions interact on a device: ranges of bras on the CPU, launches on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Protocol

import numpy as np

from cuanto.backends.background import ready
from cuanto.backends.base import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cpu.compiler import Function
from cuanto.kernels.hermite_build import (
    KETS,
    THREADS,
    TILE,
    general_source,
    operations,
    straight_source,
    tuple_table,
    unrolled,
)
from cuanto.kernels.recurrences.boys import MAX_ORDER, boys_table, table_float
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.text import Source

WORTH_COMPILING = 1.0e5
"""Interactions of a class from which a straight-line kernel repays its compilation, now or in later runs: it is about
three times faster than the general one, and compiling takes as long as some 1e7 interactions."""
TASK = 1.0e7
"""Multiply-adds of a task of the CPU: a few milliseconds."""
BLOCKS_PER_MULTIPROCESSOR = 24
"""Blocks of threads to aim at: enough to even out their different lengths."""
SHARED_TARGET = 72_000
"""Bytes of shared memory that let three blocks of the general kernel share a multiprocessor of Hopper or Ampere."""
GENERAL_LANES = 16
"""Kets that a block of the general kernel treats at once, if there is room."""


@dataclass(frozen=True)
class Interactions:
    """Bras of one Hermite order against kets of one order.

    Group g of bras meets the groups of kets from ket_begin[g] to ket_end[g]; the launcher says how long groups are.
    """

    orders: tuple[int, int]
    densities: int
    real: str
    bras: int
    kets: int
    bra_record: Any
    ket_record: Any
    ket_begin: Any
    ket_end: Any

    @property
    def width(self) -> int:
        """Numbers of a bra's potential."""
        return self.densities * hermite_count(self.orders[0])

    @property
    def operations(self) -> int:
        """Multiply-adds of one interaction."""
        return operations(*self.orders, self.densities)

    def straight(self, target: str) -> Source | None:
        """Straight-line code, where it is right for the class and worth its compilation."""
        if not unrolled(target, *self.orders, self.densities) or self.bras * self.kets < WORTH_COMPILING:
            return None
        return straight_source(target, *self.orders, self.densities, self.real)


class Launcher(Protocol):
    """A device's way to run interactions."""

    bra_group: int
    ket_group: int

    def run(self, jobs: Iterable[Interactions]) -> dict[int, Any]:
        """The potentials of the bras by their order (V_kw on the host, V_wk on a GPU); jobs with the same bras add up.

        A job is at work while the next one is made.
        """

    def finish_compiling(self) -> None:
        """Wait for the kernels asked for so far."""


def launcher(backend: Backend, bras: dict[int, int], kets: dict[int, int], reals: Sequence[str]) -> Launcher:
    """The one for a backend; `bras`, `kets`: how many by Hermite order."""
    return CpuLauncher(backend) if isinstance(backend, CpuBackend) else GpuLauncher(backend, bras, kets, reals)


def groups_of_bras(backend: Backend) -> int:
    """Bras that share their range of kets."""
    return CpuLauncher.bra_group if isinstance(backend, CpuBackend) else GpuLauncher.bra_group


def chunks_of_kets(backend: Backend, bras: int, kets: int) -> int:
    """Parts into which a GPU cuts the kets of a job: enough for all multiprocessors, none smaller than a tile."""
    blocks = BLOCKS_PER_MULTIPROCESSOR * getattr(backend, "multiprocessors", 1)
    return min(-(-blocks // -(-bras // THREADS)), -(-kets // TILE))


class CpuLauncher:
    """One bra after the other against vectors of kets; a bra's sum is made by one thread in a fixed order."""

    bra_group = 1
    ket_group = KETS

    def __init__(self, backend: CpuBackend) -> None:
        self.backend = backend
        self.tables = {"double": boys_table(), "float": table_float()}
        self.tuples = tuple_table()
        self._special: dict[Source, Future[Function]] = {}

    def run(self, jobs: Iterable[Interactions]) -> dict[int, Any]:
        """V_kw: all ranges of all jobs in the pool, then the sums."""
        parts: list[tuple[int, Any]] = []

        def calls() -> Iterator[Callable[[], None]]:
            for job in jobs:
                out = np.empty((job.bras, job.width))
                parts.append((job.orders[0], out))
                yield from self._ranges(job, out)

        self.backend.parallel(calls())
        totals: dict[int, Any] = {}
        for order, out in parts:
            totals[order] = totals[order] + out if order in totals else out
        return totals

    def finish_compiling(self) -> None:
        """Wait for the kernels asked for so far."""
        for future in self._special.values():
            future.result()

    def _kernel(self, source: Source) -> Future[Function]:
        if source not in self._special:
            self._special[source] = self.backend.begin(source)
        return self._special[source]

    def _ranges(self, job: Interactions, out: Any) -> Iterator[Callable[[], None]]:
        """Ranges of bras of about equal work; each takes the best kernel there is when it starts."""
        source = job.straight("cpu")
        special = self._kernel(source) if source else None
        general = None if special and ready(special) else self.backend.function(general_source("cpu", job.real))
        arrays: list[Any] = [job.bra_record, job.ket_begin, job.ket_end, job.ket_record, self.tables[job.real], out]
        addresses = [array.ctypes.data for array in arrays]
        extra = [*job.orders, job.densities, self.tuples.ctypes.data]

        def call(begin: int, end: int, alive: Any = arrays) -> None:
            # `alive` keeps the arrays behind the addresses.
            if special is not None and (general is None or ready(special)):
                special.result()(begin, end, *addresses)
            elif general is not None:
                general(begin, end, *addresses, *extra)

        work = np.cumsum((job.ket_end - job.ket_begin) * (float(KETS) * job.operations) + 1000.0)
        tasks = max(1, round(work[-1] / TASK))
        cuts = np.searchsorted(work, work[-1] * np.arange(1, tasks) / tasks)
        for begin, end in zip([0, *cuts], [*cuts, job.bras], strict=True):
            if end > begin:
                yield partial(call, int(begin), int(end))


class GpuLauncher:
    """A bra per thread; the kets of a block of threads are cut into chunks, whose sums are added in a fixed order."""

    bra_group = THREADS
    ket_group = 1

    def __init__(self, backend: Any, bras: dict[int, int], kets: dict[int, int], reals: Sequence[str]) -> None:
        self.backend = backend
        self.tables = {"double": backend.to_device(boys_table()), "float": backend.to_device(table_float())}
        self.tuples = backend.to_device(tuple_table())
        # (orders, number type) -> the job's chunks among those of all jobs with the same bras
        self._chunks: dict[tuple[tuple[int, int], str], slice] = {}
        self._totals: dict[int, int] = {}
        for bra in bras:
            at = 0
            for ket, real in product(kets, reals):
                count = chunks_of_kets(backend, bras[bra], kets[ket])
                self._chunks[(bra, ket), real] = slice(at, at + count)
                at += count
            self._totals[bra] = at

    def run(self, jobs: Iterable[Interactions]) -> dict[int, Any]:
        """V_wk: one launch per job and one sum per class of bras; nothing waits."""
        sums: dict[int, Any] = {}
        for job in jobs:
            order = job.orders[0]
            if order not in sums:
                sums[order] = self.backend.xp.empty((self._totals[order], job.width, job.bras))
            chunks = self._chunks[job.orders, job.real]
            self._launch(job, chunks.stop - chunks.start, sums[order][chunks])
        return {order: sums_cwk.sum(axis=0) for order, sums_cwk in sums.items()}

    def finish_compiling(self) -> None:
        """Wait for the backend's kernels."""
        self.backend.finish_compiling()

    def _launch(self, job: Interactions, chunks: int, out: Any) -> None:
        values = {
            "bras": job.bras,
            "chunks": chunks,
            "bra_record": job.bra_record,
            "ket_begin": job.ket_begin,
            "ket_end": job.ket_end,
            "ket_record": job.ket_record,
            "boys_table": self.tables[job.real],
            "out": out,
        }
        source = job.straight("cuda")
        if source is not None and self.backend.ready(source):
            self.backend.launch(source, -(-job.bras // THREADS) * chunks, THREADS, 0, values)
            return
        lanes, shared = self._general_memory(job)
        values |= {"bra_order": job.orders[0], "ket_order": job.orders[1], "densities": job.densities}
        values |= {"tuples": self.tuples, "lanes": lanes}
        self.backend.launch(general_source("cuda", job.real), job.bras * chunks, THREADS, shared, values)

    def _general_memory(self, job: Interactions) -> tuple[int, int]:
        """Kets at once and bytes of shared memory: sums, Boys function, P - Q, densities, R of two orders."""
        real_bytes = 8 if job.real == "double" else 4
        numbers = MAX_ORDER + 1 + 3 + job.densities * hermite_count(job.orders[1]) + 2 * hermite_count(sum(job.orders))
        size = 8 * job.width + real_bytes * numbers
        lanes = GENERAL_LANES
        while lanes > 1 and lanes * size > SHARED_TARGET:
            lanes //= 2
        return lanes, lanes * size
