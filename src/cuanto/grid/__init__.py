"""Grids for exchange and correlation, and the integration on them.

settings = GridSettings.of("fine")                       # or (99, 590), partition="stratmann", ...
grid = make_grid(molecule, basis, settings, backend)     # points in groups, each with its functions
quadrature, plan = make_quadrature(grid, basis, backend, "gga", settings, Budget(backend))
rho_scg = quadrature.density(D_spq, None)                # [spin, component, point]
F_spq = quadrature.matrix(potential_scg)
"""

from cuanto.grid.base import Quadrature
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.groups import grid_of_points, make_grid
from cuanto.grid.integration import Integration, MixedIntegration
from cuanto.grid.quadrature import make_quadrature
from cuanto.grid.settings import LEVELS, GridSettings

__all__ = [
    "LEVELS",
    "GridSettings",
    "GroupedGrid",
    "Integration",
    "MixedIntegration",
    "Quadrature",
    "grid_of_points",
    "make_grid",
    "make_quadrature",
]
