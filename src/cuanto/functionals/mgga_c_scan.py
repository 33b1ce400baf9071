"""Correlation of SCAN."""

from __future__ import annotations

from cuanto.functionals.density import Density, Polarisation
from cuanto.functionals.gga_c_pbe import GAMMA
from cuanto.functionals.gga_x_pbe import BETA
from cuanto.functionals.lda_c_pw import per_electron as local
from cuanto.functionals.lda_c_pw_mod import PRECISE
from cuanto.functionals.mgga_x_scan import CITATIONS, FAMILY, interpolation
from cuanto.kernels.values import Value, expm1, log1p, sqrt

__all__ = ["CITATIONS", "FAMILY", "energy"]

B1, B2, B3 = 0.0285764, 0.0889, 0.125541
CHI = 0.12802585262625815
"""chi_infinity of the unpolarised density."""
C1, C2, D = 0.64, 1.5, 0.7


def beta(rs: Value) -> Value:
    """The coefficient of PBE, with the density dependence of revTPSS."""
    return BETA * (1 + 0.1 * rs) / (1 + 0.1778 * rs)


def one_minus_root(x: Value) -> Value:
    """1 - (1 + x)^(-1/4)"""
    return -expm1(-0.25 * log1p(x))


def two_electron_local(rs: Value) -> Value:
    """Energy of an electron at alpha = 0 without gradient, unpolarised."""
    return -B1 / (1 + B2 * sqrt(rs) + B3 * rs)


def spin_scaling(polarisation: Polarisation) -> Value:
    """G_c(zeta): no correlation at alpha = 0 where all spins are equal; 2.3631 in print, 2.363 in all programs."""
    return (1 - 2.363 * (polarisation.mean(4, 3) - 1)) * (1 - polarisation.zeta**12)


def two_electron(d: Density) -> Value:
    """Energy of an electron at alpha = 0."""
    uniform = two_electron_local(d.rs)
    h = B1 * log1p(expm1(-uniform / B1) * one_minus_root(4 * CHI * d.p))
    return (uniform + h) * spin_scaling(d.polarisation)


def energy(d: Density) -> Value:
    """Energy density."""
    polarisation = d.polarisation
    phi3 = polarisation.phi**3
    uniform = local(d.rs, polarisation, PRECISE)
    w = expm1(-uniform / (GAMMA * phi3))
    y = beta(d.rs) / (GAMMA * w) * d.t_squared(polarisation.phi)
    e1 = uniform + GAMMA * phi3 * log1p(w * one_minus_root(4 * y))
    alpha = (d.tau - d.tau_w) / (d.tau_uniform * polarisation.mean(5, 3))
    return d.rho * (e1 + interpolation(alpha, C1, C2, D) * (two_electron(d) - e1))
