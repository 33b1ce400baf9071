"""Exchange of M06-2X, beside 54 % of exact exchange."""

from __future__ import annotations

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.gga_x_pbe import enhancement
from cuanto.functionals.lda_x import spin_energy
from cuanto.functionals.power_series import kinetic_ratio_series
from cuanto.kernels.values import Value

FAMILY = "mgga"
CITATIONS = (Citation("Y. Zhao, D. G. Truhlar, Theor. Chem. Acc. 120, 215 (2008)", "10.1007/s00214-007-0310-x"),)

A = (
    0.4600000,
    -0.2206052,
    -0.09431788,
    2.164494,
    -2.556466,
    -14.22133,
    15.55044,
    35.98078,
    -27.22754,
    -39.24093,
    15.22808,
    15.22227,
)


def _energy(s: Spin) -> Value:
    return spin_energy(s) * (1 + enhancement(s)) * kinetic_ratio_series(A, s)


def energy(d: Density) -> Value:
    """Energy density."""
    return _energy(d.a) + _energy(d.b)
