"""Memory plans of density fitting and of direct J and K, made from sizes before anything is allocated.

In-core: all blocks of (pq|P) are stored. Blocked: as many as fit, the others are recomputed in every build of K.
Direct: none is stored. Unless all are stored, J comes from the J engine (`fitting_direct`), which needs none.

Four-centre integrals are stored if all significant ones fit, otherwise recomputed in every build.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from cuanto.errors import InputError
from cuanto.memory import MIB, Advice, Budget

STORED_SHARE = 0.5
"""Fraction of the available memory for four-centre integrals with storage `auto`: the grid needs memory as well."""
COLUMNS = 32
"""Smallest number of orbitals to plan for: guesses may have more than are occupied."""
FEW_COLUMNS = 16
"""Smallest number of columns to which a plan is reduced in order to store more integrals: products are slow with
fewer."""
READING = 1 / 16
"""Time to read stored integrals, relative to that of computing them: about 2 and 30 ms for a gigabyte on an H200."""
BUILD_MATRICES = 8
"""Square matrices over the basis that exist at once in a build of J and K."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of every block, of fixed arrays, of one transformed orbital, and of copies while integrals are stored."""

    blocks: tuple[int, ...]
    fixed: int
    column: int
    work: int
    naux: int
    widest: int
    """Functions of the largest shell of the fitting basis: slices cannot be smaller."""
    metric: int = 0
    """Bytes during the factorisation of the metric, before anything else is allocated."""
    engine: int = 0
    """Bytes of the J engine."""
    columns: int = COLUMNS
    """Orbitals to transform at once if memory allows it: all of them, so that integrals are recomputed once."""
    call_bytes: int = 24 * MIB
    """Bytes of recomputed integrals that take as long as the calls for a block: 8 ms (decane, 16 waters, two cores)."""
    pass_seconds: float = 0.0
    """Time of one pass over stored integrals, besides the products: calls, and copies of integrals."""

    @property
    def in_core(self) -> int:
        """Bytes with all blocks stored, and few orbitals at a time."""
        return self.stored(FEW_COLUMNS)

    def stored(self, columns: int) -> int:
        """Bytes with all blocks stored: before anything else, while integrals are stored, and in builds."""
        return max(self.metric, self.fixed + sum(self.blocks) + max(self.work, columns * self.column))

    @property
    def smallest_buffer(self) -> int:
        """Bytes of the largest block if it has only the widest shell of the fitting basis."""
        return max(self.blocks) * self.widest // self.naux

    @property
    def minimum(self) -> int:
        """Bytes with nothing stored, one orbital at a time and the smallest buffer."""
        work = self.smallest_buffer + self.column if self.column else 0
        return max(self.metric, self.fixed + self.engine + work)


@dataclass(frozen=True)
class Plan:
    """`kept` of all `blocks` are stored; `columns` orbitals and `aux_at_once` fitting functions are treated at once."""

    mode: str
    kept: int
    blocks: int
    columns: int
    aux_at_once: int
    expected: int
    in_core: int
    limit: int
    exchange: bool = True
    seconds: float = 0.0
    """Time of the passes of a build over stored integrals, besides the products."""

    def __str__(self) -> str:
        size = f"{self.expected / MIB:.0f} of {self.limit / MIB:.0f} MiB"
        if self.mode == "in-core":
            return f"in-core: all integrals kept, {size}"
        more = f"{size} (in-core needs {self.in_core / MIB:.0f})"
        if not self.exchange:
            return f"direct: J engine, {more}"
        if self.mode == "direct":
            return f"direct: J engine, integrals for K recomputed in every build, {more}"
        return f"blocked: J engine, for K {self.kept} of {self.blocks} blocks kept, the others recomputed, {more}"


def store_limit(budget: Budget, required: bool) -> int:
    """Bytes for four-centre integrals and their builds; `required`: they have to be stored."""
    if required:
        budget.require_room()
    return int((1.0 if required else STORED_SHARE) * budget.available())


def raise_limit(missing: int) -> str:
    """Advice about a limit whose origin is not known."""
    return "raise max_memory"


def make_plan(sizes: Sizes, limit: int, advice: Advice = raise_limit) -> Plan:
    """The plan that stores most; `advice`: what the error suggests if the limit is too small for every plan."""
    if sizes.in_core > limit:
        return plan_recomputed(sizes, limit, advice)
    columns, passes, total = sizes.columns, 1, len(sizes.blocks)
    if sizes.column:
        room = limit - sizes.fixed - sum(sizes.blocks)
        passes = -(-sizes.columns // min(sizes.columns, room // sizes.column))
        columns = -(-sizes.columns // passes)  # equal passes
    common = sizes.naux, sizes.stored(columns), sizes.in_core, limit
    return Plan("in-core", total, total, columns, *common, seconds=passes * sizes.pass_seconds)


def plan_recomputed(sizes: Sizes, limit: int, advice: Advice = raise_limit) -> Plan:
    """The plan that takes least time if not all integrals can be stored."""
    total = len(sizes.blocks)
    if limit < sizes.minimum:
        raise InputError(
            f"density fitting needs {ceil(sizes.minimum / MIB)} MiB at least, {limit // MIB} MiB are allowed: "
            f"{advice(sizes.minimum - limit)}, or use fitting='none'"
        )
    if not sizes.column:
        return Plan("direct", 0, total, 0, 0, sizes.minimum, sizes.in_core, limit, exchange=False)
    fixed = sizes.fixed + sizes.engine
    columns, kept, buffer = _divide(sizes, limit - fixed)
    running = fixed + buffer + columns * sizes.column + (sum(sizes.blocks[:kept]) + sizes.work if kept else 0)
    at_once = max(sizes.widest, sizes.naux * buffer // max(sizes.blocks))
    expected = max(sizes.metric, running)
    return Plan("blocked" if kept else "direct", kept, total, columns, at_once, expected, sizes.in_core, limit)


def _divide(sizes: Sizes, room: int) -> tuple[int, int, int]:
    """Columns of X per pass, the number of stored blocks, and bytes for recomputed integrals that take least time.

    Every pass recomputes all blocks that are not stored, each in as few slices as fit into these bytes.
    """
    blocks, total = np.array(sizes.blocks), len(sizes.blocks)
    kept = np.arange(total + 1)
    held = np.cumsum([0, *sizes.blocks]) + np.where(kept > 0, sizes.work, 0)
    recomputed = kept[:, None] <= np.arange(total)
    found: list[tuple[float, int, int, int]] = []
    for columns in sorted({-(-sizes.columns // passes) for passes in range(1, sizes.columns + 1)}):
        left = room - columns * sizes.column - held
        slices = -(-blocks // np.clip(left, 1, blocks.max())[:, None])
        bytes_kb = np.where(recomputed, blocks + slices * sizes.call_bytes, READING * blocks)
        cost = np.where(left >= sizes.smallest_buffer, -(-sizes.columns // columns) * bytes_kb.sum(axis=1), np.inf)
        k = int(np.argmin(cost))
        found.append((float(cost[k]), -columns, k, min(int(left[k]), max(sizes.blocks))))
    _, columns, k, buffer = min(found)
    return -columns, k, buffer
