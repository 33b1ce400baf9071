"""Are the values of basis functions kept, or made in every pass? Decided from sizes, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

from cuanto.errors import InputError
from cuanto.memory import MIB

AUTO_SHARE = 0.5
"""Of the limit that values may take where nobody asked for them: integrals need memory, too."""


@dataclass(frozen=True)
class ValuesPlan:
    """`keep`: values stay in memory, `needed` bytes of the `limit`."""

    keep: bool
    needed: int
    limit: int

    def __str__(self) -> str:
        size = f"{self.needed / MIB:.0f} of {self.limit / MIB:.0f} MiB"
        return f"values of functions kept, {size}" if self.keep else f"values made in every pass (kept: {size})"


def plan_values(store: str, needed: int, limit: int, reading_pays: bool) -> ValuesPlan:
    """`reading_pays`: kept values are faster than making them again, which on a CPU they are not."""
    if store == "keep" and needed > limit:
        raise InputError(
            f"keeping the values of functions on the grid needs {needed / MIB:.0f} MiB, {limit / MIB:.0f} MiB are "
            "allowed: raise max_memory, or use store='recompute'"
        )
    keep = store == "keep" or (store == "auto" and reading_pays and needed <= AUTO_SHARE * limit)
    return ValuesPlan(keep, needed, limit)
