"""Preparations for a first calculation on a GPU: general kernels, CuPy's own kernels, libraries of linear algebra.

`begin` needs neither CuPy nor a context, so that kernels are compiled while CuPy is imported. `prepare` calls every
operation of CuPy that calculations use once, each in a thread: CuPy compiles a kernel for each one at its first use,
0.1 s after 0.1 s. It does so only until CuPy's cache on the disk has them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from cuanto.backends import cache as disk
from cuanto.backends.cuda.compilers import Compilers, compilers_for
from cuanto.backends.cuda.operations import OPERATIONS, libraries, operands
from cuanto.kernels.build import general_source
from cuanto.log import logger

DRIVERS = ("libcuda.so.1", "nvcuda.dll")
MAJOR, MINOR = 75, 76
"""Attributes CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""


def driver_architecture() -> str:
    """The first GPU's architecture (`sm_90`) as the driver tells it; empty if there is no driver or no GPU."""
    for name in DRIVERS:
        with suppress(OSError):
            driver = ctypes.CDLL(name)
            break
    else:
        return ""
    found = []
    device = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return ""
    for attribute in (MAJOR, MINOR):
        value = ctypes.c_int()
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return ""
        found.append(value.value)
    return "sm_{}{}".format(*found)


@cache
def begin() -> threading.Thread:
    """Start to compile the kernel that serves every class of integrals, if there is a GPU."""

    def run() -> None:
        if architecture := driver_architecture():
            compilers_for(architecture).request(general_source("group", "double"))

    thread = threading.Thread(target=run, name="cuanto-begin", daemon=True)
    thread.start()
    return thread


def prepare(cupy: Any, compilers: Compilers) -> None:
    """Load the libraries of linear algebra, and compile CuPy's kernels unless they are in its cache."""
    device = cupy.cuda.Device().id
    mark = _mark(cupy, compilers.architecture)

    def on_device(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            try:
                with cupy.cuda.Device(device):
                    call()
            except Exception as error:  # the calculation will meet it, or does not need the operation
                logger.debug("an operation of CuPy could not be prepared: %s", error)

        return run

    for load in libraries(cupy):
        compilers.ahead(on_device(load))
    if _filled(cupy, mark):
        return
    given = operands(cupy)
    tasks = [compilers.ahead(on_device(partial(call, cupy, given))) for call in OPERATIONS]

    def note() -> None:
        for task in tasks:
            task.result()
        disk.write(mark, b"")

    threading.Thread(target=note, name="cuanto-prepare", daemon=True).start()


def _mark(cupy: Any, architecture: str) -> Path:
    """File that says that CuPy's cache has all operations."""
    parts = (
        cupy.__version__,
        str(cupy.cuda.runtime.runtimeGetVersion()),
        architecture,
        _cupy_cache(),
        str(len(OPERATIONS)),
    )
    return disk.cache_folder() / f"{disk.key(parts)}.operations"


def _cupy_cache() -> str:
    return os.environ.get("CUPY_CACHE_DIR") or str(Path.home() / ".cupy" / "kernel_cache")


def _filled(cupy: Any, mark: Path) -> bool:
    try:
        with os.scandir(_cupy_cache()) as entries:
            return mark.exists() and any(True for _ in entries)
    except OSError:
        return False
