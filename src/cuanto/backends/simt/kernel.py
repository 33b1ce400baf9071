"""Compile a CUDA text with the system's C++ compiler and launch it as cuLaunchKernel would.

The text is what NVRTC takes; `cuda_on_cpu.h` supplies the language and `device_functions.h` its library.
The types of the parameters come from the compiler, so that every argument is checked; the driver would accept any
pointer.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cuanto.backends.cpu.compiler import compile_text, text_path
from cuanto.backends.simt.arrays import DeviceArray
from cuanto.errors import CompilerError, CuantoError

FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-w",
    "-fno-math-errno",
    "-fno-strict-aliasing",  # shared memory may hold values of any type
    "-fno-sanitize=all",
    "-U_FORTIFY_SOURCE",  # its longjmp would take a change of stacks for an attack
    "-fvisibility=hidden",  # statics of equal names in two kernels stay apart
)
MAX_THREADS = 1024
MAX_SHARED_BYTES = 227 * 1024

_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?([\w:\s]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
_COLLECTIVE = re.compile(r"\b__(syncthreads|syncwarp|shfl_\w*sync|ballot_sync|any_sync|all_sync)\b")
_LAUNCHER = """
#line 1 "launcher"
static void** simt_values;
static void simt::run_thread() {{ simt::call({entry}, simt_values); }}
extern "C" __attribute__((visibility("default"))) int simt_parameters(simt::Parameter* out, int room) {{
    return simt::describe_parameters({entry}, out, room);
}}
extern "C" __attribute__((visibility("default"))) const char* simt_launch(
    const unsigned* grid, const unsigned* block, unsigned long shared, void** values, int reverse) {{
    simt_values = values;
    return simt::run_grid(grid, block, shared, {plain}, reverse != 0);
}}
"""

Order = Literal["forward", "reverse"]


class LaunchError(CuantoError):
    """The arguments do not fit the kernel, or its threads broke a rule of the execution model."""


class _Parameter(ctypes.Structure):
    """Type of a kernel parameter according to the compiler; for a pointer that of its target."""

    _fields_ = (
        ("pointer", ctypes.c_int),
        ("constant", ctypes.c_int),
        ("floating", ctypes.c_int),
        ("size", ctypes.c_int),
    )
    pointer: int
    constant: int
    floating: int
    size: int

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """Whether the type matches: same size (a void pointer takes all), both or neither floating."""
        return self.size == 0 or (dtype.itemsize == self.size and (dtype.kind == "f") == bool(self.floating))

    def __str__(self) -> str:
        kind = "anything" if self.size == 0 else f"{'float' if self.floating else 'int'}{8 * self.size}"
        return f"an array of {kind}" if self.pointer else f"one {kind}"


@lru_cache(maxsize=1)
def _shim() -> str:
    here = files("cuanto.backends.simt")
    return "".join(here.joinpath(name).read_text() for name in ("cuda_on_cpu.h", "device_functions.h"))


def simt_text(text: str, entry: str) -> str:
    """The whole C++ text: shim, kernel, launcher."""
    if not re.search(rf"\b{re.escape(entry)}\b", text):
        raise CompilerError(f'the text defines no `extern "C" __global__ void {entry}(...)`: name one that it does')
    plain = "false" if _COLLECTIVE.search(text) else "true"
    body = _DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(simt::dynamic_memory);", text)
    return f'{_shim()}\n#line 1 "kernel"\n{body}{_LAUNCHER.format(entry=entry, plain=plain)}'


def compile_simt(text: str, entry: str, cache_dir: Path | None = None) -> SimtKernel:
    """The kernel `entry` of a CUDA text, from the cache when it is there; a CompilerError has the log."""
    whole = simt_text(text, entry)
    return SimtKernel(entry, compile_text(whole, FLAGS, entry, text_path(whole, FLAGS, cache_dir)))


class SimtKernel:
    """A compiled kernel; its launches exclude each other, because its shared memory exists once."""

    def __init__(self, entry: str, library: Path) -> None:
        self.entry = entry
        self._library = ctypes.CDLL(str(library))
        self._library.simt_launch.restype = ctypes.c_char_p
        count = self._library.simt_parameters(None, 0)
        self._parameters = (_Parameter * count)()
        self._library.simt_parameters(self._parameters, count)
        self._lock = threading.Lock()

    def launch(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared_bytes: int,
        args: Sequence[Any],
        order: Order = "forward",
    ) -> None:
        """Run all blocks; `order` in which threads take turns, which results must not depend on."""
        grid3, block3 = (_dimensions(self.entry, given) for given in (grid, block))
        if block3[0] * block3[1] * block3[2] > MAX_THREADS:
            raise LaunchError(f"{self.entry}: a block of {block} threads is too large, {MAX_THREADS} is the limit")
        if not 0 <= shared_bytes <= MAX_SHARED_BYTES:
            raise LaunchError(f"{self.entry}: {shared_bytes} bytes of shared memory, 0 to {MAX_SHARED_BYTES} exist")
        if len(args) != len(self._parameters):
            raise LaunchError(f"{self.entry} takes {len(self._parameters)} arguments, {len(args)} were given")
        values = [self._value(i, p, arg) for i, (p, arg) in enumerate(zip(self._parameters, args, strict=True))]
        addresses = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        with self._lock:
            problem = self._library.simt_launch(
                grid3, block3, ctypes.c_ulong(shared_bytes), addresses, int(order == "reverse")
            )
        if problem:
            raise LaunchError(f"{self.entry}: {problem.decode()}")

    def _value(self, position: int, parameter: _Parameter, given: Any) -> Any:
        """A ctypes object that holds the argument as the kernel's parameter does."""
        if parameter.pointer:
            return self._pointer(position, parameter, given)
        if isinstance(given, np.generic):
            fits = parameter.fits(given.dtype)
        else:
            fits = isinstance(given, int) or (isinstance(given, float) and bool(parameter.floating))
        if not fits:
            raise self._mismatch(position, parameter, given)
        dtype = (
            given.dtype if isinstance(given, np.generic) else f"{'f' if parameter.floating else 'i'}{parameter.size}"
        )
        return ctypes.create_string_buffer(np.asarray(given, dtype=dtype).tobytes(), parameter.size)

    def _pointer(self, position: int, parameter: _Parameter, given: Any) -> Any:
        if given is None:
            return ctypes.c_void_p(None)
        if not isinstance(given, DeviceArray) or not parameter.fits(given.dtype):
            raise self._mismatch(position, parameter, given)
        if not given.flags.c_contiguous or not (given.flags.writeable or parameter.constant):
            raise LaunchError(
                f"{self.entry}: argument {position} must be contiguous, and writeable where it is written"
            )
        return ctypes.c_void_p(given.data.ptr)

    def _mismatch(self, position: int, parameter: _Parameter, given: Any) -> LaunchError:
        if isinstance(given, (DeviceArray, np.ndarray)):
            what = f"{'an' if isinstance(given, DeviceArray) else 'a host'} array of {given.dtype}"
        else:
            what = f"{type(given).__name__} {given!r}"
        return LaunchError(f"{self.entry}: argument {position} must be {parameter}, {what} was given")


def _dimensions(entry: str, given: tuple[int, ...]) -> Any:
    """One to three positive numbers as unsigned[3]."""
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise LaunchError(f"{entry}: grid and block are one to three positive numbers, {given} was given")
    return (ctypes.c_uint * 3)(*given, *(1,) * (3 - len(given)))
