"""Correlation of M06-2X."""

from __future__ import annotations

from cuanto.functionals.density import Density
from cuanto.functionals.hyb_mgga_x_m06_2x import CITATIONS, FAMILY
from cuanto.functionals.power_series import minnesota_correlation
from cuanto.kernels.values import Value

__all__ = ["CITATIONS", "FAMILY", "energy"]

SAME = (
    (0.3097855, -5.528642, 13.47420, -32.13623, 28.46742),
    (0.6902145, 0.09847204, 0.2214797, -0.001968264, -0.006775479, 0.0),
)
OPPOSITE = (
    (0.8833596, 33.57972, -70.43548, 49.78271, -18.52891),
    (0.1166404, -0.09120847, -0.06726189, 0.00006720580, 0.0008448011, 0.0),
)


def energy(d: Density) -> Value:
    """Energy density."""
    return minnesota_correlation(d, SAME, OPPOSITE)
