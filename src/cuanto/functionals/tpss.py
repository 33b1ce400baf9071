"""The meta-GGA of Tao, Perdew, Staroverov and Scuseria."""

from __future__ import annotations

from math import pi
from math import sqrt as root

from cuanto.functionals.density import K_F, Density, Spin, full_polarisation, radius
from cuanto.functionals.parts import Citation, define
from cuanto.functionals.perdew import pbe_per_electron
from cuanto.functionals.uniform_gas import define_enhanced
from cuanto.kernels.values import Value, maximum, sqrt

TPSS = Citation(
    "J. Tao, J. P. Perdew, V. N. Staroverov, G. E. Scuseria, Phys. Rev. Lett. 91, 146401 (2003)",
    "10.1103/PhysRevLett.91.146401",
)

KAPPA, B, C, E, MU = 0.804, 0.40, 1.59096, 1.537, 0.21951
SECOND_ORDER = 10 / 81
"""Coefficient of p in the gradient expansion of exchange."""
D = 2.8


@define_enhanced("mgga_x_tpss", TPSS)
def enhancement(s: Spin) -> Value:
    """F, eqs. 5 to 10; p is taken out of the square root, because z / p does not depend on the gradient."""
    p = s.p
    z = s.tau_w / s.tau
    z_over_p = 5 / 3 * s.tau_uniform / s.tau
    alpha = (s.tau - s.tau_w) / s.tau_uniform
    q = 0.45 * (alpha - 1) / sqrt(1 + B * alpha * (alpha - 1)) + 2 / 3 * p
    z2 = z * z
    x = (
        (SECOND_ORDER + C * z2 / (1 + z2) ** 2) * p
        + 146 / 2025 * q * q
        - 73 / 405 * q * p * sqrt(0.18 * z_over_p * z_over_p + 0.5)
        + SECOND_ORDER**2 / KAPPA * p * p
        + 2 * root(E) * SECOND_ORDER * 0.36 * z2
        + E * MU * p**3
    ) / (1 + root(E) * p) ** 2
    return 1 + KAPPA * x / (KAPPA + x)


def one_spin(s: Spin) -> Value:
    """PBE correlation of the electrons of one spin alone."""
    polarisation = full_polarisation(s.rho.graph)
    t2 = pi / (16 * K_F) * s.sigma / (polarisation.phi**2 * s.rho * s.rho * s.cube_root)
    return pbe_per_electron(radius(s.cube_root), polarisation, t2)


def spin_factor(d: Density) -> Value:
    """C(zeta, xi), eqs. 13 and 14."""
    zeta2 = d.polarisation.zeta**2
    plain = 0.53 + zeta2 * (0.87 + zeta2 * (0.50 + 2.26 * zeta2))
    a, b = d.spins
    # |grad zeta|^2 rho^4 / 4
    gradient = b.rho**2 * a.sigma - 2 * a.rho * b.rho * d.sigma_ab + a.rho**2 * b.sigma
    xi2 = gradient / (K_F**2 * d.rho**4 * d.cube_root**2)
    return plain / (1 + xi2 * d.polarisation.mean(-4, 3)) ** 4


@define("mgga_c_tpss", TPSS)
def correlation(d: Density) -> Value:
    """Energy density, eqs. 11 and 12."""
    total = pbe_per_electron(d.rs, d.polarisation, d.t_squared(d.polarisation.phi))
    c = spin_factor(d)
    z = d.tau_w / d.tau
    z2 = z * z
    a, b = (s.rho / d.rho * maximum(one_spin(s), total) for s in d.spins)
    e = total * (1 + c * z2) - (1 + c) * z2 * (a + b)
    return d.rho * e * (1 + D * e * z2 * z)
