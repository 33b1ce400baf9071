"""NVIDIA GPUs. The group kernel can compute every class at once; straight-line kernels, once compiled, are faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends import tables
from cuanto.backends.background import failed, ready
from cuanto.backends.base import Class, Job, Launch, Linalg, Program, Traits
from cuanto.backends.communicator import Communicator, SingleRank
from cuanto.backends.cuda.compilers import compilers_for
from cuanto.backends.cuda.launch import WORTH_COMPILING, JobLaunches, blocks_of, cast_arguments, compiled_first
from cuanto.backends.cuda.library import CudaLibrary
from cuanto.backends.cuda.start import prepare
from cuanto.backends.device_linalg import DeviceLinalg
from cuanto.backends.exact_sums import separate_sums
from cuanto.backends.tiers import fixed_kernels
from cuanto.errors import CompilerError, MissingDependencyError
from cuanto.kernels.build import GROUP_THREADS
from cuanto.kernels.spec import schedule_name
from cuanto.kernels.text import Source

PLAIN_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel may use without a request."""
ALIGNMENT = 256
"""Bytes: alignment of arrays that share a block of memory."""
POOL_SHARE = 0.1
"""Fraction of all memory that CuPy's pool may keep before a memory plan releases it."""
OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED")
"""Parts of the messages of CUDA and its libraries; CuPy's own error is a `MemoryError` already."""
STREAMS = tuning.size("cuda", "integrals.streams")


@cache
def why_no_gpu() -> str:
    """Reason why CUDA cannot be used; empty if there is CuPy and a GPU."""
    try:
        import cupy
    except ImportError as error:
        return f"CuPy is not installed or does not load ({error}): `pip install 'cuanto[gpu]'`"
    if not hasattr(cupy, "cuda"):
        where = getattr(cupy, "__file__", None) or ", ".join(getattr(cupy, "__path__", []))
        return f"another module named cupy, {where}, is found before CuPy: rename it"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no usable driver or device ({error})"
    return "" if count else "no NVIDIA GPU on this machine"


def describe_gpu() -> str:
    """Description of the first GPU and its driver; raises if the GPU does not work."""
    import cupy

    runtime = cupy.cuda.runtime
    cupy.zeros(1).get()  # fails if another process owns it or its memory is full
    count = runtime.getDeviceCount()
    properties = runtime.getDeviceProperties(0)
    memory = properties["totalGlobalMem"] / 2**30
    driver = runtime.driverGetVersion()
    return (
        f"{properties['name'].decode()}, {memory:.0f} GiB, compute capability "
        f"{properties['major']}.{properties['minor']}, CUDA driver {driver // 1000}.{driver % 1000 // 10}, "
        f"CuPy {cupy.__version__}" + (f"; {count} devices" if count > 1 else "")
    )


class CudaProgram:
    """A kernel on a GPU; `binary` is being compiled, None if it is in the cache."""

    def __init__(self, source: Source, binary: Future[bytes] | None) -> None:
        self.source, self._binary = source, binary

    @property
    def ready(self) -> bool:
        """Whether it has been compiled."""
        return self._binary is None or ready(self._binary)

    @property
    def failed(self) -> bool:
        """Whether the compiler reported an error."""
        return self._binary is not None and failed(self._binary)

    def wait(self) -> None:
        """Wait until it is compiled."""
        if self._binary is not None:
            self._binary.result()


