"""Background threads for compilations, which must not keep the interpreter alive."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, TypeVar

from cuanto.log import logger

T = TypeVar("T")

NEEDED, LATER = range(2)
"""Priorities: a calculation waits for the result, or uses another kernel meanwhile."""


def ready(future: Future[Any]) -> bool:
    """Whether there is a result; a failed compilation counts as none, because another kernel can be used."""
    return future.done() and not future.cancelled() and future.exception() is None


def failed(future: Future[Any]) -> bool:
    """Whether a call failed or was cancelled."""
    return future.done() and not ready(future)


class Background:
    """Daemon threads with a queue by priority; calls still queued when the interpreter exits are dropped.

    `finish_running`: wait at exit for running calls (a call into a library cannot be abandoned safely; a compiler in a
    separate process can).
    """

    def __init__(self, threads: int, name: str, finish_running: bool) -> None:
        self._threads, self._name, self._finish_running = threads, name, finish_running
        self._queue: queue.PriorityQueue[tuple[int, int, Future[Any] | None]] = queue.PriorityQueue()
        self._number = count()
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}
        self._workers: list[threading.Thread] = []
        self._ending = False
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T], priority: int = NEEDED) -> Future[T]:
        """Queue a call behind those of the same priority."""
        with self._lock:
            if not self._workers:
                self._start()
        future: Future[T] = Future()
        self._waiting[future] = call
        self._queue.put((priority, next(self._number), future))
        return future

    def result(self, future: Future[T], fallback: Callable[[], T]) -> T:
        """Wait for a result; if no thread has started the call yet, run `fallback` in this thread instead."""
        if self._waiting.pop(future, None) is not None:
            self._run(future, fallback)
        return future.result()

    def _start(self) -> None:
        for k in range(self._threads):
            worker = threading.Thread(target=self._work, name=f"{self._name}-{k}", daemon=True)
            worker.start()
            self._workers.append(worker)
        atexit.register(self._end)

    def _work(self) -> None:
        while True:
            priority, _, future = self._queue.get()
            if future is None:
                return
            call = self._waiting.pop(future, None)
            if call is None:
                continue  # `result` runs it instead
            if self._ending:
                future.cancel()
                continue
            try:
                self._run(future, call)
            except BaseException as error:
                if priority == LATER:  # otherwise the calculation that waits for it reports the error
                    logger.warning("a kernel could not be compiled; the general one is used: %s", str(error)[-300:])

    @staticmethod
    def _run(future: Future[T], call: Callable[[], T]) -> None:
        """Run a call; its error is raised here and stored in the future."""
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
                raise

    def _end(self) -> None:
        self._ending = True
        if self._finish_running:
            for _ in self._workers:
                self._queue.put((LATER + 1, next(self._number), None))
            for worker in self._workers:
                worker.join()
