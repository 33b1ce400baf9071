"""Pairs of functions of one symmetry, densities as vectors over them, and the layout of supermatrices in memory.

The layout depends on the language of the kernels, since both are limited by memory bandwidth: a CPU reads one triangle
once and uses every number twice; a GPU reads whole rows, so that no two blocks of threads add to the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.atomic.one_electron import large_norms, small_functions
from cuanto.atomic.species import Species
from cuanto.backends.base import Backend
from cuanto.kernels.atomic import COMPONENTS, FIELDS, GROUP, PLANES, THREADS, Task

TASK_ELEMENTS = tuning.size("cpu", "atomic.task_elements")
TASKS = 64
"""Minimum number of tasks, if there is enough work. Independent of the number of threads, so that sums have the same
digits."""
CHUNK_ELEMENTS = tuning.size("cpu", "atomic.chunk_elements")


def _round_up(count: int) -> int:
    """Round a number of pairs up to whole groups."""
    return -(-count // GROUP) * GROUP


@dataclass(frozen=True, eq=False)
class PairIndices:
    """Positions of the pairs p >= q, q fastest, in a matrix of n or 2n functions."""

    p: NDArray[np.intp]
    q: NDArray[np.intp]
    offsets: NDArray[np.intp]
    """Positions of LL, SS, LS and its transpose of every pair in a flattened 2n x 2n matrix."""
    weights: Array
    """Factors of LL, SS, LS and its transpose: 2 for LL and SS of p > q, which stand for both orders of the pair; 0 for
    the transpose of LS if p = q."""
    origin: NDArray[np.intp]
    """Position in vectors [component, pair] (not padded) of every element of a 2n x 2n matrix."""


@cache
def pair_indices(n: int) -> PairIndices:
    """Pair indices for n functions; they do not depend on the exponents, and are cached."""
    p, q = np.tril_indices(n)
    positions = np.stack([p, n + p, p, q]) * 2 * n + np.stack([q, n + q, n + q, n + p])
    same = p == q
    twice, once = np.where(same, 1.0, 2.0), np.ones(len(p))
    weights = np.stack([twice, twice, once, np.where(same, 0.0, 1.0)])
    LL, SS, LS, SL = np.arange(4 * len(p)).reshape(4, -1)
    origin = np.zeros((2 * n, 2 * n), dtype=np.intp)
    origin[p, q] = origin[q, p] = LL
    origin[n + p, n + q] = origin[n + q, n + p] = SS
    origin[q, n + p] = origin[n + p, q] = SL
    origin[p, n + q] = origin[n + q, p] = LS  # last, because it also holds for p = q
    for array in (p, q, positions, weights, origin):
        array.flags.writeable = False
    return PairIndices(p, q, positions, weights, origin)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of one symmetry: `row_record` [pair][field], `column_record` [group][field][lane], with padding."""

    species: Species
    functions: int
    indices: PairIndices
    row_record: Array
    column_record: Array

    @classmethod
    def of(cls, species: Species, z_p: Array) -> Pairs:
        """Make all pairs of these exponents."""
        found = pair_indices(len(z_p))
        p, q = found.p, found.q
        L_p = large_norms(species, z_p)
        S_p, v_p = small_functions(species, z_p)
        fields = (z_p[p], z_p[q], v_p[p], v_p[q], L_p[p] * L_p[q], S_p[p] * S_p[q], L_p[p] * S_p[q], S_p[p] * L_p[q])
        rows = np.zeros((_round_up(len(p)), FIELDS))
        rows[:, :2] = 1.0  # exponents of the padding, whose norms are zero
        rows[: len(p)] = np.stack(fields, axis=1)
        columns = np.ascontiguousarray(rows.reshape(-1, GROUP, FIELDS).transpose(0, 2, 1))
        return cls(species, len(z_p), found, rows, columns)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.indices.p)

    @property
    def width(self) -> int:
        """Number of pairs, rounded up to whole groups."""
        return _round_up(self.count)

    def vectors(self, D: Array, components: int) -> Array:
        """Convert a density matrix to vectors [component, pair], with zeros in the padding."""
        own = self.indices
        out = np.zeros((components, self.width))
        if components == 1:
            out[0, : self.count] = D[own.p, own.q] * own.weights[0]
        else:
            np.multiply(D.reshape(-1).take(own.offsets), own.weights, out=out[:, : self.count])
        return out

    def matrix(self, vectors: Array) -> Array:
        """Convert vectors [component, pair] to a symmetric matrix."""
        own, vectors, n = self.indices, vectors[:, : self.count], self.functions
        if len(vectors) == 1:
            P = np.zeros((n, n))
            P[own.p, own.q] = P[own.q, own.p] = vectors[0]
            return P
        return np.ascontiguousarray(vectors).reshape(-1).take(own.origin)


