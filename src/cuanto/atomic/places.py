"""Numbering of the pairs of all symmetries, and tasks: ranges of rows of a class of integrals."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from cuanto.kernels.atomic import GROUP


@dataclass(frozen=True)
class Places:
    """Pairs of every symmetry side by side, each symmetry filled up to whole groups."""

    counts: tuple[int, ...]
    widths: tuple[int, ...]
    first: tuple[int, ...]

    @classmethod
    def of(cls, counts: tuple[int, ...]) -> Places:
        """By the numbers of pairs."""
        widths = tuple(-(-count // GROUP) * GROUP for count in counts)
        return cls(counts, widths, tuple(accumulate(widths, initial=0)))

    @property
    def total(self) -> int:
        """Places of all symmetries."""
        return self.first[-1]

    @property
    def filled(self) -> list[int]:
        """Symmetries that have pairs."""
        return [i for i, count in enumerate(self.counts) if count]

    def span(self, i: int) -> slice:
        """Pairs of a symmetry."""
        return slice(self.first[i], self.first[i] + self.counts[i])


@dataclass(frozen=True)
class Task:
    """Rows `begin` to `end` of symmetry `i` against symmetry `j`.

    `matrix`: where the class begins in memory, where classes are apart. `items` of the kernel of integrals.
    """

    i: int
    j: int
    begin: int
    end: int
    matrix: int
    items: int
