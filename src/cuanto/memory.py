"""The memory of one calculation: everything large reserves its part of one budget by name."""

from __future__ import annotations

from cuanto.backends.base import Backend
from cuanto.errors import InputError

MIB = 2**20
FREE_FRACTION = 0.9
"""Of the free memory: the system around a calculation needs some, too."""
PROGRAM = 64 * MIB
"""What kernels, libraries and their buffers add to the process while a calculation runs."""


class Budget:
    """Bytes that a calculation may take on its device.

    `max_memory` bounds the whole process, or the arrays on a device with memory of its own; what is free bounds both.
    """

    def __init__(self, backend: Backend, max_memory: float | None = None) -> None:
        if max_memory is not None and not max_memory > 0:
            raise InputError(f"max_memory must be a positive number of bytes, {max_memory} was given")
        self.backend, self.max_memory = backend, max_memory
        self.reserved: dict[str, int] = {}
        self.limit = self._measure()

    def available(self) -> int:
        """Bytes that nobody has reserved; memory that was taken without a reservation is missing from them, too."""
        return max(0, min(self._unreserved(), self._measure()))

    def reserve(self, name: str, size: int) -> None:
        """Set bytes aside, on top of those that the name has already."""
        left = max(0, self._unreserved())
        if size > left:
            advice = "use a smaller basis" if self.max_memory is None else "raise max_memory"
            raise InputError(f"{name}: {size / MIB:.0f} MiB are needed, {left / MIB:.0f} MiB are left: {advice}")
        self.reserved[name] = self.reserved.get(name, 0) + size

    def release(self, name: str) -> None:
        """Give back what a name has reserved, if anything."""
        self.reserved.pop(name, None)

    def require_room(self) -> None:
        """Refuse a limit that the program itself exceeds."""
        if self.max_memory is not None and self.limit <= 0:
            raise InputError(
                f"max_memory of {self.max_memory / MIB:.0f} MiB is less than the {self._program() / MIB:.0f} MiB "
                "of the program itself"
            )

    def _unreserved(self) -> int:
        return self.limit - sum(self.reserved.values())

    def _measure(self) -> int:
        """Bytes that may be allocated now."""
        free = int(FREE_FRACTION * self.backend.memory()[0])
        return free if self.max_memory is None else min(free, int(self.max_memory) - self._program())

    def _program(self) -> int:
        """Bytes that count against `max_memory` before anything is reserved."""
        return _resident() + PROGRAM if self.backend.traits.unified_memory else 0


def _resident() -> int:
    """Bytes of main memory of this process."""
    import os

    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the largest so far is what the system tells
        import resource

        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
