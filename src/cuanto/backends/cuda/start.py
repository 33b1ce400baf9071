"""Preparations for the first calculation on a GPU: general kernels, and those of CuPy.

`begin` needs neither CuPy nor a context, so that kernels are compiled while CuPy is imported. `prepare` calls every
CuPy operation that calculations use, because CuPy compiles a kernel for each of them at its first use, which takes
0.1 s. This is no longer done once CuPy's cache on the disk has all of them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cuanto.backends import cache as disk
from cuanto.backends.background import Background
from cuanto.backends.cuda.compilers import Compilers, compilers_for
from cuanto.backends.cuda.operation_compiler import CompilingProcesses, Substitute
from cuanto.backends.cuda.operations import FACTORISATIONS, OPERATIONS, operands
from cuanto.kernels.build import general_source
from cuanto.log import logger
from cuanto.workers import usable_cores

DRIVERS = ("libcuda.so.1", "nvcuda.dll")
MAJOR, MINOR = 75, 76
"""Attributes CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""
MAX_PROCESSES = 14
STARTED = threading.Event()
"""Set when this process has begun to prepare CuPy's operations."""
STARTING = threading.Lock()
"""Lock of `STARTED`."""
UNUSED_SECONDS = 60.0
"""Seconds after which processes that no calculation has used, because its input was refused, are closed."""


def driver_architecture(then: Callable[[str], None] = lambda _: None) -> str:
    """The first GPU's architecture (`sm_90`) as reported by the driver; empty if there is no driver or no GPU.

    `then` is called with it before the context is created, which takes a tenth of a second; CuPy uses this context.
    """
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
    architecture = "sm_{}{}".format(*found)
    then(architecture)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), device)
    return architecture


@cache
def cupy_installed() -> bool:
    """Whether CuPy is installed; does not import it."""
    return find_spec("cupy") is not None


@cache
def begin() -> threading.Thread:
    """If there is a GPU, start compiling the kernel for all classes of integrals, and start processes for CuPy's."""

    def compile_general(architecture: str) -> None:
        compilers_for(architecture).request(general_source("group", "double"))
        if not _filled(_mark(architecture)):
            _processes()
            timer = threading.Timer(UNUSED_SECONDS, _close_unused)
            timer.daemon = True
            timer.start()

    def run() -> None:
        try:
            driver_architecture(compile_general)
        except Exception as error:  # such as no NVRTC, which the calculation reports
            logger.debug("kernels could not be compiled ahead: %s", error)

    thread = threading.Thread(target=run, name="cuanto-begin", daemon=True)
    thread.start()
    return thread


@cache
def _processes() -> CompilingProcesses:
    return CompilingProcesses(_process_count())


def _close_unused() -> None:
    with STARTING:
        if not STARTED.is_set():
            _processes().close()
            _processes.cache_clear()


def _process_count() -> int:
    return max(1, min(MAX_PROCESSES, usable_cores() - 1))


def prepare(cupy: Any, compilers: Compilers) -> None:
    """Compile CuPy's kernels in the background, unless they are in its cache."""
    mark = _mark(compilers.architecture)
    if STARTED.is_set() or _filled(mark):
        return
    begin().join()
    device, given = cupy.cuda.Device().id, operands(cupy)
    with STARTING:
        if STARTED.is_set():
            return
        STARTED.set()
        processes = _processes()
    substitute = Substitute(cupy.cuda.compiler, processes, compilers.architecture)
    threads = Background(_process_count(), "cuanto-operations", finish_running=True)
    calls = [partial(call, cupy, given) for call in (*FACTORISATIONS, *OPERATIONS)]
    first, *others = [partial(_run, cupy, device, call) for call in calls]

    def run() -> None:
        substitute.install()
        with suppress(CancelledError):  # the process ends
            tasks = [threads.submit(first)]  # alone until CuPy has identified the compiler, which it does once
            tasks[0].add_done_callback(lambda _: substitute.called.set())  # its kernel may be in CuPy's cache
            substitute.called.wait()
            tasks += [threads.submit(other) for other in others]
            for task in tasks:
                task.result()
            disk.write(mark, b"")
        substitute.remove()
        processes.close()

    threading.Thread(target=run, name="cuanto-prepare", daemon=True).start()


def _run(cupy: Any, device: int, call: Callable[[], Any]) -> None:
    try:
        with cupy.cuda.Device(device):
            call()
    except Exception as error:  # the calculation will raise it again, or does not need the operation
        logger.debug("an operation of CuPy could not be prepared: %s", error)


def _mark(architecture: str) -> Path:
    """File whose existence says that CuPy's cache has all operations."""
    spec = find_spec("cupy")  # without importing it
    version = Path(spec.origin).stat().st_mtime_ns if spec is not None and spec.origin else 0
    listed = (files("cuanto.backends.cuda") / "operations.py").read_text()  # another list has another mark
    parts = (architecture, str(_cupy_cache()), listed, str(version))
    return disk.cache_folder() / f"{disk.key(parts)}.operations"


def _cupy_cache() -> Path:
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def _filled(mark: Path) -> bool:
    """Whether the operations were prepared, and CuPy's cache was not deleted since."""
    with suppress(OSError), os.scandir(_cupy_cache()) as entries:
        return mark.exists() and any(True for _ in entries)
    return False
