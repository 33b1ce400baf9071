"""Slow interpreters of expression graphs and of index tables in both encodings, with checks at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.ir import Integrals, Kind, Stage
from cuanto.kernels.passes import boys_order
from cuanto.kernels.schedule import table
from cuanto.kernels.schedule.table import Program
from oracles.integrals import boys

Array = NDArray[np.float64]
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "decay": np.exp,
}
OPERATION = {number: name for name, number in table.OPERATIONS.items()}


def evaluate_stage(stage: Stage, records: Mapping[str, Array]) -> list[Array]:
    """The outputs of a graph: node after node, each by its definition."""
    graph = stage.graph
    values: list[Array] = []
    for node in range(len(graph)):
        name, index = graph.label[node]
        if graph.kind[node] is Kind.CONST:
            value = np.asarray(graph.value[node])
        elif graph.kind[node] is Kind.INPUT:
            value = np.asarray(records[name][index])
        elif graph.kind[node] is Kind.SUM:
            value = np.asarray(sum(values[x] * values[y] for x, y in graph.pairs[node]))
        else:
            value = _call(name, index, values[graph.pairs[node][0][0]])
        values.append(value)
    return [values[node] for node in stage.outputs]


def _call(name: str, index: int, argument: Array) -> Array:
    order = boys_order(name)
    if order is None:
        return np.asarray(FUNCTIONS[name](argument))
    return np.asarray(boys(order, np.asarray(argument))[index])


def sweep_sums(integrals: Integrals, sums: Array, bra_shell: Array, ket_shell: Array) -> Array:
    """Contracted sums -> integrals [component, bra function, ket function] of one bra and one ket."""
    block = np.full((integrals.components, integrals.bra_functions, integrals.ket_functions), np.nan)
    source = sums
    for sweep in integrals.sweeps:
        left = []
        for i in range(sweep.repeat):
            values = {"acc": source[i * sweep.outer :: sweep.inner], "bra_shell": bra_shell, "ket_shell": ket_shell}
            results = evaluate_stage(sweep.stage, values)
            left += results
            for o, value in enumerate(results if sweep.final else []):
                bra, ket = sweep.block(o, integrals.ket_functions)
                index = (i, bra, ket) if sweep.per_component else (0, bra, i)
                assert np.isnan(block[index]), f"integral {index} is written twice"
                block[index] = value
        source = np.array(left)
    assert not np.isnan(block).any(), "some integrals are not made"
    return block


# ----------------------------------------------------------------------------------------------- index tables


@dataclass(frozen=True)
class Statement:
    """One statement, decoded: slots are ("u", i) or ("v", i)."""

    operation: str
    writes: tuple[tuple[str, int], ...]
    pairs: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = ()
    source: tuple[str, int] = ("v", -1)
    result: int = -1

    @property
    def reads(self) -> set[tuple[str, int]]:
        """Slots whose values it reads."""
        return {slot for pair in self.pairs for slot in pair} if self.pairs else {self.source}


def _calls(operation: str, destination: int, source: int, order: int) -> Statement:
    if operation == "out":
        return Statement(operation, (), source=("v", source), result=destination)
    positions = tuple(("v", destination + m) for m in range(order + 1 if operation == "boys" else 1))
    return Statement(operation, positions, source=("v", source))


def depth_first_statements(program: Program) -> Iterator[Statement]:
    """Decoded from the encoding for one core."""
    start, size = int(program.table[0]), int(program.table[1])
    code = program.table[start : start + size].tolist()
    while code:
        operation, destination, *counts = code[: table.STATEMENT]
        name = OPERATION[operation]
        if name not in ("sum", "uniform"):
            yield _calls(name, destination, counts[0], counts[1])
            code = code[table.STATEMENT :]
            continue
        kinds = [kind for kind, count in zip(("uu", "uv", "vv"), counts, strict=True) for _ in range(count)]
        end = table.STATEMENT + 2 * len(kinds)
        indices = code[table.STATEMENT : end]
        pairs = tuple(((k[0], x), (k[1], y)) for k, x, y in zip(kinds, indices[::2], indices[1::2], strict=True))
        yield Statement(name, (("u" if name == "uniform" else "v", destination),), pairs)
        code = code[end:]


def level_statements(program: Program) -> list[list[Statement]]:
    """Decoded from the encoding for a group of threads, level by level."""
    start, size, count = (int(program.table[i]) for i in (0, 1, 4))
    records = program.table[start : start + size].reshape(-1, table.RECORD)
    edges = program.table[table.HEADER : table.HEADER + count + 1]
    assert edges[0] == 0 and edges[-1] == len(records) and (np.diff(edges) >= 0).all()
    decoded = [_record(record) for record in records]
    return [decoded[a:b] for a, b in pairwise(edges)]


def _record(record: NDArray[np.int32]) -> Statement:
    operation, destination, count, order = record[:4].tolist()
    name = OPERATION[operation]
    if name not in ("sum", "uniform"):
        return _calls(name, destination, count, order)

    factors = [("v", x) if x >= 0 else ("u", -1 - x) for x in record[4 : 4 + 2 * count].tolist()]
    pairs = tuple(zip(factors[::2], factors[1::2], strict=True))
    return Statement(name, (("u" if name == "uniform" else "v", destination),), pairs)


@dataclass
class Machine:
    """Executes statements; checks that every slot is written before it is read and lies inside the program's
    storage."""

    program: Program
    uniform_inputs: Array
    lane_inputs: Array
    outputs: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = len(self.uniform_inputs)
        self.values = {("u", i): x for i, x in enumerate(self.uniform_inputs)}
        self.values |= {("u", first + i): x for i, x in enumerate(self.program.constants)}
        self.values |= {("v", i): x for i, x in enumerate(self.lane_inputs)}

    def forget(self, statements: list[Statement]) -> None:
        """Mark temporaries among the uniform values as not yet written."""
        for statement in statements:
            if statement.operation == "uniform":
                self.values.pop(statement.writes[0], None)

    def execute(self, statement: Statement) -> None:
        """Execute one statement."""
        missing = statement.reads - self.values.keys()
        assert not missing, f"{statement} reads {missing} before it is written"
        limits = {"u": self.program.uniforms, "v": self.program.slots}
        assert all(0 <= i < limits[kind] for kind, i in (*statement.writes, *statement.reads)), statement
        if statement.pairs:
            self.values[statement.writes[0]] = sum(self.values[x] * self.values[y] for x, y in statement.pairs)
        elif statement.operation == "out":
            assert statement.result not in self.outputs, f"result {statement.result} leaves twice"
            self.outputs[statement.result] = self.values[statement.source]
        elif statement.operation == "boys":
            F = boys(len(statement.writes) - 1, np.asarray(self.values[statement.source]))
            self.values |= dict(zip(statement.writes, F, strict=True))
        else:
            self.values[statement.writes[0]] = FUNCTIONS[statement.operation](self.values[statement.source])


def run_depth_first(program: Program, uniform: Array, lane: Array) -> dict[int, Array]:
    """Run a depth-first program; returns its outputs by position, without zeros."""
    machine = Machine(program, uniform, lane)
    statements = list(depth_first_statements(program))
    machine.forget(statements)
    for statement in statements:
        machine.execute(statement)
    return machine.outputs


def run_levels(program: Program, uniform: Array, lane: Array, seed: int = 0) -> dict[int, Array]:
    """Run a program by levels, statements in random order; none may read or write what another of its level writes."""
    machine = Machine(program, uniform, lane)
    levels = level_statements(program)
    machine.forget([statement for level in levels for statement in level])
    rng = np.random.default_rng(seed)
    for level in levels:
        written = [slot for statement in level for slot in statement.writes]
        assert len(written) == len(set(written)), "two statements of a level write the same place"
        for statement in level:
            others = set(written) - set(statement.writes)
            assert not statement.reads & others, f"{statement} reads what its own level writes"
            assert not statement.reads & set(statement.writes), f"{statement} reads what it writes"
        for i in rng.permutation(len(level)):
            machine.execute(level[i])
    return machine.outputs
