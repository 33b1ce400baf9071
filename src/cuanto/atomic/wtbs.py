"""Well-tempered sets of exponents, and the table of them for He to Rn that comes with the package.

The formula is in `exponents.well_tempered`. Its K is the last index that a symmetry uses; with `pool` it is the last
index that any symmetry uses.
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
from numpy.typing import NDArray

from cuanto.atomic.atom import LARGEST_EXPONENT, SMALLEST_EXPONENT, AtomBasis
from cuanto.atomic.exponents import well_tempered
from cuanto.atomic.species import LETTERS, SPECIES
from cuanto.errors import InputError

NAMES = ("alpha", "beta", "delta", "gamma")
Range = tuple[int, int]


def species_count(l_max: int) -> int:
    """How many symmetry species there are up to this angular momentum."""
    return 2 * l_max + 1


@dataclass(frozen=True)
class WellTempered:
    """Parameters (alpha, beta, delta, gamma for every group) and the range (a:b) of each symmetry species."""

    parameters: tuple[float, ...]
    ranges: tuple[Range, ...]
    groups: tuple[int, ...] = ()  # of each species, from 1; empty: all in group 1
    pool: bool = False

    @classmethod
    def shared(cls, parameters: Sequence[float], ranges: Mapping[str, Range], pool: bool = False) -> WellTempered:
        """Both species of an angular momentum use the same range, given as {'s': (1, 18), 'p': ...}."""
        by_momentum = [ranges[letter] for letter in LETTERS if letter in ranges]
        if "".join(letter for letter in LETTERS if letter in ranges) != LETTERS[: len(ranges)] or not ranges:
            raise InputError(f"ranges of {', '.join(ranges) or 'nothing'}: give s, then p, d, f, g without a gap")
        per_species = [by_momentum[species.l] for species in SPECIES[: species_count(len(ranges) - 1)]]
        return cls(tuple(map(float, parameters)), tuple((int(a), int(b)) for a, b in per_species), pool=pool)

    def at(self, parameters: Sequence[float]) -> WellTempered:
        """The same ranges with other parameters."""
        return replace(self, parameters=tuple(map(float, parameters)))

    def objection(self) -> str | None:
        """Why these parameters make no set of exponents; None if they do."""
        for g in range(0, len(self.parameters), len(NAMES)):
            alpha, beta, delta, gamma = self.parameters[g : g + len(NAMES)]
            if not all(map(math.isfinite, (alpha, beta, delta, gamma))):
                return "a parameter is not finite"
            if alpha <= 0:
                return f"alpha = {alpha:g} is not positive"
            if beta <= 1:
                return f"beta = {beta:g} is not above 1"
            if gamma <= -1:
                return f"gamma = {gamma:g} is not above -1"
        try:
            found = self._exponents()
        except InputError as error:
            return str(error)
        largest, smallest = max(float(zeta[-1]) for zeta in found), min(float(zeta[0]) for zeta in found)
        if largest > LARGEST_EXPONENT:
            return f"the largest exponent, {largest:.1e}, is beyond {LARGEST_EXPONENT:g}"
        if smallest < SMALLEST_EXPONENT:
            return f"the smallest exponent, {smallest:.1e}, is below {SMALLEST_EXPONENT:g}"
        return None

    def exponents(self) -> tuple[NDArray[np.float64], ...]:
        """Of every species, increasing."""
        reason = self.objection()
        if reason is not None:
            raise InputError(f"no well-tempered set: {reason}")
        return self._exponents()

    def basis(self) -> AtomBasis:
        return AtomBasis(self.exponents())

    def _exponents(self) -> tuple[NDArray[np.float64], ...]:
        longest = max(b for _, b in self.ranges)
        found = []
        for (a, b), g in zip(self.ranges, self.groups or (1,) * len(self.ranges), strict=True):
            alpha, beta, delta, gamma = self.parameters[4 * (g - 1) : 4 * g]
            found.append(well_tempered(alpha, beta, delta, gamma, b, a, longest if self.pool else b))
        return tuple(found)

    def described(self) -> str:
        """s(1:18)p(3:9): the notation of the thesis; species of one momentum that differ are told apart."""
        texts = []
        for l in range(SPECIES[len(self.ranges) - 1].l + 1):
            own = [limits for limits, species in zip(self.ranges, SPECIES, strict=False) if species.l == l]
            marks = ("",) if len(set(own)) == 1 else ("-", "+")
            texts += [f"{LETTERS[l]}{mark}({a}:{b})" for mark, (a, b) in zip(marks, own, strict=False)]
        return "".join(texts)


@cache
def table() -> dict[str, WellTempered]:
    """Table 2.1 of the thesis by symbol."""
    text = (files("cuanto") / "data" / "atoms" / "wtbs.json").read_text()
    rows: dict[str, Any] = json.loads(text)["elements"]
    return {symbol: WellTempered.shared(row["parameters"], row["ranges"]) for symbol, row in rows.items()}


def table_set(symbol: str) -> WellTempered:
    """The set of one element."""
    found = table().get(symbol)
    if found is None:
        raise InputError(
            f"the table of well-tempered sets has no {symbol} (it has He to Rn without Ce, Gd, Tb, Ho, Yb); "
            "use --basis limit, a basis file, or a file .inp"
        )
    return found
