"""Becke's exchange of 1988, its short-range part, and the correlation of Lee, Yang and Parr."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, pi
from math import sqrt as root

from cuanto.functionals.density import Density, Spin
from cuanto.functionals.parts import Citation, define, define_exchange
from cuanto.functionals.uniform_gas import C_X
from cuanto.kernels.values import Value, asinh, erf, exp, expm1, polynomial, select, sqrt

B88 = Citation("A. D. Becke, Phys. Rev. A 38, 3098 (1988)", "10.1103/PhysRevA.38.3098")
ITYH = Citation("H. Iikura, T. Tsuneda, T. Yanai, K. Hirao, J. Chem. Phys. 115, 3540 (2001)", "10.1063/1.1383587")
LYP = (
    Citation("C. Lee, W. Yang, R. G. Parr, Phys. Rev. B 37, 785 (1988)", "10.1103/PhysRevB.37.785"),
    Citation(
        "B. Miehlich, A. Savin, H. Stoll, H. Preuss, Chem. Phys. Lett. 157, 200 (1989)", "10.1016/0009-2614(89)87234-3"
    ),
)

BETA = 0.0042
A, B, C, D = 0.04918, 0.132, 0.2533, 0.349
"""Constants of Lee, Yang and Parr."""
KINETIC: float = 2 ** (11 / 3) * (0.3 * (3 * pi**2) ** (2 / 3))
SERIES_TERMS = 18


def coefficient(s: Spin) -> Value:
    """Coefficient in place of C_X: the energy of a spin is minus this times rho_s^(4/3)."""
    return C_X + BETA * s.x_squared / (1 + 6 * BETA * s.x * asinh(s.x))


@define_exchange("gga_x_b88", B88)
def exchange(s: Spin) -> Value:
    """Energy density of one spin."""
    return -s.rho * s.cube_root * coefficient(s)


@define_exchange("gga_x_ityh", ITYH)
def short_range_exchange(s: Spin, omega: float) -> Value:
    """Energy density of one spin, as in CAM-B3LYP: k = sqrt(9 pi / K) rho_s^(1/3) replaces k_F, with K twice Becke's
    coefficient."""
    y = sqrt(4.5 * pi / coefficient(s)) * s.cube_root / omega
    return exchange(s) * attenuation(y)


def attenuation(y: Value) -> Value:
    """Fraction of a uniform gas's exchange left when 1/r becomes erfc(omega r)/r, from y = k/omega, k the momentum.

    1 - 8/3 a [sqrt(pi) erf(1/2a) + (2a - 4a^3) exp(-1/4a^2) - 3a + 4a^3], a = 1/(2y), by its series where y < 1;
    P. M. W. Gill, R. D. Adamson, J. A. Pople, Mol. Phys. 88, 1005 (1996), doi:10.1080/00268979609484488.
    """
    small = select(y, 1, y, 1)
    square = small * small
    low = square * polynomial(attenuation_series(), square)
    large = select(y, 1, 1, y)
    inverse = 1 / large
    decay = expm1(-(large * large))
    bracket = root(pi) * erf(large) - 0.5 * inverse + decay * inverse * (1 - 0.5 * inverse * inverse)
    return select(y, 1, low, 1 - 4 / 3 * inverse * bracket)


def attenuation_series() -> list[float]:
    """Taylor coefficients of the fraction over y^2, in powers of y^2.

    From the closed form's sqrt(pi) erf(y)/y, exp(-y^2)/y^2 and (1 - exp(-y^2))/y^4; the lowest orders cancel.
    """
    terms = []
    for n in range(1, SERIES_TERMS + 1):
        gaussians = Fraction(1, factorial(n + 1)) + Fraction(1, 2 * factorial(n + 2))
        parts = Fraction(2, factorial(n) * (2 * n + 1)) - gaussians
        terms.append(float(Fraction(-4, 3) * (-1) ** n * parts))
    return terms


@define("gga_c_lyp", *LYP)
def lyp(d: Density) -> Value:
    """Correlation energy density without second derivatives.

    The terms in rho^2 sigma of Miehlich et al. are combined to -4/3 rho^2 sigma_ab.
    """
    a, b = d.spins
    root = d.inverse_root
    damping = 1 / (1 + D * root)
    delta = (C + D * damping) * root
    omega = exp(-C * root) * damping * root**2 / d.rho**3
    eight_thirds = Fraction(8, 3)
    kinetic = KINETIC * (a.rho**eight_thirds + b.rho**eight_thirds)
    ratio = (a.rho * a.sigma + b.rho * b.sigma) / d.rho
    mixed = (
        kinetic
        + (47 - 7 * delta) / 18 * (a.sigma + 2 * d.sigma_ab + b.sigma)
        - (45 - delta) / 18 * (a.sigma + b.sigma)
        - (delta - 11) / 9 * ratio
    )
    rest = -4 / 3 * d.rho**2 * d.sigma_ab - a.rho**2 * b.sigma - b.rho**2 * a.sigma
    return -4 * A * damping * a.rho * b.rho / d.rho - A * B * omega * (a.rho * b.rho * mixed + rest)
