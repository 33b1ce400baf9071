"""A small grid on which the error of a molecular grid shows: differences of angular rules where they are largest.

The error of a grid is that of its angular rules, on shells of an atom that pass near its neighbours: there the cell of
the atom ends, and steep parts of the neighbour's density are within it (PBE/def2-SVP on the default grid: LiF -7.8e-5
Hartree, of which 7.7e-5 on eight of the 75 shells of lithium; errors of radial rules are below 1e-6). On these shells
the points of the grid have negative weights, and those of a higher rule positive ones.
"""

from __future__ import annotations

import numpy as np

from cuanto.arrays import Array
from cuanto.grid.points import Pattern, angular_numbers
from cuanto.grid.rules import lebedev, other_rule, radial_rule
from cuanto.grid.settings import GridSettings
from cuanto.system import Molecule

FARTHEST = 1.5
"""Distance of a neighbour, relative to that of the nearest one."""
WINDOW = (0.68, 1.2)
"""Radii of the shells, relative to the distances of the neighbours."""
STEPS = 2
"""The higher rule is this number of rules above that of the grid."""


def check_patterns(molecule: Molecule, settings: GridSettings) -> list[Pattern]:
    """Points of every atom on the shells near its steeper neighbours, those with at least its nuclear charge.

    Where there are none, as in methane, shells of the heavier atoms near their lighter neighbours.
    """
    Z_a, natom = molecule.numbers, molecule.natom
    heavy_ab = (Z_a[:, None] > 1) & ~np.eye(natom, dtype=bool)
    near_ab = heavy_ab & (Z_a >= Z_a[:, None])
    if not near_ab.any():
        near_ab = heavy_ab if heavy_ab.any() else ~np.eye(natom, dtype=bool)
    distance_ab = np.linalg.norm(molecule.R_ax[:, None] - molecule.R_ax, axis=2)
    nearest_a = np.where(np.eye(natom, dtype=bool), np.inf, distance_ab).min(axis=1, initial=np.inf)
    near_ab &= distance_ab < FARTHEST * nearest_a[:, None]
    patterns = []
    for a, Z in enumerate(Z_a.tolist()):
        R_b = distance_ab[a, near_ab[a]]
        window = (WINDOW[0] * R_b.min(), WINDOW[1] * R_b.max()) if len(R_b) else (0.0, 0.0)
        patterns.append(_pattern(Z, settings, window))
    return patterns


def _pattern(Z: int, settings: GridSettings, window: tuple[float, float]) -> Pattern:
    """Points on the shells of an element with radii in a window (Bohr)."""
    n, full = settings.numbers(Z)
    r_i, w_i = radial_rule(settings.radial, n, Z)
    points: list[Array] = [np.zeros((0, 3))]
    weights: list[Array] = [np.zeros(0)]
    for i, count in enumerate(angular_numbers(Z, r_i, full, settings.pruned).tolist()):
        if window[0] <= r_i[i] < window[1]:
            for rule, sign in ((count, -1.0), (other_rule(count, STEPS), 1.0)):
                direction_jx, share_j = lebedev(rule)
                points.append(r_i[i] * direction_jx)
                weights.append(sign * w_i[i] * share_j)
    r_gx = np.concatenate(points)
    return r_gx, np.concatenate(weights), np.ones(len(r_gx))
