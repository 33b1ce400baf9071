"""Even-tempered and well-tempered sets of exponents, and the table of well-tempered sets for He to Rn.

Well-tempered: S. Huzinaga and M. Klobukowski, Chem. Phys. Lett. 212, 260 (1993), doi:10.1016/0009-2614(93)89323-A,
in the recursive form of D. Hennessey's thesis (Alberta, 2018). K of the formula is the last index of a symmetry; with
`pool` it is the largest last index of all symmetries.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import MAX_EXPONENT, MIN_EXPONENT, AtomBasis
from cuanto.atomic.species import LETTERS, SPECIES
from cuanto.errors import InputError, require
from cuanto.system.elements import ATOMIC_NUMBERS

NAMES = ("alpha", "beta", "delta", "gamma")
Range = tuple[int, int]

GENERATED_RATIO = 1.85
GENERATED_SMALLEST = (0.012, 0.018, 0.028, 0.06, 0.1)
"""Smallest exponents of s, p, d, f, g: those of the most diffuse valence shells of neutral atoms."""
GENERATED_LARGEST = ((4e5, 0.0), (100.0, 4.0), (2.0, 3e-3), (0.5, 4e-5), (0.3, 0.0))
"""a and b of the largest exponent a Z^2 + b Z^4, by momentum: hydrogenic, and relativistic growth near the nucleus."""
TIGHTEST = 5e8
"""Largest exponent of any angular momentum: narrower functions lie inside the nucleus."""
POINT_LARGEST = (1e9, 15.0)
"""a and b of the largest exponent a 10^(Z/b) of s and p around a point nucleus, where j = 1/2 is singular."""


def singular_largest(symbol: str) -> float:
    """Largest exponent of the s and p functions of relativistic spinors around a point nucleus."""
    return float(POINT_LARGEST[0] * 10.0 ** (ATOMIC_NUMBERS[symbol] / POINT_LARGEST[1]))


def even_tempered(smallest: float, ratio: float, count: int) -> Array:
    """Exponents smallest * ratio^i, i = 0, 1, ..."""
    if not (smallest > 0 and ratio > 1 and count > 0):
        raise InputError(f"even-tempered set ({smallest}, {ratio}, {count}): give positive numbers, ratio above 1")
    return np.asarray(smallest * ratio ** np.arange(count))


def well_tempered(
    alpha: float, beta: float, delta: float, gamma: float, last: int, first: int = 1, K: int | None = None
) -> Array:
    """zeta_first .. zeta_last of zeta_1 = alpha, zeta_k = zeta_(k-1) beta (1 + gamma (k/K)^delta).

    K is `last` by default.
    """
    K = last if K is None else K
    if not (1 <= first <= last <= K):
        raise InputError(f"well-tempered set with indices {first} to {last} of {K}: give 1 <= first <= last <= K")
    k = np.arange(2, last + 1)
    with np.errstate(all="ignore"):
        zeta = alpha * np.concatenate([[1.0], np.cumprod(beta * (1.0 + gamma * (k / K) ** delta))])
    require(
        np.isfinite(zeta).all() and alpha > 0 and (np.diff(zeta) > 0).all(),
        f"well-tempered parameters ({alpha:g}, {beta:g}, {delta:g}, {gamma:g}) do not give rising, finite exponents",
    )
    return np.asarray(zeta[first - 1 :])


@dataclass(frozen=True)
class WellTempered:
    """Parameters (alpha, beta, delta, gamma for every group) and the range (a:b) of each symmetry species."""

    parameters: tuple[float, ...]
    ranges: tuple[Range, ...]
    groups: tuple[int, ...] = ()  # of each species, from 1; empty: all in group 1
    pool: bool = False

    @classmethod
    def shared(cls, parameters: Sequence[float], ranges: Mapping[str, Range]) -> WellTempered:
        """A set with the same range for both species of an angular momentum: {'s': (1, 18), 'p': ...}."""
        by_momentum = [ranges[letter] for letter in LETTERS if letter in ranges]
        if "".join(letter for letter in LETTERS if letter in ranges) != LETTERS[: len(ranges)] or not ranges:
            raise InputError(f"ranges of {', '.join(ranges) or 'nothing'}: give s, then p, d, f, g without a gap")
        per_species = [by_momentum[species.l] for species in SPECIES[: 2 * len(ranges) - 1]]
        return cls(tuple(map(float, parameters)), tuple((int(a), int(b)) for a, b in per_species))

    def at(self, parameters: Sequence[float]) -> WellTempered:
        """The same ranges with other parameters."""
        return replace(self, parameters=tuple(map(float, parameters)))

    def invalid_reason(self) -> str | None:
        """Why these parameters do not give a valid set of exponents; None if they do."""
        for g in range(0, len(self.parameters), len(NAMES)):
            alpha, beta, delta, gamma = self.parameters[g : g + len(NAMES)]
            if not all(map(math.isfinite, (alpha, beta, delta, gamma))):
                return "a parameter is not finite"
            for name, value, bound in (("alpha", alpha, 0), ("beta", beta, 1), ("gamma", gamma, -1)):
                if value <= bound:
                    return f"{name} = {value:g} is not above {bound}"
        try:
            found = self._exponents()
        except InputError as error:
            return str(error)
        for zeta in np.concatenate(found):
            if not MIN_EXPONENT <= zeta <= MAX_EXPONENT:
                return f"exponent {zeta:.1e} is not between {MIN_EXPONENT:g} and {MAX_EXPONENT:g}"
        return None

    def exponents(self) -> tuple[Array, ...]:
        """Exponents of every species, increasing."""
        if reason := self.invalid_reason():
            raise InputError(f"no well-tempered set: {reason}")
        return self._exponents()

    def basis(self) -> AtomBasis:
        """The exponents as a basis."""
        return AtomBasis(self.exponents())

    def _exponents(self) -> tuple[Array, ...]:
        longest = max(b for _, b in self.ranges)
        found = []
        for (a, b), g in zip(self.ranges, self.groups or (1,) * len(self.ranges), strict=True):
            alpha, beta, delta, gamma = self.parameters[4 * (g - 1) : 4 * g]
            found.append(well_tempered(alpha, beta, delta, gamma, b, a, longest if self.pool else b))
        return tuple(found)

    def range_text(self) -> str:
        """s(1:18)p(3:9): the notation of the thesis; p- and p+ if the two species of p differ."""
        texts = []
        for l in range(SPECIES[len(self.ranges) - 1].l + 1):
            own = [limits for limits, species in zip(self.ranges, SPECIES, strict=False) if species.l == l]
            marks = ("",) if len(set(own)) == 1 else ("-", "+")
            texts += [f"{LETTERS[l]}{mark}({a}:{b})" for mark, (a, b) in zip(marks, own, strict=False)]
        return "".join(texts)


@cache
def table() -> dict[str, WellTempered]:
    """Table 2.1 of the thesis, by symbol."""
    text = (files("cuanto") / "data" / "atoms" / "wtbs.json").read_text()
    rows: dict[str, Any] = json.loads(text)["elements"]
    return {symbol: WellTempered.shared(row["parameters"], row["ranges"]) for symbol, row in rows.items()}


def nearest_set(symbol: str) -> WellTempered:
    """Return the tabulated set of the nearest element."""
    number = ATOMIC_NUMBERS[symbol]
    return table()[min(table(), key=lambda other: (abs(ATOMIC_NUMBERS[other] - number), other))]


def generated_set(symbol: str, l_max: int, singular: bool = False) -> WellTempered:
    """An even-tempered set for any element: exponents alpha beta^(k-1), of which every angular momentum has a range.

    The smallest and largest exponents cause relative errors of about 1e-9 in the energy, the ratio 1.85 of about 1e-8
    (docs/develop/atom_notes.md). `singular`: with the tighter functions that relativistic spinors need around a point
    nucleus; without relativity they would be numerically dependent.
    """
    Z, alpha = ATOMIC_NUMBERS[symbol], GENERATED_SMALLEST[0]
    ranges: dict[str, Range] = {}
    for l in range(l_max + 1):
        a, b = GENERATED_LARGEST[l]
        largest = min(a * Z**2 + b * Z**4, TIGHTEST)
        if singular and l < 2:
            largest = singular_largest(symbol)
        first, last = (1 + math.log(z / alpha) / math.log(GENERATED_RATIO) for z in (GENERATED_SMALLEST[l], largest))
        ranges[LETTERS[l]] = (math.floor(first), math.ceil(last))
    return WellTempered.shared((alpha, GENERATED_RATIO, 1.0, 0.0), ranges)


def table_set(symbol: str) -> WellTempered:
    """The set of one element in the table."""
    found = table().get(symbol)
    if found is None:
        raise InputError(
            f"the table of well-tempered sets has no {symbol} (it has He to Rn without Ce, Gd, Tb, Ho, Yb); "
            "use --basis even, --basis limit, a basis file, or a file .inp"
        )
    return found
