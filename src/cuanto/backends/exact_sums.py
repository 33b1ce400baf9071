"""Sums on a GPU whose digits do not depend on the order in which threads add to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.backends.base import Backend, Launch
from cuanto.kernels.text import SUMS, add_sums_source

SUM_NUMBERS = 2
"""Numbers of 64 bits of a sum."""


class ExactSums:
    """Sums of zero or more numbers for every element of an array; kernels add to them by `ADD` (prelude_cuda.cuh)."""

    def __init__(self, backend: Backend, shape: tuple[int, ...]) -> None:
        self.backend = backend
        self.numbers = backend.zeros((*shape, SUM_NUMBERS), np.float64)
        """The argument of kernels, of whole numbers in the place of floating-point ones."""

    def add_to(self, target: Any) -> None:
        """Add them to the elements of an array of the same size."""
        program = self.backend.compile(add_sums_source())
        self.backend.launch(program, target.size, {"sums": self.numbers, "target": target})

    def total(self) -> Any:
        """The sums as an array of numbers."""
        total = self.backend.zeros(self.numbers.shape[:-1], np.float64)
        self.add_to(total)
        return total


def separate_sums(launches: Sequence[Launch], backend: Backend) -> tuple[list[Launch], list[tuple[ExactSums, Any]]]:
    """The same launches, with exact sums in the place of arrays that they add to; and these sums with their arrays."""
    found, changed = dict[tuple[int, int], tuple[ExactSums, Any]](), []
    for launch in launches:
        if launch.sums and SUMS[0] in launch.program.source.arguments:
            target = launch.arguments[launch.sums]
            place = backend.address(target), target.size
            if place not in found:
                found[place] = ExactSums(backend, target.shape), target
            launch = replace(launch, arguments={**launch.arguments, "sums": found[place][0].numbers})
        changed.append(launch)
    return changed, list(found.values())
