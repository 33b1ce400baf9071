"""Jobs on the CPU: ranges of bras in a pool of threads (ctypes releases the interpreter lock).

Tiers: the general kernel (index tables) is compiled once and serves every class at once; straight-line kernels of the
classes with real work are compiled politely in the background and take over, mid-job if need be.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

from cuanto.backends import cache
from cuanto.backends.background import Background, ready
from cuanto.backends.base import Job
from cuanto.backends.cpu.compiler import Function, compile_library, library_path, load_function
from cuanto.backends.host import HostMemory
from cuanto.backends.programs import class_cost, class_tables
from cuanto.errors import InputError
from cuanto.kernels.abi import BATCH
from cuanto.kernels.build import straight_source, table_source, unrolled
from cuanto.kernels.schedule.table import Program
from cuanto.kernels.spec import KernelSpec, schedule_name
from cuanto.kernels.text import Source

WORTH_COMPILING = 3.0e6
"""Operations of a job from which a straight-line kernel repays its compilation, if not now then at the next call."""
L1_VALUES = 2048
"""Lane values (of 8 bytes) of a stage that the table kernel may keep in use per vector width: half of a usual L1."""

CACHE_BYTES = 2_000_000
"""Rows of results in work at once: inside a usual L2 or L3, beside the kernels' own values."""

ClassKey = tuple[str, Any, Any, str]


