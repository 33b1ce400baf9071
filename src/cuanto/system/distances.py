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
    square_ab = np.zeros((len(atoms), len(atoms)))
    for x_a in R_ax.T:  # one coordinate at a time takes a third of the time of `norm`
        x_ab = x_a[:, None] - x_a
        square_ab += np.multiply(x_ab, x_ab, out=x_ab)
    np.fill_diagonal(square_ab, np.inf)
    neighbour_a = np.argmin(square_ab, axis=1)
    return np.sqrt(square_ab[atoms, neighbour_a]), neighbour_a
