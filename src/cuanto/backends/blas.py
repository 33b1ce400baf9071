"""The BLAS of NumPy (OpenBLAS in its wheels): the number of its threads, its products for kernels, two LAPACK routines.

Idle BLAS threads spin for a while, and a product of matrices with a hundred rows is finished before a second thread
has woken up. Calculations therefore keep BLAS on one thread: kernels call its products from our own threads, and only
large factorisations use BLAS threads.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache
from typing import Any

import numpy as np

from cuanto.arrays import Array

PREFIXES = ("scipy_openblas", "openblas")
SUFFIXES = ("64_", "_64", "")
"""Names of OpenBLAS's functions in the wheels of NumPy and SciPy and elsewhere."""
BLAS_MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
"""Extension modules that are linked to a BLAS."""

Control = tuple[Callable[[], int], Callable[[int], None]]


class _Contexts:
    """Numbers of threads that contexts ask for: the last one that is still open applies, in the whole process.

    Contexts of several threads may overlap. No effect if the BLAS is not OpenBLAS.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[int] = []
        self._before: list[tuple[Control, int]] = []

    def enter(self, count: int) -> None:
        """Begin a context with `count` threads."""
        with self._lock:
            if not self._open:
                self._before = [(control, control[0]()) for control in _controls()]
            self._apply(count)
            self._open.append(count)  # last: an error above leaves the contexts unchanged

    def leave(self, count: int) -> None:
        """End a context with `count` threads."""
        with self._lock:
            del self._open[len(self._open) - 1 - self._open[::-1].index(count)]
            if self._open:
                self._apply(self._open[-1])
            else:
                for (_, set_threads), number in self._before:
                    set_threads(number)

    def include(self) -> None:
        """Include a BLAS that was loaded inside of a context."""
        with self._lock:
            if self._open:
                known = [control for control, _ in self._before]
                self._before += [(control, control[0]()) for control in _controls() if control not in known]
                self._apply(self._open[-1])

    def _apply(self, count: int) -> None:
        for (_, set_threads), _number in self._before:
            set_threads(count)


_contexts = _Contexts()


class _OneThread(ContextDecorator):
    def __enter__(self) -> None:
        _contexts.enter(1)

    def __exit__(self, *error: object) -> None:
        _contexts.leave(1)


one_thread = _OneThread()
"""Use as `with one_thread:`, or as the decorator `@one_thread`."""


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Context with this number of BLAS threads."""
    _contexts.enter(count)
    try:
        yield
    finally:
        _contexts.leave(count)


def scipy_linalg() -> Any:
    """The module `scipy.linalg`, imported on first use; its BLAS is on one thread where NumPy's is."""
    import scipy.linalg

    _contexts.include()
    return scipy.linalg


ROUTINES = ("dgemm", "dgemv", "sgemm", "sgemv")
"""CBLAS functions of kernels, in the order of `struct Blas`."""


class Products(ctypes.Structure):
    """CBLAS functions for kernels (`blas.h`), null if there are none; `wide`: integers have 64 bits."""

    _fields_ = (*((name, ctypes.c_void_p) for name in ROUTINES), ("wide", ctypes.c_longlong))


def _numpy_library() -> ctypes.CDLL | None:
    """The library with BLAS and LAPACK that NumPy uses, if it can be found."""
    import numpy.linalg  # noqa: F401 (loads it)

    return _library(BLAS_MODULES[0])


@cache
def products() -> Products:
    """Functions of the BLAS that NumPy uses."""
    library = _numpy_library()
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            try:
                found = [getattr(library, f"{prefix}cblas_{name}{suffix}") for name in ROUTINES]
            except AttributeError:
                continue
            return Products(*(ctypes.cast(function, ctypes.c_void_p) for function in found), int(suffix == "64_"))
    return Products(*(None for _ in ROUTINES), 0)


def invert_factor(A: Array) -> float:
    """Replace a symmetric matrix A = L L^T by L^-1; returns the smallest pivot, or -1 if A is not positive definite.

    LAPACK's routines are called in NumPy's own library: importing `scipy.linalg` takes 0.2 s.
    """
    routines = _triangular_routines()
    n, lda, failed = (ctypes.c_int64(k) for k in (len(A), A.strides[0] // A.itemsize, 0))
    if routines is None or A.dtype != np.float64 or A.strides[1] != A.itemsize or A.strides[0] < A.itemsize * len(A):
        return _invert_factor_by_scipy(A)
    # Rows of C are columns of Fortran: the upper triangle there is the lower one here.
    factorise, invert = routines
    matrix = (ctypes.byref(n), ctypes.c_void_p(A.ctypes.data), ctypes.byref(lda), ctypes.byref(failed))
    factorise(b"U", *matrix, 1)
    if failed.value:
        return -1.0
    smallest = float(np.diagonal(A).min()) ** 2
    invert(b"U", b"N", *matrix, 1, 1)
    A[...] = np.tril(A)
    return smallest


def _invert_factor_by_scipy(A: Array) -> float:
    lapack = scipy_linalg().lapack
    factor, failed = lapack.dpotrf(A, lower=1, clean=1)
    if failed:
        return -1.0
    A[...] = lapack.dtrtri(factor, lower=1)[0]
    return float(np.diagonal(factor).min()) ** 2


@cache
def _triangular_routines() -> tuple[Any, Any] | None:
    """LAPACK's dpotrf and dtrtri with integers of 64 bits in the library that NumPy uses, if they are there."""
    library = _numpy_library()
    for prefix in ("scipy_", ""):
        try:
            found = [getattr(library, f"{prefix}{name}_64_") for name in ("dpotrf", "dtrtri")]
        except AttributeError:
            continue
        for routine in found:
            routine.restype = None
        return found[0], found[1]
    return None


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
