"""Correlation of Perdew and Wang 1991."""

from __future__ import annotations

from math import pi

from cuanto.functionals.density import K_F, Density
from cuanto.functionals.gga_x_pw91 import CITATIONS, FAMILY
from cuanto.functionals.lda_c_pw import per_electron as local
from cuanto.kernels.values import Value, exp, expm1, log1p

__all__ = ["CITATIONS", "FAMILY", "energy"]

ALPHA = 0.09
NU = 16 / pi * K_F
C_X = -0.001667
C_C0 = 0.004235
BETA = NU * C_C0


def rasolt_geldart(rs: Value) -> Value:
    """C_xc(r_s); without the term 0.07389 r_s^3 of the authors' denominator, as Libxc has it."""
    above = 2.568 + rs * (23.266 + 0.007389 * rs)
    return 0.001 * above / (1 + rs * (8.723 + 0.472 * rs))


def per_electron(d: Density) -> Value:
    """Energy of an electron: H_0 and H_1 beside the uniform gas."""
    phi = d.polarisation.phi
    phi3, t2 = phi**3, d.t_squared(phi)
    uniform = local(d.rs, d.polarisation)
    w = expm1(-2 * ALPHA * uniform / (BETA * BETA * phi3))
    y = 2 * ALPHA / BETA * t2
    h0 = phi3 * BETA * BETA / (2 * ALPHA) * log1p(y * w * (w + y) / (w * w + w * y + y * y))
    # k_s^2 / k_F^2 = 4 / (pi k_F)
    ratio = 4 / (pi * K_F) * d.inverse_root
    c = rasolt_geldart(d.rs) - C_X - C_C0 - 3 * C_X / 7
    return uniform + h0 + NU * c * phi3 * t2 * exp(-100 * phi3 * phi * ratio * t2)


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d)
