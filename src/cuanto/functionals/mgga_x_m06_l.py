"""Exchange of M06-L."""

from __future__ import annotations

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.gga_x_pbe import enhancement
from cuanto.functionals.lda_x import spin_energy
from cuanto.functionals.power_series import kinetic_excess, kinetic_ratio_series, kinetic_series
from cuanto.kernels.values import Value

FAMILY = "mgga"
CITATIONS = (Citation("Y. Zhao, D. G. Truhlar, J. Chem. Phys. 125, 194101 (2006)", "10.1063/1.2370993"),)

A = (
    0.3987756,
    0.2548219,
    0.3923994,
    -2.103655,
    -6.302147,
    10.97615,
    30.97273,
    -23.18489,
    -56.73480,
    21.60364,
    34.21814,
    -9.049762,
)
D = (0.6012244, 0.004748822, -0.008635108, -0.000009308062, 0.00004482811, 0.0)
ALPHA = 0.00186726


def _energy(s: Spin) -> Value:
    pbe = (1 + enhancement(s)) * kinetic_ratio_series(A, s)
    return spin_energy(s) * (pbe + kinetic_series(D, ALPHA, s.x_squared, kinetic_excess(s)))


def energy(d: Density) -> Value:
    """Energy density."""
    return _energy(d.a) + _energy(d.b)
