"""The quadrature of a backend, and whether it stores the values of functions."""

from __future__ import annotations

from collections.abc import Callable

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.grid.base import Quadrature
from cuanto.grid.batches import BatchQuadrature
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.panels import PanelQuadrature
from cuanto.grid.settings import GridSettings
from cuanto.log import logger
from cuanto.memory import Budget, StorePlan

AUTO_SHARE = 0.5
"""Fraction of the available memory for values with store `auto`: integrals need memory as well."""
SCHEDULES: dict[str, Callable[..., Quadrature]] = {"cpu": PanelQuadrature, "cuda": BatchQuadrature}
"""Quadratures by language: a CPU thread keeps a block of groups in its cache; a GPU needs large batches of equal
work."""


def plan_values(store: str, needed: int, limit: int, reading_is_faster: bool) -> StorePlan:
    """Store the values if that is required, or if reading them is faster (not on a CPU) and they fit."""
    allowed = limit if store == "keep" else AUTO_SHARE * limit
    wanted = store == "keep" or (store == "auto" and reading_is_faster)
    plan = StorePlan("values of functions", wanted and needed <= allowed, needed, limit)
    if store == "keep":
        plan.require("store='recompute'")
    return plan


def make_quadrature(
    grid: GroupedGrid,
    basis: Basis,
    backend: Backend,
    family: str,
    settings: GridSettings,
    budget: Budget,
    real: str = "double",
) -> tuple[Quadrature, StorePlan]:
    """Make the quadrature of the backend; values of functions are stored if that is faster and fits the budget."""
    limit = budget.available()
    quadrature: Quadrature = SCHEDULES[backend.traits.language](grid, basis, backend, family, real, settings, limit)
    plan = plan_values(settings.store, quadrature.kept_bytes, limit, reading_is_faster=quadrature.reading_is_faster)
    if plan.stored:
        budget.reserve("values of functions", plan.needed)
        quadrature.keep_values()
    logger.info("quadrature: %s", plan)
    return quadrature, plan