@dataclass(frozen=True)
class PairOffsets:
    """Offsets of the pairs of each symmetry in a common numbering; each symmetry is padded to whole groups."""

    counts: tuple[int, ...]
    widths: tuple[int, ...]
    first: tuple[int, ...]

    @classmethod
    def of(cls, counts: tuple[int, ...]) -> PairOffsets:
        """Offsets for these numbers of pairs."""
        widths = tuple(map(_round_up, counts))
        return cls(counts, widths, tuple(accumulate(widths, initial=0)))

    @property
    def total(self) -> int:
        """Number of pairs of all symmetries, with padding."""
        return self.first[-1]

    @property
    def nonempty(self) -> list[int]:
        """Indices of the symmetries that have pairs."""
        return [i for i, count in enumerate(self.counts) if count]

    def span(self, i: int) -> slice:
        """Range of the pairs of a symmetry."""
        return slice(self.first[i], self.first[i] + self.counts[i])

    def task(self, i: int, j: int, begin: int, end: int, matrix: int = 0, items: int = 1) -> Task:
        """Make the task for a range of rows of a class."""
        return Task(i, j, begin, end, self.first[i], self.first[j], self.widths[j], matrix, items)


class Triangle:
    """Layout for a CPU: X[row][group of columns][plane][lane] for symmetries `i` and `j` <= i, one class after another.

    Each thread reads one stream of memory. A pass over the matrix gives the products of both triangles with a density.
    """

    def __init__(self, offsets: PairOffsets, relativistic: bool) -> None:
        self.offsets, self.planes = offsets, PLANES[relativistic]

    @property
    def bytes_needed(self) -> int:
        """Memory of all blocks; only half of a diagonal block is ever touched."""
        first, widths = self.offsets.first, self.offsets.widths
        rows = enumerate(self.offsets.counts)
        return 8 * self.planes * sum(count * (first[i] + widths[i] // 2 + GROUP) for i, count in rows)

    def tasks(self) -> Iterator[Task]:
        """Rows of every class in parts of about equal work."""
        offsets, matrix = self.offsets, 0
        for i in offsets.nonempty:
            for j in offsets.nonempty[: offsets.nonempty.index(i) + 1]:
                for begin, end in self._ranges(i, j):
                    yield offsets.task(i, j, begin, end, matrix)
                matrix += offsets.counts[i] * offsets.widths[j] * self.planes

    def _ranges(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        rows, width = self.offsets.counts[i], self.offsets.widths[j]
        size = max(TASK_ELEMENTS, self.offsets.total**2 // 2 // TASKS)
        work = np.cumsum(np.minimum(np.arange(rows) + GROUP, width) if i == j else np.full(rows, width))
        ends = np.searchsorted(work, np.arange(size, work[-1], size)).tolist()
        return pairwise(sorted({0, *ends, rows}))

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """Allocate one block of memory, so that it gets large pages; each row starts at a cache line."""
        elements = sum(count * self.offsets.first[i + 1] for i, count in enumerate(self.offsets.counts))
        whole = backend.xp.empty(elements * self.planes + GROUP)
        padding = -(whole.__array_interface__["data"][0] // whole.itemsize) % GROUP
        return {"X": whole[padding : len(whole) - GROUP + padding]}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """Items of the product with a density, and how many a thread takes at once."""
        elements = max(1, self.offsets.total**2 // 2)
        return tasks, max(1, tasks * CHUNK_ELEMENTS // elements)


class Matrices:
    """Layout for a GPU: LL, SS, direct LS and SL, and K (exchange LS, for pq and qp), over the pairs of all
    symmetries.

    Both triangles are stored: this takes twice the memory, but rows are read in order, without atomic operations.
    """

    def __init__(self, offsets: PairOffsets, relativistic: bool) -> None:
        self.offsets, self.relativistic = offsets, relativistic

    @property
    def bytes_needed(self) -> int:
        """Memory of all matrices."""
        return 8 * self.offsets.total**2 * PLANES[self.relativistic]

    def tasks(self) -> Iterator[Task]:
        """One task per class; a block of threads computes some columns of a row."""
        offsets = self.offsets
        for i in offsets.nonempty:
            for j in offsets.nonempty:
                blocks = -(-offsets.widths[j] // THREADS)
                yield offsets.task(i, j, 0, offsets.counts[i], items=offsets.counts[i] * blocks)

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """Allocate zeroed matrices: rows of padding stay zero."""
        n = self.offsets.total
        small = n if self.relativistic else 0
        shapes = {"LL": n, "SS": small, "LS": small, "SL": small, "K": 2 * small}
        return {name: backend.zeros((size, size), np.float64) for name, size in shapes.items()}

    def contraction(self, tasks: int) -> tuple[int, int]:
        """Items of the product with a density: a block of threads for each number of the result."""
        return COMPONENTS[self.relativistic] * self.offsets.total, 1


LAYOUTS: dict[str, type[Triangle | Matrices]] = {"cpu": Triangle, "cuda": Matrices}
