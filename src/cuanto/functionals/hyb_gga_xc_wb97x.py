"""omega-B97X: short-range exchange and correlation as power series, beside exact exchange."""

from __future__ import annotations

from math import pi

from cuanto.functionals.attenuation import attenuation
from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_c_pw import by_spins
from cuanto.functionals.lda_x import spin_energy
from cuanto.functionals.power_series import gradient_series
from cuanto.kernels.values import Value

FAMILY = "gga"
CITATIONS = (Citation("J.-D. Chai, M. Head-Gordon, J. Chem. Phys. 128, 084106 (2008)", "10.1063/1.2834918"),)

EXCHANGE = (0.842294, 0.726479, 1.04760, -5.70635, 13.2794)
SAME = (1.0, -4.33879, 18.2308, -31.7430, 17.2901)
OPPOSITE = (1.0, 2.37031, -11.3995, 6.58405, -3.78132)
GAMMA_X, GAMMA_SAME, GAMMA_OPPOSITE = 0.004, 0.2, 0.006


def exchange(s: Spin, omega: float) -> Value:
    """Short-range exchange of one spin."""
    y = (6 * pi**2) ** (1 / 3) / omega * s.cube_root
    return spin_energy(s) * attenuation(y) * gradient_series(EXCHANGE, GAMMA_X, s.x_squared)


def energy(d: Density, omega: float) -> Value:
    """Energy density."""
    e_a, e_b, e_ab = by_spins(d)
    same = e_a * gradient_series(SAME, GAMMA_SAME, d.a.x_squared)
    same = same + e_b * gradient_series(SAME, GAMMA_SAME, d.b.x_squared)
    mean = 0.5 * (d.a.x_squared + d.b.x_squared)
    opposite = e_ab * gradient_series(OPPOSITE, GAMMA_OPPOSITE, mean)
    return exchange(d.a, omega) + exchange(d.b, omega) + same + opposite
