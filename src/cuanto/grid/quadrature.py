"""The integration of densities and potentials, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.memory import ValuesPlan, plan_values
from cuanto.grid.panels import PanelQuadrature
from cuanto.grid.quadrature_batches import BatchQuadrature
from cuanto.grid.settings import GridSettings
from cuanto.log import logger
from cuanto.memory import Budget


class Quadrature(Protocol):
    """A grid with the functions of a basis on it.

    `products` of matrices that the density of a family takes, from a density matrix and from orbitals, and the same for
    a product of the gradient; `reading_pays`: values that are kept are read faster than they are made.
    Densities and potentials are [spin, component, point]: the density, for gga its gradient, for mgga also the
    kinetic-energy density 1/2 sum_i |grad psi_i|^2.
    """

    grid: GroupedGrid
    products: ClassVar[dict[str, tuple[float, float]]]
    reading_pays: ClassVar[bool]

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

    def gradient(self, D_spq: Any, C_spi: Any | None, potential_scg: Any, moving: bool) -> NDArray[np.float64]:
        """dE/dR [atom, axis] on the host, at fixed D and weights; `moving`: points move with their atoms."""


SCHEDULES: dict[str, Callable[..., Quadrature]] = {"cpu": PanelQuadrature, "cuda": BatchQuadrature}
"""A thread of a CPU has a block of groups in its cache; a GPU wants large batches of equal work."""


def make_quadrature(
    grid: GroupedGrid,
    basis: Basis,
    backend: Backend,
    family: str,
    settings: GridSettings,
    budget: Budget,
    real: str = "double",
) -> tuple[Quadrature, ValuesPlan]:
    """For a family of functionals: lda, gga or mgga; values kept if that pays and fits the budget."""
    limit = budget.available()
    made: Quadrature = SCHEDULES[backend.traits.language](grid, basis, backend, family, real, settings, limit)
    plan = plan_values(settings.store, made.kept_bytes, limit, reading_pays=made.reading_pays)
    if plan.keep:
        budget.reserve("values of functions", plan.needed)
        made.keep_values()
    logger.info("quadrature: %s", plan)
    return made, plan


def orbitals_pay(quadrature: Quadrature, step: str, orbitals: int) -> bool:
    """Is the density of a family, or the `gradient`, cheaper from so many orbitals than from the density matrix?"""
    points, functions = quadrature.grid.points.astype(float), quadrature.grid.functions
    by_matrix, by_orbitals = quadrature.products[step]
    return bool(by_orbitals * orbitals * (points * functions).sum() < by_matrix * (points * quadrature.pairs).sum())
