"""Division of a molecule into fragments, each of which can be computed alone or with the others as ghosts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuanto.errors import InputError, require
from cuanto.options import require_known
from cuanto.system.molecule import Molecule
from cuanto.system.nuclei import ghost_of
from cuanto.system.text import quote
from cuanto.wording import format_charge

EXAMPLES = "such as '3,3' (numbers of atoms) or '1-3;4-6' (atoms, numbered from 1)"
_ATOMS = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", re.ASCII)

Fragments = str | Sequence[int] | Sequence[Sequence[int]]
"""Fragments as people give them: '3,3', '1-3;4-6', [3, 3], or [[1, 2, 3], [4, 5, 6]]."""


@dataclass(frozen=True)
class Division:
    """How a user divides a complex; what depends on the molecule is checked by `divide`.

    `charges` and `multiplicities` are those of the fragments; by default zero and the lowest possible ones.
    """

    fragments: Fragments
    charges: Sequence[int] | None = None
    multiplicities: Sequence[int] | None = None

    @classmethod
    def of(cls, **given: Any) -> Division:
        """Division from keywords; the error for an unknown keyword suggests the closest one."""
        require_known(given, ("fragments", "charges", "multiplicities"), "counterpoise: unknown key")
        require("fragments" in given, f"counterpoise needs its fragments, {EXAMPLES}")
        return cls(**given)

    def plain(self) -> dict[str, Any]:
        """The division as plain data."""
        return dict(vars(self))

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", _read_division(self.fragments))
        for name in ("charges", "multiplicities"):
            object.__setattr__(self, name, _whole_numbers(getattr(self, name), name))

    def divide(self, molecule: Molecule) -> list[Fragment]:
        """Fragments of a molecule; every atom must belong to exactly one."""
        groups = self._groups(molecule.natom)
        charges = self._per_fragment("charges", len(groups))
        if charges is None:
            if molecule.charge != 0:
                raise InputError(f"a complex of charge {molecule.charge:+d} needs the charges of its fragments")
            charges = [0] * len(groups)
        if sum(charges) != molecule.charge:
            parts = ", ".join(map(format_charge, charges))
            total = format_charge(molecule.charge)
            raise InputError(f"charges {parts} of the fragments do not add up to that of the complex, {total}")
        multiplicities = self._per_fragment("multiplicities", len(groups)) or [None] * len(groups)
        found = []
        for k, atoms in enumerate(groups):
            try:
                found.append(Fragment.of(molecule, k + 1, atoms, charges[k], multiplicities[k]))
            except InputError as error:
                raise InputError(f"fragment {k + 1}: {error}") from None
        return found

    def _groups(self, natom: int) -> list[list[int]]:
        """Atoms of every fragment, numbered from 0."""
        given: Any = self.fragments
        if isinstance(given[0], int):
            counts = ", ".join(map(str, given))
            require(
                sum(given) == natom, f"fragments of {counts} atoms are {sum(given)} atoms, the molecule has {natom}"
            )
            ends = [sum(given[: k + 1]) for k in range(len(given))]
            return [list(range(end - size, end)) for size, end in zip(given, ends, strict=True)]
        owner: dict[int, int] = {}
        for k, atoms in enumerate(given, start=1):
            for a in atoms:
                require(1 <= a <= natom, f"fragment {k} has atom {a}: the molecule has atoms 1 to {natom}")
                require(a not in owner, f"atom {a} is in fragments {owner.get(a)} and {k}: it can be in one only")
                owner[a] = k
        missing = [a for a in range(1, natom + 1) if a not in owner]
        require(not missing, f"atoms {format_atoms(missing)} are in no fragment: add them to one")
        return [[a - 1 for a in sorted(atoms)] for atoms in given]

    def _per_fragment(self, name: str, count: int) -> Any:
        values = getattr(self, name)
        if values is not None and len(values) != count:
            raise InputError(f"{len(values)} {name} of fragments were given for {count} fragments: give one for each")
        return values


def _read_division(given: Any) -> list[int] | list[list[int]]:
    """Numbers of atoms, or lists of atoms, from any of the forms that people write."""
    typed = given
    if isinstance(given, str):
        given = _read_text(given)
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or len(given) < 2:
        raise InputError(f"counterpoise needs two or more fragments, {EXAMPLES}, not {quote(typed)}")
    if all(_is_whole(one) and one > 0 for one in given):
        return [int(one) for one in given]
    found = []
    for one in given:
        if isinstance(one, (str, bytes)) or not isinstance(one, Sequence) or not one or not all(map(_is_whole, one)):
            raise InputError(f"counterpoise needs fragments {EXAMPLES}, not {quote(typed)}")
        found.append([int(a) for a in one])
    return found


def _read_text(text: str) -> list[Any]:
    """Read a division such as '3,3' or '1-3;4,5,7-9'."""
    parts = [part.strip() for part in text.strip().strip(";").split(";")]
    if len(parts) == 1:
        counts = parts[0].replace(",", " ").split()
        if counts and all(re.fullmatch(r"\d{1,9}", word, re.ASCII) for word in counts):
            return [int(word) for word in counts]
        raise InputError(f"counterpoise {quote(text)}: give fragments {EXAMPLES}")
    return [_read_atoms(part, text) for part in parts]


def _read_atoms(part: str, text: str) -> list[int]:
    found: list[int] = []
    for word in part.split(",") if "," in part else part.split():
        match = _ATOMS.fullmatch(word.strip())
        if match is None or int(match[2] or match[1]) - int(match[1]) not in range(10**6):
            raise InputError(
                f"counterpoise {quote(text)}: {quote(word)} is not an atom or a range; give fragments {EXAMPLES}"
            )
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole_numbers(given: Any, name: str) -> list[int] | None:
    if given is None:
        return None
    if isinstance(given, str):
        given = [int(word) if re.fullmatch(r"[+-]?\d{1,6}", word) else word for word in given.replace(",", " ").split()]
    if not isinstance(given, Sequence) or not given or not all(map(_is_whole, given)):
        raise InputError(f"{name} of fragments must be whole numbers, one for each, such as 0,1, not {quote(given)}")
    return [int(one) for one in given]


def format_atoms(atoms: Sequence[int]) -> str:
    """Ranges of atoms as text: '1-3, 5' for atoms 1, 2, 3 and 5."""
    parts: list[list[int]] = []
    for a in sorted(atoms):
        if parts and a == parts[-1][1] + 1:
            parts[-1][1] = a
        else:
            parts.append([a, a])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


@dataclass(frozen=True, eq=False)
class Fragment:
    """A part of a complex; `atoms` are numbered from 1.

    `alone`: the fragment by itself. `ghosts`: the fragment with all other atoms of the complex as ghosts.
    """

    number: int
    atoms: tuple[int, ...]
    alone: Molecule
    ghosts: Molecule

    @classmethod
    def of(
        cls, molecule: Molecule, number: int, atoms: Sequence[int], charge: int, multiplicity: int | None
    ) -> Fragment:
        """The fragment of these atoms, numbered from 0."""
        own = set(atoms)
        symbols = [symbol if a in own else ghost_of(symbol) for a, symbol in enumerate(molecule.symbols)]
        name = f"{molecule.name or 'complex'}, fragment {number}"
        kept = sorted(own)
        masses, ghost_name = molecule.nuclei.masses, f"{name} in the basis of the complex"
        of_atoms = [molecule.symbols[a] for a in kept]
        alone = Molecule(of_atoms, molecule.R_ax[kept], charge, multiplicity, name, masses[kept])
        ghosts = Molecule(symbols, molecule.R_ax, charge, multiplicity, ghost_name, masses)
        return cls(number, tuple(a + 1 for a in kept), alone, ghosts)
