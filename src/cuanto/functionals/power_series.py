"""Power series in bounded variables: omega-B97X of Becke's family (B97), M06-L and M06-2X of Truhlar's."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from cuanto.functionals.becke import attenuation
from cuanto.functionals.density import C_F, Density, Spin
from cuanto.functionals.parts import Citation, define, define_exchange
from cuanto.functionals.perdew import pbe_enhancement
from cuanto.functionals.uniform_gas import PRECISE, PRINTED, by_spins, exchange
from cuanto.kernels.values import Value, number, polynomial

WB97X = Citation("J.-D. Chai, M. Head-Gordon, J. Chem. Phys. 128, 084106 (2008)", "10.1063/1.2834918")
M06_L = Citation("Y. Zhao, D. G. Truhlar, J. Chem. Phys. 125, 194101 (2006)", "10.1063/1.2370993")
M06_2X = Citation("Y. Zhao, D. G. Truhlar, Theor. Chem. Acc. 120, 215 (2008)", "10.1007/s00214-007-0310-x")


def coefficients(table: str) -> tuple[float, ...]:
    """Numbers of a table."""
    return tuple(map(float, table.split()))


def gradient_series(c_i: Sequence[float], gamma: float, x_squared: Value) -> Value:
    """sum_i c_i u^i, u = gamma x^2 / (1 + gamma x^2) (A. D. Becke, doi:10.1063/1.475007)."""
    return polynomial(c_i, gamma * x_squared / (1 + gamma * x_squared))


# ---- omega-B97X: short-range exchange and correlation, to go with exact exchange ----------------------------------

EXCHANGE = (0.842294, 0.726479, 1.04760, -5.70635, 13.2794)
SAME_SPIN = (1.0, -4.33879, 18.2308, -31.7430, 17.2901)
OPPOSITE_SPIN = (1.0, 2.37031, -11.3995, 6.58405, -3.78132)
GAMMA_X, GAMMA_SAME, GAMMA_OPPOSITE = 0.004, 0.2, 0.006


def short_range_exchange(s: Spin, omega: float) -> Value:
    """Energy density of one spin."""
    y = (6 * pi**2) ** (1 / 3) / omega * s.cube_root
    return exchange(s) * attenuation(y) * gradient_series(EXCHANGE, GAMMA_X, s.x_squared)


@define("hyb_gga_xc_wb97x", WB97X)
def wb97x(d: Density, omega: float) -> Value:
    """Energy density of short-range exchange and correlation."""
    e_a, e_b, e_ab = by_spins(d, PRINTED)
    same = e_a * gradient_series(SAME_SPIN, GAMMA_SAME, d.a.x_squared)
    same = same + e_b * gradient_series(SAME_SPIN, GAMMA_SAME, d.b.x_squared)
    mean = 0.5 * (d.a.x_squared + d.b.x_squared)
    opposite = e_ab * gradient_series(OPPOSITE_SPIN, GAMMA_OPPOSITE, mean)
    return short_range_exchange(d.a, omega) + short_range_exchange(d.b, omega) + same + opposite


# ---- exchange of the M06 family: a of f(w), d of h(x, z) ------------------------------------------------------

M06_L_A = coefficients("""
    0.3987756 0.2548219 0.3923994 -2.103655 -6.302147 10.97615
    30.97273 -23.18489 -56.73480 21.60364 34.21814 -9.049762
""")
M06_L_D = (0.6012244, 0.004748822, -0.008635108, -0.000009308062, 0.00004482811, 0.0)
M06_2X_A = coefficients("""
    0.4600000 -0.2206052 -0.09431788 2.164494 -2.556466 -14.22133
    15.55044 35.98078 -27.22754 -39.24093 15.22808 15.22227
