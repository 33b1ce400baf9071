"""Supermatrices on the CPU: the lower triangle of classes, eight kinds of integrals of eight columns side by side.

One stream of memory per thread. A pass over the matrix gives the products of both triangles with a density.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.pairs import Pairs
from cuanto.atomic.species import exchange_factors
from cuanto.kernels.atomic import GROUP, PLANES, class_tables, contract_source, integral_source
from cuanto.kernels.text import Source

Array = NDArray[np.float64]
TASK = 1 << 17
"""Fewest elements of a task: smaller ones cost more to hand over than to do."""
PARTS = 64
"""Tasks at least, where there is enough work, whatever the number of threads: sums over tasks have the same digits."""
ALONE = 1 << 22
"""Integrals up to which one thread is faster than handing parts to several: a few milliseconds."""


@dataclass(frozen=True, eq=False)
class Block:
    """Symmetry `i` against symmetry `j` <= i."""

    i: int
    j: int
    X: Array
    ranges: tuple[tuple[int, int], ...]
    """Rows in parts of about equal work."""


class TriangularStore:
    """What `Repulsion` keeps on the CPU."""

    def __init__(self, pairs: Sequence[Pairs], backend: Any, relativistic: bool) -> None:
        self.pairs, self.backend, self.relativistic = pairs, backend, relativistic
        filled = [i for i, one in enumerate(pairs) if one.count]
        places = [(i, j) for i in filled for j in filled if j <= i]
        shapes = [(pairs[i].count, pairs[j].width * PLANES[relativistic]) for i, j in places]
        self.blocks = [
            Block(i, j, X, self._ranges(i, j)) for (i, j), X in zip(places, _side_by_side(shapes), strict=True)
        ]
        sources = [self._source(block) for block in self.blocks]
        # few texts serve all blocks; those not in the cache are compiled beside each other
        begun = {source: backend.begin(source) for source in {*sources, contract_source("cpu", relativistic)}}
        calls = []
        for block, source in zip(self.blocks, sources, strict=True):
            calls += list(self._integral_calls(block, begun[source].result()))
        self._do(calls)
        self._contract = begun[contract_source("cpu", relativistic)].result()

    @staticmethod
    def bytes_needed(pairs: Sequence[Pairs], relativistic: bool) -> int:
        """Memory of all blocks; of blocks on the diagonal only half is ever touched."""
        elements = sum(
            a.count * (b.width if j < i else b.width // 2 + GROUP)
            for i, a in enumerate(pairs)
            for j, b in enumerate(pairs[: i + 1])
        )
        return 8 * elements * PLANES[relativistic]

    def _source(self, block: Block) -> Source:
        kappa, other = self.pairs[block.i].species.kappa, self.pairs[block.j].species.kappa
        return integral_source("cpu", kappa, other, self.relativistic)

    def _ranges(self, i: int, j: int) -> tuple[tuple[int, int], ...]:
        rows, width = self.pairs[i].count, self.pairs[j].width
        total = sum(one.width for one in self.pairs) ** 2 // 2
        size = max(TASK, total // PARTS)
        work = np.cumsum(np.minimum(np.arange(rows) + GROUP, width) if i == j else np.full(rows, width))
        ends = np.searchsorted(work, np.arange(size, work[-1], size)).tolist()
        return tuple(pairwise(sorted({0, *ends, rows})))

    def _integral_calls(self, block: Block, function: Any) -> Iterator[Callable[[], None]]:
        row, column = self.pairs[block.i], self.pairs[block.j]
        tables = class_tables(
            row.species.kappa, column.species.kappa, tuple(exchange_factors(row.species, column.species).items())
        )
        arrays = (row.row_record, column.column_record, tables.shape, tables.values, block.X)
        addresses = [array.ctypes.data for array in arrays]
        for begin, end in block.ranges:
            yield partial(function, begin, end, row.count, column.count, int(block.i == block.j), *addresses)

    def _do(self, calls: Sequence[Callable[[], None]]) -> None:
        if sum(block.X.size for block in self.blocks) < ALONE:
            for call in calls:
                call()
        else:
            self.backend.parallel(calls)

    def contract(self, D_i: Sequence[Array]) -> Callable[[], list[Array]]:
        """All blocks."""
        return partial(self._products, self.blocks, D_i, None)

    def contract_weighted(self, D_i: Sequence[Array], chosen: Sequence[int], A_lm: Array) -> Callable[[], list[Array]]:
        """The blocks of the chosen symmetries."""
        weights = {(l, m): float(A_lm[a, b]) for a, l in enumerate(chosen) for b, m in enumerate(chosen)}
        blocks = [block for block in self.blocks if (block.i, block.j) in weights]

        def wait() -> list[Array]:
            found = self._products(blocks, D_i, weights)
            return [found[i] for i in chosen]

        return wait

    def _products(
        self, blocks: Sequence[Block], D_i: Sequence[Array], weights: dict[tuple[int, int], float] | None
    ) -> list[Array]:
        P_i = [np.zeros_like(D) for D in D_i]
        calls, parts = [], []
        for block in blocks:
            row, column = self.pairs[block.i], self.pairs[block.j]
            weight = 1.0 if weights is None else weights[block.i, block.j]
            rows = np.zeros_like(D_i[block.i])
            parts.append((block.i, weight, rows))
            for begin, end in block.ranges:
                columns = np.empty_like(D_i[block.j])
                parts.append((block.j, weight, columns))
                arrays = (block.X, D_i[block.i], D_i[block.j], rows, columns)
                addresses = [array.ctypes.data for array in arrays]
                triangle = int(block.i == block.j)
                calls.append(partial(self._contract, begin, end, row.count, column.count, triangle, *addresses))
        self._do(calls)
        for i, weight, part in parts:
            P_i[i] += part if weight == 1.0 else weight * part
        return P_i


def _side_by_side(shapes: Sequence[tuple[int, int]]) -> list[Array]:
    """Matrices in one piece of memory, which comes in large pages, each row at the beginning of a cache line."""
    ends = np.cumsum([rows * columns for rows, columns in shapes]).tolist()
    whole = np.empty((ends[-1] if ends else 0) + GROUP)
    whole = whole[-(whole.ctypes.data // whole.itemsize) % GROUP :]
    return [
        whole[end - rows * columns : end].reshape(rows, columns)
        for (rows, columns), end in zip(shapes, ends, strict=True)
    ]
