"""Exchange of Tao, Perdew, Staroverov and Scuseria."""

from __future__ import annotations

from math import sqrt

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import spin_energy
from cuanto.kernels.values import Value
from cuanto.kernels.values import sqrt as root

FAMILY = "mgga"
CITATIONS = (
    Citation(
        "J. Tao, J. P. Perdew, V. N. Staroverov, G. E. Scuseria, Phys. Rev. Lett. 91, 146401 (2003)",
        "10.1103/PhysRevLett.91.146401",
    ),
)

KAPPA, B, C, E, MU = 0.804, 0.40, 1.59096, 1.537, 0.21951
SECOND = 10 / 81


def enhancement(s: Spin) -> Value:
    """F - 1, eqs. 5 to 10; z / p does not depend on the gradient, so no root of it is needed."""
    p = s.p
    z = s.tau_w / s.tau
    z_over_p = 5 / 3 * s.tau_uniform / s.tau
    alpha = (s.tau - s.tau_w) / s.tau_uniform
    q = 0.45 * (alpha - 1) / root(1 + B * alpha * (alpha - 1)) + 2 / 3 * p
    z2 = z * z
    x = (
        (SECOND + C * z2 / (1 + z2) ** 2) * p
        + 146 / 2025 * q * q
        - 73 / 405 * q * p * root(0.18 * z_over_p * z_over_p + 0.5)
        + SECOND**2 / KAPPA * p * p
        + 2 * sqrt(E) * SECOND * 0.36 * z2
        + E * MU * p**3
    ) / (1 + sqrt(E) * p) ** 2
    return KAPPA * x / (KAPPA + x)


def energy(d: Density) -> Value:
    """Energy density."""
    a, b = (spin_energy(s) * (1 + enhancement(s)) for s in d.spins)
    return a + b
