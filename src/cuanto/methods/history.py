"""Iterations of an SCF, as they are recorded with a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cuanto.scf.state import State


@dataclass(frozen=True)
class Iteration:
    """One iteration: energies in Hartree, and the kind of step."""

    iteration: int
    energy: float
    energy_change: float
    gradient: float
    step: str

    @classmethod
    def of(cls, state: State) -> Iteration:
        """Record of a state."""
        return cls(state.iteration, state.energy, state.energy_change, state.gradient, state.step)


def run_iterations(
    states: Iterator[State], on_iteration: Callable[[State], object] | None
) -> tuple[State, tuple[Iteration, ...]]:
    """Run an SCF to its end: the last state, and a record of every iteration."""
    state, history = None, []
    for state in states:
        history.append(Iteration.of(state))
        if on_iteration is not None:
            on_iteration(state)
    assert state is not None  # there is at least one iteration
    return state, tuple(history)
