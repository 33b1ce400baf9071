"""The slow, obvious evaluation of a functional, node by node: NumPy for tests, other arithmetic for exact checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.functionals.functional import Expressions, Functional
from cuanto.kernels.functional_source import FLOORS, reachable

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Functions = Mapping[str, Callable[..., Any]]


def numpy_functions() -> Functions:
    """NumPy's and SciPy's."""
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


def evaluate(expressions: Expressions, variables: Sequence[Any], functions: Functions) -> list[Any]:
    """Energy density and derivatives at a point (or at many), in any arithmetic."""
    formula = expressions.formula
    found: dict[int, Any] = {}
    for node in reachable(formula, expressions.outputs):
        operation = formula.operation[node]
        given = [found[argument] for argument in formula.arguments[node]]
        if operation == "const":
            found[node] = functions["number"](formula.value[node])
        elif operation == "input":
            found[node] = variables[int(formula.value[node])]
        elif operation == "add":
            found[node] = given[0] + given[1]
        elif operation == "mul":
            found[node] = given[0] * given[1]
        else:
            found[node] = functions[operation](*given)
    return [found[output.node] for output in expressions.outputs]


def guarded(rows: Sequence[Array], spins: int) -> tuple[list[Array], Flags, list[Flags]]:
    """Variables as the kernels guard them (templates/xc_point.h); which points count nothing; which spins are empty."""
    floor = FLOORS["double"]
    rho_s = [np.asarray(row) for row in rows[:spins]]
    dead = np.sum([np.maximum(rho, 0.0) for rho in rho_s], axis=0) <= floor["RHO_FLOOR"]
    empty = [rho <= floor["SPIN_FLOOR"] for rho in rho_s] if spins == 2 else [dead]
    least = floor["SPIN_FLOOR"] if spins == 2 else 0.0
    x = [np.where(dead, 1.0, np.maximum(rho, least)) for rho in rho_s]
    if len(rows) > spins:
        own = [np.where(e | dead, 0.0, rows[i]) for e, i in zip(empty, (spins, spins + 2), strict=False)]
        own = [np.maximum(sigma, floor["SIGMA_FLOOR"]) for sigma in own]
        if spins == 1:
            x += own
        else:
            bound = 0.5 * (own[0] + own[1])
            mixed = np.where(dead | empty[0] | empty[1], 0.0, np.clip(rows[3], -bound, bound))
            x += [own[0], mixed, own[1]]
        for s, tau in enumerate(rows[len(x) :]):
            x.append(np.maximum(tau, np.maximum(own[s] / (8 * x[s]), floor["TAU_FLOOR"])))
    return x, dead, empty


def numpy_values(functional: Functional, rows: Sequence[Array]) -> list[Array]:
    """Energy density and derivatives; `rows` are the variables of the family in their order."""
    spins = {1: 1, 2: 1 if functional.family == "gga" else 2, 3: 1, 5: 2, 7: 2}[len(rows)]
    x, dead, empty = guarded(rows, spins)
    with np.errstate(all="ignore"):
        found = evaluate(functional.expressions(spins), x, numpy_functions())
    y = [np.where(dead, 0.0, value) for value in found]
    if spins == 2:
        for s, places in enumerate(((3, 6), (5, 7))):
            for k in places:
                if k < len(y):
                    y[k] = np.where(empty[s], 0.0, y[k])
    return y
