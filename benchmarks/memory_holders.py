"""Holders of device memory for `gpu_memory.py`: an array, a second process, and earlier calculations.

Each leaves a number of bytes free: `hold` takes the rest of the device, `drop` gives it back.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

CHILD = """
import sys
import cupy
cupy.zeros(1)
held = None
for line in sys.stdin:
    held = None
    cupy.get_default_memory_pool().free_all_blocks()
    if int(line) >= 0:
        held = cupy.empty(max(0, cupy.cuda.runtime.memGetInfo()[0] - int(line)), dtype=cupy.uint8)
    print("done", flush=True)
"""
EARLIER_SHARE = 0.6
"""Fraction of the free memory that the pool keeps at most after an earlier calculation."""


class Holder(Protocol):
    """Something that holds device memory."""

    name: str

    def hold(self, free: int) -> None:
        """Take memory until `free` bytes are left."""

    def drop(self) -> None:
        """Give it back."""


class ArrayHolder:
    """An array of this process."""

    name = "array"

    def __init__(self, backend: Any) -> None:
        self.backend, self.array = backend, None

    def hold(self, free: int) -> None:
        """Allocate the rest of the device."""
        empty(self.backend)
        self.array = self.backend.zeros((max(0, self.backend.memory()[0] - free),), np.uint8)

    def drop(self) -> None:
        """Free the array."""
        self.array = None
        empty(self.backend)


class ProcessHolder:
    """A second process, which allocates with CuPy and waits."""

    name = "process"

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.child = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def hold(self, free: int) -> None:
        """Have it allocate the rest of the device."""
        empty(self.backend)
        self.leave(free)

    def leave(self, free: int) -> None:
        """Have it allocate, whatever this process holds; -1: nothing."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(f"{free}\n")
        self.child.stdin.flush()
        if self.child.stdout.readline().strip() != "done":
            raise RuntimeError("the process that holds memory ended")

    def drop(self) -> None:
        """Have it free everything."""
        self.leave(-1)

    def stop(self) -> None:
        """End it."""
        self.child.communicate()


class CalculationHolder:
    """The integrals and values of an earlier calculation that is still alive, and an array for the rest."""

    name = "earlier calculation"

    def __init__(self, backend: Any, prepare: Callable[[float | None], Any]) -> None:
        self.array, self.prepare, self.calculation = ArrayHolder(backend), prepare, None

    def hold(self, free: int) -> None:
        """Keep a calculation."""
        self.calculation = self.prepare(None)
        self.array.hold(free)

    def drop(self) -> None:
        """Forget it."""
        self.calculation = None
        self.array.drop()


class PoolHolder:
    """The result of an earlier calculation and what it left in CuPy's pool, which may be used again; a second process
    holds the rest."""

    name = "pool of an earlier calculation"

    def __init__(self, backend: Any, process: ProcessHolder, calculate: Callable[[float | None], Any]) -> None:
        self.backend, self.process, self.calculate, self.result = backend, process, calculate, None

    def hold(self, free: int) -> None:
        """Calculate, and leave the pool as it is."""
        empty(self.backend)
        self.result = self.calculate(EARLIER_SHARE * free)
        gc.collect()
        idle = self.backend.xp.get_default_memory_pool().free_bytes()
        self.process.leave(max(0, free - idle))

    def drop(self) -> None:
        """Forget the result, and free everything."""
        self.result = None
        self.process.drop()
        empty(self.backend)


def empty(backend: Any) -> None:
    """Free what nothing uses."""
    gc.collect()
    backend.release_memory()
