"""Device memory of the simt backend: arrays that the host cannot access by accident, and an array module like CuPy.

As in CuPy, mixing host and device arrays is an error. Single numbers pass in both directions (`float(x)`,
`x.item()`); everything else is copied by the backend.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

HOST_ONLY = ("ctypes", "setflags", "tofile")
"""Attributes of NumPy's arrays that device arrays do not have."""
FROM_HOST = ("array", "asarray")
"""Functions of the module that copy host arrays to the device."""
UNINITIALISED = ("empty", "empty_like")
"""Functions with uninitialised results: filled with NaN here, so that reading them does not go unnoticed."""


@dataclass(frozen=True)
class Memory:
    """Address of an array."""

    ptr: int


@dataclass
class DeviceMemory:
    """Bytes that arrays use, counted and limited only if there is a `limit`."""

    limit: int | None = None
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def free(self) -> int | None:
        """Bytes left; None without a limit."""
        return None if self.limit is None else self.limit - sum(self.sizes.values())

    def count(self, array: NDArray[Any]) -> None:
        """Count the memory of an array until it is freed, once for all its views."""
        if (free := self.free) is None:
            return
        while isinstance(array.base, np.ndarray):
            array = array.base
        if id(array) in self.sizes:
            return
        if array.nbytes > free:
            raise MemoryError(f"out of memory: {array.nbytes} bytes needed, {free} of {self.limit} free")
        self.sizes[id(array)] = array.nbytes
        weakref.finalize(array, self.sizes.pop, id(array), None).atexit = False


ARITHMETIC = (np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.power)
"""Operations that are refused with numbers for which CuPy would import SciPy; tests need comparisons."""
MEMORY = DeviceMemory()
"""The memory of the simulated device."""


@contextmanager
def limited_memory(limit: int) -> Iterator[DeviceMemory]:
    """Limit the memory of arrays that are allocated inside, as that of a small device."""
    MEMORY.limit, MEMORY.sizes = limit, {}
    try:
        yield MEMORY
    finally:
        MEMORY.limit, MEMORY.sizes = None, {}


def _imports_scipy(left: Any, right: Any) -> bool:
    """Whether CuPy would import SciPy for an operation between an array and a number."""
    return isinstance(left, np.generic) or isinstance(right, (int, float, np.generic))


