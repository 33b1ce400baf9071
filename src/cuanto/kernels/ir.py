"""The expression graph of integrals and functionals: hash-consed sums of products, calls and selections.

Every recurrence step of every integral is one sum of products of earlier values, so a node is just that: a tuple of
factor pairs. Functionals also need functions of one argument and selections; `values.py` provides arithmetic on nodes
for writing formulas. Equal nodes are stored once, so that common subexpressions vanish by construction. A value is
*uniform* when it depends on bra data only and is therefore equal in all lanes (or threads) that share a bra.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

Pairs = tuple[tuple[int, int], ...]


class Kind(IntEnum):
    """Kinds of nodes; `SELECT` has the pairs (x, y), (yes, no): `yes` where x < y, else `no`."""

    CONST = 0
    INPUT = 1
    SUM = 2
    CALL = 3
    SELECT = 4


class Graph:
    """Nodes are integers, their arguments always smaller: the numbering is a topological order."""

    def __init__(self) -> None:
        self.kind: list[Kind] = []
        self.uniform: list[bool] = []
        self.pairs: list[Pairs] = []
        self.value: list[float] = []
        self.label: list[tuple[str, int]] = []
        self._known: dict[object, int] = {}
        self._arguments: dict[int, list[int]] = {}
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

    def __len__(self) -> int:
        return len(self.kind)

    def const(self, value: float) -> int:
        """A number known when the kernel is generated."""
        known = self._known.get(value)
        return self._append(value, Kind.CONST, True, value=value) if known is None else known

    def input(self, name: str, index: int, uniform: bool) -> int:
        """Element `index` of the record `name` (bra, ket, shell or acc)."""
        label = (name, index)
        known = self._known.get(label)
        return self._append(label, Kind.INPUT, uniform, label=label) if known is None else known

    def call(self, function: str, argument: int, index: int = 0) -> int:
        """`function(argument)`; with several results (the Boys function) `index` says which one."""
        key = (function, argument, index)
        known = self._known.get(key)
        if known is not None:
            return known
        return self._append(key, Kind.CALL, self.uniform[argument], ((argument, self.one),), label=(function, index))

    def select(self, x: int, y: int, yes: int, no: int) -> int:
        """`yes` where x < y, else `no`."""
        key = ("select", x, y, yes, no)
        known = self._known.get(key)
        if known is not None:
            return known
        uniform = all(self.uniform[node] for node in (x, y, yes, no))
        return self._append(key, Kind.SELECT, uniform, ((x, y), (yes, no)))

    def sum(self, terms: Iterable[tuple[float, int, int]]) -> int:
        """The node sum_j c_j x_j y_j from triples (c, x, y); use `one` for an absent factor."""
        merged: dict[tuple[int, int], float] = {}
        for c, x, y in terms:
            if c == 0.0 or x == self.zero or y == self.zero:
                continue
            if self.kind[x] is Kind.CONST:
                c, x = c * self.value[x], self.one
            if self.kind[y] is Kind.CONST:
                c, y = c * self.value[y], self.one
            key = (x, y) if x <= y else (y, x)
            merged[key] = merged.get(key, 0.0) + c
        pairs = tuple(sorted(self._pair(c, x, y) for (x, y), c in merged.items() if c != 0.0))
        if not pairs:
            return self.zero
        if len(pairs) == 1 and pairs[0][0] == self.one:
            return pairs[0][1]
        return self.products(pairs)

    def products(self, pairs: Pairs) -> int:
        """The sum of products of pairs. Pairs must be sorted, and the uniform or smaller node of each comes first."""
        known = self._known.get(pairs)
        if known is not None:
            return known
        uniform = all(self.uniform[x] and self.uniform[y] for x, y in pairs)
        return self._append(pairs, Kind.SUM, uniform, pairs)

    def mul(self, x: int, y: int) -> int:
        """x y"""
        return self.sum(((1.0, x, y),))

    def scale(self, c: float, x: int) -> int:
        """c x with a number c"""
        return self.sum(((c, x, self.one),))

    def add(self, x: int, y: int) -> int:
        """x + y"""
        return self.sum(((1.0, x, self.one), (1.0, y, self.one)))

    def sub(self, x: int, y: int) -> int:
        """x - y"""
        return self.sum(((1.0, x, self.one), (-1.0, y, self.one)))

    def power(self, x: int, n: int) -> int:
        """x^n by repeated multiplication"""
        out = self.one
        for _ in range(n):
            out = self.mul(out, x)
        return out

    def _pair(self, c: float, x: int, y: int) -> tuple[int, int]:
        """c x y as two factors, the uniform one first; a number multiplies the uniform factor, which is cheaper."""
        if x == self.one and y == self.one:
            return self.const(c), self.one
        if x == self.one or y == self.one:
            return self.const(c), (y if x == self.one else x)
        if self.uniform[y] and not self.uniform[x]:
            x, y = y, x
        return (x if c == 1.0 else self.scale(c, x)), y

    def _append(
        self,
        key: object,
        kind: Kind,
        uniform: bool,
        pairs: Pairs = (),
        value: float = 0.0,
        label: tuple[str, int] = ("", 0),
    ) -> int:
        node = self._known[key] = len(self.kind)
        self.kind.append(kind)
        self.uniform.append(uniform)
        self.pairs.append(pairs)
        self.value.append(value)
        self.label.append(label)
        return node

    def arguments(self, node: int) -> list[int]:
        """The distinct computed or loaded values that a node reads, without constants."""
        known = self._arguments.get(node)
        if known is None:
            values = dict.fromkeys(x for pair in self.pairs[node] for x in pair)
            known = self._arguments[node] = [x for x in values if self.kind[x] is not Kind.CONST]
        return known


@dataclass(frozen=True)
class Stage:
    """A graph with its results."""

    graph: Graph
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """A stage executed `repeat` times over the contracted values: its text and tables exist once.

    Input j of pass i is element i * outer + j * inner of the previous sweep's results (for the first, of the sums).
    Results of a `final` sweep are integrals: output o of pass i is bra function o and ket function i, or with
    `per_component` component i and function pair o. Other sweeps store output o of pass i at i * outputs + o.
    """

    stage: Stage
    repeat: int
    outer: int
    inner: int
    final: bool = False
    per_component: bool = False

    def block(self, output: int, ket_functions: int) -> tuple[int, int]:
        """Bra and ket function of an output of a final sweep in its first pass."""
        return divmod(output, ket_functions) if self.per_component else (output, 0)


@dataclass(frozen=True)
class Integrals:
    """One class of integrals, ready to be scheduled.

    `primitive` reads the records `bra` and `ket` of two primitives; its outputs are contracted into `acc`. The sweeps
    read `acc` and `shell`, the last one yields the integrals.
    """

    primitive: Stage
    sweeps: tuple[Sweep, ...]
    components: int
    bra_functions: int
    ket_functions: int

    @property
    def width(self) -> int:
        """Number of values accumulated per contraction column."""
        return len(self.primitive.outputs)

    @property
    def middle(self) -> int:
        """Number of values passed from the first sweep to the final one; zero when there is only one."""
        if len(self.sweeps) == 1:
            return 0
        return self.sweeps[0].repeat * len(self.sweeps[0].stage.outputs)


def inputs(graph: Graph, name: str, count: int, uniform: bool) -> list[int]:
    """The first `count` elements of a record as nodes."""
    return [graph.input(name, i, uniform) for i in range(count)]


def linear(graph: Graph, coefficients: Sequence[float], values: Sequence[int]) -> int:
    """sum_j c_j v_j"""
    return graph.sum((c, v, graph.one) for c, v in zip(coefficients, values, strict=True))
