"""Supermatrices for a CPU: the lower triangle of classes, eight kinds of integrals of eight columns side by side.

One stream of memory per thread. A pass over the matrix gives the products of both triangles with a density.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.atomic.pairs import Places
from cuanto.backends.base import Backend
from cuanto.kernels.atomic import GROUP, PLANES, Task

TASK_ELEMENTS = tuning.size("cpu", "atomic.task_elements")
TASKS = 64
"""Tasks at least, where there is enough work, whatever the number of threads: sums over tasks have the same digits."""
CHUNK_ELEMENTS = tuning.size("cpu", "atomic.chunk_elements")


class Triangle:
    """Symmetries `i` against `j` <= i, X[row][group of columns][plane][lane] one class after the other."""

    def __init__(self, places: Places, relativistic: bool) -> None:
        self.places, self.planes = places, PLANES[relativistic]

    @property
    def bytes_needed(self) -> int:
        """Memory of all blocks; of blocks on the diagonal only half is ever touched."""
        counts, widths = self.places.counts, self.places.widths
        elements = sum(
            count * (widths[j] if j < i else widths[j] // 2 + GROUP)
            for i, count in enumerate(counts)
            for j in range(i + 1)
        )
        return 8 * elements * self.planes

    def tasks(self) -> Iterator[Task]:
        """Rows of every class in parts of about equal work."""
        counts, widths, matrix = self.places.counts, self.places.widths, 0
        for i in self.places.filled:
            for j in self.places.filled[: self.places.filled.index(i) + 1]:
                for begin, end in self._ranges(i, j):
                    yield self.places.task(i, j, begin, end, matrix)
                matrix += counts[i] * widths[j] * self.planes

    def _ranges(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        rows, width = self.places.counts[i], self.places.widths[j]
        size = max(TASK_ELEMENTS, self.places.total**2 // 2 // TASKS)
        work = np.cumsum(np.minimum(np.arange(rows) + GROUP, width) if i == j else np.full(rows, width))
        ends = np.searchsorted(work, np.arange(size, work[-1], size)).tolist()
        return pairwise(sorted({0, *ends, rows}))

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """One piece of memory, which comes in large pages, each row at the beginning of a cache line."""
        counts, widths = self.places.counts, self.places.widths
        elements = sum(count * sum(widths[: i + 1]) for i, count in enumerate(counts))
        whole = backend.xp.empty(elements * self.planes + GROUP)
        ahead = -(whole.__array_interface__["data"][0] // whole.itemsize) % GROUP
        return {"X": whole[ahead : len(whole) - GROUP + ahead]}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """Tasks; small ones are taken together."""
        elements = max(1, self.places.total**2 // 2)
        return tasks, max(1, tasks * CHUNK_ELEMENTS // elements)
