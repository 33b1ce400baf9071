"""Threads of the host's linear algebra: matrices of a hundred rows are done before a second thread has woken up.

On a machine of 16 cores benzene/cc-pVDZ took 71 ms with OpenBLAS as it comes and 49 ms with one thread, its matrices
being treated on the host (H200, fitted J and K on the GPU).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache

PREFIXES = ("scipy_openblas", "openblas")
SUFFIXES = ("64_", "_64", "")
"""Names of OpenBLAS's functions in the wheels of NumPy and SciPy and elsewhere."""
USERS = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
"""Extension modules that are linked to a library of linear algebra each."""

Control = tuple[Callable[[], int], Callable[[int], None]]


class _OneThread:
    """Linear algebra of this process on one thread, until the last of those who asked for it is done.

    Where the library is not OpenBLAS, nothing happens.
    """

    def __init__(self) -> None:
        self._lock, self._depth = threading.Lock(), 0
        self._before: list[tuple[Control, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = [(control, control[0]()) for control in _controls()]
                for (_, set_threads), _count in self._before:
                    set_threads(1)
            self._depth += 1  # last: whatever fails leaves nobody inside

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                for (_, set_threads), count in self._before:
                    set_threads(count)


one_thread = _OneThread()
"""`with one_thread:`"""


def _controls() -> list[Control]:
    """Of every library in use."""
    found = [_control(name) for name in USERS if name in sys.modules]
    return [control for control in found if control is not None]


@cache
def _control(name: str) -> Control | None:
    """Functions that read and set the number of threads of the library that a module is linked to."""
    try:
        library = ctypes.CDLL(str(sys.modules[name].__file__))  # it is loaded already: this finds what it needs, too
    except OSError:
        return None
    for prefix in PREFIXES:
        for suffix in SUFFIXES:
            try:
                read, write = (getattr(library, f"{prefix}_{verb}_num_threads{suffix}") for verb in ("get", "set"))
                return read, write
            except AttributeError:
                continue
    return None
