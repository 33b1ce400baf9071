"""Exchange of r2SCAN (SCAN, regularised, with restored gradient expansion)."""

from __future__ import annotations

from collections.abc import Sequence

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import spin_energy
from cuanto.functionals.mgga_x_scan import C1, C2, H0, K1, MU, D, outer
from cuanto.kernels.values import Value, exp, polynomial, select

FAMILY = "mgga"
CITATIONS = (
    Citation(
        "J. W. Furness, A. D. Kaplan, J. Ning, J. P. Perdew, J. Sun, J. Phys. Chem. Lett. 11, 8208 (2020)",
        "10.1021/acs.jpclett.0c02405",
    ),
)

ETA = 0.001
WIDTH = 0.361
"""d_p2: the gradient expansion is corrected where s^2 is below this."""
SERIES = (
    1.0,
    -0.667,
    -0.4445555,
    -0.663086601049,
    1.451297044490,
    -0.887998041597,
    0.234528941479,
    -0.023185843322,
)
MIDDLE = 2.5


def interpolation(alpha: Value, series: Sequence[float], c1: float, c2: float, d: float) -> Value:
    """As in SCAN below alpha = 0 and above 2.5, a polynomial between."""
    negative = select(alpha, 0, alpha, 0)
    large = select(alpha, MIDDLE, MIDDLE, alpha)
    middle = polynomial(series, select(alpha, MIDDLE, alpha, MIDDLE))
    outside = -d * exp(c2 / (1 - large))
    return select(alpha, 0, exp(-c1 * negative / (1 - negative)), select(alpha, MIDDLE, middle, outside))


def slope_at_one(series: Sequence[float]) -> float:
    """df/dalpha at 1, where f itself vanishes."""
    return sum(i * c for i, c in enumerate(series))


def enhancement(s: Spin) -> Value:
    """F(s, alpha)"""
    p = s.p
    alpha = (s.tau - s.tau_w) / (s.tau_uniform + ETA * s.tau_w)
    second = -slope_at_one(SERIES) * (1 - H0) * (20 / 27 + 5 / 3 * ETA)
    x = (second * exp(-(p * p) / WIDTH**4) + MU) * p
    h1 = 1 + K1 * x / (K1 + x)
    return (h1 + interpolation(alpha, SERIES, C1, C2, D) * (H0 - h1)) * outer(p)


def energy(d: Density) -> Value:
    """Energy density."""
    return spin_energy(d.a) * enhancement(d.a) + spin_energy(d.b) * enhancement(d.b)
