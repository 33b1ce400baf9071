"""Symmetry species of the spinors of an atom, and the angular factors of exchange between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import factorial

from cuanto.errors import InputError

LETTERS = "spdfg"


@dataclass(frozen=True)
class Species:
    """All spinors of one kappa."""

    kappa: int
    l: int = field(init=False)
    """Momentum of the large component."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", self.kappa if self.kappa > 0 else -self.kappa - 1)

    @property
    def lbar(self) -> int:
        """Momentum of the small component."""
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
"""S+, P-, P+, D-, D+, F-, F+, G-, G+: everything that is given by symmetry follows this order."""


def species_of(label: str) -> Species:
    """By its label; `S` is short for `S+`."""
    wanted = label.upper().replace("S+", "S").replace("S", "S+")
    for one in SPECIES:
        if one.label == wanted:
            return one
    raise InputError(f"unknown symmetry {label!r}: choose one of {', '.join(s.label for s in SPECIES)}")


@cache
def exchange_factors(one: Species, other: Species) -> dict[int, Fraction]:
    """Lambda_k = (j k j'; 1/2 0 -1/2)^2 by order k, where l + l' + k is even: exact."""
    orders = range(abs(one.j2 - other.j2) // 2, (one.j2 + other.j2) // 2 + 1)
    return {k: _three_j_squared(one.j2, other.j2, k) for k in orders if (one.l + other.l + k) % 2 == 0}


def _three_j_squared(j2: int, i2: int, k: int) -> Fraction:
    """(j k i; 1/2 0 -1/2)^2 with j = j2/2, i = i2/2, by Racah's formula: Phys. Rev. 62, 438 (1942), eq. 16'."""
    f = factorial
    j, i = Fraction(j2, 2), Fraction(i2, 2)
    half = Fraction(1, 2)

    def whole(x: Fraction) -> int:
        return int(x)

    # (j1 j2 j3; m1 m2 m3) with j1 = j, j2 = i, j3 = k, m1 = 1/2, m2 = -1/2, m3 = 0: the columns may change places.
    m1, m2 = half, -half
    triangle = Fraction(
        f(whole(j + i - k)) * f(whole(j - i + k)) * f(whole(-j + i + k)),
        f(whole(j + i + k) + 1),
    )
    outer = f(whole(j + m1)) * f(whole(j - m1)) * f(whole(i + m2)) * f(whole(i - m2)) * f(k) * f(k)
    total = Fraction(0)
    for t in range(whole(j + i + k) + 1):
        places = (
            t,
            whole(k - i + t + m1),
            whole(k - j + t - m2),
            whole(j + i - k) - t,
            whole(j - t - m1),
            whole(i - t + m2),
        )
        if min(places) >= 0:
            product = 1
            for place in places:
                product *= f(place)
            total += Fraction((-1) ** t, product)
    return triangle * outer * total * total
