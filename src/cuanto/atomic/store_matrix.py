"""Supermatrices for a GPU: whole matrices over the pairs of all symmetries, so that P is a matrix times a vector.

Both triangles are kept: twice the memory of one, but rows are read in order, nobody searches for a row and a column in
a packed index, and sums need no atomic operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cuanto.atomic.pairs import Places
from cuanto.backends.base import Backend
from cuanto.kernels.atomic import COMPONENTS, PLANES, THREADS, Task


class Matrices:
    """LL, SS, direct LS and SL, and K (exchange LS, both orders of a pair)."""

    def __init__(self, places: Places, relativistic: bool) -> None:
        self.places, self.relativistic = places, relativistic

    @property
    def bytes_needed(self) -> int:
        """Memory of all matrices."""
        return 8 * self.places.total**2 * PLANES[self.relativistic]

    def tasks(self) -> Iterator[Task]:
        """Whole classes, a block of threads for some columns of a row."""
        places = self.places
        for i in places.filled:
            for j in places.filled:
                blocks = -(-places.widths[j] // THREADS)
                yield places.task(i, j, 0, places.counts[i], items=places.counts[i] * blocks)

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """Zero in rows of pairs that are not there."""
        n = self.places.total
        small = n if self.relativistic else 0
        shapes = {"LL": n, "SS": small, "LS": small, "SL": small, "K": 2 * small}
        return {name: backend.zeros((size, size), np.float64) for name, size in shapes.items()}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """A block of threads for every number of the result."""
        return COMPONENTS[self.relativistic] * self.places.total, 1
