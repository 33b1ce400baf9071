"""Negative curvature of the energy at a stationary point, from gradients at displaced positions.

Lanczos: the softest mode in the space of a first direction and of residuals, C. Lanczos, J. Res. Natl. Bur. Stand. 45,
255 (1950), doi:10.6028/jres.045.026.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuanto.arrays import Array

SHIFT = 0.01
"""Length of the displacement of all atoms together, Bohr."""
MAX_DIRECTIONS = 6
DESCENT = -1e-4
"""Curvature below which the energy falls along a direction, Hartree/Bohr^2; 50i cm^-1 of a mass of 1 u."""
RESIDUAL = 1e-3
"""Largest residual of a mode that is known well enough, Hartree/Bohr^2."""


def falls_along_some_direction(gradient: Callable[[Array], Array], R_ax: Array, first_ax: Array) -> bool:
    """Whether the energy falls on both sides of a stationary point, along the first direction or one found from it.

    At a minimum it rises along every direction. At a transition state the first direction is usually enough, which
    takes two gradients.
    """
    directions, products = [], []
    v = first_ax.reshape(-1)
    for _ in range(MAX_DIRECTIONS):
        v = v / np.linalg.norm(v)
        ahead, behind = (gradient(R_ax + sign * SHIFT * v.reshape(R_ax.shape)) for sign in (1.0, -1.0))
        directions.append(v)
        products.append((ahead - behind).reshape(-1) / (2 * SHIFT))
        V_nx, HV_nx = np.array(directions), np.array(products)
        K_nm = V_nx @ HV_nx.T
        curvatures, c_nm = np.linalg.eigh((K_nm + K_nm.T) / 2)
        if curvatures[0] < DESCENT:
            return True
        residual = c_nm[:, 0] @ (HV_nx - curvatures[0] * V_nx)
        for _ in range(2):  # twice, because rounding errors remain after the first time
            residual -= V_nx.T @ (V_nx @ residual)
        if np.linalg.norm(residual) < RESIDUAL:
            break
        v = residual
    return False
