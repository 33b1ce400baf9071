"""The periodic table: symbols and atomic numbers, H to Og."""

import difflib
import re

from cuanto.errors import InputError
from cuanto.system.text import quote

_PERIODIC_TABLE = """
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr
    Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu
    Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr
    Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og
"""

SYMBOLS: tuple[str, ...] = tuple(_PERIODIC_TABLE.split())
"""Symbols in the order of the atomic number: SYMBOLS[0] is H."""

ATOMIC_NUMBERS: dict[str, int] = {symbol: z for z, symbol in enumerate(SYMBOLS, start=1)}

_LABEL = re.compile(r"([A-Za-z]+)\d*", re.ASCII)
_ISOTOPES = {"D", "T"}


def symbol_of(label: str) -> str:
    """Element symbol of a label: 'C', 'cl', 'C12' (a symbol with a running number) or '6' (an atomic number)."""
    if label.isascii() and label.isdigit():
        return _symbol_of_number(label)
    match = _LABEL.fullmatch(label)
    if match is None:
        raise InputError(f"unknown element {quote(label)}: write a symbol such as C, C1 or an atomic number")
    symbol = match[1].capitalize()
    if symbol in ATOMIC_NUMBERS:
        return symbol
    if symbol in _ISOTOPES:
        raise InputError(f"unknown element {quote(label)}: write isotopes of hydrogen as H")
    close = difflib.get_close_matches(symbol, SYMBOLS, n=1, cutoff=0.5) or [s for s in SYMBOLS if s == symbol[0]]
    hint = f"did you mean {close[0]!r}?" if close else "elements run from H to Og"
    raise InputError(f"unknown element {quote(label)}; {hint}")


def _symbol_of_number(label: str) -> str:
    z = int(label) if len(label) < 5 else len(SYMBOLS) + 1
    if not 0 < z <= len(SYMBOLS):
        raise InputError(f"unknown element: atomic number {quote(label)} is not between 1 and {len(SYMBOLS)}")
    return SYMBOLS[z - 1]