""")
ALPHA_X, ALPHA_SAME, ALPHA_OPPOSITE = 0.00186726, 0.00515088, 0.00304966
M06_GAMMA_SAME, M06_GAMMA_OPPOSITE = 0.06, 0.0031


def kinetic_excess(s: Spin) -> Value:
    """z_s = 2 (tau_s - that of the uniform gas) / rho_s^(5/3)"""
    return 2 * (s.tau / (s.rho * s.cube_root**2) - C_F)


def kinetic_series(d_i: Sequence[float], alpha: float, x_squared: Value, z: Value) -> Value:
    """h(x, z) of T. Van Voorhis, G. E. Scuseria, doi:10.1063/1.476577."""
    d0, d1, d2, d3, d4, d5 = d_i
    inverse = 1 / (1 + alpha * (x_squared + z))
    second = d1 * x_squared + d2 * z
    third = x_squared * (d3 * x_squared + d4 * z) + d5 * z * z
    return inverse * (d0 + inverse * (second + inverse * third))


def kinetic_ratio_series(a_i: Sequence[float], s: Spin) -> Value:
    """f(w), w = (t - 1) / (t + 1), t = uniform over true kinetic energy density."""
    return polynomial(a_i, (s.tau_uniform - s.tau) / (s.tau_uniform + s.tau))


@define_exchange("mgga_x_m06_l", M06_L)
def m06_l_exchange(s: Spin) -> Value:
    """Energy density of one spin."""
    pbe = pbe_enhancement(s) * kinetic_ratio_series(M06_L_A, s)
    return exchange(s) * (pbe + kinetic_series(M06_L_D, ALPHA_X, s.x_squared, kinetic_excess(s)))


@define_exchange("hyb_mgga_x_m06_2x", M06_2X)
def m06_2x_exchange(s: Spin) -> Value:
    """Energy density of one spin, to be combined with 54 % of exact exchange."""
    return exchange(s) * pbe_enhancement(s) * kinetic_ratio_series(M06_2X_A, s)


# ---- correlation of the M06 family: c of the gradient, d of h(x, z), for equal and for opposite spins ---------

M06_L_SAME = (
    (0.5349466, 0.5396620, -31.61217, 51.49592, -29.19613),
    (0.4650534, 0.1617589, 0.1833657, 0.0004692100, -0.004990573, 0.0),
)
M06_L_OPPOSITE = (
    (0.6042374, 177.6783, -251.3252, 76.35173, -12.55699),
    (0.3957626, -0.5614546, 0.01403963, 0.0009831442, -0.003577176, 0.0),
)
M06_2X_SAME = (
    (0.3097855, -5.528642, 13.47420, -32.13623, 28.46742),
    (0.6902145, 0.09847204, 0.2214797, -0.001968264, -0.006775479, 0.0),
)
M06_2X_OPPOSITE = (
    (0.8833596, 33.57972, -70.43548, 49.78271, -18.52891),
    (0.1166404, -0.09120847, -0.06726189, 0.00006720580, 0.0008448011, 0.0),
)
Series = tuple[Sequence[float], Sequence[float]]


def minnesota_correlation(d: Density, same: Series, opposite: Series) -> Value:
    """Correlation energy density: both series, for electrons of equal and of opposite spins."""
    e_a, e_b, e_ab = by_spins(d, PRECISE)
    total = number(d.rho.graph, 0)
    for e, s in ((e_a, d.a), (e_b, d.b)):
        z = kinetic_excess(s)
        series = gradient_series(same[0], M06_GAMMA_SAME, s.x_squared)
        series = series + kinetic_series(same[1], ALPHA_SAME, s.x_squared, z)
        total = total + e * series * (1 - s.tau_w / s.tau)
    x2 = d.a.x_squared + d.b.x_squared
    z = kinetic_excess(d.a) + kinetic_excess(d.b)
    series = gradient_series(opposite[0], M06_GAMMA_OPPOSITE, x2) + kinetic_series(opposite[1], ALPHA_OPPOSITE, x2, z)
    return total + e_ab * series


define("mgga_c_m06_l", M06_L)(lambda d: minnesota_correlation(d, M06_L_SAME, M06_L_OPPOSITE))
define("mgga_c_m06_2x", M06_2X)(lambda d: minnesota_correlation(d, M06_2X_SAME, M06_2X_OPPOSITE))
