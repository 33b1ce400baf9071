"""The choice of algorithm per class: by measured tables where there are some, else by the cost model."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.build import cost_of
from cuanto.kernels.spec import Shells


@cache
def choose_algorithm(device: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """`hgp` or `md`, the cheaper one."""
    if operator != "coulomb":
        return "os"
    costs = {name: cost_of(operator, bra, ket, name).total(primitives) for name in ("hgp", "md")}
    return min(costs, key=lambda name: costs[name])
