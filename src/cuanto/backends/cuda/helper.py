"""A separate process that compiles kernels at low priority, and finishes them even if the calculation has ended.

A call of NVRTC cannot be abandoned safely, so compiling in threads would delay the end of a short calculation by
seconds. Requests are numbered lines of JSON on the standard input: a text, with the path of the binary in the cache if
it is to be kept, or a class of integrals whose kernel is to be generated and kept (`expected_kernel`), after all
texts. Answers are lines of JSON on the standard output: the number, the binary, and the error message, if any.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from cuanto.backends import cache as disk
from cuanto.backends.base import Class, class_from_json, class_to_json
from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version
from cuanto.errors import CompilerError
from cuanto.workers import python_environment

NICENESS = 10
"""Niceness of a helper: no calculation waits for its kernels."""
TIME_LIMIT = 120.0
"""Seconds for which the helper goes on after the calculation has ended."""

LAST = 2**62
"""Number of the requests that end the threads."""
GENERATING = threading.Lock()

Jobs: TypeAlias = "queue.PriorityQueue[tuple[bool, int, Any]]"


def binary_path(text_hash: str, architecture: str, options: Sequence[str]) -> Path:
    """The file of a kernel in the cache."""
    parts = (text_hash, *options, architecture, str(nvrtc_version()))
    return disk.file_path(f"{disk.key(parts)}.cubin")


def expected_kernel(given: Class, columns: int, real: str, consumer: str) -> dict[str, Any]:
    """Request for a straight-line kernel, which later calculations will use."""
    return {"class": class_to_json(given), "columns": columns, "real": real, "consumer": consumer}


class Helper:
    """Starts the process and talks to it; two threads write requests and read answers."""

    def __init__(self, threads: int, niceness: int = NICENESS) -> None:
        self._waiting: dict[int, Future[bytes]] = {}
        self._numbers = count()
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._ended = False
        try:
            process = self._start(threads, niceness)
        except OSError:
            self._ended = True
            return
        for target in (self._write, self._read):
            threading.Thread(target=target, args=(process,), name="cuanto-helper", daemon=True).start()

    def submit(self, job: Mapping[str, Any]) -> Future[bytes] | None:
        """Request a binary; None if there is no helper."""
        future: Future[bytes] = Future()
        with self._lock:
            if self._ended:
                return None
            number = next(self._numbers)
            self._waiting[number] = future
        self._requests.put({**job, "number": number})
        return future

    def close(self) -> None:
        """Send no more requests; the process ends when it has finished."""
        self._requests.put(None)

    @staticmethod
    def _start(threads: int, niceness: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(threads), str(niceness)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=python_environment(),
            start_new_session=True,
        )

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with suppress(OSError):  # the process has ended
            while (job := self._requests.get()) is not None:
                process.stdin.write(json.dumps(job).encode() + b"\n")
                process.stdin.flush()
            process.stdin.close()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout, suppress(ValueError):  # the last line of a killed process may be incomplete
            for line in process.stdout:
                answer = json.loads(line)
                future = self._waiting.pop(answer["number"])
                if answer["error"]:
                    future.set_exception(CompilerError(answer["error"]))
                else:
                    future.set_result(b64decode(answer["binary"]))
        with self._lock:
            self._ended = True
        for future in self._waiting.values():
            future.set_exception(CompilerError("the process that compiles kernels has ended"))
        process.wait()


def main() -> None:
    """Run the helper: compile until the input is closed and all requests are answered."""
    os.nice(int(sys.argv[2]))
    jobs: Jobs = queue.PriorityQueue()
    answers = threading.Lock()
    workers = [threading.Thread(target=_work, args=(jobs, answers), daemon=True) for _ in range(int(sys.argv[1]))]
    for worker in workers:
        worker.start()
    with suppress(ValueError):  # the last line may be incomplete
        for line in sys.stdin.buffer:
            job = json.loads(line)
            jobs.put(("class" in job, job["number"], job))
    end = time.monotonic() + TIME_LIMIT
    for _ in workers:
        jobs.put((True, LAST, None))
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
    os._exit(0)  # a compilation that takes too long is abandoned


def _work(jobs: Jobs, answers: threading.Lock) -> None:
    while (job := jobs.get()[2]) is not None:
        error, binary = "", b""
        try:
            if "class" in job:
                job |= _generate(job)
            if job["text"]:
                binary = _compile(job)
        except Exception as problem:  # whatever it is, the calculation waits for an answer
            error = str(problem) or type(problem).__name__
        answer = {"number": job["number"], "error": error, "binary": b64encode(binary).decode()}
        with answers, suppress(OSError):  # the calculation may have ended
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _compile(job: Mapping[str, Any]) -> bytes:
    path = job["path"] and Path(job["path"])
    found = disk.read(path) if path else None
    binary = found or compile_nvrtc(job["text"], job["arch"], job["options"])[0]
    if path and found is None:
        disk.write(path, binary)
    return binary


def _generate(job: Mapping[str, Any]) -> dict[str, Any]:
    """Path and text of the kernel of a class; an empty text if straight-line code does not suit the class."""
    from cuanto.backends.kinds import Kind

    with GENERATING:  # Python code does not run in parallel anyway, and one graph at a time needs less memory
        kind = Kind(*class_from_json(job["class"]), job["columns"])
        source = kind.source(job["real"], job["consumer"]) if kind.straight else None
        disk.flush()
    if source is None:
        return {"path": None, "text": ""}
    return {"path": str(binary_path(source.hash, job["arch"], job["options"])), "text": source.text}


if __name__ == "__main__":
    main()
