"""A small grid that estimates the error of a molecular grid from differences of quadrature rules where they are large.

Angular rules err on shells of an atom that pass near its neighbours: there the cell of the atom ends, and steep parts
of the neighbour's density are within it (PBE/def2-SVP on the default grid: LiF -7.8e-5 Hartree, of which 7.7e-5 on
eight of the 75 shells of lithium). Radial rules err in the cores, where meta-GGAs oscillate: by the same amount for all
atoms of an element, of which one is examined. Points of the grid have negative weights, those of higher rules positive
ones.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuanto.arrays import Array, Flags
from cuanto.grid.points import NEGLIGIBLE_ENERGY, Pattern, angular_numbers
from cuanto.grid.rules import bragg_slater_radii, lebedev, other_rule, radial_rule
from cuanto.grid.settings import GridSettings
from cuanto.system import Molecule

FARTHEST = 1.3
"""Largest distance of a neighbour, relative to that of the nearest one."""
WINDOW = (0.75, 1.1)
"""Radii of the shells, relative to the distances of the neighbours."""
STEPS = 2
"""The higher angular rule is this number of rules above that of the grid."""
DIRECTIONS_JX = np.array([[2.0, 3.0, 6.0], [-6.0, 2.0, 3.0], [3.0, 6.0, -2.0]]) / 7.0
"""Orthogonal directions in which radial rules are compared, and their opposites: both rules integrate the mean over
them. In the usual orientations of molecules they do not point to neighbouring atoms."""


def check_patterns(molecule: Molecule, settings: GridSettings) -> list[Pattern]:
    """Points of every atom: on shells near its neighbours, and, for the first one of an element, on more shells."""
    Z_a, near_ab = molecule.numbers, _neighbours(molecule)
    distance_ab = np.linalg.norm(molecule.R_ax[:, None] - molecule.R_ax, axis=2)
    patterns = []
    for a, Z in enumerate(Z_a.tolist()):
        R_b = distance_ab[a, near_ab[a]]
        R_b = R_b[R_b < FARTHEST * R_b.min(initial=np.inf)]
        parts = [_radial(Z, settings, int((Z_a == Z).sum()))] if a == int(np.argmax(Z_a == Z)) else []
        if len(R_b):
            parts.append(_angular(Z, settings, (WINDOW[0] * R_b.min(), WINDOW[1] * R_b.max())))
        r_gx = np.concatenate([np.zeros((0, 3)), *(part[0] for part in parts)])
        patterns.append((r_gx, np.concatenate([np.zeros(0), *(part[1] for part in parts)]), np.ones(len(r_gx))))
    return patterns


def _neighbours(molecule: Molecule) -> Flags:
    """Atoms b whose density may be within the cell of a: they are smaller, or steeper because of a larger charge.

    Hydrogen counts only if there are no other pairs.
    """
    Z_a, different = molecule.numbers, ~np.eye(molecule.natom, dtype=bool)
    radius_a, heavy_a = bragg_slater_radii()[Z_a], Z_a > 1
    inside = (radius_a[:, None] >= radius_a) | (Z_a[:, None] <= Z_a)
    for pairs in (heavy_a[:, None] & heavy_a & inside, np.repeat(heavy_a[:, None], molecule.natom, axis=1)):
        if (pairs & different).any():
            return np.asarray(pairs & different)
    return different


@lru_cache(maxsize=256)
def _angular(Z: int, settings: GridSettings, window: tuple[float, float]) -> tuple[Array, Array]:
    """Points of two angular rules on the shells of an element with radii in a window (Bohr)."""
    n, full = settings.numbers(Z)
    r_i, w_i = radial_rule(settings.radial, n, Z)
    rules_i = angular_numbers(Z, r_i, full, settings.pruned).tolist()
    shells = [i for i in range(n) if window[0] <= r_i[i] < window[1]]
    rules = [(i, rules_i[i], -1.0) for i in shells] + [(i, other_rule(rules_i[i], STEPS), 1.0) for i in shells]
    points = [np.zeros((0, 3)), *(r_i[i] * lebedev(rule)[0] for i, rule, _ in rules)]
    weights = [np.zeros(0), *(sign * w_i[i] * lebedev(rule)[1] for i, rule, sign in rules)]
    return np.concatenate(points), np.concatenate(weights)


@lru_cache(maxsize=256)
def _radial(Z: int, settings: GridSettings, count: int) -> tuple[Array, Array]:
    """Points of two radial rules, for `count` atoms of an element."""
    n, _ = settings.numbers(Z)
    (own_i, own_w), (r_i, w_i) = (radial_rule(settings.radial, shells, Z) for shells in (n, 2 * n + 1))
    if np.allclose(r_i[1::2], own_i, rtol=1e-9):  # most rules have the radii of the smaller one
        w_i = w_i.copy()
        w_i[1::2] -= own_w
    else:
        r_i, w_i = np.concatenate([r_i, own_i]), np.concatenate([w_i, -own_w])
    used = abs(w_i) * Z**4 > NEGLIGIBLE_ENERGY
    x_jx = np.concatenate([DIRECTIONS_JX, -DIRECTIONS_JX])
    weights = np.repeat(count * 4 * np.pi / len(x_jx) * w_i[used], len(x_jx))
    return (r_i[used, None, None] * x_jx).reshape(-1, 3), weights
