"""A stage as index tables: one small kernel text executes any class of integrals from them.

Statement layout (32-bit integers): operation, destination, three counts, then pairs of indices.
`SUM`: destination slot = sum of u[x] u[y] (first count pairs), u[x] v[y] (second) and v[x] v[y] (third), where u holds
uniform values (numbers, bra data) and v lane values. `OUT`: the slot in the first count is a result; the other numbers
say which one: its position, or operator component (destination), bra function and ket function.
Two orders of the same statements: depth first (one core, few live slots) and by levels (threads share a level, a
barrier follows it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.ir import Kind, Stage
from cuanto.kernels.passes import SlotPool, boys_order, last_uses, levels, schedule_order

HEADER = 5
OPERATIONS = {"sum": 0, "uniform": 1, "rcp": 2, "sqrt": 3, "exp": 4, "boys": 5, "out": 6}


@dataclass(frozen=True)
class Program:
    """Index tables of a stage; `uniforms` and `slots` are the storage it needs, inputs included."""

    code: NDArray[np.int32]
    starts: NDArray[np.int32]
    level_starts: NDArray[np.int32]
    constants: NDArray[np.float64]
    uniforms: int
    slots: int
    statements: int


class _Assembler:
    """Assigns storage to nodes and writes statements."""

    def __init__(self, stage: Stage, uniform_inputs: int, lane_inputs: int, block: tuple[int, int] | None) -> None:
        self.block = block
        self.graph = stage.graph
        self.constants: list[float] = []
        self.constant_index: dict[float, int] = {}
        self.uniform_index: dict[int, int] = {}
        self.slot: dict[int, int] = {}
        self.pool = SlotPool(lane_inputs)
        self.uniform_inputs = uniform_inputs
        self.uniform_temporaries = 0
        self.code: list[int] = []
        self.starts: list[int] = []

    def uniform(self, node: int) -> int:
        """Index in u: bra data first, then temporaries, then numbers (encoded negative until their start is known)."""
        if self.graph.kind[node] is Kind.CONST:
            value = self.graph.value[node]
            if value not in self.constant_index:
                self.constant_index[value] = len(self.constants)
                self.constants.append(value)
            return -1 - self.constant_index[value]
        if self.graph.kind[node] is Kind.INPUT:
            return self.graph.label[node][1]
        if node not in self.uniform_index:
            self.uniform_index[node] = self.uniform_inputs + self.uniform_temporaries
            self.uniform_temporaries += 1
        return self.uniform_index[node]

    def lane(self, node: int) -> int:
        """Slot of a lane value that was computed or loaded."""
        if self.graph.kind[node] is Kind.INPUT:
            return self.graph.label[node][1]
        return self.slot[node]

    def statement(self, operation: str, destination: int, counts: tuple[int, int, int], pairs: list[int]) -> None:
        self.starts.append(len(self.code))
        self.code += [OPERATIONS[operation], destination, *counts, *pairs]

    def sum(self, node: int) -> None:
        """One sum of products."""
        uniform = self.graph.uniform
        groups: tuple[list[int], list[int], list[int]] = ([], [], [])
        for x, y in self.graph.pairs[node]:
            kind = 0 if uniform[y] else 1 if uniform[x] else 2
            groups[kind].append(self.uniform(x) if kind < 2 else self.lane(x))
            groups[kind].append(self.uniform(y) if kind < 1 else self.lane(y))
        counts = (len(groups[0]) // 2, len(groups[1]) // 2, len(groups[2]) // 2)
        pairs = groups[0] + groups[1] + groups[2]
        if uniform[node]:
            self.statement("uniform", self.uniform(node), counts, pairs)
        else:
            self.slot[node] = self.pool.take()
            self.statement("sum", self.slot[node], counts, pairs)

    def call(self, node: int) -> None:
        """One function; the Boys function fills all its orders when the first is asked for."""
        function, _ = self.graph.label[node]
        argument = self.graph.pairs[node][0][0]
        order = boys_order(function)
        if order is None:
            self.slot[node] = self.pool.take()
            self.statement(function, self.slot[node], (self.lane(argument), 0, 0), [])
        elif node not in self.slot:
            first = self.pool.take_block(order + 1)
            for m in range(order + 1):
                self.slot[self.graph.call(function, argument, m)] = first + m
            self.statement("boys", first, (self.lane(argument), order, 0), [])

    def finish(self, level_starts: list[int]) -> Program:
        """Numbers go behind the other uniform values."""
        base = self.uniform_inputs + self.uniform_temporaries
        code = np.array(self.code, dtype=np.int32)
        return Program(
            code=np.where(code < 0, base - 1 - code, code).astype(np.int32),
            starts=np.array([*self.starts, len(self.code)], dtype=np.int32),
            level_starts=np.array(level_starts, dtype=np.int32),
            constants=np.array(self.constants or [0.0]),
            uniforms=base + max(1, len(self.constants)),
            slots=self.pool.peak,
            statements=len(self.starts),
        )


def assemble(
    stage: Stage, uniform_inputs: int, lane_inputs: int, by_levels: bool, block: tuple[int, int] | None = None
) -> Program:
    """Tables of a stage. With `block` = (bra functions, ket functions) the results are final integrals."""
    graph = stage.graph
    outputs = leaving_order(len(stage.outputs), block)
    order = schedule_order(stage, [stage.outputs[k] for k in outputs])
    wanted: dict[int, list[int]] = {}
    for k in outputs:
        if stage.outputs[k] != graph.zero:
            wanted.setdefault(stage.outputs[k], []).append(k)
    assembler = _Assembler(stage, uniform_inputs, lane_inputs, block)
    if by_levels:
        return _by_levels(assembler, order, wanted)
    return _depth_first(assembler, order, wanted)


def _emit(assembler: _Assembler, node: int) -> None:
    if assembler.graph.kind[node] is Kind.SUM:
        assembler.sum(node)
    else:
        assembler.call(node)


def leaving_order(count: int, block: tuple[int, int] | None) -> list[int]:
    """Final integrals leave one ket function after the other: their horizontal recurrences share nothing."""
    if block is None:
        return list(range(count))
    return sorted(range(count), key=lambda k: (k % block[1], k))


def _outputs(assembler: _Assembler, node: int, wanted: dict[int, list[int]]) -> None:
    for k in wanted.get(node, ()):
        if assembler.block is None:
            assembler.statement("out", k, (assembler.lane(node), 0, 0), [])
        else:
            nb, nk = assembler.block
            assembler.statement("out", k // (nb * nk), (assembler.lane(node), k // nk % nb, k % nk), [])


def _depth_first(assembler: _Assembler, order: list[int], wanted: dict[int, list[int]]) -> Program:
    graph = assembler.graph
    last = last_uses(graph, order)
    for node in wanted:
        if graph.kind[node] is Kind.INPUT:
            _outputs(assembler, node, wanted)
    for position, node in enumerate(order):
        for x in graph.arguments(node):
            # A slot is free for the result of the very statement that reads it last.
            if last[x] == position and not graph.uniform[x] and graph.kind[x] is Kind.SUM:
                assembler.pool.give(assembler.slot[x])
        _emit(assembler, node)
        _outputs(assembler, node, wanted)
        if node in wanted and node not in last and not graph.uniform[node]:
            assembler.pool.give(assembler.slot[node])
    return assembler.finish([0, len(assembler.starts)])


def _by_levels(assembler: _Assembler, order: list[int], wanted: dict[int, list[int]]) -> Program:
    graph = assembler.graph
    level = levels(graph, order)
    sequence = sorted(order, key=lambda node: level[node])
    last_level: dict[int, int] = {}
    for node in sequence:
        for x in graph.arguments(node):
            last_level[x] = max(last_level.get(x, 0), level[node])
    for node in wanted:
        last_level[node] = max(last_level.get(node, 0), level.get(node, 0) + 1)
    expiring: dict[int, list[int]] = {}
    for x, end in last_level.items():
        if graph.kind[x] is Kind.SUM and not graph.uniform[x]:
            expiring.setdefault(end, []).append(x)
    level_starts = [0]
    deepest = max(level.values(), default=0)
    by_level: dict[int, list[int]] = {}
    for node in sequence:
        by_level.setdefault(level[node], []).append(node)
    leaving: dict[int, list[int]] = {}
    for node in wanted:
        leaving.setdefault(level.get(node, 0) + 1, []).append(node)
    for k in range(1, deepest + 2):
        for node in by_level.get(k, ()):
            _emit(assembler, node)
        for node in leaving.get(k, ()):
            _outputs(assembler, node, wanted)
        level_starts.append(len(assembler.starts))
        for x in expiring.get(k, ()):
            assembler.pool.give(assembler.slot[x])
    return assembler.finish(level_starts)
