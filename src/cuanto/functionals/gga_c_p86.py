"""Perdew's correlation of 1986, on top of Perdew and Zunger's uniform gas."""

from __future__ import annotations

from fractions import Fraction

from cuanto.functionals import lda_c_pz
from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density
from cuanto.kernels.values import Value, exp, sqrt

FAMILY = "gga"
CITATIONS = (
    Citation("J. P. Perdew, Phys. Rev. B 33, 8822 (1986)", "10.1103/PhysRevB.33.8822"),
    *lda_c_pz.CITATIONS,
)

ALPHA, BETA, GAMMA, DELTA = 0.023266, 7.389e-6, 8.723, 0.472
AT_INFINITY = 0.001667 + 0.002568
CUTOFF = 1.745 * 0.11


def coefficient(rs: Value) -> Value:
    """C(rho) of Rasolt and Geldart."""
    above = 0.002568 + rs * (ALPHA + BETA * rs)
    below = 1 + rs * (GAMMA + rs * (DELTA + 1e4 * BETA * rs))
    return 0.001667 + above / below


def energy(d: Density) -> Value:
    """Energy density."""
    c = coefficient(d.rs)
    phi = CUTOFF * AT_INFINITY * sqrt(d.sigma) / (c * d.rho ** Fraction(7, 6))
    spin = sqrt(d.polarisation.mean(5, 3))
    return lda_c_pz.energy(d) + exp(-phi) * c * d.sigma / (spin * d.rho * d.cube_root)