class CudaBackend:
    """The current CUDA device."""

    name = "cuda"

    def __init__(self, schedule: str = "auto") -> None:
        if reason := why_no_gpu():
            raise MissingDependencyError(f"the cuda backend cannot be used: {reason}; backend='cpu' works everywhere")
        import cupy

        self.xp = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.device_name = properties["name"].decode()
        self.architecture = f"sm_{properties['major']}{properties['minor']}"
        sizes = WORTH_COMPILING, GROUP_THREADS, int(properties["sharedMemPerBlockOptin"])
        workers = int(properties["multiProcessorCount"])
        self.traits = Traits("cuda", schedule_name(schedule, "cuda"), False, workers, *sizes)
        self.linalg: Linalg = DeviceLinalg(cupy, CudaLibrary(cupy))
        self.communicator: Communicator = SingleRank()
        self._launch_of = JobLaunches(self)
        self._streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
        self._functions: dict[str, Any] = {}
        self._shared: dict[str, int] = {}
        self._compilers = compilers_for(self.architecture)
        prepare(cupy, self._compilers)

    def to_device(self, array: NDArray[Any]) -> Any:
        """A copy on the GPU."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Copy to views of one block of device memory: each transfer costs 30 microseconds, however small."""
        xp, (*starts, end) = self.xp, _aligned_offsets(arrays.values())
        packed = np.empty(end, dtype=np.uint8)
        for start, array in zip(starts, arrays.values(), strict=True):
            packed[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block = xp.asarray(packed).data
        return {
            name: xp.ndarray(array.shape, array.dtype, block + start)
            for start, (name, array) in zip(starts, arrays.items(), strict=True)
        }

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy in main memory."""
        host: NDArray[Any] = self.xp.asnumpy(array)
        return host

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """Copies in pinned memory, written asynchronously; one wait at the end."""
        *starts, end = _aligned_offsets(arrays)
        pinned, found = self.xp.cuda.alloc_pinned_memory(end), []
        for start, array in zip(starts, arrays, strict=True):
            host = np.frombuffer(pinned, array.dtype, array.size, start)
            self.xp.ascontiguousarray(array).reshape(-1).get(out=host, blocking=False)
            found.append(host.reshape(array.shape))
        self.synchronize()
        return found

    def address(self, target: Any) -> int:
        """Address of an array."""
        return int(target.data.ptr)

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Cleared device memory."""
        return self.xp.zeros(shape, dtype=dtype)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes; what CuPy's pool keeps counts as free, and is released first if it keeps a lot."""
        pool, info = self.xp.get_default_memory_pool(), self.xp.cuda.runtime.memGetInfo
        (free, total), idle = info(), pool.free_bytes()
        if idle > POOL_SHARE * total:
            self.release_memory()
            (free, total), idle = info(), 0
        return int(free + idle), int(total)

    def release_memory(self) -> None:
        """Free what CuPy's pools keep."""
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    @contextmanager
    def memory_errors(self) -> Iterator[None]:
        """Convert out-of-memory errors of CUDA libraries and of the loading of kernels to `MemoryError`."""
        try:
            yield
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            raise MemoryError(str(error)) from None

    def compile(self, source: Source, later: bool = False) -> CudaProgram:
        """Compile in the background, unless it is in the cache."""
        known = source.hash in self._functions
        return CudaProgram(source, None if known else self._compilers.request(source, later))

    def expect(self, classes: Sequence[Class]) -> None:
        """Start making the tables that the general kernel needs for these classes, in other processes."""
        tables.expect(classes, levels=True)

    def expect_kernel(self, given: Class, columns: int, real: str, consumer: str) -> None:
        """Have the helper process generate and compile the kernel, so that later calculations find it in the cache."""
        self._compilers.expect(given, columns, real, consumer)

    def launch(
        self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0, stream: Any = None
    ) -> None:
        """Start a kernel on the current stream, or on another; the host does not wait."""
        if not items:
            return
        source = program.source
        function = self._function(source)
        if scratch > self._shared.get(source.hash, PLAIN_SHARED):
            # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.xp.cuda.driver.funcSetAttribute(function.ptr, 8, scratch)
            self._shared[source.hash] = scratch
        grid, values = (blocks_of(source, items),), cast_arguments(source, items, arguments)
        function(grid, (source.threads,), values, shared_mem=scratch, stream=stream)

    def launch_all(self, launches: Sequence[Launch]) -> None:
        """Run on several streams, so that small launches overlap; a single one runs on the current stream."""
        launches, sums = separate_sums(launches, self)
        if len(launches) == 1:
            one = self._compiled(launches[0])
            self.launch(one.program, one.items, one.arguments, one.scratch)
        else:
            self._concurrently([launches])
        for some, target in sums:
            some.add_to(target)

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run jobs on several streams."""
        with fixed_kernels():
            self._concurrently([self._launch_of(job) for job in group] for group in groups)

    def _concurrently(self, groups: Iterable[Sequence[Launch]]) -> None:
        """Run on several streams; the current one waits for them, so that freed memory is not reused too early."""
        event, current = self.xp.cuda.Event, self.xp.cuda.get_current_stream()
        keep = []  # arguments live until the current stream waits for the kernels
        turn, used = cycle(self._streams), {}
        try:
            for chosen in compiled_first(groups):
                launches = [self._compiled(launch) for launch in chosen]
                keep.append(launches)
                copied = current.record(event(disable_timing=True))
                for n, launch in enumerate(launches):
                    stream = next(turn)
                    if n < len(self._streams):
                        used[id(stream)] = stream
                        stream.wait_event(copied)
                    self.launch(launch.program, launch.items, launch.arguments, launch.scratch, stream)
        finally:
            for stream in used.values():
                current.wait_event(stream.record(event(disable_timing=True)))

    def _compiled(self, launch: Launch) -> Launch:
        """The launch, or its replacement if its kernel does not compile."""
        if launch.otherwise is not None:
            try:
                self._function(launch.program.source)
            except CompilerError:
                return launch.otherwise()
        return launch

    def synchronize(self) -> None:
        """Wait for the current stream."""
        self.xp.cuda.get_current_stream().synchronize()

    def finish_compiling(self) -> None:
        """Wait for background compilations."""
        self._compilers.finish()

    def _function(self, source: Source) -> Any:
        if source.hash not in self._functions:
            self._compilers.wait(source)
            module = self.xp.cuda.function.Module()
            try:
                module.load(self._compilers.binary(source))
            except self.xp.cuda.driver.CUDADriverError as error:
                if _out_of_memory(error):
                    raise
                # A damaged file in the cache.
                self._compilers.path(source).unlink(missing_ok=True)
                module.load(self._compilers.binary(source))
            self._functions[source.hash] = module.get_function(source.entry)
        return self._functions[source.hash]


def _out_of_memory(error: Exception) -> bool:
    return any(text in str(error) for text in OUT_OF_MEMORY)


def _aligned_offsets(arrays: Iterable[Any]) -> list[int]:
    """Offsets of arrays in one block of memory, and its size."""
    return list(accumulate((-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays), initial=0))
