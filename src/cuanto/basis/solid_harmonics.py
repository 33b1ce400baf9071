"""Real solid harmonics as polynomials in x, y, z.

S_lm = r^l Y_lm with real Y_lm of unit norm on the sphere and without the Condon-Shortley sign.
Formula: T. Helgaker, P. Jorgensen, J. Olsen, Molecular Electronic-Structure Theory (Wiley, 2000),
eqs. 6.4.47-6.4.50; the same coefficients: H. B. Schlegel, M. J. Frisch, Int. J. Quantum Chem. 54, 83
(1995), doi:10.1002/qua.560540202.
"""

from fractions import Fraction
from functools import cache
from math import comb, factorial, pi, sqrt

import numpy as np

from cuanto.arrays import Array


@cache
def _powers(l: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((a, b, l - a - b) for a in range(l, -1, -1) for b in range(l - a, -1, -1))


def cartesian_powers(l: int) -> list[tuple[int, int, int]]:
    """Powers (a, b, c) of x^a y^b z^c with a + b + c = l, lexicographic: xx, xy, xz, yy, yz, zz."""
    return list(_powers(l))


def n_cartesian(l: int) -> int:
    """Number of Cartesian components."""
    return (l + 1) * (l + 2) // 2


@cache
def solid_harmonic_matrix(l: int) -> Array:
    """Coefficients of S_lm in the monomials of `cartesian_powers(l)`, shape (2l+1, ncart), read-only.

    Rows: m = -l ... +l, except l = 1, which is x, y, z.
    """
    column = {powers: i for i, powers in enumerate(_powers(l))}
    M_mc = np.zeros((2 * l + 1, len(column)))
    for row, m in enumerate((1, -1, 0) if l == 1 else range(-l, l + 1)):
        for powers, coefficient in _polynomial(l, m).items():
            M_mc[row, column[powers]] = float(coefficient)
        M_mc[row] *= _normalisation(l, abs(m))
    M_mc.setflags(write=False)
    return M_mc


@cache
def shell_matrix(l: int, pure: bool) -> Array:
    """Rows: the components of a shell of angular momentum l; columns: monomials. AO = R(r)/r^l times this polynomial.

    Cartesian shells of l >= 2 carry no angular factor (the convention of libcint), s and p have unit norm.
    """
    if pure or l < 2:
        return solid_harmonic_matrix(l)
    identity = np.eye(n_cartesian(l))
    identity.setflags(write=False)
    return identity


def _normalisation(l: int, m: int) -> float:
    """Eq. 6.4.49 times sqrt((2l+1)/(4 pi)): from Racah's normalisation to unit norm on the sphere."""
    squared = Fraction(2 * factorial(l + m) * factorial(l - m), 2 if m == 0 else 1)
    squared /= (2**m * factorial(l)) ** 2
    return sqrt(squared) * sqrt((2 * l + 1) / (4 * pi))


def _polynomial(l: int, m: int) -> dict[tuple[int, int, int], Fraction]:
    """S_lm without its normalisation, eqs. 6.4.47 and 6.4.48; `w` is 2v, odd for m < 0."""
    k = abs(m)
    first = 1 if m < 0 else 0
    terms: dict[tuple[int, int, int], Fraction] = {}
    for t in range((l - k) // 2 + 1):
        for u in range(t + 1):
            for w in range(first, k + 1, 2):
                sign = -1 if (t + (w - first) // 2) % 2 else 1
                value = Fraction(sign * comb(l, t) * comb(l - t, k + t) * comb(t, u) * comb(k, w), 4**t)
                powers = (2 * t + k - 2 * u - w, 2 * u + w, l - 2 * t - k)
                terms[powers] = terms.get(powers, Fraction(0)) + value
    return terms
