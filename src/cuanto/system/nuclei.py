"""Nuclei, ghost atoms and dummy atoms.

The element of an atom determines its basis functions, its nucleus the charge.

A ghost atom has the functions, the radius and the grid of its element, but no nucleus: no charge, no electron, no mass.
It is read in the spellings of the common programs (Gh-O, Gh(O), Ghost-O, GHOST.O, X-O, BqO, O-Bq, @O, O:) and written
as Gh-O. A dummy atom (X, Xx, Du, Q, LP, Bq) has no element, and so no functions either: XYZ files may contain some,
which are left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array, Ints
from cuanto.errors import InputError, require
from cuanto.system.elements import ATOMIC_NUMBERS, symbol_of
from cuanto.system.masses import MASSES, checked_mass
from cuanto.system.text import quote

GHOST = "Gh-"
"""Prefix of the element in the symbol of a ghost atom."""

_DUMMY = re.compile(r"(?:x|xx|bq|du|q|lp)[-_.]?\d*", re.ASCII | re.IGNORECASE)
_NAMELESS = re.compile(r"(?:gh|ghost)[-_.]?\d*|0", re.ASCII | re.IGNORECASE)
_ELEMENT = r"([a-z]+\d*)"
_GHOST = re.compile(
    rf"@{_ELEMENT}|{_ELEMENT}:|{_ELEMENT}-bq|(?:ghost|gh|bq|x)\({_ELEMENT}\)|(?:(?:ghost|gh|bq)[-_.]?|x[-_.]){_ELEMENT}",
    re.ASCII | re.IGNORECASE,
)


def is_dummy(label: str) -> bool:
    """Whether a label such as X stands for a dummy atom; Gh alone does not: it is a ghost without its element."""
    return _DUMMY.fullmatch(label) is not None


def atom_symbol(label: str) -> str:
    """Normalise the symbol of an atom as written by a user: 'O' for 'O', 'o1' or '8', 'Gh-O' for any spelling of a
    ghost."""
    if is_dummy(label) or _NAMELESS.fullmatch(label):
        raise InputError(f"dummy atom {quote(label)} has no element: write a ghost atom as Gh-O, or leave it out")
    ghost = _GHOST.fullmatch(label)
    if ghost is None:
        return symbol_of(label)
    return GHOST + atom_symbol(next(element for element in ghost.groups() if element))


def element_of(symbol: str) -> str:
    """'O' for 'O' and for the ghost 'Gh-O'."""
    return symbol.removeprefix(GHOST)


def ghost_of(symbol: str) -> str:
    """'Gh-O' for 'O' and for 'Gh-O'."""
    return GHOST + element_of(symbol)


@dataclass(frozen=True, eq=False)
class Nuclei:
    """The nuclei of all atoms; ghosts have no protons.

    `core_electrons` are those that an effective core potential replaces. `isotopic_masses`: the masses of all atoms if
    some differ from the standard atomic weights, else None.
    """

    protons: Ints
    core_electrons: Ints
    isotopic_masses: Array | None = None

    @classmethod
    def of(cls, symbols: Sequence[str], masses: Sequence[float | None] | Array | None = None) -> "Nuclei":
        """Nuclei of atoms without core potentials; None stands for standard masses, those of ghosts are ignored."""
        protons = np.array([ATOMIC_NUMBERS.get(symbol, 0) for symbol in symbols], dtype=np.int64)
        nuclei = cls(protons, np.zeros_like(protons))
        return nuclei if masses is None else nuclei.with_masses(symbols, masses)

    def with_masses(self, symbols: Sequence[str], masses: Sequence[float | None] | Array | None) -> "Nuclei":
        """The same nuclei with these masses, by default the standard ones."""
        standard = replace(self, isotopic_masses=None)
        if masses is None:
            return standard
        wrong = f"{len(symbols)} atoms need {len(symbols)} masses in atomic mass units, not {quote(masses)}"
        given_a = np.array(masses, dtype=object)
        require(given_a.shape == (len(symbols),), wrong)
        found = standard.masses
        for a, mass in enumerate(given_a):
            if mass is not None and not self.ghosts[a]:
                found[a] = checked_mass(f"atom {a + 1} ({symbols[a]})", mass)
        if np.array_equal(found, standard.masses):
            return standard
        found.setflags(write=False)
        return replace(self, isotopic_masses=found)

    @property
    def charges(self) -> Ints:
        """Effective charges Z_a."""
        return self.protons - self.core_electrons

    @property
    def ghosts(self) -> NDArray[np.bool_]:
        """Whether each atom is a ghost."""
        return np.asarray(self.protons == 0)

    @property
    def masses(self) -> NDArray[np.float64]:
        """Masses in atomic mass units; zero for ghosts."""
        if self.isotopic_masses is not None:
            return self.isotopic_masses
        return np.array([0.0, *MASSES.values()])[self.protons]
