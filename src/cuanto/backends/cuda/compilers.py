"""Binaries of kernels: from the cache, or compiled in threads of this process or by a helper process.

Kernels that a calculation waits for are compiled in threads. Those that are needed `later`, because another kernel
serves until then, are left to the helper (`helper.py`), which finishes them even if this process ends first.
"""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from cuanto.backends import cache as disk
from cuanto.backends.background import LATER, Background
from cuanto.backends.base import Class
from cuanto.backends.cuda.helper import Helper, binary_path, expected_kernel, start_helper
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.kernels.text import Source
from cuanto.workers import usable_cores

OPTIONS = ("--fmad=true",)


class Compilers:
    """Compiles kernels for one GPU architecture, such as `sm_90`."""

    def __init__(self, architecture: str) -> None:
        self.architecture = architecture
        self._threads = Background(usable_cores(), "cuanto-nvrtc", finish_running=True)
        self._helper: Helper | None = None
        self._futures: dict[str, Future[bytes]] = {}
        self._later: set[str] = set()
        self._cached: set[str] = set()
        self._lock = threading.Lock()

    def path(self, source: Source) -> Path:
        """The file of a kernel in the cache."""
        return binary_path(source.hash, self.architecture, OPTIONS)

    def request(self, source: Source, later: bool = False) -> Future[bytes] | None:
        """Start compiling a kernel unless that was done before; None if it is in the cache."""
        if source.hash in self._cached:
            return None
        with self._lock:
            known = self._futures.get(source.hash)
            if known is not None and (later or source.hash not in self._later or known.done()):
                return known
            if known is None and disk.complete(self.path(source)):
                self._cached.add(source.hash)
                return None
            if later:
                self._later.add(source.hash)
                future = self._by_helper(source)
            else:
                self._later.discard(source.hash)
                future = self._threads.submit(lambda: self.binary(source))
            self._futures[source.hash] = future
            return future

    def expect(self, given: Class, columns: int, real: str, consumer: str) -> None:
        """Have the helper process generate and compile a straight-line kernel, for later calculations."""
        job = expected_kernel(given, columns, real, consumer)
        with self._lock:
            if (key := json.dumps(job)) not in self._futures:
                job |= {"arch": self.architecture, "options": OPTIONS}
                self._futures[key] = self._running_helper().submit(job) or _no_binary()

    def binary(self, source: Source) -> bytes:
        """The machine code, from the cache when it is there."""
        path = self.path(source)
        if (found := disk.read(path)) is not None:
            return found
        binary, _ = compile_nvrtc(source.text, self.architecture, OPTIONS)
        disk.write(path, binary)
        return binary

    def wait(self, source: Source) -> None:
        """Wait for a kernel if it is being compiled; one that the helper has queued is compiled here."""
        if (future := self.request(source)) is not None:
            future.result()

    def finish(self) -> None:
        """Wait for every kernel requested so far, whether it compiles or not."""
        for future in list(self._futures.values()):
            future.exception()

    def _running_helper(self) -> Helper:
        if self._helper is None:
            self._helper = start_helper(usable_cores())
        return self._helper

    def _by_helper(self, source: Source) -> Future[bytes]:
        job: dict[str, Any] = {"path": str(self.path(source)), "text": source.text}
        job |= {"arch": self.architecture, "options": OPTIONS}
        return self._running_helper().submit(job) or self._threads.submit(lambda: self.binary(source), LATER)


def _no_binary() -> Future[bytes]:
    """An empty binary, for a request that there is no helper to answer."""
    future: Future[bytes] = Future()
    future.set_result(b"")
    return future


def compilers_for(architecture: str) -> Compilers:
    """The compilers of this process for the cache in use."""
    return _compilers(architecture, disk.cache_folder())


@cache
def _compilers(architecture: str, _folder: Path) -> Compilers:
    return Compilers(architecture)


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_compilers.cache_clear)
