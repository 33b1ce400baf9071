"""Neighbouring groups in blocks: their functions' part of a matrix is copied once for all of them.

In a large molecule a matrix of all functions does not fit in the cache, and fetching a group's part of it from main
memory line by line takes a large share of the time of the products with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.grid.grouped_grid import GroupedGrid

Small = NDArray[np.int32]

LOCAL_FUNCTIONS = 500
"""Functions of a block whose matrix (2 MiB) stays in the cache: with 360 more is copied (128 waters: 0.5 instead of
0.3 GB), which takes longer than what the smaller matrix saves."""
GROWTH = 1.3
"""A block may have so many times the functions of its first group, if that has more than fit."""
MOST_GROUPS = 32


@dataclass(frozen=True, eq=False)
class Block:
    """Groups begin .. end, and all their functions in runs of consecutive ones; `run_row` ends with their number."""

    begin: int
    end: int
    run_row: Small
    run_ao: Small

    @property
    def functions(self) -> int:
        """How many."""
        return int(self.run_row[-1])


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks; `ao`: the functions of every group, numbered within its block; `local`: is it worth copying?"""

    blocks: list[Block]
    ao: Small
    local: bool


def make_blocks(grid: GroupedGrid, nbf: int) -> Blocks:
    """Groups in their order, which follows a curve through space, as many in a block as share most functions."""
    if nbf <= LOCAL_FUNCTIONS * GROWTH:
        whole = np.array([0, nbf], dtype=np.int32)
        blocks = [Block(i, i + 1, whole, whole[:1]) for i in range(len(grid))]
        return Blocks(blocks, np.ascontiguousarray(grid.ao, dtype=np.int32), False)
    groups = [np.asarray(grid.ao[a:b]) for a, b in pairwise(grid.ao_first.tolist())]
    place, ao = np.zeros(nbf, dtype=np.int32), np.empty(len(grid.ao), dtype=np.int32)
    blocks = []
    for begin, end, member in _unions(groups, nbf):
        functions = np.flatnonzero(member)
        place[functions] = np.arange(len(functions))
        part = slice(int(grid.ao_first[begin]), int(grid.ao_first[end]))
        ao[part] = place[grid.ao[part]]
        starts = np.flatnonzero(np.diff(functions, prepend=-2) != 1)
        row = np.append(starts, len(functions)).astype(np.int32)
        blocks.append(Block(begin, end, row, functions[starts].astype(np.int32)))
    return Blocks(blocks, ao, True)


def _unions(groups: list[Any], nbf: int) -> list[tuple[int, int, NDArray[np.bool_]]]:
    """First and last group, and which functions they have."""
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
