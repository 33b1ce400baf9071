"""Molecules: elements, XYZ files, charge and spin."""

from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS, symbol_of
from cuanto.system.molecule import Molecule

__all__ = ["ATOMIC_NUMBERS", "SYMBOLS", "Molecule", "symbol_of"]
