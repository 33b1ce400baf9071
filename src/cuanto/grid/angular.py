"""Lebedev's quadrature on the unit sphere, through SciPy.

V. I. Lebedev, D. N. Laikov, Dokl. Math. 59, 477 (1999): exact for spherical harmonics up to the degree of the rule.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError

Array = NDArray[np.float64]

# fmt: off
DEGREES: dict[int, int] = {
    6: 3, 14: 5, 26: 7, 38: 9, 50: 11, 74: 13, 86: 15, 110: 17, 146: 19, 170: 21, 194: 23, 230: 25, 266: 27, 302: 29,
    350: 31, 434: 35, 590: 41, 770: 47, 974: 53, 1202: 59, 1454: 65, 1730: 71, 2030: 77, 2354: 83, 2702: 89, 3074: 95,
    3470: 101, 3890: 107, 4334: 113, 4802: 119, 5294: 125, 5810: 131,
}
# fmt: on
"""Degree by the number of points: all rules that SciPy has."""


@cache
def lebedev(points: int) -> tuple[Array, Array]:
    """Unit vectors (points, 3) and weights, whose sum is 4 pi; read-only."""
    from scipy.integrate import lebedev_rule  # here, because it is slow to import

    if points not in DEGREES:
        nearest = min(DEGREES, key=lambda n: abs(n - points))
        raise InputError(f"there is no Lebedev rule of {points} points: the nearest has {nearest}")
    x_xg, w_g = lebedev_rule(DEGREES[points])
    x_gx = np.ascontiguousarray(x_xg.T)
    for array in (x_gx, w_g):
        array.setflags(write=False)
    return x_gx, w_g


def lower_rule(points: int, steps: int = 1) -> int:
    """The rule so many steps below, or the lowest."""
    names = list(DEGREES)
    return names[max(0, names.index(points) - steps)]
