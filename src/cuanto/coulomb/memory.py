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

from cuanto.backends.base import Backend
from cuanto.errors import InputError

SHARE_OF_FREE = 0.9
"""Of the free memory, where no limit is given: the rest of the calculation needs some, too."""
STORED_SHARE = 0.5
"""Of the memory that is allowed, for four-centre integrals that nobody asked for: others need theirs (the grid)."""
COLUMNS = 32
"""Occupied orbitals that are transformed at once at least, where memory allows it: fewer make poor products."""
BUFFER_SHARE = 0.25
"""Of what is left beside the fixed parts, for integrals that are made again."""
SQUARE_MATRICES = 32
"""Square matrices over the basis that are there at once: of a build, of the SCF around it (DIIS has most of them)."""
MIB = 2**20
PROGRAM = 64 * MIB
"""What kernels, libraries and their buffers add to the process while integrals and products are made."""


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
    again: int = 0
    """Of temporary copies of a transformed orbital where integrals are made again."""
    whole: int = 0
    """Of all integrals where they are kept otherwise than in blocks, if they all are; 0: in blocks."""

    @property
    def in_core(self) -> int:
        """Bytes with all blocks kept."""
        return max(self.metric, self.fixed + self.work + (self.whole or sum(self.blocks)) + COLUMNS * self.column)


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


def store_limit(backend: Backend, max_memory: float | None, asked: bool) -> int:
    """Bytes for four-centre integrals and what builds with them need; nothing where the program has taken all."""
    if max_memory is None:
        return int((SHARE_OF_FREE if asked else STORED_SHARE) * backend.memory()[0])
    try:
        return int((1.0 if asked else STORED_SHARE) * memory_limit(backend, max_memory))
    except InputError:
        if asked or not max_memory > 0:
            raise
        return 0


def memory_limit(backend: Backend, max_memory: float | None) -> int:
    """Bytes that may be allocated now: what is free, and within `max_memory` of the process (device: of the arrays)."""
    free = int(SHARE_OF_FREE * backend.memory()[0])
    if max_memory is None:
        return free
    if not max_memory > 0:
        raise InputError(f"max_memory must be a positive number of bytes, {max_memory} was given")
    held = _resident() + PROGRAM if backend.traits.unified_memory else 0
    if max_memory <= held:
        raise InputError(
            f"max_memory of {max_memory / MIB:.0f} MiB is less than the {held / MIB:.0f} MiB of the program itself"
        )
    return min(free, int(max_memory) - held)


def _resident() -> int:
    """Bytes of main memory of this process."""
    import os

    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the largest so far is what the system tells
        import resource

        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def make_plan(sizes: Sizes, limit: int, direct: bool = False) -> Plan:
    """The plan that keeps most; with `direct` nothing is kept even where it could be."""
    total = len(sizes.blocks)
    if sizes.in_core <= limit and not direct:
        columns = COLUMNS
        if sizes.column:
            columns += (limit - sizes.in_core) // sizes.column
        return Plan("in-core", total, total, columns, sizes.naux, sizes.in_core, sizes.in_core, limit)
    fixed = sizes.fixed + sizes.engine
    if not sizes.column:
        expected = max(sizes.metric, fixed)
        _require(expected, limit)
        return Plan("direct", 0, total, 0, 0, expected, sizes.in_core, limit, exchange=False)
    largest, column = max(sizes.blocks), sizes.column + sizes.again
    least = largest * sizes.widest // sizes.naux
    _require(max(sizes.metric, fixed + least + column), limit)
    spare = limit - fixed
    buffer = min(largest, max(least, int(BUFFER_SHARE * spare)))
    columns = min(sizes.columns, (spare - buffer) // column)
    if columns < 1:
        columns, buffer = 1, least
    spare -= buffer + columns * column
    kept = 0 if direct else _fitting(sizes.blocks, spare - sizes.work)
    running = fixed + buffer + columns * column + (sum(sizes.blocks[:kept]) + sizes.work if kept else 0)
    mode = "blocked" if kept else "direct"
    at_once = max(sizes.widest, sizes.naux * buffer // largest)
    return Plan(mode, kept, total, columns, at_once, max(sizes.metric, running), sizes.in_core, limit)


def _require(least: int, limit: int) -> None:
    if limit < least:
        raise InputError(
            f"density fitting needs {least / MIB:.0f} MiB at least, {limit / MIB:.0f} MiB are allowed: "
            "raise max_memory, or use fitting='none'"
        )


def _fitting(blocks: Sequence[int], spare: int) -> int:
    """How many of the first blocks fit."""
    return int(np.searchsorted(np.cumsum(blocks), spare, side="right")) if spare > 0 else 0
