"""Short-range part of Becke's exchange of 1988, as in CAM-B3LYP."""

from __future__ import annotations

from math import pi

from cuanto.functionals.attenuation import attenuation
from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.gga_x_b88 import coefficient, spin_energy
from cuanto.kernels.values import Value, sqrt

FAMILY = "gga"
CITATIONS = (
    Citation("H. Iikura, T. Tsuneda, T. Yanai, K. Hirao, J. Chem. Phys. 115, 3540 (2001)", "10.1063/1.1383587"),
)


def short_range(s: Spin, omega: float) -> Value:
    """The momentum k = sqrt(9 pi / K) rho_s^(1/3), K twice Becke's coefficient, takes the place of k_F."""
    y = sqrt(4.5 * pi / coefficient(s)) * s.cube_root / omega
    return spin_energy(s) * attenuation(y)


def energy(d: Density, omega: float) -> Value:
    """Energy density."""
    return short_range(d.a, omega) + short_range(d.b, omega)
