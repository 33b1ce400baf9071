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
BUFFER_SHARE = 0.25
"""Fraction of the memory left by the fixed arrays that recomputed integrals may use."""
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
    copy: int = 0
    """Bytes of the copies of one transformed orbital, if X is multiplied by M^-T."""
    most_copies: int = 0
    """Largest size of these copies."""
    pass_seconds: float = 0.0
    """Time of one pass over stored integrals, besides the products: calls, and copies of integrals."""

    @property
    def in_core(self) -> int:
        """Bytes with all blocks stored, and few orbitals at a time."""
        return self.stored(FEW_COLUMNS)

    def stored(self, columns: int) -> int:
        """Bytes with all blocks stored: before anything else, while integrals are stored, and in builds."""
        return max(self.metric, self.fixed + sum(self.blocks) + max(self.work, columns * self.column))

    def transformed(self, columns: int) -> int:
        """Bytes of X of some orbitals with its copies."""
        return columns * self.column + min(self.most_copies, columns * self.copy)

    def columns_within(self, room: int) -> int:
        """Orbitals whose X fits into some bytes with its copies."""
        return max(room // (self.column + self.copy), (room - self.most_copies) // self.column)

    @property
    def smallest_buffer(self) -> int:
        """Bytes of the largest block if it has only the widest shell of the fitting basis."""
        return max(self.blocks) * self.widest // self.naux

    @property
    def minimum(self) -> int:
        """Bytes with nothing stored, one orbital at a time and the smallest buffer."""
        work = self.smallest_buffer + self.transformed(1) if self.column else 0
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
    """The plan that recomputes fewest integrals if not all can be stored."""
    total = len(sizes.blocks)
    if limit < sizes.minimum:
        raise InputError(
            f"density fitting needs {ceil(sizes.minimum / MIB)} MiB at least, {limit // MIB} MiB are allowed: "
            f"{advice(sizes.minimum - limit)}, or use fitting='none'"
        )
    if not sizes.column:
        return Plan("direct", 0, total, 0, 0, sizes.minimum, sizes.in_core, limit, exchange=False)
    fixed, largest, minimum = sizes.fixed + sizes.engine, max(sizes.blocks), sizes.smallest_buffer
    spare = limit - fixed
    buffer = min(largest, max(minimum, int(BUFFER_SHARE * spare)))
    if spare - buffer < sizes.transformed(1):
        buffer = minimum
    columns, kept = _divide(sizes, spare - buffer)
    held = sizes.transformed(columns) + (sum(sizes.blocks[:kept]) + sizes.work if kept else 0)
    buffer = min(largest, max(buffer, spare - held))  # larger if passes of equal size leave some memory
    running = fixed + buffer + held
    mode = "blocked" if kept else "direct"
    at_once = max(sizes.widest, sizes.naux * buffer // largest)
    expected = max(sizes.metric, running)
    return Plan(mode, kept, total, columns, at_once, expected, sizes.in_core, limit)


def _divide(sizes: Sizes, room: int) -> tuple[int, int]:
    """Columns of X per pass and the number of stored blocks, so that the fewest integrals are recomputed.

    Every pass recomputes all blocks that are not stored.
    """
    ends = np.cumsum([0, *sizes.blocks])
    best: tuple[int, int, int] | None = None
    for passes in range(1, sizes.columns + 1):
        columns = -(-sizes.columns // passes)
        if best is not None and columns < FEW_COLUMNS:
            break
        left = room - sizes.transformed(columns)
        if left < 0 and columns > 1:
            continue
        kept = max(0, int(np.searchsorted(ends, left - sizes.work, side="right")) - 1)
        recomputed = passes * int(ends[-1] - ends[kept])
        if best is None or recomputed < best[0]:
            best = recomputed, passes, kept
    assert best is not None
    held = int(ends[best[2]]) + sizes.work if best[2] else 0
    columns = max(1, min(sizes.columns, sizes.columns_within(room - held)))
    return -(-sizes.columns // -(-sizes.columns // columns)), best[2]
