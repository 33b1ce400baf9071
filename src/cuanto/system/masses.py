"""Masses of atoms and of isotopes.

Standard atomic weights, J. Meija et al., Pure Appl. Chem. 88, 265 (2016), doi:10.1515/pac-2015-0305, to three decimals
(conventional values where there is a range); elements without one have the mass of their longest-lived isotope.
"""

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.system.elements import SYMBOLS
from cuanto.system.text import quote

_WEIGHTS = """
    1.008 4.003 6.94 9.012 10.81 12.011 14.007 15.999 18.998 20.18 22.99 24.305 26.982 28.085 30.974 32.06 35.45
    39.948 39.098 40.078 44.956 47.867 50.942 51.996 54.938 55.845 58.933 58.693 63.546 65.38 69.723 72.63
    74.922 78.971 79.904 83.798 85.468 87.62 88.906 91.224 92.906 95.95 97.907 101.07 102.906 106.42 107.868
    112.414 114.818 118.71 121.76 127.6 126.904 131.293 132.905 137.327 138.905 140.116 140.908 144.242 144.913
    150.36 151.964 157.25 158.925 162.5 164.93 167.259 168.934 173.054 174.967 178.49 180.948 183.84 186.207
    190.23 192.217 195.084 196.967 200.592 204.38 207.2 208.98 208.982 209.987 222.018 223.02 226.025 227.028
    232.038 231.036 238.029 237.048 244.064 243.061 247.07 247.07 251.08 252.083 257.095 258.098 259.101 262.11
    267.122 268.126 271.134 270.133 269.134 278.156 281.165 281.166 285.177 286.182 289.19 289.194 293.204
    293.208 294.214
"""

MASSES: dict[str, float] = dict(zip(SYMBOLS, map(float, _WEIGHTS.split()), strict=True))
"""Masses by symbol, in atomic mass units."""


_ISOTOPE = re.compile(r"(?P<before>[A-Za-z]{1,2})?(?P<number>\d{1,3})(?P<after>[A-Za-z]{1,2})?", re.ASCII)


def dipole_origin(mass_a: Array, R_ax: Array, charge: int) -> Array:
    """Origin of a dipole moment: the centre of mass for an ion, else zero, because it then makes no difference."""
    return np.asarray(mass_a @ R_ax / mass_a.sum()) if charge else np.zeros(3)


@lru_cache
def isotope_masses() -> dict[str, dict[str, float]]:
    """Masses by symbol and mass number, in atomic mass units."""
    table = json.loads((files("cuanto") / "data" / "isotopes.json").read_text(encoding="utf-8"))
    masses: dict[str, dict[str, float]] = table["masses"]
    return masses


def isotope_mass(element: str, isotope: str | float) -> float:
    """Mass of an isotope given as `13C`, `C13`, `13`, `D`, `T`, or as the mass itself (a number with a fraction)."""
    if isinstance(isotope, int | float) and not isinstance(isotope, bool) and isotope != int(isotope):
        return checked_mass(element, isotope)
    text = {"D": "2H", "T": "3H"}.get(str(isotope).strip().upper(), str(isotope).strip())
    match = _ISOTOPE.fullmatch(text)
    if match is None:
        try:
            return checked_mass(element, float(text))
        except ValueError:
            raise InputError(f"unknown isotope {text!r} of {element}: write 13C, D or a mass such as 2.014") from None
    symbol = (match["before"] or match["after"] or element).capitalize()
    masses = isotope_masses().get(element, {})
    if symbol != element:
        raise InputError(f"isotope {text!r} is not one of {element}: {', '.join(masses)} are its mass numbers")
    if match["number"] not in masses:
        raise InputError(f"unknown isotope {text!r}: the mass numbers of {element} are {', '.join(masses)}")
    return masses[match["number"]]


def checked_mass(element: str, mass: Any) -> float:
    """The mass of an atom as a float; impossible ones are refused."""
    number = isinstance(mass, (int, float, np.integer, np.floating)) and not isinstance(mass, bool)
    if not number or not 0.5 < mass < 500.0:
        raise InputError(f"a mass of {quote(mass)} for {element} is impossible: give atomic mass units")
    return float(mass)
