"""Printing of straight-line code; a target differs by its table of spellings only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuanto.kernels.ir import Graph, Kind, Stage
from cuanto.kernels.passes import boys_order, schedule_order


@dataclass(frozen=True)
class Syntax:
    """Spellings of a target; the names behind them are defined by its prelude.

    `table` declares an array of numbers outside functions.
    `register_values`: so many accumulated values may stay in registers, when loops over them are unrolled.
    """

    prelude: str
    uniform_type: str
    lane_type: str
    fma: str
    broadcast: str
    functions: dict[str, str]
    boys: str
    table: str
    register_values: int

    def literal(self, value: float) -> str:
        """A number that converts to REAL without loss."""
        return f"REAL({value!r})"


Reader = Callable[[str, int], str]
Writer = Callable[[int, str], str]


def straight_line(stage: Stage, outputs: Sequence[int], syntax: Syntax, read: Reader, write: Writer) -> list[str]:
    """One line per node, results written as soon as they are known."""
    graph = stage.graph
    leaving: dict[int, list[int]] = {}
    for k in outputs:
        leaving.setdefault(stage.outputs[k], []).append(k)
    names: dict[int, str] = {}

    def name(node: int) -> str:
        if graph.kind[node] is Kind.CONST:
            return syntax.literal(graph.value[node])
        if graph.kind[node] is Kind.INPUT:
            return read(*graph.label[node])
        return names[node]

    lines: list[str] = []
    for node in schedule_order(stage, [stage.outputs[k] for k in outputs]):
        if node in names:
            continue
        if graph.kind[node] is Kind.CALL:
            lines += _call(graph, node, names, name, syntax)
        else:
            names[node] = f"t{node}"
            kind = syntax.uniform_type if graph.uniform[node] else syntax.lane_type
            lines.append(f"const {kind} t{node} = {_sum(graph, node, name, syntax)};")
        lines += [write(k, names[node]) for k in leaving.get(node, ())]
    for node, positions in leaving.items():
        if graph.kind[node] in (Kind.CONST, Kind.INPUT):
            value = name(node) if graph.kind[node] is Kind.INPUT else f"{syntax.broadcast}({name(node)})"
            lines += [write(k, value) for k in positions]
    return lines


def _call(graph: Graph, node: int, names: dict[int, str], name: Callable[[int], str], syntax: Syntax) -> list[str]:
    function, _ = graph.label[node]
    argument = graph.pairs[node][0][0]
    order = boys_order(function)
    if order is None:
        names[node] = f"t{node}"
        kind = syntax.uniform_type if graph.uniform[node] else syntax.lane_type
        return [f"const {kind} t{node} = {syntax.functions[function]}({name(argument)});"]
    for m in range(order + 1):
        names[graph.call(function, argument, m)] = f"F[{m}]"
    return [
        f"{syntax.lane_type} F[{order + 1}];",
        f"{syntax.boys}<{order}>({name(argument)}, boys_table, F);",
    ]


def _sum(graph: Graph, node: int, name: Callable[[int], str], syntax: Syntax) -> str:
    """Plain additions innermost, then fused multiply-adds; the uniform part is added up as a scalar first."""
    uniform = graph.uniform
    scalar = [(x, y) for x, y in graph.pairs[node] if uniform[y]]
    lane = [(x, y) for x, y in graph.pairs[node] if not uniform[y]]
    text = _chain(graph, scalar, "", name, syntax)
    if lane and text:
        text = f"{syntax.broadcast}({text})"
    return _chain(graph, lane, text, name, syntax)


def _chain(graph: Graph, pairs: list[tuple[int, int]], text: str, name: Callable[[int], str], syntax: Syntax) -> str:
    for x, y in sorted(pairs, key=lambda pair: pair[0] != graph.one):
        if x == graph.one:
            text = f"{text} + {name(y)}" if text else name(y)
        elif not text:
            text = f"{name(x)} * {name(y)}"
        else:
            text = f"{syntax.fma}({name(x)}, {name(y)}, {text})"
    return text
