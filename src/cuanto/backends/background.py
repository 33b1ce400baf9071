"""Work that must not keep the interpreter alive: compilations nobody waits for."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from cuanto.log import logger

T = TypeVar("T")


def ready(future: Future[Any]) -> bool:
    """Is there a result? A failed compilation is no reason to fail where another kernel serves."""
    return future.done() and not future.cancelled() and future.exception() is None


class Background:
    """A few daemon threads with a queue. What is still queued when the interpreter ends is dropped.

    `finish_running`: what is under way is waited for at the end (code inside a library cannot be abandoned safely); a
    compiler in a process of its own needs no waiting.
    """

    def __init__(self, threads: int, name: str, finish_running: bool) -> None:
        self._threads, self._name, self._finish_running = threads, name, finish_running
        self._queue: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}
        self._workers: list[threading.Thread] = []
        self._ending = False
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Start as soon as a thread is free."""
        with self._lock:
            if not self._workers:
                self._start()
        future: Future[T] = Future()
        self._waiting[future] = call
        self._queue.put(future)
        return future

    def result(self, future: Future[T], urgently: Callable[[], T]) -> T:
        """Wait for a result; what nobody has begun is done here and now, by another call."""
        if self._waiting.pop(future, None) is not None:
            self._run(future, urgently)
        return future.result()

    def _start(self) -> None:
        for k in range(self._threads):
            worker = threading.Thread(target=self._work, name=f"{self._name}-{k}", daemon=True)
            worker.start()
            self._workers.append(worker)
        atexit.register(self._end)

    def _work(self) -> None:
        while (future := self._queue.get()) is not None:
            call = self._waiting.pop(future, None)
            if call is None:
                continue  # somebody could not wait
            if self._ending:
                future.cancel()
                continue
            try:
                self._run(future, call)
            except BaseException as error:
                logger.warning("a kernel could not be compiled; the general one serves: %s", str(error)[-300:])

    @staticmethod
    def _run(future: Future[T], call: Callable[[], T]) -> None:
        """Errors are also delivered to whoever asks for the result."""
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
                self._queue.put(None)
            for worker in self._workers:
                worker.join()
