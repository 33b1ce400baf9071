"""Scalar expressions of a density functional: a hash-consed graph that folds constants and merges equal terms.

A functional is written once as ordinary arithmetic on `Value`s. Equal subexpressions are one node, so closed shells
(both spin densities the same node) collapse to a much smaller formula without a second definition. A difference is a
sum with a factor -1 and a quotient a product with a reciprocal: few kinds of nodes, few rules of differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

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
"""Functions of one argument, as they act on numbers."""

Number = int | float | Fraction
Key = tuple[str, tuple[int, ...], float]


class Formula:
    """The nodes, numbered so that arguments come first: operation, arguments, value (constants) or index (inputs)."""

    def __init__(self) -> None:
        self.operation: list[str] = []
        self.arguments: list[tuple[int, ...]] = []
        self.value: list[float] = []
        self._known: dict[Key, int] = {}

    def node(self, operation: str, arguments: tuple[int, ...] = (), value: float = 0.0) -> int:
        """The one node that is this."""
        key = (operation, arguments, value)
        if key not in self._known:
            self._known[key] = len(self.operation)
            self.operation.append(operation)
            self.arguments.append(arguments)
            self.value.append(value)
        return self._known[key]

    def const(self, value: Number) -> Value:
        """A number known now."""
        return Value(self, self.node("const", (), float(value) + 0.0))  # no -0.0 beside 0.0

    def input(self, index: int) -> Value:
        """A number known when the kernel runs."""
        return Value(self, self.node("input", (), float(index)))

    def constant_of(self, node: int) -> float | None:
        """The number, where the node is one."""
        return self.value[node] if self.operation[node] == "const" else None

    def add(self, x: int, y: int) -> int:
        """x + y; multiples of one node are merged, so that x - x is nothing."""
        (a, u), (b, v) = self._multiple(x), self._multiple(y)
        if u == v:
            return self._times(a + b, u)
        if self.constant_of(x) == 0.0:
            return y
        if self.constant_of(y) == 0.0:
            return x
        return self.node("add", (x, y) if x <= y else (y, x))

    def mul(self, x: int, y: int) -> int:
        """x y; numbers are drawn to the front."""
        (a, u), (b, v) = self._multiple(x), self._multiple(y)
        if a != 1.0 or b != 1.0:
            return self._times(a * b, self.mul(u, v))
        one = self.constant_of(u), self.constant_of(v)
        if one[0] is not None:
            return self._times(one[0], v)
        if one[1] is not None:
            return self._times(one[1], u)
        if self.operation[u] == "rcp" and self.arguments[u][0] == v:
            return self.const(1.0).node
        if self.operation[v] == "rcp" and self.arguments[v][0] == u:
            return self.const(1.0).node
        return self.node("mul", (u, v) if u <= v else (v, u))

    def call(self, function: str, x: int) -> int:
        """A function of one argument."""
        number = self.constant_of(x)
        if number is not None:
            return self.const(FOLD[function](number)).node
        if function == "rcp" and self.operation[x] == "rcp":
            return self.arguments[x][0]
        if function == "rcp" and self._multiple(x)[0] != 1.0:
            a, u = self._multiple(x)
            return self._times(1.0 / a, self.call("rcp", u))
        return self.node(function, (x,))

    def select(self, x: int, y: int, yes: int, no: int) -> int:
        """`yes` where x < y, else `no`."""
        a, b = self.constant_of(x), self.constant_of(y)
        if yes == no:
            return yes
        if a is not None and b is not None:
            return yes if a < b else no
        return self.node("select", (x, y, yes, no))

    def _multiple(self, node: int) -> tuple[float, int]:
        """A node as number times node; a number is a multiple of one."""
        if self.operation[node] == "mul":
            number = self.constant_of(self.arguments[node][0])
            if number is not None:
                return number, self.arguments[node][1]
        if self.operation[node] == "const" and self.value[node] != 1.0:
            return self.value[node], self.node("const", (), 1.0)
        return 1.0, node

    def _times(self, number: float, node: int) -> int:
        own = self.constant_of(node)
        if own is not None:
            return self.const(number * own).node
        if number == 0.0:
            return self.const(0.0).node
        if number == 1.0:
            return node
        return self.node("mul", (self.const(number).node, node))  # the number first, as `_multiple` expects


@dataclass(frozen=True)
class Value:
    """A node of a formula, with arithmetic."""

    formula: Formula
    node: int

    def _other(self, other: Value | Number) -> int:
        return other.node if isinstance(other, Value) else self.formula.const(other).node

    def _new(self, node: int) -> Value:
        return Value(self.formula, node)

    def __add__(self, other: Value | Number) -> Value:
        return self._new(self.formula.add(self.node, self._other(other)))

    __radd__ = __add__

    def __mul__(self, other: Value | Number) -> Value:
        return self._new(self.formula.mul(self.node, self._other(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Value | Number) -> Value:
        return self + (-other)

    def __rsub__(self, other: Number) -> Value:
        return (-self) + other

    def __truediv__(self, other: Value | Number) -> Value:
        return self * self._new(self.formula.call("rcp", self._other(other)))

    def __rtruediv__(self, other: Number) -> Value:
        return self._new(self.formula.call("rcp", self.node)) * other

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
        result, square, left = self.formula.const(1), base, abs(power.numerator)
        while left:
            if left % 2:
                result = result * square
            square, left = (square * square, left // 2) if left > 1 else (square, 0)
        return 1 / result if power < 0 else result


def _call(function: str, x: Value) -> Value:
    return Value(x.formula, x.formula.call(function, x.node))


def sqrt(x: Value) -> Value:
    """Square root of a positive value."""
    return _call("sqrt", x)


def cbrt(x: Value) -> Value:
    """Cube root of a positive value."""
    return _call("cbrt", x)


def exp(x: Value) -> Value:
    """e^x"""
    return _call("exp", x)


def expm1(x: Value) -> Value:
    """e^x - 1 without loss near zero."""
    return _call("expm1", x)


def log(x: Value) -> Value:
    """Natural logarithm."""
    return _call("log", x)


def log1p(x: Value) -> Value:
    """ln(1 + x) without loss near zero."""
    return _call("log1p", x)


def atan(x: Value) -> Value:
    """Arc tangent."""
    return _call("atan", x)


def erf(x: Value) -> Value:
    """Error function."""
    return _call("erf", x)


def asinh(x: Value) -> Value:
    """ln(x + sqrt(1 + x^2)), without loss for small x >= 0."""
    square = x * x
    return log1p(x + square / (1 + sqrt(1 + square)))


def select(x: Value, y: Value | Number, yes: Value | Number, no: Value | Number) -> Value:
    """`yes` where x < y, else `no`. Both are evaluated: neither may overflow where it is not wanted."""
    other = [item.node if isinstance(item, Value) else x.formula.const(item).node for item in (y, yes, no)]
    return Value(x.formula, x.formula.select(x.node, *other))


def least(x: Value, y: Value | Number) -> Value:
    """The smaller of two."""
    return select(x, y, x, y)


def largest(x: Value, y: Value | Number) -> Value:
    """The larger of two."""
    return select(x, y, y, x)


def polynomial(coefficients: Sequence[float], x: Value) -> Value:
    """c_0 + c_1 x + c_2 x^2 + ... by Horner's rule."""
    result = x.formula.const(0)
    for c in reversed(coefficients):
        result = result * x + c
    return result
