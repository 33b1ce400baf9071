"""Points around the atoms: spherical shells of Lebedev points, before the partition of space among the atoms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from cuanto.arrays import Array, Ints, Ints32
from cuanto.grid.rules import bragg_slater_radii, lebedev, other_rule, radial_rule
from cuanto.grid.settings import GridSettings
from cuanto.system import Molecule

EDGES = ((0.25, 0.5, 1.0, 4.5), (0.1667, 0.5, 0.9, 3.5), (0.1, 0.4, 0.8, 2.5))
"""Where the angular rule changes, in Bragg-Slater radii: H and He, Li to Ne, heavier elements. NWChem's scheme:
https://nwchemgit.github.io/Density-Functional-Theory-for-Molecules.html#grid-numerical-integration-of-the-xc-potential
"""
INNERMOST, INNER = 50, 86
"""Points per shell below the first and below the second edge."""

NEGLIGIBLE_ENERGY = 1e-12
"""Radial shells are left out if their weight times Z^4 is smaller: at a nucleus the density is about 2 Z^3 / pi, and
exchange 5 Z^4 times the weight in Hartree."""

Pattern = tuple[Array, Array, Array]
"""Positions relative to a nucleus, weights and depths."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points of all atoms with their weights in the integral over one atom; `depth_g`: fraction of the radial shells
    closer to the nucleus."""

    r_gx: Array
    w_g: Array
    atom_g: Ints32
    depth_g: Array

    def __len__(self) -> int:
        return len(self.w_g)

    @cached_property
    def r_xg(self) -> Array:
        """Positions by axis: NumPy is several times faster along long rows."""
        return np.ascontiguousarray(self.r_gx.T)


def angular_numbers(Z: int, r_i: Array, full: int, pruned: bool) -> Ints:
    """Points of each shell."""
    if not pruned or full < INNERMOST:
        return np.full(len(r_i), full)
    edges = np.array(EDGES[0 if Z <= 2 else 1 if Z <= 10 else 2]) * bragg_slater_radii()[Z]
    if full == INNERMOST:
        ladder = [50, 74, 74, 74, 50]
    else:
        below = other_rule(full)
        ladder = [INNERMOST, INNER, below, full, below]
    return np.array(ladder)[np.searchsorted(edges, r_i, side="left")]


@lru_cache(maxsize=16)
def atomic_points(Z: int, settings: GridSettings, smallest: float = 0.0) -> Pattern:
    """Points of an element: positions relative to the nucleus, weights and depths.

    Shells whose weight times Z^4 is below `smallest` are left out.
    """
    n, full = settings.numbers(Z)
    r_i, w_i = radial_rule(settings.radial, n, Z)
    points, weights, depths = [], [], []
    for i, count in enumerate(angular_numbers(Z, r_i, full, settings.pruned).tolist()):
        if w_i[i] * Z**4 < smallest:
            continue
        direction_jx, share_j = lebedev(count)
        points.append(r_i[i] * direction_jx)
        weights.append(w_i[i] * share_j)
        depths.append(np.full(count, i / n))
    found = np.concatenate(points), np.concatenate(weights), np.concatenate(depths)
    for array in found:
        array.setflags(write=False)  # all molecules share them
    return found


def molecular_points(molecule: Molecule, settings: GridSettings, atoms: Ints | None = None) -> Points:
    """Points of all atoms, or of some."""
    chosen = np.arange(len(molecule.numbers)) if atoms is None else atoms
    Z_a = molecule.numbers[chosen].tolist()
    elements = {Z: atomic_points(Z, settings) for Z in dict.fromkeys(Z_a)}
    parts = [elements[Z] for Z in Z_a]
    r_gx = np.concatenate([part[0] + R_x for part, R_x in zip(parts, molecule.R_ax[chosen], strict=True)])
    counts = [len(part[1]) for part in parts]
    atom_g = np.repeat(chosen.astype(np.int32), counts)
    return Points(r_gx, np.concatenate([p[1] for p in parts]), atom_g, np.concatenate([p[2] for p in parts]))
