"""Events and timers: what a calculation did and how long each part took.

Everything goes through the standard logger ``cuanto``, silent unless somebody (``cuanto --verbose``) listens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

WORTH_SAYING = 1e-3
"""Seconds; steps that are faster are for `logging.DEBUG`."""

logger = logging.getLogger("cuanto")
logger.addHandler(logging.NullHandler())
_step = ContextVar("step", default="kernels")


def report_progress(done: float) -> None:
    """Say how much of the kernels is done that the step being measured waits for."""
    logger.info("%s: %.0f %% of the work launched is done", _step.get(), 100 * done)


@dataclass(frozen=True)
class Timings:
    """Wall-clock seconds by name, in the order of first use; the same name measured again adds up.

    ``synchronize`` is called at both ends of a measurement: a device starts work long before it is done.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    synchronize: Callable[[], object] | None = None

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        self._wait()
        start, outer = time.perf_counter(), _step.get()
        _step.set(name)
        try:
            yield
        finally:
            _step.set(outer)
            self._wait()
            elapsed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed
            logger.log(logging.INFO if elapsed >= WORTH_SAYING else logging.DEBUG, "%s: %.3f s", name, elapsed)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def _wait(self) -> None:
        if self.synchronize is not None:
            self.synchronize()
