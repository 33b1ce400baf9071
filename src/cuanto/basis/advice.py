"""Basis sets that error messages and warnings suggest: they have the elements and run without further warnings."""

import re
from collections.abc import Iterable, Sequence

from cuanto.basis import exchange
from cuanto.errors import MissingDependencyError
from cuanto.system.elements import ATOMIC_NUMBERS

LAST_LIGHT_ELEMENT = 36
"""Krypton: for heavier elements the errors of neglecting relativity matter in chemistry."""
WIDE_SETS = ("def2-SVP", "def2-TZVP", "CRENBL")
"""Sets with core potentials for heavy elements that together cover the periodic table, the most common ones first."""
RELATIVISTIC_SETS = ("x2c-SVPall", "x2c-TZVPall", "ANO-RCC-VDZP", "jorge-DZP-DKH", "dyall-v2z")
"""Sets of all electrons for X2C, in the same order."""
PARTNERS = ("def2-svp", "stuttgart rsc 1997")
"""Sets with core potentials to combine with others, the most accurate one first. LANL2DZ, which is often combined with
others, has no polarisation functions: with 6-31G* the bond energy of HI is 8 kcal/mol too small."""
MAX_NAMED = 3
"""Largest number of sets that a message names."""


def sets_for(symbols: Iterable[str], relativistic: bool = False) -> list[str]:
    """The first sets that have all these elements, with X2C if `relativistic`; empty if none has them."""
    wanted = set(symbols)
    try:
        fitting = (n for n in (RELATIVISTIC_SETS if relativistic else WIDE_SETS) if wanted <= exchange.elements_of(n))
        return list(fitting)[:MAX_NAMED]
    except MissingDependencyError:
        return []


def alternatives(name: str, symbols: Sequence[str], lacking: Sequence[str], relativistic: bool) -> list[str]:
    """Sets to use instead of one that lacks some of the elements of a molecule.

    A mixture of sets that were made for each other comes first, another one after two sets with all elements.
    """
    mixtures = [] if relativistic else _mixtures(name.lower(), symbols, lacking)
    found = [*(repr(one) for one, matched in mixtures if matched), *sets_for(symbols, relativistic)]
    others = [repr(one) for one, matched in mixtures if not matched]
    return [*found[: MAX_NAMED - len(others)], *others]


def _mixtures(name: str, symbols: Sequence[str], lacking: Sequence[str]) -> list[tuple[str, bool]]:
    """Sets by element, such as I=cc-pvdz-pp,cc-pvdz, that keep the given set for what it has; none or one, and whether
    they were made for each other."""
    present = [symbol for symbol in symbols if symbol not in lacking]
    if not all(_works(name, symbol) for symbol in present):
        return []
    if name.endswith("-pp") and present and all(_works(name.removesuffix("-pp"), symbol) for symbol in lacking):
        return [(",".join([*(f"{symbol}={name}" for symbol in present), name.removesuffix("-pp")]), True)]
    if not present or max(ATOMIC_NUMBERS[symbol] for symbol in present) > LAST_LIGHT_ELEMENT:
        return []
    own = re.sub(r"\((.)\+d\)", r"\1", name) + "-pp"  # cc-pV(T+d)Z adds functions for light elements only
    for partner in (own, *PARTNERS):
        if all(_works(partner, symbol) for symbol in lacking):
            return [(",".join([*(f"{symbol}={partner}" for symbol in lacking), name]), partner == own)]
    return []


def _works(name: str, symbol: str) -> bool:
    """Whether a set of the Exchange has an element, with a core potential if it is heavy."""
    if symbol not in exchange.elements_of(name):
        return False
    light = ATOMIC_NUMBERS[symbol] <= LAST_LIGHT_ELEMENT
    return light or exchange.exchange_table(name, symbol).core_potential is not None
