"""The loop of every SCF: evaluate a point, test it, take a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar


class Evaluated(Protocol):
    """Result of an evaluation; frozen, with all that the next step needs."""

    @property
    def converged(self) -> bool:
        """Whether to stop."""


Point = TypeVar("Point")
Outcome = TypeVar("Outcome", bound=Evaluated)


class FixedPointMap(Protocol[Point, Outcome]):
    """Maps orbitals (or whatever determines a density) to the next ones."""

    def evaluate(self, point: Point, iteration: int, previous: Outcome | None) -> Outcome:
        """Density, energy and Fock matrix of a point; `previous`: the last evaluation."""

    def advance(self, current: Outcome) -> Point | None:
        """The next point, None to stop."""


def iterations(
    map_: FixedPointMap[Point, Outcome], start: Point, max_iterations: int, known: Outcome | None = None
) -> Iterator[Outcome]:
    """Evaluations until one is converged, there is no next point, or iterations run out.

    `known`: the evaluation of the point before `start`.
    """
    point, current = start, known
    for iteration in range(1, max_iterations + 1):
        current = map_.evaluate(point, iteration, current)
        yield current
        following = None if current.converged or iteration == max_iterations else map_.advance(current)
        if following is None:
            return
        point = following
