"""Quadrature rules of an atom, and the atomic radii by which they are scaled.

Angular: V. I. Lebedev, D. N. Laikov, Dokl. Math. 59, 477 (1999); exact for spherical harmonics up to the degree of the
rule, and invariant under the operations of an octahedron. Radial, int f(r) r^2 dr = sum_i w_i f(r_i) from the nucleus
to infinity:

- `becke`: Gauss-Chebyshev points of the second kind mapped by r = R (1 + x)/(1 - x), R half the Bragg-Slater radius
  (the whole for H): A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033.
- `treutler`: the same points mapped by M4, r = xi/ln 2 (1 + x)^0.6 ln(2/(1 - x)) with xi of the element
  (`treutler-plain`: xi = 1): O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408.
- `mura-knowles`: r = -alpha ln(1 - x^3), midpoints in x, alpha = 7 for groups 1 and 2, else 5:
  M. E. Mura, P. J. Knowles, J. Chem. Phys. 104, 9848 (1996), doi:10.1063/1.471749.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import permutations, product
from math import log, pi
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.units import BOHR_IN_ANGSTROM

ELEMENTS = 118
RADIAL_RULES = ("treutler", "treutler-plain", "becke", "mura-knowles")
GROUPS_1_AND_2 = frozenset({3, 4, 11, 12, 19, 20, 37, 38, 55, 56, 87, 88})
# fmt: off
DEGREES: dict[int, int] = {
    6: 3, 14: 5, 26: 7, 38: 9, 50: 11, 74: 13, 86: 15, 110: 17, 146: 19, 170: 21, 194: 23, 230: 25, 266: 27, 302: 29,
    350: 31, 434: 35, 590: 41, 770: 47, 974: 53, 1202: 59, 1454: 65, 1730: 71, 2030: 77, 2354: 83, 2702: 89, 3074: 95,
    3470: 101, 3890: 107, 4334: 113, 4802: 119, 5294: 125, 5810: 131,
}
# fmt: on
"""Degree of the rules by the number of points."""


@cache
def bragg_slater_radii() -> Array:
    """Radii in Bohr by atomic number (element 0 is not used), read-only."""
    return _table("radii", 1 / BOHR_IN_ANGSTROM)


@cache
def treutler_scales() -> Array:
    """Factors xi of the radial map M4 by atomic number, read-only."""
    return _table("treutler", 1.0)


def _table(name: str, unit: float) -> Array:
    """A list of the data file; elements beyond its end have its last value."""
    numbers = _data("radii")[name]["values"]
    known = [numbers[0], *numbers]
    array = np.array(known + [known[-1]] * (ELEMENTS + 1 - len(known))) * unit
    array.setflags(write=False)
    return array


@cache
def lebedev(points: int) -> tuple[Array, Array]:
    """Unit vectors (points, 3) and weights, whose sum is 4 pi; read-only."""
    if points not in DEGREES:
        nearest = min(DEGREES, key=lambda n: abs(n - points))
        raise InputError(f"there is no Lebedev rule of {points} points: the nearest has {nearest}")
    orbits = _data("lebedev")["rules"][str(points)]
    rows = [(*point, weight) for weight, *coordinates in orbits for point in _images(coordinates)]
    x_gx, w_g = np.ascontiguousarray(np.array(rows)[:, :3]), np.array([row[3] for row in rows])
    for array in (x_gx, w_g):
        array.setflags(write=False)
    return x_gx, w_g


def _images(coordinates: list[float]) -> list[tuple[float, ...]]:
    """All different points whose coordinates have these magnitudes, in any order."""
    signs = list(product((1, -1), repeat=3))
    orders = set(permutations(coordinates))
    return sorted({tuple(s * c + 0.0 for s, c in zip(sign, x, strict=True)) for x in orders for sign in signs})


@cache
def _data(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("cuanto.grid") / "data" / f"{name}.json").read_text())
    return found


def other_rule(points: int, steps: int = -1) -> int:
    """The rule `steps` above, or below if negative; at the ends of the list its last or first rule."""
    names = list(DEGREES)
    return names[min(max(0, names.index(points) + steps), len(names) - 1)]


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
