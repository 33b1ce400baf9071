"""Distances of neighbouring atoms."""

import numpy as np

from cuanto.arrays import Array, Ints

FEW_ATOMS = 1000
"""Largest number of atoms for which computing all distances is faster than a k-d tree, whose import takes 0.4 s."""


def nearest_neighbours(R_ax: Array) -> tuple[Array, Ints]:
    """Distance of each atom to its nearest neighbour, and the index of that neighbour; there must be two atoms."""
    atoms = np.arange(len(R_ax))
    if len(R_ax) > FEW_ATOMS:
        from scipy.spatial import cKDTree  # here, because importing it takes as long as the first energy of a molecule

        r_ak, neighbour_ak = cKDTree(R_ax).query(R_ax, k=2)
        other_a = (neighbour_ak[:, 0] == atoms).astype(int)  # atoms at the same position may come in any order
        return r_ak[:, 1], neighbour_ak[atoms, other_a]
    r_ab = np.linalg.norm(R_ax[:, None] - R_ax, axis=2)
    np.fill_diagonal(r_ab, np.inf)
    neighbour_a = np.argmin(r_ab, axis=1)
    return r_ab[atoms, neighbour_a], neighbour_a
