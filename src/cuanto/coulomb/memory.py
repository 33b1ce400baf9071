"""What density fitting and direct J and K keep in memory, decided before anything is allocated.

In-core: all blocks of (pq|P) are kept. Blocked: as many as fit, the others are made again in every build of K. Direct:
none is kept. Where not all are kept J comes from the J engine (`fitting_direct`), which needs none. The plan is made
from the sizes alone, so it can be shown, and tested, without a calculation.

Four-centre integrals are stored where all that matter fit, otherwise made in every build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuanto.errors import InputError
from cuanto.memory import MIB, Budget

STORED_SHARE = 0.5
"""Of the memory that is allowed, for four-centre integrals that nobody asked for: others need theirs (the grid)."""
COLUMNS = 32
"""Occupied orbitals that are transformed at once at least, where memory allows it: fewer make poor products."""
BUFFER_SHARE = 0.25
"""Of what is left beside the fixed parts, for integrals that are made again."""
BUILD_MATRICES = 8
"""Square matrices over the basis that are there at once in a build of J and K."""


@dataclass(frozen=True)
class Sizes:
    """Bytes: of every block; of what is always there; of one transformed orbital; of temporary copies."""

    blocks: tuple[int, ...]
    fixed: int
    column: int
    work: int
    naux: int
    widest: int
    """Functions of the largest shell of the fitting basis: no slice of it is smaller."""
    metric: int = 0
    """While the metric is factorised, before anything else is there."""
    engine: int = 0
    """Of the J engine."""
    columns: int = COLUMNS
    """Orbitals to transform at once where integrals are made again: all of them, so that this is done once."""

    @property
    def in_core(self) -> int:
        """Bytes with all blocks kept."""
        return max(self.metric, self.fixed + self.work + sum(self.blocks) + COLUMNS * self.column)

    @property
    def smallest_buffer(self) -> int:
        """Bytes of the largest block with the widest shell of the fitting basis."""
        return max(self.blocks) * self.widest // self.naux

    @property
    def least(self) -> int:
        """Bytes with nothing kept, one orbital at once and the smallest buffer."""
        work = self.smallest_buffer + self.column if self.column else 0
        return max(self.metric, self.fixed + self.engine + work)


@dataclass(frozen=True)
class Plan:
    """`kept` of so many blocks stay in memory; orbitals and fitting functions are taken so many at once."""

    mode: str
    kept: int
    blocks: int
    columns: int
    aux_at_once: int
    expected: int
    in_core: int
    limit: int
    exchange: bool = True

    def __str__(self) -> str:
        size = f"{self.expected / MIB:.0f} of {self.limit / MIB:.0f} MiB"
        if self.mode == "in-core":
            return f"in-core: all integrals kept, {size}"
        more = f"{size} (in-core needs {self.in_core / MIB:.0f})"
        if not self.exchange:
            return f"direct: J engine, {more}"
        if self.mode == "direct":
            return f"direct: J engine, integrals for K made in every build, {more}"
        return f"blocked: J engine, for K {self.kept} of {self.blocks} blocks kept, the others made again, {more}"


@dataclass(frozen=True)
class StorePlan:
    """Whether four-centre integrals are kept; `complete`: counting did not stop before `needed` was known."""

    stored: bool
    needed: int
    limit: int
    complete: bool = True

    def __str__(self) -> str:
        allowed, needed = f"{self.limit / MIB:.0f}", f"{self.needed / MIB:.0f}"
        if self.stored:
            return f"stored: all four-centre integrals kept, {needed} of {allowed} MiB"
        more = "" if self.complete else "more than "
        room = f"{allowed} MiB allowed, {more}{needed} to store them"
        return f"direct: four-centre integrals made in every build ({room})"


def store_limit(budget: Budget, asked: bool) -> int:
    """Bytes for four-centre integrals and what builds with them need; nothing where the program has taken all."""
    if asked:
        budget.require_room()
    return int((1.0 if asked else STORED_SHARE) * budget.available())


def make_plan(sizes: Sizes, limit: int) -> Plan:
    """The plan that keeps most."""
    total = len(sizes.blocks)
    if sizes.in_core <= limit:
        columns = COLUMNS
        if sizes.column:
            columns += (limit - sizes.in_core) // sizes.column
        return Plan("in-core", total, total, columns, sizes.naux, sizes.in_core, sizes.in_core, limit)
    if limit < sizes.least:
        raise InputError(
            f"density fitting needs {sizes.least / MIB:.0f} MiB at least, {limit / MIB:.0f} MiB are allowed: "
            "raise max_memory, or use fitting='none'"
        )
    if not sizes.column:
        return Plan("direct", 0, total, 0, 0, sizes.least, sizes.in_core, limit, exchange=False)
    fixed, largest, column, least = sizes.fixed + sizes.engine, max(sizes.blocks), sizes.column, sizes.smallest_buffer
    spare = limit - fixed
    buffer = min(largest, max(least, int(BUFFER_SHARE * spare)))
    columns = min(sizes.columns, (spare - buffer) // column)
    if columns < 1:
        columns, buffer = 1, least
    spare -= buffer + columns * column
    kept = _fitting(sizes.blocks, spare - sizes.work)
    running = fixed + buffer + columns * column + (sum(sizes.blocks[:kept]) + sizes.work if kept else 0)
    mode = "blocked" if kept else "direct"
    at_once = max(sizes.widest, sizes.naux * buffer // largest)
    expected = max(sizes.metric, running)
    return Plan(mode, kept, total, columns, at_once, expected, sizes.in_core, limit)


def _fitting(blocks: Sequence[int], spare: int) -> int:
    """How many of the first blocks fit."""
    return int(np.searchsorted(np.cumsum(blocks), spare, side="right")) if spare > 0 else 0
