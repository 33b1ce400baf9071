"""Compile CuPy's kernels in parallel processes.

The front end of NVRTC holds a process-wide lock, and CuPy's kernels spend nearly all of their time there, because of
their headers: 94 kernels that take 0.1 s each alone took 1.2 s each in 16 threads (H200, NVRTC 13.0). While operations
are prepared, CuPy's function that calls NVRTC is therefore replaced by one that calls it in another process. If
anything unexpected happens, CuPy's own function is called.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from cuanto.backends.cuda.helper import Helper, fork_helpers

FUNCTIONS = ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc")
"""Names of CuPy's function in `cupy.cuda.compiler`, newest version first."""
STANDARD = "--std=c++17"
TIME_LIMIT = 30.0
"""Seconds to wait for a process."""


class CompilingProcesses:
    """Processes with one compiling thread each."""

    def __init__(self, count: int) -> None:
        self._all = fork_helpers(count)
        self._idle: queue.SimpleQueue[Helper] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def compile(self, text: str, architecture: str, options: Sequence[str]) -> bytes:
        """The machine code of a text; raises an error if there is no process, none becomes idle, or it fails."""
        process = self._idle.get(timeout=TIME_LIMIT if self._all else 0.0)
        try:
            job = {"path": None, "text": text, "arch": architecture, "options": list(options)}
            if (future := process.submit(job)) is None:
                raise OSError("the process has ended")
            return future.result(TIME_LIMIT)
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.close()


class Substitute:
    """Replacement of CuPy's compiling function; a text that several threads request is compiled once.

    `called`: whether it was called, which CuPy does not do before it has identified the compiler.
    """

    def __init__(self, module: Any, processes: CompilingProcesses, architecture: str) -> None:
        self._module, self._processes, self._architecture = module, processes, architecture
        self._name = next((name for name in FUNCTIONS if hasattr(module, name)), "")
        self._original: Callable[..., Any] | None = getattr(module, self._name, None)
        self._running: dict[tuple[str, tuple[str, ...]], Future[bytes]] = {}
        self._lock = threading.Lock()
        self.called = threading.Event()

    def install(self) -> None:
        """Replace CuPy's function, if it is there."""
        if self._original is not None:
            setattr(self._module, self._name, self)

    def remove(self) -> None:
        """Put CuPy's function back."""
        if self._original is not None:
            setattr(self._module, self._name, self._original)

    def __call__(self, source: str, options: tuple[str, ...] = (), arch: Any = None, *args: Any, **more: Any) -> Any:
        assert self._original is not None
        self.called.set()
        plain = not any(args[1:]) and not any(value for name, value in more.items() if name != "filename")
        if plain and f"sm_{arch}" == self._architecture and STANDARD in options:
            with suppress(Exception):
                return self._once(source, options), None
        return self._original(source, options, arch, *args, **more)

    def _once(self, source: str, options: tuple[str, ...]) -> bytes:
        key = (source, options)
        with self._lock:
            known = self._running.get(key)
            mine: Future[bytes] = self._running.setdefault(key, Future())
        if known is not None:
            return known.result(TIME_LIMIT)
        try:
            flags = [*(option for option in options if option != STANDARD), "--device-as-default-execution-space"]
            mine.set_result(self._processes.compile(source, self._architecture, flags))
        except BaseException as error:
            mine.set_exception(error)
            raise
        return mine.result()
