"""The loop of every SCF: evaluate a point, test it, take a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar


class Evaluated(Protocol):
    """What an evaluation gives; frozen, with all that the next step needs."""

    @property
    def converged(self) -> bool:
        """Whether it is the last."""


Point = TypeVar("Point")
Made = TypeVar("Made", bound=Evaluated)


class FixedPointMap(Protocol[Point, Made]):
    """From orbitals (or whatever determines a density) to the next ones."""

    def evaluate(self, point: Point, iteration: int, before: Made | None) -> Made:
        """Density, energy and Fock matrix of a point; `before`: what the last iteration made."""

    def advance(self, made: Made) -> Point | None:
        """The next point, None where there is none."""


def iterations(map_: FixedPointMap[Point, Made], start: Point, max_iterations: int) -> Iterator[Made]:
    """Evaluations until one is converged, no point follows, or iterations run out."""
    point, made = start, None
    for iteration in range(1, max_iterations + 1):
        made = map_.evaluate(point, iteration, made)
        yield made
        following = None if made.converged or iteration == max_iterations else map_.advance(made)
        if following is None:
            return
        point = following
