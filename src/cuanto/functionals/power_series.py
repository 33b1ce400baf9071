"""Parts of the functionals of Becke's (B97) and of Truhlar's families: power series in bounded variables."""

from __future__ import annotations

from collections.abc import Sequence

from cuanto.functionals.density import C_F, Density, Spin
from cuanto.functionals.lda_c_pw import by_spins
from cuanto.functionals.lda_c_pw_mod import PRECISE
from cuanto.kernels.values import Value, number, polynomial

GAMMA_SAME, GAMMA_OPPOSITE = 0.06, 0.0031
ALPHA_SAME, ALPHA_OPPOSITE = 0.00515088, 0.00304966


def gradient_series(coefficients: Sequence[float], gamma: float, x_squared: Value) -> Value:
    """sum_i c_i u^i, u = gamma x^2 / (1 + gamma x^2) (A. D. Becke, doi:10.1063/1.475007)."""
    return polynomial(coefficients, gamma * x_squared / (1 + gamma * x_squared))


def kinetic_excess(s: Spin) -> Value:
    """z_s = 2 (tau_s - that of the uniform gas) / rho_s^(5/3)"""
    return 2 * (s.tau / (s.rho * s.cube_root**2) - C_F)


def kinetic_series(coefficients: Sequence[float], alpha: float, x_squared: Value, z: Value) -> Value:
    """h(x, z) of T. Van Voorhis, G. E. Scuseria, doi:10.1063/1.476577."""
    d0, d1, d2, d3, d4, d5 = coefficients
    inverse = 1 / (1 + alpha * (x_squared + z))
    second = d1 * x_squared + d2 * z
    third = x_squared * (d3 * x_squared + d4 * z) + d5 * z * z
    return inverse * (d0 + inverse * (second + inverse * third))


def kinetic_ratio_series(coefficients: Sequence[float], s: Spin) -> Value:
    """f(w), w = (t - 1) / (t + 1), t = uniform over true kinetic energy density."""
    return polynomial(coefficients, (s.tau_uniform - s.tau) / (s.tau_uniform + s.tau))


def minnesota_correlation(
    d: Density,
    same: tuple[Sequence[float], Sequence[float]],
    opposite: tuple[Sequence[float], Sequence[float]],
) -> Value:
    """Correlation of the M06 family: series c of the gradient and d of gradient and kinetic energy, for each pair."""
    e_a, e_b, e_ab = by_spins(d, PRECISE)
    total = number(d.rho.graph, 0)
    for e, s in ((e_a, d.a), (e_b, d.b)):
        z = kinetic_excess(s)
        series = gradient_series(same[0], GAMMA_SAME, s.x_squared)
        series = series + kinetic_series(same[1], ALPHA_SAME, s.x_squared, z)
        total = total + e * series * (1 - s.tau_w / s.tau)
    x2 = d.a.x_squared + d.b.x_squared
    z = kinetic_excess(d.a) + kinetic_excess(d.b)
    series = gradient_series(opposite[0], GAMMA_OPPOSITE, x2) + kinetic_series(opposite[1], ALPHA_OPPOSITE, x2, z)
    return total + e_ab * series
