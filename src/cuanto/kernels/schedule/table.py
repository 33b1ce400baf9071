"""A stage as index tables: one small kernel text executes any class of integrals from them.

A program is one array of 32-bit integers (a header of `HEADER` numbers, level starts, statements) and one of numbers.
Values live in u (uniform: inputs, temporaries, numbers) and v (lanes: inputs, then temporaries). Encodings:

- depth first, for one core: a statement is operation, destination, three counts, then pairs of indices. `sum`: u u, u v
  and v v pairs in this order; `out`: the first count is the slot of a result, the other numbers identify it.
- by levels, for threads that share a level and synchronise after it: records of `RECORD` integers, one for each
  statement of at most `TERMS` terms; a factor is a slot of v, or negative an element of u: -1 - index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.ir import Graph, Kind, Stage, Sweep
from cuanto.kernels.passes import SlotPool, boys_order, last_uses, levels, limit_terms, schedule_order

OPERATIONS = {"sum": 0, "uniform": 1, "rcp": 2, "sqrt": 3, "decay": 4, "boys": 5, "out": 6, "rsqrt": 7}
HEADER = 16
STATEMENT = 5
RECORD = 12
TERMS = 4


@dataclass(frozen=True)
class Program:
    """Index tables of a stage; `uniforms` and `slots` are the storage it needs, inputs included."""

    table: NDArray[np.int32]
    constants: NDArray[np.float64]
    uniforms: int
    slots: int
    repeat: int


@dataclass(frozen=True)
class Shape:
    """Numbers of inputs of a stage, and for a sweep its strides from pass to pass."""

    uniform_inputs: int
    lane_inputs: int
    sweep: Sweep | None = None
    ket_functions: int = 1
    values: int = 0  # accumulated values among the lane inputs, followed by `ket_shell`

    def header(self) -> list[int]:
        """Passes, strides of the inputs, and steps of the results from pass to pass."""
        if self.sweep is None:
            return [1, 0, 1, 0, 0, 0, 0, 0]
        s = self.sweep
        steps = [int(s.per_component), int(s.final and not s.per_component)]
        return [s.repeat, s.outer, s.inner, int(s.final), *steps, len(s.stage.outputs), self.values]

    def target(self, output: int) -> tuple[int, int]:
        """Bra and ket function of an integral; for other results their position, and 0."""
        if self.sweep is None or not self.sweep.final:
            return output, 0
        return self.sweep.block(output, self.ket_functions)


class _Storage:
    """Assigns positions in u and v to nodes."""

    def __init__(self, graph: Graph, shape: Shape) -> None:
        self.graph, self.shape = graph, shape
        self.constants: list[float] = []
        self.slot: dict[int, int] = {}
        self.pool = SlotPool(shape.lane_inputs)
        self._uniform_index: dict[int, int] = {}

    def uniform(self, node: int) -> int:
        """Position in u: inputs, then numbers and temporaries in order of appearance."""
        graph = self.graph
        if graph.kind[node] is Kind.INPUT:
            return graph.label[node][1]
        if node not in self._uniform_index:
            self._uniform_index[node] = self.shape.uniform_inputs + len(self.constants)
            self.constants.append(graph.value[node] if graph.kind[node] is Kind.CONST else 0.0)
        return self._uniform_index[node]

    def lane(self, node: int) -> int:
        """Slot of a lane value that was computed or loaded."""
        if self.graph.kind[node] is Kind.INPUT:
            record, index = self.graph.label[node]
            return self.shape.values + index if record == "ket_shell" else index
        return self.slot[node]

    def take(self, node: int) -> int:
        """A slot for a result; the first of several for the Boys function, which fills all its orders at once."""
        function, _ = self.graph.label[node]
        order = boys_order(function) if self.graph.kind[node] is Kind.CALL else None
        if order is None:
            self.slot[node] = self.pool.take()
            return self.slot[node]
        first = self.pool.take_block(order + 1)
        for m in range(order + 1):
            self.slot[self.graph.call(function, self.graph.pairs[node][0][0], m)] = first + m
        return first

    def program(self, level_starts: list[int], code: Iterable[int]) -> Program:
        """Header, levels and statements in one array; statements begin at a multiple of 16 bytes."""
        levels_end = HEADER + len(level_starts)
        start = -(-levels_end // 4) * 4
        body = list(code)
        uniforms = self.shape.uniform_inputs + len(self.constants)
        head = [start, len(body), uniforms, self.pool.peak, len(level_starts) - 1, self.shape.lane_inputs]
        head += [self.shape.uniform_inputs, *self.shape.header()]
        head += [0] * (HEADER - len(head))
        table = np.array([*head, *level_starts, *[0] * (start - levels_end), *body], dtype=np.int32)
        repeat = self.shape.header()[0]
        return Program(table, np.array(self.constants or [0.0]), uniforms, self.pool.peak, repeat)


def _output_positions(stage: Stage) -> dict[int, list[int]]:
    """Node -> positions among the outputs; zeros are not written because sums start from zero."""
    positions: dict[int, list[int]] = {}
    for k, node in enumerate(stage.outputs):
        if node != stage.graph.zero:
            positions.setdefault(node, []).append(k)
    return positions


def depth_first(stage: Stage, shape: Shape) -> Program:
    """Statements in the order of straight-line code, slots reused as soon as possible."""
    graph = stage.graph
    storage = _Storage(graph, shape)
    order = schedule_order(stage, stage.outputs)
    last = last_uses(graph, order)
    positions = _output_positions(stage)
    code: list[int] = []

    def emit_outputs(node: int) -> None:
        for k in positions.get(node, ()):
            code.extend([OPERATIONS["out"], k, storage.lane(node), *shape.target(k)])

    def is_lane_sum(node: int) -> bool:
        return not graph.uniform[node] and graph.kind[node] is Kind.SUM

    for node in positions:
        if graph.kind[node] is Kind.INPUT:
            emit_outputs(node)
    done: set[int] = set()
    for position, node in enumerate(order):
        for x in graph.arguments(node):
            # The statement that reads a slot last may store its result there.
            if last[x] == position and is_lane_sum(x):
                storage.pool.give(storage.slot[x])
        if node not in done:
            done |= _statement(storage, node, code)
        emit_outputs(node)
        if node not in last and is_lane_sum(node):
            storage.pool.give(storage.slot[node])
    return storage.program([0], code)


def _call(storage: _Storage, node: int, code: list[int], length: int) -> set[int]:
    """Append a function call, padded to `length`; the Boys function computes all its orders at once."""
    graph = storage.graph
    function, _ = graph.label[node]
    argument = graph.pairs[node][0][0]
    source = storage.lane(argument)
    order = boys_order(function)
    operation = OPERATIONS["boys" if order is not None else function]
    code += [operation, storage.take(node), source, order or 0, *[0] * (length - 4)]
    return {graph.call(function, argument, m) for m in range((order or 0) + 1)}


def _statement(storage: _Storage, node: int, code: list[int]) -> set[int]:
    """Append a statement; returns the nodes it computes."""
    graph = storage.graph
    if graph.kind[node] is Kind.CALL:
        return _call(storage, node, code, STATEMENT)
    groups: tuple[list[int], list[int], list[int]] = ([], [], [])
    for x, y in graph.pairs[node]:
        kind = 0 if graph.uniform[y] else 1 if graph.uniform[x] else 2
        groups[kind].append(storage.uniform(x) if kind < 2 else storage.lane(x))
        groups[kind].append(storage.uniform(y) if kind < 1 else storage.lane(y))
    operation, assign = ("uniform", storage.uniform) if graph.uniform[node] else ("sum", storage.take)
    counts = [len(group) // 2 for group in groups]
    code += [OPERATIONS[operation], assign(node), *counts, *groups[0], *groups[1], *groups[2]]
    return {node}


def by_levels(stage: Stage, shape: Shape) -> Program:
    """Records by level; a slot is reused from the level after its last reader on."""
    stage = limit_terms(stage, TERMS)
    graph = stage.graph
    storage = _Storage(graph, shape)
    order = schedule_order(stage, stage.outputs)
    level = levels(graph, order)
    positions = _output_positions(stage)
    deepest = max(level.values(), default=0)
    output_level: dict[int, list[int]] = {}
    for node in positions:
        output_level.setdefault(level.get(node, 0) + 1, []).append(node)
    last_read = _last_levels(graph, order, level, output_level)
    at_level: dict[int, list[int]] = {}
    for node in order:
        at_level.setdefault(level[node], []).append(node)
    records: list[int] = []
    level_starts = [0]
    done: set[int] = set()
    for k in range(1, deepest + 2):
        for node in at_level.get(k, ()):
            if node not in done:
                done |= _record(storage, node, records)
        for node in output_level.get(k, ()):
            for position in positions[node]:
                records += [OPERATIONS["out"], position, storage.lane(node), *shape.target(position), *[0] * 7]
        level_starts.append(len(records) // RECORD)
        for node in last_read.get(k, ()):
            storage.pool.give(storage.slot[node])
    return storage.program(level_starts, records)


def _last_levels(
    graph: Graph, order: list[int], level: dict[int, int], output_level: dict[int, list[int]]
) -> dict[int, list[int]]:
    """Level -> lane sums that are not read after it."""
    last: dict[int, int] = {}
    for node in order:
        for x in graph.arguments(node):
            last[x] = max(last.get(x, 0), level[node])
    for k, nodes in output_level.items():
        for node in nodes:
            last[node] = max(last.get(node, 0), k)
    last_read: dict[int, list[int]] = {}
    for node, k in last.items():
        if graph.kind[node] is Kind.SUM and not graph.uniform[node]:
            last_read.setdefault(k, []).append(node)
    return last_read


def _record(storage: _Storage, node: int, records: list[int]) -> set[int]:
    """Append a record: operation, destination, source or number of terms, order, then the factors of TERMS pairs."""
    graph = storage.graph
    if graph.kind[node] is Kind.CALL:
        return _call(storage, node, records, RECORD)

    def factor(x: int) -> int:
        return -1 - storage.uniform(x) if graph.uniform[x] else storage.lane(x)

    factors = [factor(x) for pair in graph.pairs[node] for x in pair]
    operation, assign = ("uniform", storage.uniform) if graph.uniform[node] else ("sum", storage.take)
    terms = len(graph.pairs[node])
    records += [OPERATIONS[operation], assign(node), terms, 0, *factors, *[0] * (2 * (TERMS - terms))]
    return {node}
