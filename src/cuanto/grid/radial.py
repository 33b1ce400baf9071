"""Quadrature from the nucleus to infinity: int f(r) r^2 dr = sum_i w_i f(r_i).

- `becke`: Gauss-Chebyshev points of the second kind mapped by r = R (1 + x)/(1 - x), R half the Bragg-Slater radius
  (the whole for H): A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033.
- `treutler`: the same points mapped by M4, r = xi/ln 2 (1 + x)^0.6 ln(2/(1 - x)) with xi of the element
  (`treutler-plain`: xi = 1): O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408.
- `mura-knowles`: r = -alpha ln(1 - x^3), midpoints in x, alpha = 7 for groups 1 and 2, else 5:
  M. E. Mura, P. J. Knowles, J. Chem. Phys. 104, 9848 (1996), doi:10.1063/1.471749.
"""

from __future__ import annotations

from math import log, pi

import numpy as np
from numpy.typing import NDArray

from cuanto.grid.radii import bragg_slater_radii, treutler_scales

Array = NDArray[np.float64]

RADIAL_RULES = ("treutler", "treutler-plain", "becke", "mura-knowles")
GROUPS_1_AND_2 = frozenset({3, 4, 11, 12, 19, 20, 37, 38, 55, 56, 87, 88})


def radial_rule(name: str, n: int, Z: int) -> tuple[Array, Array]:
    """Radii (Bohr, ascending) and weights, r^2 included, of `n` shells around an element."""
    if name == "mura-knowles":
        return _mura_knowles(n, Z)
    i = np.arange(n, 0, -1)  # ascending radii
    angle = i * pi / (n + 1)
    x, dx = np.cos(angle), np.sin(angle) * pi / (n + 1)
    if name == "becke":
        R = bragg_slater_radii()[Z] * (1.0 if Z == 1 else 0.5)
        r = R * (1 + x) / (1 - x)
        slope = 2 * R / (1 - x) ** 2
    else:
        xi = treutler_scales()[Z] if name == "treutler" else 1.0
        # 1 - x = 2 sin^2(angle/2) keeps its digits where x is near 1
        tail = 2 * np.sin(angle / 2) ** 2
        r = xi / log(2) * (1 + x) ** 0.6 * np.log(2 / tail)
        slope = xi / log(2) * (1 + x) ** 0.6 * (0.6 / (1 + x) * np.log(2 / tail) + 1 / tail)
    return r, r**2 * slope * dx


def _mura_knowles(n: int, Z: int) -> tuple[Array, Array]:
    alpha = 7.0 if Z in GROUPS_1_AND_2 else 5.0
    x = (np.arange(n) + 0.5) / n
    r = -alpha * np.log1p(-(x**3))
    return r, r**2 * alpha * 3 * x**2 / ((1 - x**3) * n)
