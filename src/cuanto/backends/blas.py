"""The BLAS of NumPy (OpenBLAS in its wheels): the number of its threads, and its products for kernels.

Idle BLAS threads spin for a while, and a product of matrices with a hundred rows is finished before a second thread
has woken up. Calculations therefore keep BLAS on one thread: kernels call its products from our own threads, and only
large factorisations use BLAS threads.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from functools import cache
from typing import Any

PREFIXES = ("scipy_openblas", "openblas")
SUFFIXES = ("64_", "_64", "")
"""Names of OpenBLAS's functions in the wheels of NumPy and SciPy and elsewhere."""
BLAS_MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
"""Extension modules that are linked to a BLAS."""

Control = tuple[Callable[[], int], Callable[[int], None]]


class _OneThread(ContextDecorator):
    """Keeps the BLAS of this process on one thread until the last context is left; no effect if it is not OpenBLAS."""

    def __init__(self) -> None:
        self._lock, self._depth = threading.Lock(), 0
        self._before: list[tuple[Control, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = _set_threads(1)
            self._depth += 1  # last: an error above leaves the depth unchanged

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                _restore(self._before)

    def include(self) -> None:
        """Include a BLAS that was loaded inside of the context."""
        with self._lock:
            if self._depth:
                known = [control for control, _ in self._before]
                self._before += _set_threads(1, [control for control in _controls() if control not in known])


one_thread = _OneThread()
"""Use as `with one_thread:`, or as the decorator `@one_thread`."""


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Context with this number of BLAS threads."""
    before = _set_threads(count)
    try:
        yield
    finally:
        _restore(before)


def scipy_linalg() -> Any:
    """The module `scipy.linalg`, imported on first use; its BLAS is on one thread where NumPy's is."""
    import scipy.linalg

    one_thread.include()
    return scipy.linalg


def _set_threads(count: int, controls: Sequence[Control] | None = None) -> list[tuple[Control, int]]:
    """Set the number of threads of libraries, by default all in use; returns previous numbers, for `_restore`."""
    before = [(control, control[0]()) for control in (_controls() if controls is None else controls)]
    for (_, set_threads), _count in before:
        set_threads(count)
    return before


def _restore(before: list[tuple[Control, int]]) -> None:
    for (_, set_threads), count in before:
        set_threads(count)


class Products(ctypes.Structure):
    """CBLAS functions for kernels (`blas.h`), null if there are none; `wide`: integers have 64 bits."""

    _fields_ = (("gemm", ctypes.c_void_p), ("gemv", ctypes.c_void_p), ("wide", ctypes.c_longlong))


@cache
def products() -> Products:
    """Functions of the BLAS that NumPy uses."""
    import numpy.linalg  # noqa: F401 (loads it)

    library = _library(BLAS_MODULES[0])
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            try:
                found = [getattr(library, f"{prefix}cblas_{name}{suffix}") for name in ("dgemm", "dgemv")]
            except AttributeError:
                continue
            return Products(*(ctypes.cast(function, ctypes.c_void_p) for function in found), int(suffix == "64_"))
    return Products(None, None, 0)


def _controls() -> list[Control]:
    """Functions that read and set the number of threads, for every BLAS in use."""
    found = [_control(name) for name in BLAS_MODULES if name in sys.modules]
    return [control for control in found if control is not None]


@cache
def _library(name: str) -> ctypes.CDLL | None:
    """An extension module with the libraries that it is linked to."""
    try:
        return ctypes.CDLL(str(sys.modules[name].__file__))
    except (OSError, KeyError):
        return None


@cache
def _control(name: str) -> Control | None:
    """Functions that read and set the number of threads of the BLAS of an extension module."""
    library = _library(name)
    for prefix in PREFIXES:
        for suffix in SUFFIXES:
            try:
                read, write = (getattr(library, f"{prefix}_{verb}_num_threads{suffix}") for verb in ("get", "set"))
                return read, write
            except AttributeError:
                continue
    return None
