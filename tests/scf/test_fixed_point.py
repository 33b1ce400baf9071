"""The loop of every SCF, on the fixed point of the cosine."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos

import pytest

from cuanto.scf.fixed_point import iterations


@dataclass(frozen=True)
class Value:
    iteration: int
    x: float
    change: float
    converged: bool


@dataclass
class Cosine:
    """Stops below `lowest`; counts how often the next point was requested."""

    lowest: float = -1.0
    iterations: list[int] = field(default_factory=list)

    def evaluate(self, point: float, iteration: int, before: Value | None) -> Value:
        change = float("inf") if before is None else abs(point - before.x)
        return Value(iteration, point, change, change < 1e-10)

    def advance(self, current: Value) -> float | None:
        self.iterations.append(current.iteration)
        return cos(current.x) if cos(current.x) > self.lowest else None


def test_the_loop_ends_at_convergence() -> None:
    *_, last = found = list(iterations(Cosine(), 1.0, 200))
    assert last.converged and last.x == pytest.approx(0.7390851332151607, abs=1e-9)
    assert [result.iteration for result in found] == list(range(1, len(found) + 1))
    assert not any(result.converged for result in found[:-1])


def test_no_step_follows_the_last_iteration() -> None:
    """Steps are only taken when needed."""
    map_ = Cosine()
    states = iterations(map_, 1.0, 5)
    next(states)
    assert map_.iterations == []
    assert len(list(states)) == 4 and map_.iterations == [1, 2, 3, 4]
    assert list(iterations(map_, 1.0, 0)) == []


def test_the_loop_ends_without_a_next_point() -> None:
    found = list(iterations(Cosine(lowest=0.6), 1.0, 200))
    assert len(found) == 1 and not found[0].converged  # cos 1 = 0.54
