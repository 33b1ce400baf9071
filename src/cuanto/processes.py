"""Worker processes on this machine; only the standard library is needed.

A process is started afresh (nothing is forked, and the main script is not imported again); tasks and answers are lines
of JSON. A process that dies loses only its own task, and another one takes its place.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from cuanto.errors import CuantoError
from cuanto.workers import ONE_THREAD, Function, Result

SERVE = "import sys; sys.path.append(sys.argv[1]); from cuanto.processes import serve; serve()"


class LostWorkerError(CuantoError):
    """A process ended before it had finished its task."""


class TaskError(CuantoError):
    """An error that a function raised in another process."""


class _Worker:
    """A process and the key of its current task."""

    def __init__(self) -> None:
        here = str(Path(__file__).parents[1])
        self.key = ""
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, here],  # -P: do not import modules from the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env={**os.environ, **ONE_THREAD},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.tasks, self.answers = self.process.stdin, self.process.stdout

    def ask(self, key: str, function: Function, task: dict[str, Any]) -> None:
        self.key = key
        line = json.dumps({"function": [function.__module__, function.__qualname__], "task": task}) + "\n"
        with suppress(OSError):  # the process is dead; reading its answers will show that
            self.tasks.write(line.encode())
            self.tasks.flush()

    def answer(self) -> Result:
        line = self.answers.readline()
        if not line.endswith(b"\n"):
            return self.key, self._lost()
        key, self.key, found = self.key, "", json.loads(line)
        return key, found["result"] if "result" in found else TaskError(found["error"])

    def _lost(self) -> LostWorkerError:
        status = self.process.wait()
        end = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        if -status == signal.SIGKILL:
            end += " (out of memory?)"
        self.stderr.seek(0)
        last = self.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
        return LostWorkerError(f"the worker process {end}" + "".join(f": {line}" for line in last))

    def close(self) -> None:
        """Stop the process; its task is lost."""
        with suppress(OSError):
            self.tasks.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()
        self.stderr.close()


class ProcessRunner:
    """Run tasks in processes of one thread each, at most `workers` at a time."""

    def __init__(self, workers: int) -> None:
        self._most = workers
        self._waiting: deque[tuple[str, Function, dict[str, Any]]] = deque()
        self._workers: list[_Worker] = []
        self._answers = selectors.DefaultSelector()

    def submit(self, key: str, function: Function, task: dict[str, Any]) -> None:
        self._waiting.append((key, function, task))
        self._feed()

    def next(self) -> Result:
        """Wait for the first process that finishes its task."""
        while True:
            self._feed()
            found, _ = self._answers.select()[0]
            worker: _Worker = found.data
            key, result = worker.answer()
            if isinstance(result, LostWorkerError):
                self._dismiss(worker)
            if key:  # else it died without a task
                self._feed()
                return key, result

    def _feed(self) -> None:
        while self._waiting:
            idle = next((worker for worker in self._workers if not worker.key), None)
            if idle is None:
                if len(self._workers) >= self._most:
                    return
                idle = _Worker()
                self._workers.append(idle)
                self._answers.register(idle.answers, selectors.EVENT_READ, idle)
            idle.ask(*self._waiting.popleft())

    def _dismiss(self, worker: _Worker) -> None:
        self._answers.unregister(worker.answers)
        self._workers.remove(worker)
        worker.close()

    def __enter__(self) -> ProcessRunner:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)
        self._answers.close()


def serve() -> None:
    """Main loop of a worker process; it ends when its standard input is closed, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps other output out of the answers
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        answers.write(json.dumps(_answer(json.loads(tasks.get()))).encode() + b"\n")
        answers.flush()


def _listen(tasks: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        tasks.put(line)
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    module, name = request["function"]
    try:
        return {"result": getattr(import_module(module), name)(request["task"])}
    except Exception as error:
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())}
