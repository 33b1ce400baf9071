"""Atoms that are close to each other."""

import numpy as np

from cuanto.arrays import Array, Ints

FEW_ATOMS = 250
"""Largest number of atoms for which computing all distances is faster than a k-d tree, whose import takes 0.1 s."""


def close_pairs(R_ax: Array, r: float) -> tuple[Array, Ints, Ints]:
    """Distances of all pairs of atoms that are below `r`, and the indices a < b of their atoms."""
    if len(R_ax) > FEW_ATOMS:
        from scipy.spatial import cKDTree

        a, b = cKDTree(R_ax).query_pairs(r, output_type="ndarray").T
    else:
        square_ab = np.zeros((len(R_ax), len(R_ax)))
        for x_a in R_ax.T:  # one coordinate at a time takes a third of the time of `norm`
            x_ab = x_a[:, None] - x_a
            square_ab += np.multiply(x_ab, x_ab, out=x_ab)
        a, b = np.nonzero(square_ab < 1.001 * r**2)
        a, b = a[a < b], b[a < b]
    r_k = np.linalg.norm(R_ax[a] - R_ax[b], axis=1)
    near = r_k < r
    return r_k[near], a[near], b[near]
