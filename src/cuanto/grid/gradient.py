"""The derivative of an integral over the grid with respect to atoms, at a fixed density matrix.

With the response of the grid, points move with their atoms and weights follow: the derivative of the energy that is
computed. Without it functions move through fixed points, as in many programs; the two differ by the error of the
quadrature. B. G. Johnson, P. M. W. Gill, J. A. Pople, J. Chem. Phys. 98, 5612 (1993), doi:10.1063/1.464906.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.errors import InputError
from cuanto.grid.grouped_grid import GroupedGrid, ends
from cuanto.grid.integration import Integration
from cuanto.grid.partition import Boxes
from cuanto.grid.weights import Placed, share_gradient
from cuanto.kernels.grid_weights import BLOCK_POINTS
from cuanto.system import Molecule

Array = NDArray[np.float64]


def energy_gradient(
    integrate: Integration, D_spq: Any, C_spi: Any | None, molecule: Molecule, partition: str, response: bool = True
) -> Array:
    """dE/dR [atom, axis] on the host; `response`: of the grid."""
    grid, backend = integrate.quadrature.grid, integrate.evaluate.backend
    if response and grid.own_g is None:
        raise InputError(
            "points from elsewhere do not move with atoms: compute the gradient without response of the grid"
        )
    e_g, potential_scg = integrate.evaluate(integrate.rho(D_spq, C_spi), integrate.w_g)
    gradient = integrate.gradient(D_spq, C_spi, potential_scg, response)
    if response:
        placed = placed_points(grid, integrate.w_g * e_g, backend)
        gradient = gradient + share_gradient(placed, molecule.R_ax, molecule.numbers, partition, backend)
    return gradient


def placed_points(grid: GroupedGrid, w_g: Any, backend: Backend) -> Placed:
    """The points of each group in parts that are near each other: points of a cube follow each other."""
    parts = -(-grid.points // BLOCK_POINTS)
    sizes = np.full(int(parts.sum()), BLOCK_POINTS)
    sizes[np.cumsum(parts) - 1] = grid.points - (parts - 1) * BLOCK_POINTS
    first = ends(sizes)
    return Placed(grid.position_xg, grid.own_g, w_g, first, Boxes.of(grid.position_xg, first, backend))
