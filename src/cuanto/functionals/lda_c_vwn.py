"""Correlation of the uniform electron gas fitted to quantum Monte Carlo energies: VWN5."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density
from cuanto.kernels.values import Value, atan, log
from cuanto.kernels.values import sqrt as root

FAMILY = "lda"
CITATIONS = (Citation("S. H. Vosko, L. Wilk, M. Nusair, Can. J. Phys. 58, 1200 (1980)", "10.1139/p80-159"),)

# A, x_0, b, c in Hartree
PARAMAGNETIC = (0.0310907, -0.10498, 3.72744, 12.9352)
FERROMAGNETIC = (0.01554535, -0.32500, 7.06042, 18.0578)
STIFFNESS = (-1 / (6 * pi**2), -0.0047584, 1.13107, 13.0045)
F_CURVATURE = 4 / (9 * (2 ** (1 / 3) - 1))
"""f''(0)"""


def fit(rs: Value, constants: Sequence[float]) -> Value:
    """Eq. 4.4: the integrated Pade approximant."""
    A, x0, b, c = constants
    x = root(rs)
    X = rs + b * x + c
    Q = sqrt(4 * c - b * b)
    angle = atan(Q / (2 * x + b))
    shift = b * x0 / (x0 * x0 + b * x0 + c)
    return A * (log(rs / X) + 2 * b / Q * angle - shift * (log((x - x0) * (x - x0) / X) + 2 * (b + 2 * x0) / Q * angle))


def energy(d: Density) -> Value:
    """Energy density."""
    para, ferro, stiffness = (fit(d.rs, constants) for constants in (PARAMAGNETIC, FERROMAGNETIC, STIFFNESS))
    f, z4 = d.polarisation.f, d.polarisation.zeta**4
    return d.rho * (para + stiffness * f * (1 - z4) / F_CURVATURE + (ferro - para) * f * z4)
