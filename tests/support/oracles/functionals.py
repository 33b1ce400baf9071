"""Oracle of functionals: evaluates their graphs node by node, with NumPy or with exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.functionals.functional import Functional
from cuanto.kernels.functional_source import FLOORS
from cuanto.kernels.ir import Kind, Stage
from cuanto.kernels.passes import schedule_order

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Functions = Mapping[str, Callable[..., Any]]


def numpy_functions() -> Functions:
    """The functions of a graph by NumPy and SciPy."""
    from scipy.special import erf

    return {
        "number": float,
        "rcp": lambda x: 1.0 / x,
        "sqrt": np.sqrt,
        "cbrt": np.cbrt,
        "exp": np.exp,
        "expm1": np.expm1,
        "log": np.log,
        "log1p": np.log1p,
        "atan": np.arctan,
        "erf": erf,
        "select": lambda x, y, yes, no: np.where(x < y, yes, no),
    }


def evaluate(stage: Stage, variables: Sequence[Any], functions: Functions) -> list[Any]:
    """Energy density and derivatives at a point (or at many), in any arithmetic."""
    graph = stage.graph
    found: dict[int, Any] = {}

    def value(node: int) -> Any:
        if graph.kind[node] is Kind.CONST:
            return functions["number"](graph.value[node])
        return variables[graph.label[node][1]] if graph.kind[node] is Kind.INPUT else found[node]

    def product(x: int, y: int) -> Any:
        return value(y) if x == graph.one else value(x) if y == graph.one else value(x) * value(y)

    for node in schedule_order(stage, stage.outputs):
        pairs = graph.pairs[node]
        if graph.kind[node] is Kind.SUM:
            found[node] = reduce(add, (product(*pair) for pair in pairs))
        elif graph.kind[node] is Kind.SELECT:
            found[node] = functions["select"](*(value(x) for pair in pairs for x in pair))
        else:
            found[node] = functions[graph.label[node][0]](value(pairs[0][0]))
    return [value(output) for output in stage.outputs]


def guarded(rows: Sequence[Array], spins: int) -> tuple[list[Array], Flags, list[Flags]]:
    """Variables as the kernels guard them (templates/xc_point.h); which points are ignored; which spins are empty."""
    floor = FLOORS["double"]
    rho_s = [np.asarray(row) for row in rows[:spins]]
    negligible = np.sum([np.maximum(rho, 0.0) for rho in rho_s], axis=0) <= floor["RHO_FLOOR"]
    empty = [rho <= floor["SPIN_FLOOR"] for rho in rho_s] if spins == 2 else [negligible]
    least = floor["SPIN_FLOOR"] if spins == 2 else 0.0
    x = [np.where(negligible, 1.0, np.maximum(rho, least)) for rho in rho_s]
    if len(rows) > spins:
        own = [np.where(e | negligible, 0.0, rows[i]) for e, i in zip(empty, (spins, spins + 2), strict=False)]
        own = [np.maximum(sigma, floor["SIGMA_FLOOR"]) for sigma in own]
        if spins == 1:
            x += own
        else:
            bound = 0.5 * (own[0] + own[1])
            mixed = np.where(negligible | empty[0] | empty[1], 0.0, np.clip(rows[3], -bound, bound))
            x += [own[0], mixed, own[1]]
        for s, tau in enumerate(rows[len(x) :]):
            x.append(np.maximum(tau, np.maximum(own[s] / (8 * x[s]), floor["TAU_FLOOR"])))
    return x, negligible, empty


def numpy_values(functional: Functional, rows: Sequence[Array]) -> list[Array]:
    """Energy density and derivatives; `rows` are the variables of the family in their order."""
    spins = {1: 1, 2: 1 if functional.family == "gga" else 2, 3: 1, 5: 2, 7: 2}[len(rows)]
    x, negligible, empty = guarded(rows, spins)
    with np.errstate(all="ignore"):
        found = evaluate(functional.expressions(spins), x, numpy_functions())
    y = [np.where(negligible, 0.0, value) for value in found]
    if spins == 2:
        for s, positions in enumerate(((3, 6), (5, 7))):
            for k in positions:
                if k < len(y):
                    y[k] = np.where(empty[s], 0.0, y[k])
    return y