def cores() -> int:
    """$CUANTO_THREADS, or the processors this process may use."""
    if given := os.environ.get("CUANTO_THREADS"):
        if not given.isdecimal() or int(given) < 1:
            raise InputError(f"CUANTO_THREADS={given}: give a positive number of threads")
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class CpuBackend(HostMemory):
    """The system's processor."""

    name = "cpu"

    def __init__(self, threads: int | None = None, schedule: str = "auto") -> None:
        self.threads = threads or cores()
        self.schedule = schedule_name(schedule, "cpu")
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="cuanto")
        self._compilers = Background(min(8, self.threads), "cuanto-compile", finish_running=False)
        self._functions: dict[str, Function] = {}
        self._compiling: dict[ClassKey, Future[Function]] = {}
        self._begun: list[Future[Function]] = []
        self._lock = threading.RLock()

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Ranges of bras in the pool."""
        stop = threading.Event()
        self.parallel((call for jobs in groups for call in self._ranges(jobs, stop)), stop)

    def parallel(self, calls: Iterable[Callable[[], None]], stop: threading.Event | None = None) -> None:
        """All calls in the pool; an error or an interrupt sets `stop` and drops those that have not begun."""
        pending: list[Future[None]] = []
        try:
            for call in calls:
                pending.append(self._pool.submit(call))
            for future in pending:
                future.result()
        except BaseException:
            if stop is not None:
                stop.set()
            for future in pending:
                future.cancel()
            wait(pending)
            raise

    def _ranges(self, jobs: Sequence[Job], stop: threading.Event) -> Iterator[Callable[[], None]]:
        """Cut the bras into ranges; all kets of a range follow each other, while its rows are in the cache."""
        calls = [self._chooser(job) for job in jobs]
        bras, arguments = jobs[0].bras, jobs[0].arguments
        row_bytes = arguments["row_stride"] * arguments["out"].itemsize
        step = max(1, CACHE_BYTES // (row_bytes * arguments["rows"].shape[1]))
        span = step * max(1, bras // (step * 16 * self.threads))
        for begin in range(0, bras, span):
            yield partial(_range, calls, begin, min(begin + span, bras), step, stop)

    def finish_compiling(self) -> None:
        """Wait for the background."""
        for future in list(self._begun):
            future.result()

    def _chooser(self, job: Job) -> Callable[[int, int], None]:
        """A call for a range of bras that takes the best kernel there is at that moment."""
        real = np.dtype(job.arguments["out"].dtype)
        schedule = self._schedule(job)
        special = self._specialised(job, real) if schedule != "table" else None
        # Tables are made when they are needed: not where the special kernel is there already.
        general = schedule != "lane" and not (special and ready(special))
        batch = _batch_values(job)
        fallback = self._table_call(job, real, batch) if general else None

        def call(begin: int, end: int, alive: Job = job) -> None:
            # `alive` keeps the arrays behind the addresses of `batch`.
            if special is not None and (fallback is None or ready(special)):
                special.result()(begin, end, *batch[2:])
            elif fallback is not None:
                fallback(begin, end)

        return call

    def _schedule(self, job: Job) -> str:
        """`lane`, `table`, or `auto`: straight-line code as soon as it is there."""
        if self.schedule != "auto":
            return self.schedule
        cost = class_cost(job.operator, job.bra, job.ket, job.algorithm)
        work = job.bras * job.kets * cost.total(job.primitives, job.columns)
        return "auto" if unrolled("cpu", cost) and work > WORTH_COMPILING else "table"

    def _specialised(self, job: Job, real: np.dtype[Any]) -> Future[Function]:
        """The straight-line kernel of a class, compiled once, in the background."""
        key = (job.operator, job.bra, job.ket, job.algorithm + real.name)
        with self._lock:
            if key not in self._compiling:
                spec = KernelSpec(job.operator, job.bra, job.ket, job.algorithm, "lane", job.real_name)
                self._compiling[key] = self.begin(straight_source(spec))
            return self._compiling[key]

    def begin(self, source: Source) -> Future[Function]:
        """From the cache at once, else from the background."""
        if not cache.complete(library_path(source)):
            begun = self._compilers.submit(lambda: self.function(source, polite=True))
            self._begun.append(begun)
            return begun
        future: Future[Function] = Future()
        future.set_result(self.function(source))
        return future

    def function(self, source: Source, polite: bool = False) -> Function:
        """The compiled function; a library that was made elsewhere and does not load here is made again."""
        if source.hash not in self._functions:
            library = compile_library(source, polite)
            try:
                function = load_function(source, library)
            except OSError:
                library.unlink(missing_ok=True)
                function = load_function(source, compile_library(source, polite))
            self._functions[source.hash] = function
        return self._functions[source.hash]

    def _table_call(self, job: Job, real: np.dtype[Any], batch: list[Any]) -> Callable[[int, int], None]:
        """The general kernel with the tables of the class."""
        function = self.function(table_source("cpu", job.real_name))
        known = class_tables(job.operator, job.bra, job.ket, job.algorithm, levels=False)
        keep = [array for program in known.programs for array in (program.table, program.constants.astype(real))]
        tables = [
            job.arguments["bra_fields"],
            job.arguments["ket_fields"],
            known.width,
            known.bra_functions,
            *map(_address, keep),
        ]
        vectors = _vectors(known.programs[0], known.width * job.columns, job.kets)

        def call(begin: int, end: int, alive: Any = keep) -> None:
            # `alive` keeps the arrays behind the addresses.
            function(begin, end, *batch[2:], *tables, vectors)

        return call


def _range(calls: Sequence[Callable[[int, int], None]], begin: int, end: int, step: int, stop: threading.Event) -> None:
    for first in range(begin, end, step):
        for call in calls:
            if stop.is_set():
                return
            call(first, min(first + step, end))


def _vectors(program: Program, width: int, kets: int) -> int:
    """How many vectors of kets a statement treats at once: more amortise its decoding, fewer stay in the cache."""
    values = program.slots + width
    for vectors in (4, 2):
        if values * vectors * 8 <= 2 * L1_VALUES and kets > 8 * (vectors // 2):
            return vectors
    return 1


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]  # a third of the time that `ctypes.data` takes
    return address


def _batch_values(job: Job) -> list[Any]:
    given = {"bra_begin": 0, "bra_end": 0, **job.arguments}
    return [_address(x) if isinstance(x := given[name], np.ndarray) else x for _, name in BATCH]
