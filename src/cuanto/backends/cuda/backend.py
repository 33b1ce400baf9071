"""Jobs on a GPU. The group kernel serves every class at once; straight-line ones take over when compiled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends import cache as disk
from cuanto.backends.background import Background, ready
from cuanto.backends.base import Job
from cuanto.backends.cuda.launch import (
    GroupTables,
    Launch,
    group_launch,
    straight_is_right,
    thread_launch,
    worth_compiling,
)
from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version
from cuanto.errors import MissingDependencyError
from cuanto.kernels.build import Source, table_source

OPTIONS = ("--fmad=true",)


@cache
def why_no_gpu() -> str:
    """Empty when there is CuPy and a GPU, else what is missing."""
    try:
        import cupy
    except ImportError as error:
        return f"CuPy is not installed or does not load ({error}): `pip install 'cuanto[gpu]'`"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no usable driver or device ({error})"
    return "" if count else "no NVIDIA GPU on this machine"


class CudaBackend:
    """The current CUDA device."""

    name = "cuda"

    def __init__(self, schedule: str = "auto") -> None:
        if reason := why_no_gpu():
            raise MissingDependencyError(f"the cuda backend cannot be used: {reason}; backend='cpu' works everywhere")
        import cupy

        self.xp = cupy
        self.schedule = schedule
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.device_name = properties["name"].decode()
        self.architecture = f"sm_{properties['major']}{properties['minor']}"
        self.shared_limit = int(properties["sharedMemPerBlockOptin"])
        self.multiprocessors = int(properties["multiProcessorCount"])
        self._tables = GroupTables(self.to_device)
        self._functions: dict[str, Any] = {}
        self._compiling: dict[str, Future[bytes]] = {}
        self._compilers = Background(min(8, os.cpu_count() or 1), "cuanto-nvrtc", finish_running=True)

    def to_device(self, array: NDArray[Any]) -> Any:
        """A copy on the GPU."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy in main memory."""
        host: NDArray[Any] = self.xp.asnumpy(array)
        return host

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Cleared device memory."""
        return self.xp.zeros(shape, dtype=dtype)

    def memory(self) -> tuple[int, int]:
        """Bytes free and in total."""
        free, total = self.xp.cuda.runtime.memGetInfo()
        return int(free), int(total)

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Launch with the best kernels there are now, then wait for the current stream."""
        keep = []  # arguments live until the kernels are done
        for job in chain.from_iterable(groups):
            launch = self._launch(job)
            function = self._function(launch)
            function((launch.grid,), (launch.block,), launch.values(job), shared_mem=launch.shared_bytes)
            keep.append((job, launch))
        self.xp.cuda.get_current_stream().synchronize()

    def finish_compiling(self) -> None:
        """Wait for the background."""
        for future in list(self._compiling.values()):
            future.result()

    def _launch(self, job: Job) -> Launch:
        if self.schedule == "thread" or (self.schedule == "auto" and straight_is_right(job) and worth_compiling(job)):
            launch = thread_launch(job)
            if self.schedule == "thread" or self._ready(launch.source):
                return launch
        return group_launch(job, self._tables, self.shared_limit, self.multiprocessors, self.zeros)

    def _ready(self, source: Source) -> bool:
        """Compiled already? If not, start it; the general kernel serves meanwhile."""
        if source.hash in self._functions:
            return True
        if source.hash not in self._compiling:
            if disk.complete(self._path(source)):
                return True
            self._compiling[source.hash] = self._compilers.submit(lambda: self._binary(source))
        return ready(self._compiling[source.hash])

    def _path(self, source: Source) -> Any:
        parts = (source.text, *OPTIONS, self.architecture, str(nvrtc_version()))
        return disk.cache_folder() / f"{disk.key(parts)}.cubin"

    def _binary(self, source: Source) -> bytes:
        path = self._path(source)
        if disk.complete(path):
            return bytes(path.read_bytes())
        binary, _ = compile_nvrtc(source.text, self.architecture, OPTIONS)
        disk.write(path, binary)
        return binary

    def _function(self, launch: Launch) -> Any:
        source = launch.source
        if source.hash not in self._functions:
            module = self.xp.cuda.function.Module()
            module.load(self._binary(source))
            function = module.get_function(source.entry)
            if source == table_source("cuda", "double") or source == table_source("cuda", "float"):
                # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                self.xp.cuda.driver.funcSetAttribute(function.ptr, 8, self.shared_limit)
            self._functions[source.hash] = function
        return self._functions[source.hash]
