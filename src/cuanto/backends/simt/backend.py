"""Jobs through the CUDA kernels, executed on the CPU: slow, for tests of the GPU path without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from cuanto.backends.base import Job
from cuanto.backends.cuda.launch import GroupTables, Launch, group_launch, straight_is_right, thread_launch
from cuanto.backends.host import HostMemory
from cuanto.backends.simt.kernel import MAX_SHARED_BYTES, SimtKernel, compile_simt

GROUP_BLOCK = 64
"""Fewer threads than on a GPU: each is a fiber here."""
MULTIPROCESSORS = 2


class SimtBackend(HostMemory):
    """A GPU in slow motion."""

    name = "simt"

    def __init__(self, schedule: str = "auto", shared_limit: int = MAX_SHARED_BYTES) -> None:
        self.schedule = schedule
        self.shared_limit = shared_limit
        self._tables = GroupTables(self.to_device)
        self._kernels: dict[str, SimtKernel] = {}

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """One launch after the other."""
        for job in chain.from_iterable(groups):
            launch = self._launch(job)
            key = launch.source.hash
            if key not in self._kernels:
                self._kernels[key] = compile_simt(launch.source.text, launch.source.entry)
            self._kernels[key].launch((launch.grid,), (launch.block,), launch.shared_bytes, launch.values(job))

    def finish_compiling(self) -> None:
        """Nothing is under way."""

    def _launch(self, job: Job) -> Launch:
        if self.schedule == "thread" or (self.schedule == "auto" and straight_is_right(job)):
            return thread_launch(job)
        return group_launch(job, self._tables, self.shared_limit, MULTIPROCESSORS, self.zeros, GROUP_BLOCK)
