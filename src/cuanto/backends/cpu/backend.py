"""The CPU: kernels compiled by the system's C++ compiler, run by a pool of native threads.

Tiers: the general kernel (index tables) is compiled once and can compute every class; straight-line kernels of classes
with much work are compiled in the background at low priority and take over when ready, even in the middle of a launch.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends import blas, cache
from cuanto.backends.background import LATER, NEEDED, Background, ready
from cuanto.backends.base import Class, Job, Launch, Linalg, Program, Traits, get_backend, when_ready
from cuanto.backends.communicator import Communicator, SingleRank
from cuanto.backends.cpu.calls import Packing, address, items_entry, merge_entry
from cuanto.backends.cpu.compiler import Patience, library_path, load_library
from cuanto.backends.cpu.pool import CHUNKS, CHUNKS_PER_THREAD, NativeLaunch, Pool, Variant, load_pool
from cuanto.backends.host import main_memory
from cuanto.backends.linalg import HostLinalg
from cuanto.backends.programs import class_cost, class_tables
from cuanto.backends.texts import finish_texts
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


class CpuBackend:
    """The system's processor; its arrays are NumPy's, so that nothing has to be copied."""

    name = "cpu"
    xp: Any = np

    def __init__(self, threads: int | None = None, schedule: str = "auto") -> None:
        self.threads = threads or cores()
        self.traits = Traits("cpu", schedule_name(schedule, "cpu"), True, self.threads, WORTH_COMPILING)
        self.pool = Pool(self.threads)
        self.linalg: Linalg = HostLinalg(self)
        self.communicator: Communicator = SingleRank()
        self._compilers = Background(min(8, self.threads), "cuanto-compile", finish_running=False)
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
        """No effect: memory is not kept."""

    def memory_errors(self) -> AbstractContextManager[None]:
        """No effect: NumPy and our threads raise `MemoryError`."""
        return nullcontext()

    def address(self, target: Any) -> int:
        """Address of an array, or of the code of a kernel, once it is compiled."""
        return target.entry if isinstance(target, CpuProgram) else address(target)

    # ---- compilation --------------------------------------------------------------------------------------

    def compile(self, source: Source, later: bool = False) -> CpuProgram:
        """Load it from the cache or compile it in the background, at low priority if it is needed `later`."""
        with self._lock:
            if source.hash not in self._programs:
                if not self._programs and not cache.complete(library_path(source)):
                    self._compilers.submit(load_pool)  # the pool is needed as well
                patience = Patience.begin() if later else None
                self._programs[source.hash] = CpuProgram(source, self._compilers, patience)
            return self._programs[source.hash]

    def expect(self, classes: Sequence[Class]) -> None:
        """No effect: the cores have other work."""

    def expect_kernel(self, given: Class, columns: int, real: str) -> None:
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
        """Run all kernels by one native call."""
        native = [self._native(launch) for launch in launches if launch.items]
        if not native:
            return
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
            {} if launch.better is None else {0: self._better(launch.better)},
        )

    def _better(self, launches: Iterator[Launch | None]) -> Iterator[Variant | None]:
        for launch in launches:
            yield None if launch is None else self.compile(launch.program.source).variant(launch.arguments)

    def synchronize(self) -> None:
        """Launches are complete when they return."""

    # ---- batches of integrals -----------------------------------------------------------------------------

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run all kets of a few bras at a time, while the result rows of these bras are in the cache."""
        launches, size = [], 0
        for jobs in groups:
            launches.append(self._batch(jobs))
            size += sum(getattr(value, "nbytes", 0) for value in jobs[0].arguments.values())
            size -= jobs[0].arguments["out"].nbytes
            if size > PORTION_BYTES:
                self.pool.run(launches)
                launches, size = [], 0
        if launches:
            self.pool.run(launches)

    def _batch(self, jobs: Sequence[Job]) -> NativeLaunch:
        arguments = jobs[0].arguments
        row_bytes = arguments["row_stride"] * arguments["out"].itemsize
        grain = max(1, CACHE_BYTES // (row_bytes * arguments["rows"].shape[1]))
        variants, better = [], {}
        for k, job in enumerate(jobs):
            first, later = self._choice(job)
            variants.append(first)
            if later is not None:
                better[k] = later
        return NativeLaunch(variants, jobs[0].bras, grain, better=better)

    def _choice(self, job: Job) -> tuple[Variant, Iterator[Variant | None] | None]:
        """The best kernel compiled so far, and a better one if it is being compiled."""
        schedule = self._schedule(job)
        special = self._straight_line(job, later=schedule != "lane") if schedule != "table" else None
        if special is not None and (schedule == "lane" or special.ready):
            return special.variant(job.arguments), None
        better = None if special is None else self._better(when_ready(Launch(special, job.bras, job.arguments)))
        return self._general(job), better

    def _schedule(self, job: Job) -> str:
        """`lane`, `table`, or `auto`: the straight-line kernel once it is compiled."""
        if self.traits.schedule != "auto":
            return self.traits.schedule
        cost = class_cost(job.operator, job.bra, job.ket, job.algorithm)
        work = job.bras * job.kets * cost.total(job.primitives, job.columns)
        return "auto" if unrolled("cpu", cost) and work > WORTH_COMPILING else "table"

    def _straight_line(self, job: Job, later: bool) -> CpuProgram:
        """The straight-line kernel of a class, compiled in the background."""
        spec = KernelSpec(job.operator, job.bra, job.ket, job.algorithm, "lane", job.real_name)
        return self.compile(source_of(spec), later)

    def _general(self, job: Job) -> Variant:
        """The general kernel with the tables of the class."""
        class_ = (job.operator, job.bra, job.ket, job.algorithm)
        known = class_tables(*class_, levels=False)
        tables = known.arguments(job.arguments["out"].dtype)
        tables["vectors"] = _vectors(known.programs[0], known.width * job.columns, job.kets)
        source = general_source("table", job.real_name, loops=by_loops(*class_))
        return self.compile(source).variant({**job.arguments, **tables})


def _vectors(program: Tables, width: int, kets: int) -> int:
    """Vectors of kets per statement: four reduce the cost of decoding, one stays in the cache."""
    return 4 if 4 * 8 * (program.slots + width) <= 2 * L1_VALUES and kets > 16 else 1
