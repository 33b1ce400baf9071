"""Stages of an SCF: from descent to DIIS and back."""

from __future__ import annotations

from typing import Any

import pytest

import cuanto
from cuanto.scf import converge
from cuanto.scf.converge import STALLED, Watch
from cuanto.scf.descent import descend
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


@pytest.mark.parametrize(("steps", "descents"), [(1, 2), (25, 3)])
def test_a_slow_descent_is_not_repeated(steps: int, descents: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton steps follow if a descent has not reduced the gradient enough: in the flat valley of CoCl2
    (RI-HF/def2-SVP, quartet) a second descent left too few of the 100 iterations for them."""
    calls: list[int] = []

    def counted(*given: Any) -> Any:
        calls.append(len(calls))
        return descend(*given)

    monkeypatch.setattr(converge, "descend", counted)
    monkeypatch.setattr(converge, "MAX_DESCENT", steps)
    monkeypatch.setattr(converge.Watch, "climbs", lambda self, state: self.floor is not None and not state.converged)
    water = cuanto.Molecule.from_string("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n", charge=1)
    options: dict[str, Any] = {"fitting": "none", "backend": "cpu", "search": "none", "accelerator": "descent"}
    found = cuanto.energy(water, "uhf", "sto-3g", **options, gradient_tolerance=1e-7)
    assert found.converged and len(calls) == descents
