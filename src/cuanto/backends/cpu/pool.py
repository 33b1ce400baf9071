"""The pool of native threads (`pool.h`): one call runs all items of a list of launches."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from cuanto import tuning
from cuanto.backends.cpu.compiler import load_library
from cuanto.kernels.text import Source
from cuanto.log import report_progress

SLICE = 0.1
"""Seconds after which the calling thread returns to the interpreter, for signals such as Ctrl-C."""
PROGRESS_SECONDS = 5.0
"""Seconds between progress reports of a long job."""
CHUNKS = 64
"""Chunks of a launch with sums, for any number of threads: results are bitwise reproducible."""
CHUNKS_PER_THREAD = tuning.size("cpu", "threads.chunks")

_LAUNCH = struct.Struct("9q")
_VARIANT = struct.Struct("2q")


class Variant:
    """Address of a compiled entry point with packed arguments, and the objects that they point to."""

    def __init__(self, entry: int, arguments: bytes, keep: Any) -> None:
        self._alive = arguments, keep
        self.packed = ctypes.cast(ctypes.c_char_p(arguments), ctypes.c_void_p).value or 0
        self._record = ctypes.create_string_buffer(_VARIANT.pack(entry, self.packed))
        self.address = ctypes.addressof(self._record)


@dataclass(frozen=True)
class NativeLaunch:
    """Items in chunks of `grain`; kernels are run one after the other on each chunk.

    `scratch`: bytes per thread. `sums`: numbers per chunk, which are added to the array at the address `target` or
    passed to the entry point `merge` with the arguments of the first kernel.
    """

    variants: Sequence[Variant]
    items: int
    grain: int = 1
    scratch: int = 0
    sums: int = 0
    target: int = 0
    merge: int = 0

    @cached_property
    def _addresses(self) -> Any:
        return (ctypes.c_void_p * len(self.variants))(*(variant.address for variant in self.variants))

    def packed(self) -> bytes:
        """The record that the pool reads; its last number is set by the pool."""
        target = self.variants[0].packed if self.merge else self.target
        numbers = self.items, self.grain, self.scratch, self.sums, target, self.merge
        return _LAUNCH.pack(ctypes.addressof(self._addresses), len(self.variants), *numbers, 0)


_loading = threading.Lock()
"""Lock held while the pool is compiled, so that other threads wait instead of compiling it again."""


def load_pool() -> ctypes.CDLL:
    """The compiled pool."""
    with _loading:
        return _library()


def _forget_lock() -> None:
    global _loading
    _loading = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)  # the thread that held it does not exist in the child


@cache
def _library() -> ctypes.CDLL:
    text = files("cuanto.backends.cpu").joinpath("pool.h").read_text()
    library = load_library(Source(text, "pool_run", "cpu", ()))
    whole, pointer = ctypes.c_longlong, ctypes.c_void_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "pool_job": (pointer, [ctypes.c_char_p, whole, whole]),
        "pool_run": (ctypes.c_int, [pointer, ctypes.c_double]),
        "pool_progress": (ctypes.c_double, [pointer]),
        "pool_end": (None, [pointer]),
    }
    for name, (result, parameters) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


class Pool:
    """Native threads including the calling one; the others are started when first needed.

    Safe to use from several Python threads and from forked processes.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def run(self, launches: Sequence[NativeLaunch]) -> None:
        """Run all items of all launches, in any order; sums are added in the order of the chunks."""
        if not launches:
            return
        library, records = load_pool(), b"".join(launch.packed() for launch in launches)
        job = library.pool_job(records, len(launches), self.threads)
        if not job:
            raise MemoryError("no memory for a list of launches")
        try:
            last_report = time.monotonic()
            while (status := library.pool_run(job, SLICE)) == 0:
                if time.monotonic() > last_report + PROGRESS_SECONDS:
                    last_report = time.monotonic()
                    report_progress(library.pool_progress(job))
        finally:
            library.pool_end(job)
        if status < 0:
            raise MemoryError("no memory for the threads of a kernel: set CUANTO_THREADS to fewer")
