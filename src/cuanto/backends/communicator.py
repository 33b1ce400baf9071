"""Ranks that share one calculation: each computes a part of a sum, and all get the total."""

from __future__ import annotations

from typing import Any, Protocol


class Communicator(Protocol):
    """Collective operations on arrays of the device; every rank calls them in the same order."""

    @property
    def rank(self) -> int:
        """This process, from 0 to size - 1."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def sum(self, array: Any) -> Any:
        """The sum of the arrays of all ranks, on every rank."""


class SingleRank:
    """The default: one process does everything."""

    rank, size = 0, 1

    def sum(self, array: Any) -> Any:
        """The array itself."""
        return array
