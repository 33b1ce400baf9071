"""Separate processes that compile kernels: one at low priority, which finishes them even if the calculation has ended,
and several with one thread each.

A call of NVRTC cannot be abandoned safely, so compiling in threads would delay the end of a short calculation by
seconds. Requests are numbered lines of JSON: a text, with the path of the binary in the cache if it is to be kept, or
a class of integrals whose kernel is to be generated and kept (`expected_kernel`), after all texts. Answers are lines of
JSON: the number, the binary, and the error message, if any.

NumPy is imported only to generate kernels: several processes start while the calculation imports its modules.
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
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from cuanto.backends import cache as disk
from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version
from cuanto.errors import CompilerError
from cuanto.workers import python_environment

if TYPE_CHECKING:
    from cuanto.backends.base import Class

NICENESS = 10
"""Niceness of a helper: no calculation waits for its kernels."""
TIME_LIMIT = 120.0
"""Seconds for which the helper goes on after the calculation has ended."""

EMPTY = 'extern "C" __global__ void empty() {}'
"""A kernel without statements."""
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
    from cuanto.backends.base import class_to_json

    return {"class": class_to_json(given), "columns": columns, "real": real, "consumer": consumer}


class Helper:
    """Talks to a process that `start_helper` or `fork_helpers` has started; threads write requests and read answers."""

    def __init__(self, streams: tuple[IO[bytes], IO[bytes]] | None, process: subprocess.Popen[bytes] | None) -> None:
        """`streams`: for requests and answers, None if there is no process. `process`: whose end is waited for."""
        self._waiting: dict[int, Future[bytes]] = {}
        self._numbers = count()
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._ended = streams is None
        if streams is not None:
            for target, arguments in ((self._write, streams[:1]), (self._read, (streams[1], process))):
                threading.Thread(target=target, args=arguments, name="cuanto-helper", daemon=True).start()

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

    def _write(self, stream: IO[bytes]) -> None:
        with suppress(OSError):  # the process has ended
            while (job := self._requests.get()) is not None:
                stream.write(json.dumps(job).encode() + b"\n")
                stream.flush()
            stream.close()

    def _read(self, stream: IO[bytes], process: subprocess.Popen[bytes] | None) -> None:
        with stream, suppress(ValueError):  # the last line of a killed process may be incomplete
            for line in stream:
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
        if process is not None:
            process.wait()


def start_helper(threads: int) -> Helper:
    """Start a process of low priority with some compiling threads."""
    try:
        process = _start([str(threads), str(NICENESS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError:
        return Helper(None, None)
    assert process.stdin is not None and process.stdout is not None
    return Helper((process.stdin, process.stdout), process)


def fork_helpers(number: int) -> list[Helper]:
    """Start processes of usual priority with one thread each, none where there is no `fork`.

    They are forked from one process that has loaded NVRTC, because starting Python and loading NVRTC takes 0.2 s of a
    processor, while the calculation imports its modules.
    """
    if not number or not hasattr(os, "fork"):
        return []
    pipes = [(*os.pipe(), *os.pipe()) for _ in range(number)]
    theirs = [(requests, answers) for requests, _, _, answers in pipes]
    process = None
    with suppress(OSError):
        pairs = [f"{requests}:{answers}" for requests, answers in theirs]
        process = _start(["1", "0", *pairs], pass_fds=[end for pair in theirs for end in pair])
    for end in (end for pair in theirs for end in pair):
        os.close(end)
    streams = [(os.fdopen(requests, "wb"), os.fdopen(answers, "rb")) for _, requests, answers, _ in pipes]
    return [Helper(both, None if k else process) for k, both in enumerate(streams)]


def _start(arguments: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", __name__, *arguments],
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipes},
        stderr=subprocess.DEVNULL,
        env=python_environment(),
        start_new_session=True,
    )


def main() -> None:
    """Run a helper: compile until the input is closed and all requests are answered."""
    threads, niceness, *pipes = sys.argv[1:]
    os.nice(int(niceness))
    requests, answers = _fork(pipes) if pipes else (sys.stdin.buffer, sys.stdout.buffer)
    jobs: Jobs = queue.PriorityQueue()
    lock = threading.Lock()
    workers = [threading.Thread(target=_work, args=(jobs, answers, lock), daemon=True) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    with suppress(ValueError):  # the last line may be incomplete
        for line in requests:
            job = json.loads(line)
            jobs.put(("class" in job, job["number"], job))
    end = time.monotonic() + TIME_LIMIT
    for _ in workers:
        jobs.put((True, LAST, None))
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
    os._exit(0)  # a compilation that takes too long is abandoned


def _fork(pipes: Sequence[str]) -> tuple[IO[bytes], IO[bytes]]:
    """Load NVRTC, and fork a process for every pair of pipes, in which this function returns; this process ends."""
    with suppress(Exception):  # each request will be answered with the error
        compile_nvrtc(EMPTY)
    pairs = [tuple(int(end) for end in pair.split(":")) for pair in pipes]
    for own in pairs:
        if os.fork() == 0:
            for end in (end for pair in pairs if pair != own for end in pair):
                os.close(end)
            return os.fdopen(own[0], "rb"), os.fdopen(own[1], "wb")
    os._exit(0)


def _work(jobs: Jobs, answers: IO[bytes], lock: threading.Lock) -> None:
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
        with lock, suppress(OSError):  # the calculation may have ended
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _compile(job: Mapping[str, Any]) -> bytes:
    path = job["path"] and Path(job["path"])
    found = disk.read(path) if path else None
    binary = found or compile_nvrtc(job["text"], job["arch"], job["options"])[0]
    if path and found is None:
        disk.write(path, binary)
    return binary


def _generate(job: Mapping[str, Any]) -> dict[str, Any]:
    """Path and text of the kernel of a class; an empty text if straight-line code does not suit the class."""
    from cuanto.backends.base import class_from_json
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
