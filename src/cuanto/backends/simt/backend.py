"""Jobs through the CUDA kernels, executed on the CPU: slow, for tests of the GPU path without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from cuanto.backends.base import Job
from cuanto.backends.cuda.launch import (
    BlockTables,
    GroupTables,
    Launch,
    block_launch,
    blocks_are_right,
    group_launch,
    straight_is_right,
    thread_launch,
    typed,
)
from cuanto.backends.host import HostMemory
from cuanto.backends.simt.kernel import MAX_SHARED_BYTES, SimtKernel, compile_simt
from cuanto.kernels.spec import BLOCK_SCHEDULES, schedule_name
from cuanto.kernels.text import Source

GROUP_BLOCK = 64
"""Fewer threads than on a GPU: each is a fiber here."""
QUARTET_BLOCK = 32
MULTIPROCESSORS = 2


class SimtBackend(HostMemory):
    """A GPU in slow motion."""

    name = "simt"
    group_block = GROUP_BLOCK
    multiprocessors = MULTIPROCESSORS

    def __init__(self, schedule: str = "auto", shared_limit: int = MAX_SHARED_BYTES) -> None:
        self.schedule = schedule_name(schedule, "cuda")
        self.shared_limit = shared_limit
        self._tables = GroupTables(self.to_device)
        self._block_tables = BlockTables(self.to_device)
        self._kernels: dict[str, SimtKernel] = {}

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """One launch after the other."""
        for job in chain.from_iterable(groups):
            launch = self._launch(job)
            self.launch(launch.source, launch.grid, launch.block, launch.shared_bytes, launch.values(job))

    def launch(self, source: Source, grid: int, block: int, shared_bytes: int, values: dict[str, Any]) -> None:
        """Run any kernel; `values` by the names of its arguments."""
        if source.hash not in self._kernels:
            self._kernels[source.hash] = compile_simt(source.text, source.entry)
        self._kernels[source.hash].launch((grid,), (block,), shared_bytes, typed(source, values))

    def synchronize(self) -> None:
        """Nothing is under way."""

    def ready(self, source: Source) -> bool:
        """Kernels are compiled when they are launched."""
        return True

    def finish_compiling(self) -> None:
        """Nothing is under way."""

    def _launch(self, job: Job) -> Launch:
        schedule = "quartet_block" if self.schedule == "auto" and blocks_are_right(job) else self.schedule
        if schedule == "thread" or (schedule == "auto" and straight_is_right(job)):
            return thread_launch(job)
        if schedule in BLOCK_SCHEDULES and job.operator == "coulomb":
            return block_launch(job, schedule, self._block_tables, MULTIPROCESSORS, self.zeros, QUARTET_BLOCK)
        return group_launch(job, self._tables, self.shared_limit, MULTIPROCESSORS, self.zeros, GROUP_BLOCK)
