"""Neighbouring groups in blocks: the unit of work of a CPU's thread, with a part of the matrices of its own.

In a large molecule a matrix of all functions does not fit in the cache, and fetching a group's part of it from main
memory line by line takes a large share of the time of the products with it: there the functions of a block have a small
matrix, copied once for all its groups. In a small one every block has a whole matrix. Blocks never depend on the number
of threads, so neither does the order in which their sums are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.grid.grouped_grid import GroupedGrid, ends

Small = NDArray[np.int32]
Ints = NDArray[np.int64]

LOCAL_FUNCTIONS = 500
"""Functions of a block whose matrix (2 MiB) stays in the cache: with 360 more is copied (128 waters: 0.5 instead of
0.3 GB), which takes longer than what the smaller matrix saves."""
GROWTH = 1.3
"""A block may have so many times the functions of its first group, if that has more than fit."""
MOST_GROUPS = 32
BLOCKS = 192
"""Blocks of a small molecule: enough for many threads, each worth its matrix."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Groups `first[b]` to `first[b + 1]` make block b; `ao`: functions of every group, numbered within its block.

    All functions of a block in runs of consecutive ones, `part_first[b]` to `part_first[b + 1]`: rows at which runs
    begin (and their number at the end), and their first functions. `local`: blocks have matrices of their own.
    """

    first: Ints
    ao: Small
    part_first: Ints
    part_row: Small
    part_ao: Small
    local: bool

    @property
    def functions(self) -> Small:
        """Functions of each block."""
        return self.part_row[self.part_first[1:] - 1]


def make_blocks(grid: GroupedGrid, nbf: int) -> Blocks:
    """Groups in their order, which follows a curve through space, as many in a block as share most functions."""
    if nbf <= LOCAL_FUNCTIONS * GROWTH:
        first = _equal_work(grid)
        blocks, whole = len(first) - 1, np.array([0, nbf], dtype=np.int32)
        ao = np.ascontiguousarray(grid.ao, dtype=np.int32)
        return Blocks(
            first, ao, 2 * np.arange(blocks + 1), np.tile(whole, blocks), np.zeros(2 * blocks, np.int32), False
        )
    groups = [np.asarray(grid.ao[a:b]) for a, b in pairwise(grid.ao_first.tolist())]
    place, ao = np.zeros(nbf, dtype=np.int32), np.empty(len(grid.ao), dtype=np.int32)
    part_rows, part_starts, begins = [], [], []
    for begin, end, member in _unions(groups, nbf):
        functions = np.flatnonzero(member)
        place[functions] = np.arange(len(functions))
        part = slice(int(grid.ao_first[begin]), int(grid.ao_first[end]))
        ao[part] = place[grid.ao[part]]
        run = np.flatnonzero(np.diff(functions, prepend=-2) != 1)
        part_rows.append(np.append(run, len(functions)))
        part_starts.append(np.append(functions[run], 0))
        begins.append(begin)
    first = np.array([*begins, len(groups)])
    part_first = ends(np.array([len(row) for row in part_rows], dtype=np.int64))
    part_row, part_ao = (np.concatenate(some).astype(np.int32) for some in (part_rows, part_starts))
    return Blocks(first, ao, part_first, part_row, part_ao, True)


def _equal_work(grid: GroupedGrid) -> Ints:
    """Blocks with about as many products each."""
    work = np.cumsum(grid.points * grid.functions.astype(float) ** 2 + 1.0)
    if not len(work):
        return np.zeros(1, dtype=np.int64)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, BLOCKS) / BLOCKS)
    return np.unique(np.concatenate([[0], cuts, [len(grid)]])).astype(np.int64)


def _unions(groups: list[Any], nbf: int) -> list[tuple[int, int, NDArray[np.bool_]]]:
    """Of each block the first and last group, and which functions they have."""
    found = []
    begin, count, limit, member = 0, 0, 0.0, np.zeros(nbf, dtype=bool)
    for i, functions in enumerate(groups):
        more = functions[~member[functions]]
        if i > begin and (count + len(more) > limit or i - begin == MOST_GROUPS):
            found.append((begin, i, member))
            begin, count, member, more = i, 0, np.zeros(nbf, dtype=bool), functions
        if i == begin:
            limit = max(LOCAL_FUNCTIONS, GROWTH * len(functions))
        member[more] = True
        count += len(more)
    return [*found, (begin, len(groups), member)] if groups else found
