"""Short-range exchange: what remains of the exchange of a uniform gas when 1/r becomes erfc(omega r)/r.

P. M. W. Gill, R. D. Adamson, J. A. Pople, Mol. Phys. 88, 1005 (1996), doi:10.1080/00268979609484488;
H. Iikura, T. Tsuneda, T. Yanai, K. Hirao, J. Chem. Phys. 115, 3540 (2001), doi:10.1063/1.1383587.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, pi, sqrt

from cuanto.kernels.values import Value, erf, expm1, polynomial, select

TERMS = 18


def series() -> list[float]:
    """Taylor coefficients of the factor over y^2, in powers of y^2.

    Of the closed form's parts sqrt(pi) erf(y)/y, exp(-y^2)/y^2 and (1 - exp(-y^2))/y^4; the lowest orders cancel.
    """
    terms = []
    for n in range(1, TERMS + 1):
        parts = (
            Fraction(2, factorial(n) * (2 * n + 1)) - Fraction(1, factorial(n + 1)) - Fraction(1, 2 * factorial(n + 2))
        )
        terms.append(float(Fraction(-4, 3) * (-1) ** n * parts))
    return terms


def attenuation(y: Value) -> Value:
    """The factor, from y = k/omega (1/(2a) of the papers), k the Fermi momentum or what stands for it.

    1 - 8/3 a [sqrt(pi) erf(1/2a) + (2a - 4a^3) exp(-1/4a^2) - 3a + 4a^3]: by its series where y < 1.
    """
    small = select(y, 1, y, 1)
    square = small * small
    low = square * polynomial(series(), square)
    large = select(y, 1, 1, y)
    inverse = 1 / large
    decay = expm1(-(large * large))
    bracket = sqrt(pi) * erf(large) - 0.5 * inverse + decay * inverse * (1 - 0.5 * inverse * inverse)
    return select(y, 1, low, 1 - 4 / 3 * inverse * bracket)
