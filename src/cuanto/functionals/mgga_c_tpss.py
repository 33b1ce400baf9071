"""Correlation of Tao, Perdew, Staroverov and Scuseria."""

from __future__ import annotations

from math import pi

from cuanto.functionals.density import K_F, Density, Spin, full_polarisation, radius
from cuanto.functionals.gga_c_pbe import per_electron as pbe
from cuanto.functionals.gga_c_pbe import with_gradient
from cuanto.functionals.mgga_x_tpss import CITATIONS, FAMILY
from cuanto.kernels.values import Value, largest

__all__ = ["CITATIONS", "FAMILY", "energy"]

D = 2.8


def one_spin(s: Spin) -> Value:
    """PBE correlation of the electrons of one spin alone."""
    whole = full_polarisation(s.rho.graph)
    t2 = pi / (16 * K_F) * s.sigma / (whole.phi**2 * s.rho * s.rho * s.cube_root)
    return with_gradient(radius(s.cube_root), whole, t2)


def spin_factor(d: Density) -> Value:
    """C(zeta, xi), eqs. 13 and 14."""
    zeta2 = d.polarisation.zeta**2
    plain = 0.53 + zeta2 * (0.87 + zeta2 * (0.50 + 2.26 * zeta2))
    a, b = d.spins
    # |grad zeta|^2 rho^4 / 4
    gradient = b.rho**2 * a.sigma - 2 * a.rho * b.rho * d.sigma_ab + a.rho**2 * b.sigma
    xi2 = gradient / (K_F**2 * d.rho**4 * d.cube_root**2)
    return plain / (1 + xi2 * d.polarisation.mean(-4, 3)) ** 4


def energy(d: Density) -> Value:
    """Energy density, eqs. 11 and 12."""
    whole = pbe(d)
    c = spin_factor(d)
    z = d.tau_w / d.tau
    z2 = z * z
    a, b = (s.rho / d.rho * largest(one_spin(s), whole) for s in d.spins)
    e = whole * (1 + c * z2) - (1 + c) * z2 * (a + b)
    return d.rho * e * (1 + D * e * z2 * z)
