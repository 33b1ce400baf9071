"""The nucleus: a point, a uniformly charged sphere or a Gaussian.

L. Visscher and K. G. Dyall, At. Data Nucl. Data Tables 67, 207 (1997), doi:10.1006/adnd.1997.0751: radii, and the mass
numbers of the isotopes chosen there (H to Mt). Ds to Og: the mass numbers in the periodic table of IUPAC (4 May 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Literal

from cuanto.errors import require

Model = Literal["point", "sphere", "gaussian"]
MODELS: tuple[Model, ...] = ("point", "sphere", "gaussian")
FEMTOMETRES_IN_BOHR = 52917.7249
"""The value used in the tables, which determines their last digits."""
RADII = (1e-3, 1e3)
"""Smallest and largest root mean square radius (fm) that can be given."""

_CHOSEN_ISOTOPES = """
    1 4 7 9 11 12 14 16 19 20 23 24 27 28 31 32 35 40 39 40 45 48 51 52 55 56 59 58 63 64 69 74 75
    80 79 84 85 88 89 90 93 98 98 102 103 106 107 114 115 120 121 130 127 132 133 138 139 140 141 144
    145 152 153 158 159 162 162 168 169 174 175 180 181 184 187 192 193 195 197 202 205 208 209 209
    210 222 223 226 227 232 231 238 237 244 243 247 247 251 252 257 258 259 262 261 262 263 262 265 266
    281 282 285 286 290 290 293 294 294
"""
_MASS_NUMBERS = tuple(int(mass) for mass in _CHOSEN_ISOTOPES.split())


def mass_number(number: int) -> int:
    """Mass number of the isotope chosen for an element, 1 to 118."""
    known = 1 <= number <= len(_MASS_NUMBERS)
    require(known, f"no mass number is known for element {number}: give the size of the nucleus (--nuclear-radius)")
    return _MASS_NUMBERS[number - 1]


def rms_radius(mass: float) -> float:
    """Root mean square radius in Bohr of a nucleus with this mass number."""
    return float((0.836 * mass ** (1.0 / 3.0) + 0.570) / FEMTOMETRES_IN_BOHR)


@dataclass(frozen=True)
class Nucleus:
    """Charge, model, and the model's `size`: radius R of a sphere (Bohr), exponent eta of a Gaussian (Bohr^-2)."""

    charge: float
    model: Model = "point"
    size: float | None = None

    def __post_init__(self) -> None:
        require(self.model in MODELS, f"unknown nuclear model {self.model!r}: choose {', '.join(MODELS)}")
        require(isfinite(self.charge) and self.charge > 0, f"nuclear charge {self.charge}: give a positive number")
        if self.model == "point":
            require(self.size is None, "a point nucleus has no size: choose sphere or gaussian")
        elif self.size is None:
            whole = self.charge == round(self.charge)
            require(whole, f"no radius is known for the charge {self.charge}: give the size of the nucleus")
            size = self.size_of(self.model, rms_radius(mass_number(round(self.charge))))
            object.__setattr__(self, "size", size)
        else:
            good = isfinite(self.size) and self.size > 0
            require(good, f"size {self.size} of the nucleus: give a positive number")

    @classmethod
    def of_radius(cls, charge: float, model: Model, femtometres: float | None) -> Nucleus:
        """A nucleus with this root mean square radius in fm, or that of its element if it is None."""
        if femtometres is None:
            return cls(charge, model)
        smallest, largest = RADII
        good = isfinite(femtometres) and smallest <= femtometres <= largest
        require(good, f"nuclear radius {femtometres:g} fm: give a number from {smallest:g} to {largest:g}")
        require(model != "point", "a point nucleus has no radius: choose sphere or gaussian, or leave out the radius")
        return cls(charge, model, cls.size_of(model, femtometres / FEMTOMETRES_IN_BOHR))

    @staticmethod
    def size_of(model: Model, rms: float) -> float:
        """R or eta of a nucleus with this root mean square radius (Bohr)."""
        return sqrt(5.0 / 3.0) * rms if model == "sphere" else 1.5 / rms**2

    @property
    def rms(self) -> float:
        """Root mean square radius in Bohr."""
        if self.size is None:
            return 0.0
        return self.size / sqrt(5.0 / 3.0) if self.model == "sphere" else sqrt(1.5 / self.size)

    @property
    def femtometres(self) -> float:
        """Root mean square radius in fm."""
        return self.rms * FEMTOMETRES_IN_BOHR
