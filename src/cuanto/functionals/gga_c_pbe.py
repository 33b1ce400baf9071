"""Correlation of Perdew, Burke and Ernzerhof."""

from __future__ import annotations

from math import log as ln
from math import pi

from cuanto.functionals.density import Density, Polarisation
from cuanto.functionals.gga_x_pbe import BETA, CITATIONS, FAMILY
from cuanto.functionals.lda_c_pw import per_electron as local
from cuanto.functionals.lda_c_pw_mod import PRECISE
from cuanto.kernels.values import Value, expm1, log1p

__all__ = ["CITATIONS", "FAMILY", "energy"]

GAMMA = (1 - ln(2)) / pi**2


def gradient_part(uniform: Value, phi: Value, t_squared: Value) -> Value:
    """H of eq. 7 from the energy of the uniform gas; with A written as beta / (gamma w), no quotient is infinite."""
    phi3 = phi**3
    w = expm1(-uniform / (GAMMA * phi3))
    y = BETA / GAMMA * t_squared
    return GAMMA * phi3 * log1p(y * w * (w + y) / (w * w + w * y + y * y))


def with_gradient(rs: Value, polarisation: Polarisation, t_squared: Value) -> Value:
    """Energy of an electron."""
    uniform = local(rs, polarisation, PRECISE)
    return uniform + gradient_part(uniform, polarisation.phi, t_squared)


def per_electron(d: Density) -> Value:
    """Energy of an electron."""
    return with_gradient(d.rs, d.polarisation, d.t_squared(d.polarisation.phi))


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d)
