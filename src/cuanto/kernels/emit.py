"""Straight-line code of a stage, in the vocabulary that the preludes of all targets define."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuanto.kernels.ir import Graph, Kind, Stage
from cuanto.kernels.passes import boys_order, schedule_order

FUNCTIONS = {
    "rcp": "vrcp",
    "sqrt": "vsqrt",
    "rsqrt": "vrsqrt",
    "decay": "vexp",
    **{name: f"xc_{name}" for name in ("cbrt", "exp", "expm1", "log", "log1p", "atan", "erf")},
}
"""Functions of one argument; `decay` is the exponential of an argument that is not positive."""


Name = Callable[[int], str]
Reader = Callable[[str, int], str]
Writer = Callable[[int, str], str]


def straight_line(stage: Stage, read: Reader, write: Writer, by_number: bool = False) -> list[str]:
    """One line per node, results written as soon as they are known: depth first, or in the order of the numbering."""
    graph = stage.graph
    leaving: dict[int, list[int]] = {}
    for k, output in enumerate(stage.outputs):
        leaving.setdefault(output, []).append(k)
    names: dict[int, str] = {}

    def name(node: int) -> str:
        if node not in names:
            constant = graph.kind[node] is Kind.CONST
            names[node] = _literal(graph.value[node]) if constant else read(*graph.label[node])
        return names[node]

    lines: list[str] = []
    order = schedule_order(stage, stage.outputs)
    for node in sorted(order) if by_number else order:
        if node in names:
            continue
        kind = graph.kind[node]
        if kind is Kind.CALL and (boys := boys_order(graph.label[node][0])) is not None:
            lines += _boys(graph, node, boys, names, name)
        else:
            names[node] = f"t{node}"
            expression = _sum if kind is Kind.SUM else _call if kind is Kind.CALL else _select
            type_ = "REAL" if graph.uniform[node] else "VEC"
            lines.append(f"const {type_} t{node} = {expression(graph, node, name)};")
        if node in leaving:
            lines += [write(k, names[node]) for k in leaving[node]]
    for node, positions in leaving.items():
        if graph.kind[node] in (Kind.CONST, Kind.INPUT):
            lines += [write(k, _vector(graph, node, name)) for k in positions]
    return lines


def function(head: str, lines: Sequence[str]) -> str:
    """A C function with these lines as its body."""
    return "\n".join([head + " {", *("    " + line for line in lines), "}", ""])


def _literal(value: float) -> str:
    """A number that converts to REAL without loss."""
    return f"REAL({value!r})"


def _vector(graph: Graph, node: int, name: Name) -> str:
    """A value as a vector, where a plain number is not allowed."""
    return f"vset({name(node)})" if graph.kind[node] is Kind.CONST else name(node)


def _boys(graph: Graph, node: int, order: int, names: dict[int, str], name: Name) -> list[str]:
    function, argument = graph.label[node][0], graph.pairs[node][0][0]
    for m in range(order + 1):
        names[graph.call(function, argument, m)] = f"F[{m}]"
    return [
        f"VEC F[{order + 1}];",
        f"boys<{order}>({name(argument)}, boys_table, F);",
    ]


def _call(graph: Graph, node: int, name: Name) -> str:
    return f"{FUNCTIONS[graph.label[node][0]]}({name(graph.pairs[node][0][0])})"


def _select(graph: Graph, node: int, name: Name) -> str:
    (x, y), chosen = graph.pairs[node]
    yes, no = (_vector(graph, value, name) for value in chosen)
    return f"vselect({name(x)} < {name(y)}, {yes}, {no})"


def _sum(graph: Graph, node: int, name: Name) -> str:
    """Plain additions innermost, then fused multiply-adds; the uniform part is added up as a scalar first."""
    pairs, uniform = graph.pairs[node], graph.uniform
    scalar = [pair for pair in pairs if uniform[pair[1]]]
    if not scalar:
        return _chain(graph, pairs, "", name)
    text = _chain(graph, scalar, "", name)
    if len(scalar) == len(pairs):
        return text
    lane = [pair for pair in pairs if not uniform[pair[1]]]
    return _chain(graph, lane, f"vset({text})", name)


def _chain(graph: Graph, pairs: Sequence[tuple[int, int]], text: str, name: Name) -> str:
    one = graph.one
    plain = [name(y if x == one else x) for x, y in pairs if one in (x, y)]
    text = " + ".join([text, *plain] if text else plain)
    for x, y in pairs:
        if one not in (x, y):
            text = f"vfma({name(x)}, {name(y)}, {text})" if text else f"{name(x)} * {name(y)}"
    return text
