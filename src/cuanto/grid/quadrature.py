"""The integration of densities and potentials, wherever it runs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.memory import ValuesPlan, plan_values
from cuanto.grid.quadrature_cpu import CpuQuadrature
from cuanto.grid.quadrature_device import DeviceQuadrature
from cuanto.grid.settings import GridSettings
from cuanto.log import logger

PRODUCTS = {
    "cpu": {"lda": (0.5, 1.0), "gga": (1.0, 2.0), "mgga": (2.5, 4.0)},
    "device": {"lda": (1.0, 1.0), "gga": (1.0, 2.0), "mgga": (4.0, 4.0)},
}
"""Matrix products for the density: functions by functions from a density matrix, functions by orbitals. Kernels of
the CPU make only half of a symmetric product where that is enough."""


PAIR = 0.03
"""Threshold for products of two functions on the CPU, relative to that for one."""
LEAST_BATCH = 1 << 24
"""Bytes of working memory below which batches would be too small to be worth a launch."""


class Quadrature(Protocol):
    """A grid with the functions of a basis on it.

    Densities and potentials are [spin, component, point]: the density, for gga its gradient, for mgga also the
    kinetic-energy density 1/2 sum_i |grad psi_i|^2.
    """

    grid: GroupedGrid

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Of functions that are multiplied at every point of each group."""

    @property
    def kept_bytes(self) -> int:
        """Memory of the values of all functions."""

    def keep_values(self) -> None:
        """Make them once."""

    def density(self, D_spq: Any, C_spi: Any | None) -> Any:
        """From the orbitals C (D = C C^T) where they are given, else from D."""

    def matrix(self, potential_scg: Any) -> Any:
        """sum_g v_0 chi_p chi_q + v . grad chi_p chi_q + v_tau grad chi_p . grad chi_q plus its transpose."""


def make_quadrature(
    grid: GroupedGrid,
    basis: Basis,
    backend: Backend,
    family: str,
    settings: GridSettings,
    limit: int,
    real: str = "double",
) -> tuple[Quadrature, ValuesPlan]:
    """For a family of functionals: lda, gga or mgga; values kept if that pays and fits `limit` bytes."""
    made: Quadrature
    if backend.name == "cpu":
        made = CpuQuadrature(grid, basis, backend, family, real, PAIR * settings.threshold)  # type: ignore[arg-type]
    else:
        batch_bytes = min(settings.batch_bytes, max(LEAST_BATCH, limit // 8))
        made = DeviceQuadrature(grid, basis, backend, family, real, batch_bytes)
    plan = plan_values(settings.store, made.kept_bytes, limit, reading_pays=backend.name != "cpu")
    if plan.keep:
        made.keep_values()
    logger.info("quadrature: %s", plan)
    return made, plan


def orbitals_pay(quadrature: Quadrature, family: str, orbitals: int, device: str) -> bool:
    """Is the density cheaper from so many orbitals than from the density matrix?"""
    points, functions = quadrature.grid.points.astype(float), quadrature.grid.functions
    by_matrix, by_orbitals = PRODUCTS["cpu" if device == "cpu" else "device"][family]
    return bool(by_orbitals * orbitals * (points * functions).sum() < by_matrix * (points * quadrature.pairs).sum())
