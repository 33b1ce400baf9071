"""Sizes of nuclei: mass numbers, root mean square radii and exponents of Gaussian charge distributions.

L. Visscher and K. G. Dyall, At. Data Nucl. Data Tables 67, 207 (1997), doi:10.1006/adnd.1997.0751: radii, and the mass
numbers of the isotopes chosen there (H to Mt). Ds to Og: the mass numbers in the periodic table of IUPAC (4 May 2022).
"""

from cuanto.errors import require

BOHR_IN_FEMTOMETRES = 52917.7249
"""One Bohr in femtometres: the value used by the tables, on which their last digits depend."""

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
    return float((0.836 * mass ** (1.0 / 3.0) + 0.570) / BOHR_IN_FEMTOMETRES)


def gaussian_exponent(rms: float) -> float:
    """Exponent eta (Bohr^-2) of a charge distribution exp(-eta r^2) with this root mean square radius (Bohr)."""
    return 1.5 / rms**2
