"""First derivatives of a formula by one backward sweep: about three times the work of the value, whatever the number
of variables (Griewank, Walther: Evaluating Derivatives, SIAM 2008, doi:10.1137/1.9780898717761, chapter 3).

The derivatives are nodes of the same formula, so they share every subexpression with the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

from cuanto.kernels.functional_graph import Formula, Value, exp

SLOPES: dict[str, Callable[[Value, Value], Value]] = {
    "rcp": lambda x, y: -(y * y),
    "sqrt": lambda x, y: 0.5 / y,
    "cbrt": lambda x, y: y / (3 * x),
    "exp": lambda x, y: y,
    "expm1": lambda x, y: y + 1,
    "log": lambda x, y: 1 / x,
    "log1p": lambda x, y: 1 / (1 + x),
    "atan": lambda x, y: 1 / (1 + x * x),
    "erf": lambda x, y: 2 / sqrt(pi) * exp(-(x * x)),
}
"""dy/dx of y = f(x), from both."""


def gradient(result: Value, variables: Sequence[Value]) -> list[Value]:
    """d result / d variable."""
    formula = result.formula
    zero = formula.const(0)
    slope = {result.node: formula.const(1)}
    for node in range(result.node, -1, -1):
        upper = slope.get(node)
        if upper is None or formula.operation[node] in ("const", "input"):
            continue
        for argument, part in _parts(formula, node):
            if formula.operation[argument] != "const":
                slope[argument] = slope.get(argument, zero) + part(upper)
    return [slope.get(variable.node, zero) for variable in variables]


def _parts(formula: Formula, node: int) -> list[tuple[int, Callable[[Value], Value]]]:
    """Arguments of a node, each with what it passes on."""
    operation, arguments = formula.operation[node], formula.arguments[node]
    if operation == "add":
        return [(argument, lambda upper: upper) for argument in arguments]
    if operation == "mul":
        x, y = (Value(formula, argument) for argument in arguments)
        return [(x.node, lambda upper: upper * y), (y.node, lambda upper: upper * x)]
    if operation == "select":
        left, right, yes, no = arguments

        def chosen(upper: Value, first: bool) -> Value:
            a, b = (upper.node, formula.const(0).node) if first else (formula.const(0).node, upper.node)
            return Value(formula, formula.select(left, right, a, b))

        return [(yes, lambda upper: chosen(upper, True)), (no, lambda upper: chosen(upper, False))]
    x, y = Value(formula, arguments[0]), Value(formula, node)
    return [(x.node, lambda upper: upper * SLOPES[operation](x, y))]