class DeviceArray(NDArrayOperatorsMixin):
    """A device array; it takes over the memory of a host array."""

    def __init__(self, memory: NDArray[Any]) -> None:
        MEMORY.count(memory)
        self._memory = memory

    @property
    def data(self) -> Memory:
        """The address for kernels."""
        return Memory(self._memory.ctypes.data)

    def get(self) -> NDArray[Any]:
        """A copy in main memory."""
        return self._memory.copy()

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise TypeError("a device array is not converted to a host array implicitly: use backend.to_host")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.get("out")
        if out is None and method == "__call__" and ufunc in ARITHMETIC and _imports_scipy(*inputs):
            raise TypeError(
                "CuPy imports SciPy (0.3 s) for NumPy's numbers and those on the right: write 0.5 * A, A * A"
            )
        result = _call(getattr(ufunc, method), inputs, options)
        return result if out is None else out[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in HOST_ONLY:
            raise AttributeError(f"device arrays have no attribute {name!r}")
        found = getattr(self._memory, name)
        return _on_device(found) if callable(found) else _wrap(found)

    def __getitem__(self, index: Any) -> DeviceArray:
        parts = index if isinstance(index, tuple) else (index,)
        rest = () if any(part is ... for part in parts) else (...,)  # with it, a single element is a view as well
        return DeviceArray(self._memory[_unwrap((*parts, *rest))])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._memory[_unwrap(index)] = _unwrap(value)

    def __len__(self) -> int:
        return len(self._memory)

    def __bool__(self) -> bool:
        return bool(self._memory)

    def __int__(self) -> int:
        return int(self._memory)

    def __float__(self) -> float:
        return float(self._memory)

    def __repr__(self) -> str:
        return f"DeviceArray({self._memory!r})"


class DeviceModule:
    """NumPy's functions for device arrays, as CuPy offers them."""

    ndarray = DeviceArray

    def __init__(self, module: ModuleType = np) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return DeviceModule(found)
        if isinstance(found, type) or not callable(found):
            return found
        if name in FROM_HOST:
            return _from_host(found)
        if self._module is np.linalg and name == "cholesky":
            return _on_device(_cholesky)
        return _on_device(_fill_with_nan(found) if name in UNINITIALISED else found)

    @staticmethod
    def asnumpy(array: Any) -> NDArray[Any]:
        """A copy in main memory; host arrays as they are."""
        return array.get() if isinstance(array, DeviceArray) else np.asarray(array)


class SimtLibrary:
    """Functions of CUDA's libraries; upper triangles that they leave undefined are NaN."""

    def add_products(self, A: DeviceArray, B_k: DeviceArray, C_k: DeviceArray) -> None:
        """C_k += A B_k of stacks."""
        _unwrap(C_k)[...] += _unwrap(A) @ _unwrap(B_k)

    def lower_gram(self, A: DeviceArray) -> DeviceArray:
        """A A^T, its lower triangle only."""
        G = _unwrap(A @ A.T)
        G[np.triu_indices(len(G), 1)] = np.nan
        return DeviceArray(G)

    def cholesky(self, A: DeviceArray) -> DeviceArray:
        """Lower Cholesky factor, all NaN if there is none."""
        L = _cholesky(_unwrap(A))
        return DeviceArray(np.where(np.tri(L.shape[-1], dtype=bool), L, np.nan if L.ndim == 2 else 0.0))

    def inverses(self, A: DeviceArray) -> DeviceArray:
        """Inverses of a stack of matrices."""
        return DeviceArray(np.linalg.inv(_unwrap(A)))

    def eigh(self, A: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Eigenvalues and eigenvectors."""
        values, vectors = np.linalg.eigh(_unwrap(A))
        return DeviceArray(values), DeviceArray(vectors)

    def inverse(self, L: DeviceArray) -> DeviceArray:
        """Inverse of a lower triangle."""
        return DeviceArray(np.linalg.inv(np.tril(_unwrap(L))))

    def concurrently(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[Any]:
        """Results of the calls, one after the other."""
        return iter([call(A) for A in given])


def _call(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return _wrap(function(*(_unwrap(x) for x in args), **{name: _unwrap(x) for name, x in options.items()}))


def _on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with device arrays for arguments and results."""
    return lambda *args, **options: _call(function, args, options)


def _from_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function that also copies a host array to the device."""

    def copied(given: Any, *args: Any, **options: Any) -> Any:
        return _call(function, (DeviceArray(given.copy()) if isinstance(given, np.ndarray) else given, *args), options)

    return copied


def _cholesky(A: NDArray[Any]) -> NDArray[Any]:
    """Cholesky factor, NaN instead of an error if there is none."""
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return np.full_like(A, np.nan)


def _fill_with_nan(function: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    def filled(*args: Any, **options: Any) -> NDArray[Any]:
        array = function(*args, **options)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    return filled


def _unwrap(x: Any) -> Any:
    """The memory of device arrays, also of those in sequences; host arrays are refused."""
    if isinstance(x, DeviceArray):
        return x._memory
    if isinstance(x, np.ndarray):
        raise TypeError("host and device arrays cannot be mixed: copy the host array with backend.to_device")
    return type(x)(_unwrap(y) for y in x) if type(x) in (list, tuple) else x


def _wrap(x: Any) -> Any:
    """Arrays and single numbers as device arrays, also in sequences."""
    if isinstance(x, (np.ndarray, np.generic)):
        return DeviceArray(np.asarray(x))
    if isinstance(x, tuple) or (isinstance(x, list) and x and isinstance(x[0], np.ndarray)):
        return type(x)(map(_wrap, x)) if type(x) in (list, tuple) else tuple(map(_wrap, x))
    return x
