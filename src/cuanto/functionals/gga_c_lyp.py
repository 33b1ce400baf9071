"""Correlation of Lee, Yang and Parr, in the form without second derivatives."""

from __future__ import annotations

from fractions import Fraction
from math import pi

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density
from cuanto.kernels.values import Value, exp

FAMILY = "gga"
CITATIONS = (
    Citation("C. Lee, W. Yang, R. G. Parr, Phys. Rev. B 37, 785 (1988)", "10.1103/PhysRevB.37.785"),
    Citation(
        "B. Miehlich, A. Savin, H. Stoll, H. Preuss, Chem. Phys. Lett. 157, 200 (1989)", "10.1016/0009-2614(89)87234-3"
    ),
)

A, B, C, D = 0.04918, 0.132, 0.2533, 0.349
C_F: float = 0.3 * (3 * pi**2) ** (2 / 3)
KINETIC: float = 2 ** (11 / 3) * C_F


def energy(d: Density) -> Value:
    """Energy density; the terms in rho^2 sigma of Miehlich et al. are united to -4/3 rho^2 sigma_ab."""
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
