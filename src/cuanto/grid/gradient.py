"""The gradient of the exchange-correlation energy with respect to atoms, at a fixed density matrix.

With the response of the grid, points move with their atoms and weights change: the result is the derivative of the
computed energy. Without it only the basis functions move, as in many programs; the two differ by the error of the
quadrature.
B. G. Johnson, P. M. W. Gill, J. A. Pople, J. Chem. Phys. 98, 5612 (1993), doi:10.1063/1.464906.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.arrays import range_starts
from cuanto.backends.base import Backend
from cuanto.errors import InputError
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.integration import Integration
from cuanto.grid.partition import Boxes
from cuanto.grid.weights import GroupedPoints, share_gradient
from cuanto.kernels.grid_setup import BLOCK_POINTS
from cuanto.system import Molecule


def energy_gradient(
    integrate: Integration,
    density: tuple[Any, Any | None, Any],
    molecule: Molecule,
    partition: str,
    response: bool = True,
) -> Any:
    """dE/dR [atom, axis] on the device; `density`: D_spq, C_spi and the densities at the points.

    `response`: include the response of the grid.
    """
    grid, backend = integrate.quadrature.grid, integrate.evaluate.backend
    if response and grid.atom_g is None:
        raise InputError(
            "the grid was made of given points, which do not move with atoms: set response=False for its gradient"
        )
    D_spq, C_spi, rho_scg = density
    e_g, potential_scg = integrate.evaluate(rho_scg, integrate.w_g)
    gradient = integrate.gradient(D_spq, C_spi, potential_scg, response)
    if response:
        placed = blocks_of_points(grid, integrate.w_g * e_g, backend)
        gradient = gradient + share_gradient(placed, molecule.R_ax, molecule.numbers, partition, backend)
    return gradient


def blocks_of_points(grid: GroupedGrid, w_g: Any, backend: Backend) -> GroupedPoints:
    """Divide the points of each group into blocks of consecutive points, which are close together."""
    parts = -(-grid.points // BLOCK_POINTS)
    sizes = np.full(int(parts.sum()), BLOCK_POINTS)
    sizes[np.cumsum(parts) - 1] = grid.points - (parts - 1) * BLOCK_POINTS
    first = range_starts(sizes)
    return GroupedPoints(grid.position_xg, grid.atom_g, w_g, first, Boxes.of(grid.position_xg, first, backend))
