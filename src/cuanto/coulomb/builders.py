"""The builders of J and K of a calculation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.direct import DirectJK, IncrementalJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.integrals.batches import BraBatch
from cuanto.log import Timings
from cuanto.memory import Budget
from cuanto.options import CalculationOptions

SECOND_FIT = "second fit"
"""Name under which memory is reserved for the long-range fit while the first one is set up."""


@dataclass(frozen=True)
class Builders:
    """Builders of J, of K and, for range-separated functionals, of K with erf(omega r)/r."""

    coulomb: JKBuilder
    exchange: JKBuilder
    long_range: JKBuilder | None = None


def make_builders(
    basis: Basis,
    backend: Backend,
    options: CalculationOptions,
    timings: Timings,
    *,
    exchange: bool = True,
    omega: float | None = None,
    budget: Budget | None = None,
    pairs: Sequence[BraBatch] | None = None,
) -> Builders:
    """Make the builders of a calculation from complete options: `auxbasis` is a basis, or None without fitting.

    `exchange`: whether K is needed. `budget`: memory of the calculation. `pairs` of shells as for `FittedJK`.
    """
    budget = Budget(backend, options.max_memory) if budget is None else budget
    aux, fitted_exchange = options.auxbasis, options.fitting == "jk"

    def direct(omega: float | None = None) -> JKBuilder:
        chosen: dict[str, Any] = {"threshold": options.screening, "precision": options.precision, "omega": omega}
        if exchange:  # J alone is faster without stored integrals
            chosen["storage"] = options.storage
        with timings.measure("four-centre integrals"):
            return IncrementalJK(DirectJK(basis, backend=backend, budget=budget, **chosen))

    def fitted(omega: float | None = None, pairs: Sequence[BraBatch] | None = None) -> JKBuilder:
        more: dict[str, Any] = {"kind": options.fitting, "timings": timings, "omega": omega, "pairs": pairs}
        return FittedJK(basis, aux, backend=backend, budget=budget, **more)

    if fitted_exchange and omega is not None:
        budget.reserve(SECOND_FIT, budget.available() // 2)
    coulomb = direct() if aux is None else fitted(pairs=pairs)
    budget.release(SECOND_FIT)
    exchange_builder = coulomb if aux is None or fitted_exchange or not exchange else direct()
    if omega is None:
        return Builders(coulomb, exchange_builder)
    return Builders(coulomb, exchange_builder, fitted(omega) if fitted_exchange else direct(omega))
