"""Order the nodes of a stage: which are needed, in which sequence, in which storage slots, on which level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuanto.kernels.ir import Graph, Kind, Stage


def boys_order(function: str) -> int | None:
    """The order M of a call `boysM`, else None."""
    return int(function[4:]) if function.startswith("boys") else None


def schedule_order(stage: Stage, outputs: Sequence[int]) -> list[int]:
    """The nodes to compute, depth first from each output in turn, which keeps few values live."""
    graph = stage.graph
    order: list[int] = []
    done: set[int] = set()
    for output in outputs:
        stack = [output]
        while stack:
            node = stack.pop()
            if node < 0:  # all arguments of the node ~node are computed
                order.append(~node)
            elif node not in done and graph.pairs[node]:
                done.add(node)
                stack.append(~node)
                stack.extend(reversed(graph.arguments(node)))
    return order


def last_uses(graph: Graph, order: Sequence[int]) -> dict[int, int]:
    """Position in `order` at which each value is read for the last time."""
    return {x: position for position, node in enumerate(order) for x in graph.arguments(node)}


def live_values(stage: Stage, by_number: bool = False) -> int:
    """The largest number of live lane values: the registers that straight-line code needs.

    In depth-first order, or in the order of the numbering.
    """
    graph = stage.graph
    order = schedule_order(stage, stage.outputs)
    if by_number:
        order.sort()
    last = last_uses(graph, order)
    alive = peak = 0
    dying: dict[int, int] = {}
    for position, node in enumerate(order):
        if not graph.uniform[node]:
            alive += 1
            end = last.get(node, position)
            dying[end] = dying.get(end, 0) + 1
        peak = max(peak, alive)
        alive -= dying.pop(position, 0)
    return peak


def levels(graph: Graph, order: Sequence[int]) -> dict[int, int]:
    """Level of each computed node: one more than that of its highest argument; nodes of a level are independent."""
    level: dict[int, int] = {}
    for node in order:
        level[node] = 1 + max((level.get(x, 0) for x in graph.arguments(node)), default=0)
    return level


@dataclass
class SlotPool:
    """Allocates and frees storage slots; `peak` is the largest number in use."""

    peak: int

    def __post_init__(self) -> None:
        self._free: list[int] = []

    def take(self) -> int:
        """Allocate a slot."""
        if self._free:
            return self._free.pop()
        self.peak += 1
        return self.peak - 1

    def take_block(self, count: int) -> int:
        """Allocate `count` consecutive slots (results of the Boys function)."""
        self.peak += count
        return self.peak - count

    def give(self, slot: int) -> None:
        """Free a slot."""
        self._free.append(slot)


def limit_terms(stage: Stage, terms: int) -> Stage:
    """The same stage with at most `terms` products in a sum; longer sums become sums of partial sums."""
    old, new = stage.graph, Graph()
    image: dict[int, int] = {}

    def moved(node: int) -> int:
        if old.kind[node] is Kind.CONST:
            return new.const(old.value[node])
        if old.kind[node] is Kind.INPUT:
            return new.input(*old.label[node], uniform=old.uniform[node])
        return image[node]

    for node in schedule_order(stage, stage.outputs):
        if old.kind[node] is Kind.CALL:
            name, index = old.label[node]
            image[node] = new.call(name, moved(old.pairs[node][0][0]), index)
            continue
        products = [(1.0, moved(x), moved(y)) for x, y in old.pairs[node]]
        while len(products) > terms:
            products = [*products[terms:], (1.0, new.one, new.sum(products[:terms]))]
        image[node] = new.sum(products)
    return Stage(new, tuple(moved(node) for node in stage.outputs))
