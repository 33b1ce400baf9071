"""CUDA kernels executed on the CPU: slow, for tests of the GPU path without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Class, Job, Launch, Linalg, Program, Traits
from cuanto.backends.communicator import Communicator, SingleRank
from cuanto.backends.cuda.launch import JobLaunches, blocks_of, cast_arguments
from cuanto.backends.device_linalg import DeviceLinalg
from cuanto.backends.exact_sums import separate_sums
from cuanto.backends.host import main_memory
from cuanto.backends.simt.arrays import MEMORY, DeviceArray, DeviceModule, SimtLibrary
from cuanto.backends.simt.kernel import MAX_SHARED_BYTES, SimtKernel, compile_simt
from cuanto.backends.tiers import fixed_kernels
from cuanto.kernels.spec import schedule_name
from cuanto.kernels.text import Source

GROUP_THREADS = 64
"""Fewer threads than on a GPU: each is a fiber here."""
QUARTET_THREADS = 32
MULTIPROCESSORS = 2


class SimtProgram:
    """A kernel, compiled at its first launch."""

    ready = True
    failed = False

    def __init__(self, source: Source) -> None:
        self.source = source

    def wait(self) -> None:
        """No effect: kernels are compiled at their first launch."""


class SimtBackend:
    """A simulated GPU with memory of its own."""

    name = "simt"
    xp: Any = DeviceModule()

    def __init__(self, schedule: str = "auto", shared_limit: int = MAX_SHARED_BYTES) -> None:
        sizes = GROUP_THREADS, shared_limit, QUARTET_THREADS, 0.0
        self.traits = Traits("cuda", schedule_name(schedule, "cuda"), False, MULTIPROCESSORS, 0.0, *sizes)
        self.linalg: Linalg = DeviceLinalg(self.xp, SimtLibrary())
        self.communicator: Communicator = SingleRank()
        self._launch_of = JobLaunches(self)
        self._kernels: dict[str, SimtKernel] = {}

    def to_device(self, array: NDArray[Any]) -> DeviceArray:
        """A copy on the device."""
        return DeviceArray(np.ascontiguousarray(array).copy())

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Copies on the device."""
        return {name: self.to_device(array) for name, array in arrays.items()}

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy in main memory."""
        return array if isinstance(array, np.ndarray) else self.download([array])[0]

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """Copies in main memory."""
        return [array.get() for array in arrays]

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> DeviceArray:
        """Cleared device memory."""
        return DeviceArray(np.zeros(shape, dtype=dtype))

    def memory(self) -> tuple[int, int]:
        """Free and total main memory, or that of a simulated limit."""
        free, limit = MEMORY.free, MEMORY.limit
        return main_memory() if free is None or limit is None else (max(0, free), limit)

    def release_memory(self) -> None:
        """No effect: memory is not kept."""

    def memory_errors(self) -> AbstractContextManager[None]:
        """No effect: a full memory is a `MemoryError`."""
        return nullcontext()

    def compile(self, source: Source, later: bool = False) -> SimtProgram:
        """Kernels are compiled at their first launch."""
        return SimtProgram(source)

    def expect(self, classes: Sequence[Class]) -> None:
        """No effect: tables are made where they are needed."""

    def expect_kernel(self, given: Class, columns: int, real: str, consumer: str) -> None:
        """No effect: kernels are compiled at their first launch."""

    def address(self, target: Any) -> int:
        """Address of an array."""
        return int(target.data.ptr)

    def launch(self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0) -> None:
        """Run the blocks one after the other."""
        source = program.source
        if not items:
            return
        if source.hash not in self._kernels:
            self._kernels[source.hash] = compile_simt(source.text, source.entry)
        values = cast_arguments(source, items, arguments)
        self._kernels[source.hash].launch((blocks_of(source, items),), (source.threads,), scratch, values)

    def launch_all(self, launches: Sequence[Launch]) -> None:
        """Run the launches one after the other."""
        launches, sums = separate_sums(launches, self)
        for launch in launches:
            self.launch(launch.program, launch.items, launch.arguments, launch.scratch)
        for some, target in sums:
            some.add_to(target)

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run the jobs one after the other."""
        with fixed_kernels():
            self.launch_all([self._launch_of(job) for job in chain.from_iterable(groups)])

    def synchronize(self) -> None:
        """No effect: launches are complete when they return."""

    def finish_compiling(self) -> None:
        """No effect: kernels are compiled at their first launch."""
