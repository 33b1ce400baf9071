"""Exchange of SCAN (strongly constrained and appropriately normed)."""

from __future__ import annotations

from math import sqrt

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import spin_energy
from cuanto.kernels.values import Value, exp, select
from cuanto.kernels.values import sqrt as root

FAMILY = "mgga"
CITATIONS = (
    Citation(
        "J. Sun, A. Ruzsinszky, J. P. Perdew, Phys. Rev. Lett. 115, 036402 (2015)", "10.1103/PhysRevLett.115.036402"
    ),
)

MU = 10 / 81
K1 = 0.065
H0 = 1.174
B2 = sqrt(5913 / 405000)
B1 = 511 / 13500 / (2 * B2)
B3 = 0.5
B4 = MU * MU / K1 - 1606 / 18225 - B1 * B1
A1 = 4.9479
C1, C2, D = 0.667, 0.8, 1.24


def interpolation(alpha: Value, c1: float, c2: float, d: float) -> Value:
    """exp(-c1 alpha / (1 - alpha)) below alpha = 1, -d exp(c2 / (1 - alpha)) above, 0 with all derivatives at 1."""
    below, beyond = select(alpha, 1, alpha, 0), select(1 - alpha, 0, alpha, 2)
    above = select(1 - alpha, 0, -d * exp(c2 / (1 - beyond)), 0)
    return select(alpha, 1, exp(-c1 * below / (1 - below)), above)


def outer(p: Value) -> Value:
    """g(s), which makes exchange vanish at large gradients."""
    return 1 - exp(-A1 / root(root(p)))


def enhancement(s: Spin) -> Value:
    """F(s, alpha)"""
    p = s.p
    alpha = (s.tau - s.tau_w) / s.tau_uniform
    away = 1 - alpha
    x = MU * p * (1 + B4 / MU * p * exp(-abs(B4) / MU * p)) + (B1 * p + B2 * away * exp(-B3 * away * away)) ** 2
    h1 = 1 + K1 * x / (K1 + x)
    return (h1 + interpolation(alpha, C1, C2, D) * (H0 - h1)) * outer(p)


def energy(d: Density) -> Value:
    """Energy density."""
    return spin_energy(d.a) * enhancement(d.a) + spin_energy(d.b) * enhancement(d.b)
