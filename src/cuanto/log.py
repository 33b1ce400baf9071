"""Logging and timers.

Everything goes to the standard logger ``cuanto``, which is silent by default (see ``cuanto --verbose``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

SHORTEST_INFO = 1e-3
"""Seconds; faster steps are logged at the level DEBUG."""

logger = logging.getLogger("cuanto")
logger.addHandler(logging.NullHandler())
_step = ContextVar("step", default="kernels")
StepListener = Callable[[str, float | None], object]
"""Called with the name of a step: with None when it begins, with its seconds when it ends."""
_listener: ContextVar[StepListener | None] = ContextVar("listener", default=None)


def report_progress(done: float) -> None:
    """Log how far the kernels of the current step have got."""
    logger.info("%s: %.0f %% of the work launched is done", _step.get(), 100 * done)
    _notify(f"{_step.get()}, {done:.0%} of the work launched", None)


@contextmanager
def step_listener(listener: StepListener) -> Iterator[None]:
    """Report the steps measured inside to the listener."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def _notify(name: str, seconds: float | None) -> None:
    if (listener := _listener.get()) is not None:
        listener(name, seconds)


@dataclass(frozen=True)
class Timings:
    """Wall-clock seconds by name, in the order of first use; the same name measured again adds up.

    ``synchronize`` is called at both ends of a measurement, since a device works asynchronously.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    synchronize: Callable[[], object] | None = None

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        self._wait()
        start, outer = time.perf_counter(), _step.get()
        _step.set(name)
        _notify(name, None)
        try:
            yield
        finally:
            _step.set(outer)
            self._wait()
            elapsed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed
            logger.log(logging.INFO if elapsed >= SHORTEST_INFO else logging.DEBUG, "%s: %.3f s", name, elapsed)
            _notify(name, elapsed)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def _wait(self) -> None:
        if self.synchronize is not None:
            self.synchronize()
