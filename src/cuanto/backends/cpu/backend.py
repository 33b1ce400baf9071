"""The CPU: kernels compiled by the system's C++ compiler, run by a pool of native threads.

Tiers: the general kernel (index tables) is compiled once and can compute every class; straight-line kernels of classes
with much work are compiled in the background at low priority, unless a calculation waits for them (`backends.tiers`).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends import blas, cache
from cuanto.backends.background import LATER, NEEDED, Background, failed, ready
from cuanto.backends.base import Class, Job, Launch, Linalg, Program, Traits, get_backend
from cuanto.backends.communicator import Communicator, SingleRank
from cuanto.backends.cpu.calls import Packing, address, items_entry, merge_entry
from cuanto.backends.cpu.compiler import Patience, library_path, load_library
from cuanto.backends.cpu.pool import CHUNKS, CHUNKS_PER_THREAD, NativeLaunch, Pool, Variant, load_pool
from cuanto.backends.host import main_memory
from cuanto.backends.host_linalg import HostLinalg
from cuanto.backends.programs import class_cost, class_tables
from cuanto.backends.texts import finish_texts
from cuanto.backends.tiers import divide, finish, fixed_kernels, is_worth_waiting, uses_special
from cuanto.errors import InputError
from cuanto.kernels.build import general_source, source_of, unrolled
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.schedule.table import Program as Tables
from cuanto.kernels.spec import KernelSpec, schedule_name
from cuanto.kernels.text import Source
from cuanto.workers import usable_cores

WORTH_COMPILING = tuning.number("cpu", "integrals.worth_compiling")
L1_VALUES = tuning.size("cpu", "integrals.l1_values")
CACHE_BYTES = tuning.size("cpu", "integrals.cache_bytes")
PORTION_BYTES = tuning.size("cpu", "integrals.portion_bytes")
COMPILERS = 8
"""Largest number of compilations at the same time."""


def cores() -> int:
    """$CUANTO_THREADS, or the number of processors available to this process."""
    if given := os.environ.get("CUANTO_THREADS"):
        if not given.isdecimal() or int(given) < 1:
            raise InputError(f"CUANTO_THREADS={given}: give a positive number of threads")
        return int(given)
    return usable_cores()


class CpuProgram:
    """A kernel on the CPU."""

    def __init__(self, source: Source, compilers: Background, patience: Patience | None) -> None:
        """With `patience` it is compiled at the lowest priority until somebody waits for it."""
        self.source, self._compilers, self._patience = source, compilers, patience
        self._library = self._request()
        self._pack = Packing(source.arguments)
        self.uses_blas = "blas" in self._pack.names

    @property
    def ready(self) -> bool:
        """Whether it has been compiled."""
        return ready(self._library)

    @property
    def failed(self) -> bool:
        """Whether the compiler reported an error."""
        return failed(self._library)

    def _request(self) -> Future[ctypes.CDLL]:
        """The library, loaded if it is in the cache."""
        if not cache.complete(library_path(self.source)):
            priority = NEEDED if self._patience is None else LATER
            return self._compilers.submit(partial(load_library, self.source, self._patience), priority)
        loaded: Future[ctypes.CDLL] = Future()
        loaded.set_result(load_library(self.source))
        return loaded

    def hurry(self) -> None:
        """Compile it at the usual priority from now on."""
        if self._patience is not None:
            self._patience.end()

    def wait(self) -> None:
        """Wait until it is compiled."""
        self._loaded()

    def _loaded(self) -> ctypes.CDLL:
        """The library; compiled in this thread if it is still queued."""
        self.hurry()
        return self._compilers.result(self._library, partial(load_library, self.source))

    @cached_property
    def entry(self) -> int:
        """Address of the kernel's own function, for kernels that call it."""
        return self._address(self.source.entry)

    @cached_property
    def items(self) -> int:
        """Address of the entry point that the pool calls."""
        return self._address(items_entry(self.source))

    @cached_property
    def merge(self) -> int:
        """Address of the source's merge function, 0 if it has none."""
        return self._address(merge_entry(self.source)) if self.source.merge else 0

    def variant(self, arguments: Mapping[str, Any]) -> Variant:
        """The kernel with these arguments."""
        if self.uses_blas:
            arguments = {**arguments, "blas": ctypes.addressof(blas.products())}
        return Variant(self.items, self._pack(arguments), arguments)

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._loaded(), name), ctypes.c_void_p).value or 0


