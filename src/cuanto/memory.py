"""The memory of one calculation: every large array is reserved from one budget, by name."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeVar

from cuanto.backends.base import Backend
from cuanto.errors import InputError
from cuanto.log import logger

MIB = 2**20
FREE_FRACTION = 0.9
"""Fraction of the free memory that a calculation may use."""
PROGRAM = 64 * MIB
"""Bytes that kernels, libraries and their buffers add to the process during a calculation."""
SMALLEST_ROOM = 16 * MIB
"""Room for arrays that a limit should leave beside the program."""
RETRY_FACTOR = 0.7
"""Memory of the next attempt relative to the last, after a calculation has run out of it."""
MIN_SHARE = 0.05
"""Smallest share of the free memory that is tried."""
T = TypeVar("T")
Advice = Callable[[int], str]
"""What the user can do if this many bytes are missing."""


@dataclass(frozen=True)
class StorePlan:
    """Whether some data (`what`) are `stored`: `needed` bytes of the `limit`; `complete`: all of them were counted.

    `kept`: bytes that are stored, of all data or of a part.
    """

    what: str
    stored: bool
    needed: int
    limit: int
    complete: bool = True
    kept: int = 0

    def __str__(self) -> str:
        if self.stored:
            return f"stored: all {self.what} kept, {self._size} of {self.limit / MIB:.0f} MiB"
        if self.kept:
            share = f"{self.kept / MIB:.0f} of {self._size} MiB"
            return f"partly stored: {share} of the {self.what} kept, {self.limit / MIB:.0f} MiB allowed"
        return f"direct: {self.what} recomputed ({self.limit / MIB:.0f} MiB allowed, {self._size} to store them)"

    @property
    def _size(self) -> str:
        return f"{'' if self.complete else 'more than '}{self.needed / MIB:.0f}"

    def require(self, alternative: str) -> None:
        """Refuse a plan that stores nothing; `alternative`: the option that needs no memory."""
        if not self.stored:
            raise InputError(
                f"storing the {self.what} takes {self._size} MiB, {self.limit / MIB:.0f} MiB are allowed: "
                f"raise max_memory, or use {alternative}"
            )


class Budget:
    """Bytes that a calculation may allocate on its device.

    `max_memory` limits the `whole_process`, or the arrays alone (always on a device with separate memory). The free
    memory is a limit as well. Only the fraction `share` of the limits is used (see `retry_with_less_memory`).
    """

    def __init__(
        self, backend: Backend, max_memory: float | None = None, *, whole_process: bool = True, share: float = 1.0
    ) -> None:
        if max_memory is not None and not max_memory > 0:
            raise InputError(f"max_memory must be a positive number of bytes, {max_memory} was given")
        self.backend, self.max_memory, self.share = backend, max_memory, share
        self._counts_program = whole_process and backend.traits.unified_memory
        self._peak = _peak()
        self.reserved: dict[str, int] = {}
        self.limit = self._measure()

    def advice(self, missing: int) -> str:
        """Advice for the error message if this many bytes are missing."""
        if self.max_memory is None or self._free() < self.max_memory - self._program():
            return "use a smaller basis"
        return f"raise max_memory to at least {ceil((self.max_memory + missing / self.share) / MIB)} MiB"

    def available(self) -> int:
        """Bytes that are neither reserved nor in use."""
        return max(0, min(self._unreserved(), self._measure()))

    def reserve(self, name: str, size: int, hint: str = "") -> None:
        """Reserve more bytes under a name; if there are too few, the error message ends with `hint`."""
        left = max(0, self._unreserved())
        if size > left:
            self.require_room()
            hint = hint or self.advice(size - left)
            raise InputError(f"{name}: {ceil(size / MIB)} MiB are needed, {left // MIB} MiB are left: {hint}")
        self.reserved[name] = self.reserved.get(name, 0) + size

    def record(self, name: str, size: int) -> None:
        """Record memory that is already in use under a name, even beyond the limit."""
        self.reserved[name] = size

    def release(self, name: str) -> None:
        """Give back what is reserved under a name."""
        self.reserved.pop(name, None)

    def require_room(self) -> None:
        """Refuse a limit that the program alone exceeds."""
        if self.max_memory is not None and self.limit <= 0:
            size = f"{self.max_memory / MIB:.0f} MiB" if self.max_memory >= MIB else f"{self.max_memory:g} bytes"
            raise InputError(
                f"max_memory of {size} is less than the {self._program() / MIB:.0f} MiB of the program itself: give at "
                f"least {ceil((self._program() + SMALLEST_ROOM) / MIB)} MiB, more for large molecules, such as "
                "max_memory=4e9 (4 GB)"
            )

    def warnings(self) -> Sequence[str]:
        """A warning if the process has exceeded `max_memory`, because of arrays that every plan needs."""
        if self.max_memory is None or not self._counts_program:
            return ()
        peak = _peak()
        used = peak if peak > self._peak else _resident()  # an earlier peak belongs to something else
        if used <= self.max_memory:
            return ()
        return (
            f"WARNING: the process took {used / MIB:.0f} MiB, more than max_memory ({self.max_memory / MIB:.0f} MiB): "
            "grid, matrices and kernels alone need that much",
        )

    def _unreserved(self) -> int:
        return self.limit - sum(self.reserved.values())

    def _measure(self) -> int:
        """Bytes that may be allocated now."""
        free = self._free()
        if self.max_memory is not None:
            free = min(free, int(self.max_memory) - self._program())
        return int(self.share * free)

    def _free(self) -> int:
        """Free memory of the device that a calculation may use."""
        return int(FREE_FRACTION * self.backend.memory()[0])

    def _program(self) -> int:
        """Bytes that count against `max_memory` before anything is reserved."""
        if not self._counts_program:
            return 0
        self.backend.release_memory()  # what earlier calculations have freed
        return _resident() + PROGRAM


def retry_with_less_memory(calculate: Callable[[float], T], backend: Backend) -> T:
    """Call with the share of the memory that may be used, 1 at first, and a smaller one after each `MemoryError`.

    Plans are made from sizes, and cannot know how an allocator divides the memory, or what other processes will take.
    """
    share, reason = 1.0, ""
    while True:
        try:
            with backend.memory_errors():
                return calculate(share)
        except MemoryError as error:
            if share * RETRY_FACTOR < MIN_SHARE:
                raise
            reason = " ".join(str(error).split()) or "an allocation was refused"
        except InputError as error:
            if reason:  # no smaller plan
                raise InputError(f"{error} (a plan with more memory failed: {reason})") from None
            raise
        # Here the error, and with it the arrays of its frames, is gone.
        gc.collect()
        backend.release_memory()
        share *= RETRY_FACTOR
        logger.warning("out of memory (%s): trying again with %.0f %% of the free memory", reason, 100 * share)


def _peak() -> int:
    """Largest number of resident bytes of this process so far."""
    try:
        with open("/proc/self/status") as file:  # `ru_maxrss` begins with that of the parent process
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return _resident()


def _resident() -> int:
    """Resident bytes of this process."""
    import os

    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the largest size so far
        import resource

        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
