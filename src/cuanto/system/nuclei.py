"""Nuclei, ghost atoms and dummy atoms.

The element of an atom determines its basis functions, its nucleus the charge.

A ghost atom has the functions, the radius and the grid of its element, but no nucleus: no charge, no electron, no mass.
It is read in the spellings of the common programs (Gh-O, Gh(O), Ghost-O, GHOST.O, X-O, BqO, O-Bq, @O, O:) and written
as Gh-O. A dummy atom (X, Xx, Du, Q, LP, Bq) has no element, and so no functions either: XYZ files may contain some,
which are left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Ints
from cuanto.errors import InputError
from cuanto.system.elements import ATOMIC_NUMBERS, symbol_of
from cuanto.system.masses import MASSES
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

    `core_electrons` are those that an effective core potential replaces.
    """

    protons: Ints
    core_electrons: Ints

    @classmethod
    def of(cls, symbols: Sequence[str]) -> "Nuclei":
        """Nuclei of atoms without core potentials."""
        protons = np.array([ATOMIC_NUMBERS.get(symbol, 0) for symbol in symbols], dtype=np.int64)
        return cls(protons, np.zeros_like(protons))

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
        return np.array([0.0, *MASSES.values()])[self.protons]
