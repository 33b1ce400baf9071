"""The contents of a molecule file, whatever its format."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cuanto.errors import InputError
from cuanto.system.text import parse_real, quote

Position = tuple[float, float, float]


@dataclass(frozen=True)
class Structure:
    """Atoms in Angstrom or Bohr, not validated beyond the format; None for values that the file does not give.

    `dummies`: numbers, from 1, that dummy atoms have in the file; they are not among the atoms here. `hint`: what looks
    like a charge or multiplicity and is not read, and how to write it. `cell_hint`: that a cell is not read. `masses`:
    those of the atoms in atomic mass units, None for standard ones; empty if the file has none.
    """

    symbols: tuple[str, ...]
    coordinates: tuple[Position, ...]
    charge: int | None
    multiplicity: int | None
    name: str
    angstrom: bool
    dummies: tuple[int, ...] = ()
    hint: str = ""
    cell_hint: str = ""
    masses: tuple[float | None, ...] = ()


def parse_position(tokens: Sequence[str], where: str) -> Position:
    """Three finite coordinates; `where` begins the message."""
    numbers = []
    for token in tokens:
        value = parse_real(token)
        if value is None or not math.isfinite(value):
            problem = "a number" if value is None else "finite"
            point = token.replace(",", ".")
            advice = "" if parse_real(point) is None or point == token else f": write {point}, with a point"
            raise InputError(f"{where}: coordinate {quote(token)} is not {problem}{advice}")
        numbers.append(value)
    x, y, z = numbers
    return x, y, z
