"""SCAN (strongly constrained and appropriately normed), and r2SCAN (regularised, with restored gradient expansion)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt as root

from cuanto.functionals.density import Density, Polarisation, Spin
from cuanto.functionals.parts import Citation, define
from cuanto.functionals.perdew import PBE_BETA, PBE_GAMMA
from cuanto.functionals.uniform_gas import define_enhanced, per_electron
from cuanto.kernels.derivative import gradient
from cuanto.kernels.values import Value, exp, expm1, log1p, polynomial, select, sqrt

SCAN = Citation(
    "J. Sun, A. Ruzsinszky, J. P. Perdew, Phys. Rev. Lett. 115, 036402 (2015)", "10.1103/PhysRevLett.115.036402"
)
R2SCAN = Citation(
    "J. W. Furness, A. D. Kaplan, J. Ning, J. P. Perdew, J. Sun, J. Phys. Chem. Lett. 11, 8208 (2020)",
    "10.1021/acs.jpclett.0c02405",
)

# ---- exchange -------------------------------------------------------------------------------------------------

MU = 10 / 81
K1 = 0.065
H0 = 1.174
B2 = root(5913 / 405000)
B1 = 511 / 13500 / (2 * B2)
B3 = 0.5
B4 = MU * MU / K1 - 1606 / 18225 - B1 * B1
A1 = 4.9479
EXCHANGE = (0.667, 0.8, 1.24)
CORRELATION = (0.64, 1.5, 0.7)
"""c_1, c_2 and d of the interpolations."""


def interpolation(alpha: Value, constants: tuple[float, float, float]) -> Value:
    """exp(-c1 alpha / (1 - alpha)) below alpha = 1, -d exp(c2 / (1 - alpha)) above, 0 with all derivatives at 1."""
    c1, c2, d = constants
    below, beyond = select(alpha, 1, alpha, 0), select(1 - alpha, 0, alpha, 2)
    above = select(1 - alpha, 0, -d * exp(c2 / (1 - beyond)), 0)
    return select(alpha, 1, exp(-c1 * below / (1 - below)), above)


def outer(p: Value) -> Value:
    """g(s), which makes exchange vanish at large gradients."""
    return 1 - exp(-A1 / sqrt(sqrt(p)))


@define_enhanced("mgga_x_scan", SCAN)
def scan_enhancement(s: Spin) -> Value:
    """F(s, alpha)"""
    p = s.p
    alpha = (s.tau - s.tau_w) / s.tau_uniform
    away = 1 - alpha
    x = MU * p * (1 + B4 / MU * p * exp(-abs(B4) / MU * p)) + (B1 * p + B2 * away * exp(-B3 * away * away)) ** 2
    h1 = 1 + K1 * x / (K1 + x)
    return (h1 + interpolation(alpha, EXCHANGE) * (H0 - h1)) * outer(p)


# ---- what r2SCAN changes --------------------------------------------------------------------------------------

ETA = 0.001
WIDTH = 0.361
"""d_p2: the gradient expansion is corrected where s^2 is below this."""
SERIES_X = (
    1.0,
    -0.667,
    -0.4445555,
    -0.663086601049,
    1.451297044490,
    -0.887998041597,
    0.234528941479,
    -0.023185843322,
)
SERIES_C = (1.0, -0.64, -0.4352, -1.535685604549, 3.061560252175, -1.915710236206, 0.516884468372, -0.051848879792)
MIDDLE = 2.5


def smooth_interpolation(alpha: Value, series: Sequence[float], constants: tuple[float, float, float]) -> Value:
    """As in SCAN below alpha = 0 and above 2.5, a polynomial in between."""
    c1, c2, d = constants
    negative = select(alpha, 0, alpha, 0)
    large = select(alpha, MIDDLE, MIDDLE, alpha)
    middle = polynomial(series, select(alpha, MIDDLE, alpha, MIDDLE))
    outside = -d * exp(c2 / (1 - large))
    return select(alpha, 0, exp(-c1 * negative / (1 - negative)), select(alpha, MIDDLE, middle, outside))


def slope_at_one(series: Sequence[float]) -> float:
    """df/dalpha at 1, where f itself vanishes."""
    return sum(i * c for i, c in enumerate(series))


@define_enhanced("mgga_x_r2scan", R2SCAN)
def r2scan_enhancement(s: Spin) -> Value:
    """F(s, alpha)"""
    p = s.p
    alpha = (s.tau - s.tau_w) / (s.tau_uniform + ETA * s.tau_w)
    second = -slope_at_one(SERIES_X) * (1 - H0) * (20 / 27 + 5 / 3 * ETA)
    x = (second * exp(-(p * p) / WIDTH**4) + MU) * p
    h1 = 1 + K1 * x / (K1 + x)
    return (h1 + smooth_interpolation(alpha, SERIES_X, EXCHANGE) * (H0 - h1)) * outer(p)


# ---- correlation ----------------------------------------------------------------------------------------------

C_B1, C_B2, C_B3 = 0.0285764, 0.0889, 0.125541
CHI = 0.12802585262625815
"""chi_infinity of the unpolarised density."""


def beta(rs: Value) -> Value:
    """The coefficient of PBE, with the density dependence of revTPSS."""
    return PBE_BETA * (1 + 0.1 * rs) / (1 + 0.1778 * rs)


def one_minus_root(x: Value) -> Value:
    """1 - (1 + x)^(-1/4)"""
    return -expm1(-0.25 * log1p(x))


def two_electron_local(rs: Value) -> Value:
    """Energy of an electron at alpha = 0 without gradient, unpolarised."""
    return -C_B1 / (1 + C_B2 * sqrt(rs) + C_B3 * rs)


def spin_scaling(polarisation: Polarisation) -> Value:
    """G_c(zeta): no correlation at alpha = 0 if all spins are parallel. The paper prints 2.3631; all programs use
    2.363."""
    return (1 - 2.363 * (polarisation.mean(4, 3) - 1)) * (1 - polarisation.zeta**12)


def two_electron(d: Density) -> Value:
    """Energy of an electron at alpha = 0."""
    uniform = two_electron_local(d.rs)
    h = C_B1 * log1p(expm1(-uniform / C_B1) * one_minus_root(4 * CHI * d.p))
    return (uniform + h) * spin_scaling(d.polarisation)


@define("mgga_c_scan", SCAN)
def scan_correlation(d: Density) -> Value:
    """Correlation energy density of SCAN."""
    polarisation = d.polarisation
    phi3 = polarisation.phi**3
    uniform = per_electron(d.rs, polarisation)
    w = expm1(-uniform / (PBE_GAMMA * phi3))
    y = beta(d.rs) / (PBE_GAMMA * w) * d.t_squared(polarisation.phi)
    e1 = uniform + PBE_GAMMA * phi3 * log1p(w * one_minus_root(4 * y))
    alpha = (d.tau - d.tau_w) / (d.tau_uniform * polarisation.mean(5, 3))
    return d.rho * (e1 + interpolation(alpha, CORRELATION) * (two_electron(d) - e1))


@define("mgga_c_r2scan", R2SCAN)
def r2scan_correlation(d: Density) -> Value:
    """Correlation energy density of r2SCAN."""
    polarisation = d.polarisation
    phi3 = polarisation.phi**3
    uniform = per_electron(d.rs, polarisation)
    w = expm1(-uniform / (PBE_GAMMA * phi3))
    y = beta(d.rs) / (PBE_GAMMA * w) * d.t_squared(polarisation.phi)
    kinetic = polarisation.mean(5, 3)
    difference = two_electron_local(d.rs) * spin_scaling(polarisation) - uniform
    # r_s d/dr_s at constant polarisation is rho^(-1/3) d/d rho^(-1/3)
    slope = d.inverse_root * gradient(difference, [d.inverse_root])[0]
    correction = (
        slope_at_one(SERIES_C)
        / (27 * PBE_GAMMA * kinetic * phi3 * w)
        * (20 * slope - 45 * ETA * difference)
        * d.p
        * exp(-(d.p * d.p) / WIDTH**4)
    )
    e1 = uniform + PBE_GAMMA * phi3 * log1p(w * one_minus_root(4 * (y - correction)))
    alpha = (d.tau - d.tau_w) / (d.tau_uniform * kinetic + ETA * d.tau_w)
    return d.rho * (e1 + smooth_interpolation(alpha, SERIES_C, CORRELATION) * (two_electron(d) - e1))
