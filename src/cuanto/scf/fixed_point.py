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
Made = TypeVar("Made", bound=Evaluated)


class FixedPointMap(Protocol[Point, Made]):
    """Maps orbitals (or whatever determines a density) to the next ones."""

    def evaluate(self, point: Point, iteration: int, before: Made | None) -> Made:
        """Density, energy and Fock matrix of a point; `before`: the last evaluation."""

    def advance(self, made: Made) -> Point | None:
        """The next point, None to stop."""


def iterations(map_: FixedPointMap[Point, Made], start: Point, max_iterations: int) -> Iterator[Made]:
    """Evaluations until one is converged, there is no next point, or iterations run out."""
    point, made = start, None
    for iteration in range(1, max_iterations + 1):
        made = map_.evaluate(point, iteration, made)
        yield made
        following = None if made.converged or iteration == max_iterations else map_.advance(made)
        if following is None:
            return
        point = following
