"""Stages of an SCF: from descent to DIIS and back."""

from __future__ import annotations

import pytest

from cuanto.scf.converge import STALLED, Watch
from cuanto.scf.state import State


def state(energy: float, gradient: float, converged: bool = False) -> State:
    return State(1, energy, {}, gradient=gradient, converged=converged)


def test_a_rise_of_the_energy_beyond_what_the_gradient_explains() -> None:
    watch = Watch(state(-1.0, 1e-3))
    assert not watch.climbs(state(-1.0 + 5e-6, 1e-3))  # 1e-6/0.1
    assert not watch.climbs(state(-1.0 - 1e-5, 1e-4))
    assert not watch.climbs(state(-1.0 - 1e-5 + 5e-7, 1e-5))
    assert watch.climbs(state(-1.0 - 1e-5 + 2e-6, 1e-5))


def test_a_gradient_that_does_not_shrink() -> None:
    watch = Watch(state(-1.0, 1e-3))
    assert [watch.climbs(state(-1.0, 1e-4)) for _ in range(STALLED + 1)] == [False] * STALLED + [True]


@pytest.mark.parametrize(("floor", "last"), [(None, state(1.0, 1.0)), (state(-1.0, 1e-3), state(1.0, 1.0, True))])
def test_what_is_not_watched(floor: State | None, last: State) -> None:
    assert not Watch(floor).climbs(last)
