"""Runners of independent tasks: in this process, or on a Dask cluster.

Dask: M. Rocklin, Proc. 14th Python in Science Conf. (2015) 126, doi:10.25080/Majora-7b98e3ed-013. A worker that dies is
replaced, and its task is given to another one; a task that Dask gives up on is returned as an error.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from cuanto.errors import CuantoError, InputError, import_optional

Function = Callable[[dict[str, Any]], dict[str, Any]]
Result = tuple[str, dict[str, Any] | BaseException]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CUANTO_THREADS"), "1")
CONNECT_SECONDS = 20
ADDRESS = re.compile(r"inproc://\S+|(\w+://)?[^\s/]+:\d{1,5}/?")


class Runner(Protocol):
    """Takes tasks and returns their results as they finish."""

    def submit(self, key: str, function: Function, task: dict[str, Any]) -> None: ...

    def next(self) -> Result: ...


class SerialRunner:
    """Runs tasks one after another in this process."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Function, dict[str, Any]]] = deque()

    def submit(self, key: str, function: Function, task: dict[str, Any]) -> None:
        self._waiting.append((key, function, task))

    def next(self) -> Result:
        key, function, task = self._waiting.popleft()
        try:
            return key, function(task)
        except Exception as error:
            return key, error


class DaskRunner:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(self, scheduler: str) -> None:
        self._distributed = dask_distributed()
        self.client: Any = self._connect(scheduler)
        with self.client.as_current():
            self._finished: Any = self._distributed.as_completed()
        self._key_of: dict[str, str] = {}  # key of the future -> key of the task
        self._count = 0

    def _connect(self, scheduler: str) -> Any:
        if not ADDRESS.fullmatch(scheduler):  # Dask would leave an unfinished client behind
            raise InputError(
                f"no Dask scheduler answers at {scheduler:.200}: write HOST:PORT, such as tcp://node1:8786"
            )
        try:
            return self._distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            text = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler answers at {scheduler}: {text}") from None

    def submit(self, key: str, function: Function, task: dict[str, Any]) -> None:
        self._count += 1
        name = f"cuanto-{key}-{self._count}"
        self._key_of[name] = key
        self._finished.add(self.client.submit(function, task, key=name, pure=False))

    def next(self) -> Result:
        future = next(self._finished)
        key = self._key_of.pop(future.key)
        if future.status == "finished":
            return key, future.result()
        if future.status == "cancelled":
            raise CuantoError("the Dask scheduler is gone; finished results are kept: run the same command to continue")
        error = future.exception()
        return key, error if isinstance(error, BaseException) else CuantoError(str(error))

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()


def dask_distributed() -> Any:
    message = "a cluster needs Dask (pip install 'dask[distributed]'); --workers 0 works without it"
    return import_optional("distributed", message)


def python_environment() -> dict[str, str]:
    """Environment of a child process that imports modules from where this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder)}


def usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
