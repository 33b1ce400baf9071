"""How supermatrices lie in memory, by the language of the kernels: both are limited by memory bandwidth.

A CPU reads one triangle once and uses every number twice; a GPU reads whole rows, so that no two blocks of threads add
to the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto.atomic.pairs import Places
from cuanto.backends.base import Backend
from cuanto.kernels.atomic import COMPONENTS, GROUP, PLANES, THREADS, Task

TASK_ELEMENTS = 1 << 17
"""Fewest elements of a task: smaller ones cost more to schedule than to compute."""
TASKS = 64
"""Fewest tasks, if there is enough work. Independent of the number of threads, so that sums have the same digits."""
CHUNK_ELEMENTS = 1 << 15
"""Average number of elements that a thread takes at once in a product with a density: about 0.1 ms."""


class Triangle:
    """For a CPU: symmetries `i` against `j` <= i, X[row][group of columns][plane][lane], one class after the other.

    One stream of memory per thread. A pass over the matrix gives the products of both triangles with a density.
    """

    def __init__(self, places: Places, relativistic: bool) -> None:
        self.places, self.planes = places, PLANES[relativistic]

    @property
    def bytes_needed(self) -> int:
        """Memory of all blocks; only half of a diagonal block is ever touched."""
        first, widths = self.places.first, self.places.widths
        rows = enumerate(self.places.counts)
        return 8 * self.planes * sum(count * (first[i] + widths[i] // 2 + GROUP) for i, count in rows)

    def tasks(self) -> Iterator[Task]:
        """Rows of every class in parts of about equal work."""
        places, matrix = self.places, 0
        for i in places.filled:
            for j in places.filled[: places.filled.index(i) + 1]:
                for begin, end in self._ranges(i, j):
                    yield places.task(i, j, begin, end, matrix)
                matrix += places.counts[i] * places.widths[j] * self.planes

    def _ranges(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        rows, width = self.places.counts[i], self.places.widths[j]
        size = max(TASK_ELEMENTS, self.places.total**2 // 2 // TASKS)
        work = np.cumsum(np.minimum(np.arange(rows) + GROUP, width) if i == j else np.full(rows, width))
        ends = np.searchsorted(work, np.arange(size, work[-1], size)).tolist()
        return pairwise(sorted({0, *ends, rows}))

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """One block of memory, which comes in large pages; each row starts a cache line."""
        elements = sum(count * self.places.first[i + 1] for i, count in enumerate(self.places.counts))
        whole = backend.xp.empty(elements * self.planes + GROUP)
        ahead = -(whole.__array_interface__["data"][0] // whole.itemsize) % GROUP
        return {"X": whole[ahead : len(whole) - GROUP + ahead]}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """Items of the product with a density, and how many a thread takes at once."""
        elements = max(1, self.places.total**2 // 2)
        return tasks, max(1, tasks * CHUNK_ELEMENTS // elements)


class Matrices:
    """For a GPU: LL, SS, direct LS and SL, and K (exchange LS, both orders of a pair) over the pairs of all symmetries.

    Both triangles: twice the memory, but rows are read in order and sums need no atomic operations.
    """

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
        """Matrices of zeros: the rows of padding stay zero."""
        n = self.places.total
        small = n if self.relativistic else 0
        shapes = {"LL": n, "SS": small, "LS": small, "SL": small, "K": 2 * small}
        return {name: backend.zeros((size, size), np.float64) for name, size in shapes.items()}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """A block of threads for every number of the result."""
        return COMPONENTS[self.relativistic] * self.places.total, 1


LAYOUTS: dict[str, type[Triangle | Matrices]] = {"cpu": Triangle, "cuda": Matrices}
