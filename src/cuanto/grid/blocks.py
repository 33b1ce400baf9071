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

from cuanto import tuning
from cuanto.grid.grouped_grid import GroupedGrid, ends

Small = NDArray[np.int32]
Ints = NDArray[np.int64]

LOCAL_FUNCTIONS = tuning.size("cpu", "grid.local_functions")
GROWTH = tuning.number("cpu", "grid.block_growth")
MOST_GROUPS = tuning.size("cpu", "grid.block_groups")
BLOCKS = tuning.size("cpu", "grid.blocks")
SHRINKING = tuning.number("cpu", "grid.block_shrinking")


@dataclass(frozen=True, eq=False)
class Tasks:
    """Points `point[t]` to `point[t + 1]`, all of one group, make task t."""

    point: Ints
    group: Small


@dataclass(frozen=True, eq=False)
class Blocks:
    """Tasks `first[b]` to `first[b + 1]` make block b; `ao`: functions of every group, numbered within its block.

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


def make_blocks(grid: GroupedGrid, nbf: int, tasks: Tasks) -> Blocks:
    """Tasks in the order of their groups, which follows a curve through space, as many in a block as share most
    functions; in a small molecule as many as make about the same work, the last ones less."""
    if nbf <= LOCAL_FUNCTIONS * GROWTH:
        first = _portions(grid, tasks)
        blocks, whole = len(first) - 1, np.array([0, nbf], dtype=np.int32)
        ao = np.ascontiguousarray(grid.ao, dtype=np.int32)
        rows, starts = np.tile(whole, blocks), np.zeros(2 * blocks, dtype=np.int32)
        return Blocks(first, ao, 2 * np.arange(blocks + 1), rows, starts, False)
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
    first = np.searchsorted(tasks.group, [*begins, len(groups)])
    part_first = ends(np.array([len(row) for row in part_rows], dtype=np.int64))
    part_row, part_ao = (np.concatenate(some).astype(np.int32) for some in (part_rows, part_starts))
    return Blocks(first, ao, part_first, part_row, part_ao, True)


def _portions(grid: GroupedGrid, tasks: Tasks) -> Ints:
    """Cut the tasks by their work; portions shrink towards the end, so that threads end together."""
    if not len(tasks.group):
        return np.zeros(1, dtype=np.int64)
    work = np.cumsum(np.diff(tasks.point) * grid.functions[tasks.group].astype(float) ** 2 + 1.0)
    left = (1 - np.arange(1, BLOCKS) / BLOCKS) ** SHRINKING
    cuts = np.searchsorted(work, work[-1] * (1 - left))
    return np.unique(np.concatenate([[0], cuts, [len(work)]])).astype(np.int64)


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