Choice = tuple[Job, CpuProgram | None]
"""A job with its specialised kernel; None: the general kernel is used."""


class CpuBackend:
    """The system's processor; its arrays are NumPy's, so that nothing has to be copied."""

    name = "cpu"
    xp: Any = np

    def __init__(self, threads: int | None = None, schedule: str = "auto") -> None:
        self.threads = threads or cores()
        compilers = min(COMPILERS, self.threads)
        name, factor = schedule_name(schedule, "cpu"), self.threads / compilers
        self.traits = Traits("cpu", name, True, self.threads, WORTH_COMPILING, waiting_factor=factor)
        self.pool = Pool(self.threads)
        self.linalg: Linalg = HostLinalg(self)
        self.communicator: Communicator = SingleRank()
        self._compilers = Background(compilers, "cuanto-compile", finish_running=False)
        self._programs: dict[str, CpuProgram] = {}
        self._lock = threading.RLock()

    # ---- memory -------------------------------------------------------------------------------------------

    def to_device(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself, contiguous."""
        return np.ascontiguousarray(array)

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """The arrays themselves, contiguous."""
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return array

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """The arrays themselves."""
        return list(arrays)

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """Zeroed memory, whose pages the operating system clears when they are first touched."""
        return np.zeros(shape, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name: threads and compiled kernels belong to a process."""
        return get_backend, (self.name,)

    def memory(self) -> tuple[int, int]:
        """Free and total main memory."""
        return main_memory()

    def release_memory(self) -> None:
        """Let the C library give back what it keeps of freed memory, if it can (glibc)."""
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)

    def memory_errors(self) -> AbstractContextManager[None]:
        """No effect: NumPy and our threads raise `MemoryError`."""
        return nullcontext()

    def address(self, target: Any) -> int:
        """Address of an array, or of the code of a kernel, once it is compiled."""
        return target.entry if isinstance(target, CpuProgram) else address(target)

    # ---- compilation --------------------------------------------------------------------------------------

    def compile(self, source: Source, later: bool = False) -> CpuProgram:
        """Load it from the cache or compile it in the background, at low priority if it is needed `later`.

        Compiling is tried again if it failed: the disk may have been full.
        """
        with self._lock:
            known = self._programs.get(source.hash)
            if known is None or (known.failed and not later):
                if not self._programs and not cache.complete(library_path(source)):
                    self._compilers.submit(load_pool)  # the pool is needed as well
                patience = Patience.begin() if later else None
                self._programs[source.hash] = CpuProgram(source, self._compilers, patience)
            elif not later:
                known.hurry()
            return self._programs[source.hash]

    def expect(self, classes: Sequence[Class]) -> None:
        """No effect: the cores have other work."""

    def expect_kernel(self, given: Class, columns: int, real: str, consumer: str) -> None:
        """No effect: texts are generated where they are needed."""

    def finish_compiling(self) -> None:
        """Wait for background compilations."""
        finish_texts(self)
        programs = list(self._programs.values())
        for program in programs:
            program.hurry()
        for program in programs:
            program.wait()

    # ---- launches -----------------------------------------------------------------------------------------

    def launch(self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0) -> None:
        """Run a kernel by one native call."""
        self.launch_all([Launch(program, items, arguments, scratch)])

    def launch_all(self, launches: Sequence[Launch]) -> None:
        """Run all kernels by one native call, and then those that had to be compiled, as they become ready."""
        waiting = [launch for launch in launches if launch.items]
        while waiting:
            now, waiting = divide(waiting, lambda launch: launch.otherwise is None or _is_done(launch.program))
            self._run_all([_compiled(launch) for launch in now])
            if waiting:
                finish(waiting[0].program)

    def _run_all(self, launches: Sequence[Launch]) -> None:
        native = [self._native(launch) for launch in launches]
        with blas.threads(1) if any(self.compile(x.program.source).uses_blas for x in launches) else nullcontext():
            self.pool.run(native)

    def _native(self, launch: Launch) -> NativeLaunch:
        """Convert a launch for the pool; chunks depend on the number of threads only if nothing is summed."""
        program, grain = self.compile(launch.program.source), launch.grain
        if not grain:
            grain = -(-launch.items // (CHUNKS if launch.sums else CHUNKS_PER_THREAD * self.threads))
        target = launch.arguments[launch.sums] if launch.sums else None
        sums = 0 if target is None else launch.sums_size or target.size
        return NativeLaunch(
            (program.variant(launch.arguments),),
            launch.items,
            grain,
            launch.scratch,
            sums,
            0 if target is None else address(target),
            program.merge if launch.sums else 0,
        )

    def synchronize(self) -> None:
        """Launches are complete when they return."""

    # ---- batches of integrals -----------------------------------------------------------------------------

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run all kets of a few bras at a time, while the result rows of these bras are in the cache."""
        portion, size = list[Sequence[Job]](), 0
        with fixed_kernels():
            for jobs in groups:
                portion.append(jobs)
                size += sum(getattr(value, "nbytes", 0) for value in jobs[0].arguments.values())
                size -= jobs[0].arguments["out"].nbytes
                if size > PORTION_BYTES:
                    self._run_portion(portion)
                    portion, size = [], 0
            self._run_portion(portion)

    def _run_portion(self, groups: Sequence[Sequence[Job]]) -> None:
        """Run jobs whose kernels are compiled, then the others as their kernels become ready."""
        work = defaultdict[Class, float](float)
        for job in chain.from_iterable(groups if self.traits.schedule == "auto" else ()):
            work[_class(job)] += job.bras * job.kets * class_cost(*_class(job)).total(job.primitives, job.columns)
        waiting = [[(job, self._special(job, work[_class(job)])) for job in jobs] for jobs in groups]
        while waiting:
            parts = [divide(jobs, lambda choice: choice[1] is None or _is_done(choice[1])) for jobs in waiting]
            waiting = [later for _, later in parts if later]
            self.pool.run([self._batch(now) for now, _ in parts if now])
            if waiting and (special := waiting[0][0][1]) is not None:
                finish(special)

    def _batch(self, jobs: Sequence[Choice]) -> NativeLaunch:
        """Jobs of the same bras with their specialised kernels, or by the general one."""
        first = jobs[0][0]
        row_bytes = first.arguments["row_stride"] * first.arguments["out"].itemsize
        grain = max(1, CACHE_BYTES // (row_bytes * first.arguments["rows"].shape[1]))
        required = self.traits.schedule == "lane"  # its errors are raised
        variants = [
            special.variant(job.arguments) if special and (required or not special.failed) else self._general(job)
            for job, special in jobs
        ]
        return NativeLaunch(variants, first.bras, grain)

    def _special(self, job: Job, work: float) -> CpuProgram | None:
        """The straight-line kernel of a job whose class has so much `work`, None if the general one is used."""
        if self.traits.schedule != "auto":
            return self._straight_line(job, later=False) if self.traits.schedule == "lane" else None
        cost = class_cost(*_class(job))
        if not unrolled("cpu", cost) or work <= WORTH_COMPILING:
            return None
        wait = is_worth_waiting(self, "integrals.worth_waiting", job.calls * work, cost.text_operations)
        program = self._straight_line(job, later=not wait)
        return program if uses_special(program, wait) else None

    def _straight_line(self, job: Job, later: bool) -> CpuProgram:
        """The straight-line kernel of a class, compiled in the background."""
        spec = KernelSpec(job.operator, job.bra, job.ket, job.algorithm, "lane", job.real_name)
        return self.compile(source_of(spec), later)

    def _general(self, job: Job) -> Variant:
        """The general kernel with the tables of the class."""
        class_ = _class(job)
        known = class_tables(*class_, levels=False)
        tables = known.arguments(job.arguments["out"].dtype)
        tables["vectors"] = _vectors(known.programs[0], known.width * job.columns, job.kets)
        source = general_source("table", job.real_name, loops=by_loops(*class_))
        return self.compile(source).variant({**job.arguments, **tables})


def _class(job: Job) -> Class:
    return job.operator, job.bra, job.ket, job.algorithm


def _is_done(program: Program) -> bool:
    """Whether a compilation has ended, with or without success."""
    return program.ready or program.failed


def _compiled(launch: Launch) -> Launch:
    """The launch, or its replacement if its kernel could not be compiled."""
    return launch.otherwise() if launch.otherwise is not None and launch.program.failed else launch


def _vectors(program: Tables, width: int, kets: int) -> int:
    """Vectors of kets per statement: four reduce the cost of decoding, one stays in the cache."""
    return 4 if 4 * 8 * (program.slots + width) <= 2 * L1_VALUES and kets > 16 else 1
