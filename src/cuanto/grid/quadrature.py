"""The quadrature of a backend, and how many values of functions it stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
"""Fraction of the memory left by a pass for values with store `auto`: other arrays need memory as well."""
SCHEDULES: dict[str, Callable[..., Quadrature]] = {"cpu": PanelQuadrature, "cuda": BatchQuadrature}
"""Quadratures by language: a CPU thread keeps a block of groups in its cache; a GPU needs large batches of equal
work."""


def values_limit(store: str, limit: int, work: int, reading_is_faster: bool) -> int:
    """Bytes for values of functions: none unless they are required or reading them is faster (not on a CPU).

    `limit`: available memory; `work`: the part of it that a pass needs.
    """
    if store == "keep":
        return limit
    return int(AUTO_SHARE * max(0, limit - work)) if store == "auto" and reading_is_faster else 0


def make_quadrature(
    grid: GroupedGrid,
    basis: Basis,
    backend: Backend,
    family: str,
    settings: GridSettings,
    budget: Budget,
    real: str = "double",
) -> tuple[Quadrature, StorePlan]:
    """Make the quadrature of the backend; values of functions are stored if that is faster, as many as fit the budget.

    A pass takes its memory first: small batches cost more time than recomputed values.
    """
    limit = budget.available()
    quadrature: Quadrature = SCHEDULES[backend.traits.language](grid, basis, backend, family, real, settings, limit)
    room = values_limit(settings.store, limit, quadrature.work_bytes, quadrature.reading_is_faster)
    needed = quadrature.kept_bytes
    plan = StorePlan("values of functions", room > 0 and needed <= room, needed, limit)
    if settings.store == "keep":
        plan.require("store='recompute'")
    kept = quadrature.keep_values(room) if room else 0
    plan = replace(plan, kept=kept)
    if kept:
        budget.reserve("values of functions", kept)
    logger.info("quadrature: %s", plan)
    return quadrature, plan
