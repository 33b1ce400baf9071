"""Correlation of r2SCAN."""

from __future__ import annotations

from cuanto.functionals.density import Density
from cuanto.functionals.gga_c_pbe import GAMMA
from cuanto.functionals.lda_c_pw import per_electron as local
from cuanto.functionals.lda_c_pw_mod import PRECISE
from cuanto.functionals.mgga_c_scan import (
    C1,
    C2,
    D,
    beta,
    one_minus_root,
    spin_scaling,
    two_electron,
    two_electron_local,
)
from cuanto.functionals.mgga_x_r2scan import CITATIONS, ETA, FAMILY, WIDTH, interpolation, slope_at_one
from cuanto.kernels.derivative import gradient
from cuanto.kernels.values import Value, exp, expm1, log1p

__all__ = ["CITATIONS", "FAMILY", "energy"]

SERIES = (1.0, -0.64, -0.4352, -1.535685604549, 3.061560252175, -1.915710236206, 0.516884468372, -0.051848879792)


def energy(d: Density) -> Value:
    """Energy density."""
    polarisation = d.polarisation
    phi3 = polarisation.phi**3
    uniform = local(d.rs, polarisation, PRECISE)
    w = expm1(-uniform / (GAMMA * phi3))
    y = beta(d.rs) / (GAMMA * w) * d.t_squared(polarisation.phi)
    kinetic = polarisation.mean(5, 3)
    difference = two_electron_local(d.rs) * spin_scaling(polarisation) - uniform
    # r_s d/dr_s at constant polarisation is rho^(-1/3) d/d rho^(-1/3)
    slope = d.inverse_root * gradient(difference, [d.inverse_root])[0]
    correction = (
        slope_at_one(SERIES)
        / (27 * GAMMA * kinetic * phi3 * w)
        * (20 * slope - 45 * ETA * difference)
        * d.p
        * exp(-(d.p * d.p) / WIDTH**4)
    )
    e1 = uniform + GAMMA * phi3 * log1p(w * one_minus_root(4 * (y - correction)))
    alpha = (d.tau - d.tau_w) / (d.tau_uniform * kinetic + ETA * d.tau_w)
    return d.rho * (e1 + interpolation(alpha, SERIES, C1, C2, D) * (two_electron(d) - e1))
