"""Cost of a kernel: operations, live values and bytes, counted in its graphs."""

from __future__ import annotations

from dataclasses import dataclass

from cuanto.kernels.ir import Graph, Integrals, Kind, Stage
from cuanto.kernels.passes import boys_order, live_values, schedule_order

BOYS_OPERATIONS = 30
"""Operations of one evaluation of F_M, besides 3 for each order of its recursion: exponential, Taylor sum, select."""


@dataclass(frozen=True)
class StageCost:
    """Cost of one execution of a stage: `operations` of every lane (selections included), and `uniform` ones, which are
    executed once for all lanes of a bra.

    `calls`: function calls, including reciprocals; `boys`: operations of the Boys function; `live`: values that are
    needed at the same time, at most.
    """

    operations: int
    uniform: int
    calls: int
    boys: int
    live: int


@dataclass(frozen=True)
class Cost:
    """Cost of a class of integrals: per primitive quartet, and per pass of each sweep over the contracted values."""

    primitive: StageCost
    sweeps: tuple[tuple[int, StageCost], ...]
    width: int
    bytes_read: int
    bytes_written: int

    @property
    def text_operations(self) -> int:
        """Operations in the text of a straight-line kernel, the measure for unrolling."""
        return sum(s.operations + s.uniform for s in (self.primitive, *(stage for _, stage in self.sweeps)))

    @property
    def contracted(self) -> int:
        """Operations per contracted quartet and contraction column."""
        return sum(repeat * stage.operations for repeat, stage in self.sweeps)

    def total(self, primitives: float, columns: int = 1) -> float:
        """Operations for a contracted block of `primitives` primitive quartets and `columns` contraction columns."""
        per_primitive = self.primitive.operations + self.primitive.boys + 2 * columns * self.width
        return primitives * per_primitive + columns * self.contracted


def node_operations(graph: Graph, node: int) -> int:
    """Multiplications and additions of one sum."""
    pairs = graph.pairs[node]
    return sum(graph.one not in pair for pair in pairs) + len(pairs) - 1


def stage_cost(stage: Stage) -> StageCost:
    """Count the operations of a stage, by kind, and its live values."""
    graph = stage.graph
    counts = [0, 0]
    calls = 0
    boys = 0
    for node in schedule_order(stage, stage.outputs):
        if graph.kind[node] is Kind.SUM:
            counts[graph.uniform[node]] += node_operations(graph, node)
        elif graph.kind[node] is Kind.SELECT:
            counts[graph.uniform[node]] += 1
        elif (order := boys_order(graph.label[node][0])) is None:
            calls += 1
        else:
            boys = BOYS_OPERATIONS + 3 * order
    return StageCost(counts[0], counts[1], calls, boys, live_values(stage))


def cost(integrals: Integrals) -> Cost:
    """Cost of the kernel of a class of integrals."""
    functions = integrals.components * integrals.bra_functions * integrals.ket_functions
    graph = integrals.primitive.graph
    return Cost(
        stage_cost(integrals.primitive),
        tuple((sweep.repeat, stage_cost(sweep.stage)) for sweep in integrals.sweeps),
        integrals.width,
        bytes_read=8 * sum(kind is Kind.INPUT for kind in graph.kind),
        bytes_written=8 * functions,
    )
