"""Symmetry species of the spinors of an atom, and the angular factors of exchange between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import factorial, prod

LETTERS = "spdfg"


@dataclass(frozen=True)
class Species:
    """Symmetry of all spinors of one kappa."""

    kappa: int
    l: int = field(init=False)
    """Angular momentum of the large component."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", self.kappa if self.kappa > 0 else -self.kappa - 1)

    @property
    def lbar(self) -> int:
        """Angular momentum of the small component."""
        return self.l - 1 if self.kappa > 0 else self.l + 1

    @property
    def j2(self) -> int:
        """Twice j."""
        return 2 * abs(self.kappa) - 1

    @property
    def capacity(self) -> int:
        """Electrons in a full shell, 2j + 1."""
        return 2 * abs(self.kappa)

    @property
    def label(self) -> str:
        """S+, P-, P+, ...: + for j = l + 1/2."""
        return LETTERS[self.l].upper() + ("-" if self.kappa > 0 else "+")


SPECIES: tuple[Species, ...] = tuple(Species(kappa) for kappa in (-1, 1, -2, 2, -3, 3, -4, 4, -5))
"""S+, P-, P+, D-, D+, F-, F+, G-, G+: the order of everything that is given by symmetry."""


@cache
def exchange_factors(one: Species, other: Species) -> dict[int, Fraction]:
    """Lambda_k = (j k j'; 1/2 0 -1/2)^2 by order k, where l + l' + k is even: exact."""
    orders = range(abs(one.j2 - other.j2) // 2, (one.j2 + other.j2) // 2 + 1)
    return {k: _three_j_squared(one.j2, other.j2, k) for k in orders if (one.l + other.l + k) % 2 == 0}


def _three_j_squared(j2: int, i2: int, k: int) -> Fraction:
    """(j k i; 1/2 0 -1/2)^2 with j = j2/2, i = i2/2, by Racah's formula: Phys. Rev. 62, 438 (1942), eq. 16'."""
    f, p, q = factorial, (j2 + 1) // 2, (i2 + 1) // 2  # j + 1/2, i + 1/2
    triangle = Fraction(f(p + q - 1 - k) * f(p - q + k) * f(q - p + k), f(p + q + k))
    total = Fraction(0)
    for t in range(p + q + k):
        terms = (t, k - q + 1 + t, k - p + 1 + t, p + q - 1 - k - t, p - 1 - t, q - 1 - t)
        if min(terms) >= 0:
            total += Fraction((-1) ** t, prod(map(f, terms)))
    return triangle * f(p) * f(p - 1) * f(q) * f(q - 1) * f(k) ** 2 * total**2
