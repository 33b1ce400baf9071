"""Tabulated basis sets, not yet assigned to atoms."""

from dataclasses import dataclass

from cuanto.basis.core_potential import CorePotential
from cuanto.basis.shell import ANGULAR_LETTERS
from cuanto.errors import require
from cuanto.system.text import quote

EXPONENTS = (1e-8, 1e15)
"""Smallest and largest exponent that is accepted; integrals overflow or underflow outside this range."""
MAX_PRIMITIVES = 100
"""Largest number of primitives of a shell; published sets have up to about 40."""


@dataclass(frozen=True, slots=True)
class ShellTable:
    """One shell: `coefficients[k][q]` of normalised primitives; `pure` is None if the source does not say."""

    l: int
    exponents: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    pure: bool | None = None


@dataclass(frozen=True, slots=True)
class ElementTable:
    """The shells of one element, in the order of the source, and the core potential that belongs to them."""

    symbol: str
    shells: tuple[ShellTable, ...]
    source: str
    core_potential: CorePotential | None = None


def momenta(letters: str) -> tuple[int, ...]:
    """Angular momenta of a shell type: 'S' -> (0,), 'SP' -> (0, 1), 'SPD' -> (0, 1, 2)."""
    require(letters.upper() != "L", "shell type 'L' is ambiguous: write SP for a combined s and p shell")
    found = tuple(ANGULAR_LETTERS.find(letter) for letter in letters.lower())
    combined = letters.upper() in ("SP", "SPD", "SPDF")
    known = combined or (len(found) == 1 and found[0] >= 0)
    require(known, f"unknown shell type {quote(letters)}: expected S, P, D, ... or SP")
    return found


def split_shell(ls: tuple[int, ...], rows: list[list[float]], pure: bool | None) -> list[ShellTable]:
    """Shells from rows 'exponent coefficients ...'. A combined shell (SP) has one column for each angular momentum.

    Shells that are zero throughout, such as the p part of a padded SP shell, are left out.
    """
    widths = {len(row) for row in rows}
    regular = len(widths) == 1 and widths != {1}
    require(regular, "a shell needs rows 'exponent coefficient ...' of one and the same length")
    n = len(ls)
    require(n == 1 or widths == {n + 1}, f"a combined shell of {n} momenta needs {n} coefficients in every row")
    require(min(row[0] for row in rows) > 0, "exponents must be positive")
    exponents = tuple(row[0] for row in rows)
    low, high = min(exponents), max(exponents)
    possible = low >= EXPONENTS[0] and high <= EXPONENTS[1]
    require(
        possible,
        f"exponents from {low:.3g} to {high:.3g} are not all between {EXPONENTS[0]:g} and {EXPONENTS[1]:g}",
    )
    require(
        len(rows) <= MAX_PRIMITIVES, f"a shell of {len(rows)} primitives is too large: the limit is {MAX_PRIMITIVES}"
    )
    parts = [slice(1, None)] if n == 1 else [slice(1 + i, 2 + i) for i in range(n)]
    columns = [tuple(tuple(row[part]) for row in rows) for part in parts]
    return [
        ShellTable(l, exponents, column, pure)
        for l, column in zip(ls, columns, strict=True)
        if any(any(row) for row in column)
    ]
