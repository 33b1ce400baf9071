"""Exchange of Perdew, Burke and Ernzerhof."""

from __future__ import annotations

from math import pi

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import spin_energy
from cuanto.kernels.values import Value

FAMILY = "gga"
CITATIONS = (
    Citation("J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996)", "10.1103/PhysRevLett.77.3865"),
)

KAPPA = 0.804
BETA = 0.06672455060314922
MU = BETA * pi**2 / 3


def enhancement(s: Spin, kappa: float = KAPPA) -> Value:
    """F(s) - 1, eq. 14."""
    return kappa * MU * s.p / (kappa + MU * s.p)


def exchange(d: Density, kappa: float) -> Value:
    """Energy density with any kappa."""
    a, b = (spin_energy(s) * (1 + enhancement(s, kappa)) for s in d.spins)
    return a + b


def energy(d: Density) -> Value:
    """Energy density."""
    return exchange(d, KAPPA)
