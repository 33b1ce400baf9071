"""Correlation of M06-L."""

from __future__ import annotations

from cuanto.functionals.density import Density
from cuanto.functionals.mgga_x_m06_l import CITATIONS, FAMILY
from cuanto.functionals.power_series import minnesota_correlation
from cuanto.kernels.values import Value

__all__ = ["CITATIONS", "FAMILY", "energy"]

SAME = (
    (0.5349466, 0.5396620, -31.61217, 51.49592, -29.19613),
    (0.4650534, 0.1617589, 0.1833657, 0.0004692100, -0.004990573, 0.0),
)
OPPOSITE = (
    (0.6042374, 177.6783, -251.3252, 76.35173, -12.55699),
    (0.3957626, -0.5614546, 0.01403963, 0.0009831442, -0.003577176, 0.0),
)


def energy(d: Density) -> Value:
    """Energy density."""
    return minnesota_correlation(d, SAME, OPPOSITE)
