"""Distances, angles, dihedral angles and atoms that are kept, set or scanned in an optimisation.

They are written as text, with atoms numbered from 1, in Angstrom and degrees: `distance 1 2` is kept, `distance 1 2
1.5` is set, and `dihedral 1 2 3 4 0 180 7` is scanned at seven points.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import radians
from typing import Any

import numpy as np

from cuanto.errors import InputError
from cuanto.system import Molecule
from cuanto.system.text import parse_finite, parse_whole, quote
from cuanto.units import BOHR_IN_ANGSTROM

ATOMS = {"atom": 1, "distance": 2, "angle": 3, "dihedral": 4}
"""Kinds of constraints, and their numbers of atoms."""
VALUE_NAMES = {"freeze": (), "set": ("VALUE",), "scan": ("FIRST", "LAST", "POINTS")}
"""Names of the values that follow the atoms."""
MAX_POINTS = 10_000


@dataclass(frozen=True)
class Constraint:
    """A coordinate with its atoms (numbered from 0); `value`: the value it is set to (Bohr, radians), or None."""

    kind: str
    atoms: tuple[int, ...]
    value: float | None = None

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(atom + 1) for atom in self.atoms)])

    @property
    def unit(self) -> float:
        """Bohr or radians in one Angstrom or degree."""
        return 1.0 / BOHR_IN_ANGSTROM if self.kind in ("atom", "distance") else radians(1.0)

    @property
    def shown(self) -> str:
        """The value with its unit, as it is printed."""
        if self.value is None:
            return "frozen"
        return f"{self.value / self.unit:.6g} {'Angstrom' if self.kind == 'distance' else 'degrees'}"


def read_constraints(
    molecule: Molecule, freeze: Iterable[Any] = (), set: Iterable[Any] = (), scan: Iterable[Any] = ()
) -> list[list[Constraint]]:
    """Read the constraints of every point of a scan; a single list if nothing is scanned. Several scans form a grid."""
    fixed = [_parse(text, "freeze", molecule)[0] for text in freeze]
    fixed += [_parse(text, "set", molecule)[0] for text in set]
    scans = [_parse(text, "scan", molecule) for text in scan]
    points = [[*fixed, *values] for values in itertools.product(*scans)]
    names = [(one.kind, min(one.atoms, one.atoms[::-1])) for one in points[0]]
    for name, one in zip(names, points[0], strict=True):
        if names.count(name) > 1:
            raise InputError(f"{one} is constrained twice: leave out one of them")
    frozen = {one.atoms[0] for one in fixed if one.kind == "atom"}
    for one in points[0]:
        if one.value is not None and frozen.issuperset(one.atoms):
            raise InputError(f"{one} cannot be set or scanned: all its atoms are frozen; leave out one of them")
    if len(points) > MAX_POINTS:
        raise InputError(f"the scans have {len(points)} points together: at most {MAX_POINTS} are possible")
    return points


def _parse(given: Any, what: str, molecule: Molecule) -> list[Constraint]:
    text = given if isinstance(given, str) else " ".join(str(part) for part in given)
    words = text.replace("=", " ").replace(",", " ").split()
    kind = words[0].lower() if words else ""
    if kind not in ATOMS or (kind == "atom" and what != "freeze"):
        known = [name for name in ATOMS if name != "atom" or what == "freeze"]
        raise InputError(f"{what} {quote(text)}: begin with {', '.join(known)}")
    many = ATOMS[kind]
    if len(words) != 1 + many + len(VALUE_NAMES[what]):
        wanted = " ".join([kind, *"ABCD"[:many], *VALUE_NAMES[what]])
        raise InputError(f"{what} {quote(text)}: write {wanted}, with atoms numbered from 1, Angstrom and degrees")
    one = Constraint(kind, _atoms(words[1 : 1 + many], f"{what} {quote(text)}", molecule))
    numbers = [parse_finite(word) for word in words[1 + many :]]
    values = _values(numbers, what, f"{what} {quote(text)}")
    for value in values:
        _check_value(one, value, f"{what} {quote(text)}")
    return [replace(one, value=None if value is None else value * one.unit) for value in values]


def _atoms(words: Sequence[str], where: str, molecule: Molecule) -> tuple[int, ...]:
    atoms = [parse_whole(word) for word in words]
    for word, atom in zip(words, atoms, strict=True):
        if atom is None or not 1 <= atom <= molecule.natom:
            raise InputError(f"{where}: there is no atom {word}; atoms are numbered from 1 to {molecule.natom}")
    found = tuple(atom - 1 for atom in atoms if atom is not None)
    if len(set(found)) < len(found):
        raise InputError(f"{where}: an atom is named twice")
    return found


def _values(numbers: Sequence[float | None], what: str, where: str) -> list[float | None]:
    """Values in Angstrom or degrees; None keeps the current value."""
    if any(number is None for number in numbers):
        raise InputError(f"{where}: {', '.join(VALUE_NAMES[what])} must be numbers")
    if what != "scan":
        return list(numbers) or [None]
    first, last, points = (float(number) for number in numbers if number is not None)
    if points != int(points) or not 2 <= points <= MAX_POINTS:
        raise InputError(f"{where}: a scan has 2 to {MAX_POINTS} points, not {points:g}")
    return list(np.linspace(first, last, int(points)).tolist())


def _check_value(one: Constraint, value: float | None, where: str) -> None:
    if value is None:
        return
    if one.kind == "distance" and not 0.3 <= value <= 100:
        raise InputError(f"{where}: {value:g} Angstrom is not a valid distance between two atoms; give 0.3 to 100")
    if one.kind == "angle" and not 0 < value < 180:
        raise InputError(f"{where}: {value:g} degrees is not a valid angle; give more than 0 and less than 180")
    if one.kind == "dihedral" and not -360 <= value <= 360:
        raise InputError(f"{where}: {value:g} degrees: give a dihedral angle between -360 and 360")
