"""Arithmetic on the nodes of a graph, for formulas such as density functionals: it folds constants and merges terms.

A functional is written once as ordinary arithmetic on `Value`s. Equal subexpressions are one node, so closed shells
(both spin densities the same node) collapse to a much smaller formula without a second definition. A difference is a
sum with a factor -1 and a quotient a product with a reciprocal: few kinds of nodes, few rules of differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cuanto.kernels.ir import Graph, Kind

FOLD: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1.0 / x,
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "atan": math.atan,
    "erf": math.erf,
}
"""Python functions of one argument, to fold constants."""

Number = int | float | Fraction


def _multiple(graph: Graph, node: int) -> tuple[float, int]:
    """Split a node into a number times a node; a number is a multiple of one."""
    if graph.kind[node] is Kind.CONST:
        return graph.value[node], graph.one
    pairs = graph.pairs[node]
    if len(pairs) == 1 and graph.kind[node] is Kind.SUM and graph.kind[pairs[0][0]] is Kind.CONST:
        return graph.value[pairs[0][0]], pairs[0][1]
    return 1.0, node


def _scale(graph: Graph, number: float, node: int) -> int:
    if graph.kind[node] is Kind.CONST:
        return graph.const(number * graph.value[node])
    if number == 0.0:
        return graph.zero
    return node if number == 1.0 else graph.products(((graph.const(number), node),))


def add(graph: Graph, x: int, y: int) -> int:
    """x + y; multiples of one node are merged, so that x - x is zero."""
    if x == graph.zero or y == graph.zero:
        return y if x == graph.zero else x
    (a, u), (b, v) = _multiple(graph, x), _multiple(graph, y)
    if u == v:
        return _scale(graph, a + b, u)
    one = graph.one
    first, second = (x, one) if u == one else (one, x), (y, one) if v == one else (one, y)
    return graph.products((first, second) if first < second else (second, first))


def multiply(graph: Graph, x: int, y: int) -> int:
    """x y with constant factors first."""
    one = graph.one
    if x == one or y == one:
        return y if x == one else x
    (a, u), (b, v) = _multiple(graph, x), _multiple(graph, y)
    if u == one or v == one:
        product = v if u == one else u
    elif _reciprocal(graph, u) == v or _reciprocal(graph, v) == u:
        product = one
    else:
        product = graph.products(((u, v) if u <= v else (v, u),))
    return _scale(graph, a * b, product)


def call(graph: Graph, function: str, x: int) -> int:
    """A function of one argument."""
    if graph.kind[x] is Kind.CONST:
        return graph.const(FOLD[function](graph.value[x]))
    if function != "rcp":
        return graph.call(function, x)
    a, u = _multiple(graph, x)
    inner = _reciprocal(graph, u)
    return _scale(graph, 1.0 / a, graph.call("rcp", u) if inner is None else inner)


def choose(graph: Graph, x: int, y: int, yes: int, no: int) -> int:
    """`yes` where x < y, else `no`."""
    if yes == no:
        return yes
    if graph.kind[x] is Kind.CONST and graph.kind[y] is Kind.CONST:
        return yes if graph.value[x] < graph.value[y] else no
    return graph.select(x, y, yes, no)


def _reciprocal(graph: Graph, node: int) -> int | None:
    """The node of which this is the reciprocal."""
    return graph.pairs[node][0][0] if graph.label[node] == ("rcp", 0) else None


@dataclass(frozen=True, slots=True)
class Value:
    """A node of a graph, with arithmetic."""

    graph: Graph
    node: int

    def _other(self, other: Value | Number) -> int:
        return other.node if isinstance(other, Value) else self.graph.const(float(other))

    def __add__(self, other: Value | Number) -> Value:
        return Value(self.graph, add(self.graph, self.node, self._other(other)))

    __radd__ = __add__

    def __mul__(self, other: Value | Number) -> Value:
        return Value(self.graph, multiply(self.graph, self.node, self._other(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Value | Number) -> Value:
        return self + (-other)

    def __rsub__(self, other: Number) -> Value:
        return (-self) + other

    def __truediv__(self, other: Value | Number) -> Value:
        return self * Value(self.graph, call(self.graph, "rcp", self._other(other)))

    def __rtruediv__(self, other: Number) -> Value:
        return _call("rcp", self) * other

    def __pow__(self, exponent: int | Fraction) -> Value:
        """Whole powers, and rational ones of positive values with denominators 2, 3 and 6: roots, then products."""
        power = Fraction(exponent)
        base = self
        if power.denominator % 3 == 0:
            base = cbrt(base)
        if power.denominator % 2 == 0:
            base = sqrt(base)
        if power.denominator not in (1, 2, 3, 6):
            raise ValueError(f"no kernel for the power {power}: denominators 1, 2, 3 and 6 are there")
        result, square, left = number(self.graph, 1), base, abs(power.numerator)
        while left:
            if left % 2:
                result = result * square
            square, left = (square * square, left // 2) if left > 1 else (square, 0)
        return 1 / result if power < 0 else result


def number(graph: Graph, value: Number) -> Value:
    """A constant."""
    return Value(graph, graph.const(float(value)))


def variable(graph: Graph, index: int) -> Value:
    """A variable of the kernel: x[index]."""
    return Value(graph, graph.input("x", index, uniform=False))


def _call(function: str, x: Value) -> Value:
    return Value(x.graph, call(x.graph, function, x.node))


def _function(name: str) -> Callable[[Value], Value]:
    return lambda x: _call(name, x)


sqrt, cbrt = _function("sqrt"), _function("cbrt")
"""Roots of positive values."""
exp, log, atan, erf = _function("exp"), _function("log"), _function("atan"), _function("erf")
expm1, log1p = _function("expm1"), _function("log1p")
"""e^x - 1 and ln(1 + x) without loss of digits near zero."""


def asinh(x: Value) -> Value:
    """ln(x + sqrt(1 + x^2)), without loss for small x >= 0."""
    square = x * x
    return log1p(x + square / (1 + sqrt(1 + square)))


def select(x: Value, y: Value | Number, yes: Value | Number, no: Value | Number) -> Value:
    """`yes` where x < y, else `no`. Both are evaluated: neither may overflow where it is not selected."""
    other, first, second = (
        item.node if isinstance(item, Value) else number(x.graph, item).node for item in (y, yes, no)
    )
    return Value(x.graph, choose(x.graph, x.node, other, first, second))


def minimum(x: Value, y: Value | Number) -> Value:
    """The smaller of two."""
    return select(x, y, x, y)


def maximum(x: Value, y: Value | Number) -> Value:
    """The larger of two."""
    return select(x, y, y, x)


def polynomial(coefficients: Sequence[float], x: Value) -> Value:
    """c_0 + c_1 x + c_2 x^2 + ... by Horner's rule."""
    result = number(x.graph, 0)
    for c in reversed(coefficients):
        result = result * x + c
    return result
