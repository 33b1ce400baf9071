"""The interaction of two Hermite charge distributions, the inner step of the J engine.

V_t(P) = sum_s R_(t+s)(P - Q) H_s(Q): the density is expanded in Hermite Gaussians beforehand and V is contracted
with the bra's expansion afterwards, so that no integral is formed. White and Head-Gordon, J. Chem. Phys. 104, 2620
(1996), doi:10.1063/1.471011; Shao and Head-Gordon, Chem. Phys. Lett. 323, 425 (2000),
doi:10.1016/S0009-2614(00)00524-8. R by eqs. 9.9.18-9.9.20 of Helgaker, Jorgensen and Olsen, doi:10.1002/9781119019572.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cuanto.kernels.ir import Graph, Stage, inputs
from cuanto.kernels.recurrences.components import Powers, degree
from cuanto.kernels.recurrences.mcmurchie_davidson import HermiteCoulomb, add_powers, hermite_tuples

GEOMETRY = {"double": 4, "float": 7}
"""Numbers before the density in a record: root of the exponent, and centre; in single precision in two parts."""


def hermite_count(order: int) -> int:
    """Tuples (t, u, v) with t + u + v <= order."""
    return (order + 1) * (order + 2) * (order + 3) // 6


@dataclass(frozen=True)
class Interaction:
    """R_u of a class as a stage, and for each u the products (t, s) with t + s = u that use it."""

    stage: Stage
    uses: tuple[tuple[tuple[int, int], ...], ...]
    bra_count: int
    ket_count: int


@cache
def interaction(bra_order: int, ket_order: int) -> Interaction:
    """The graph of a class."""
    order = bra_order + ket_order
    graph = Graph()
    R_tn = HermiteCoulomb(graph, inputs(graph, "X", 3, uniform=False), inputs(graph, "base", order + 1, uniform=False))
    R = {t: R_tn(t) for t in hermite_tuples(order)}
    bra, ket = hermite_tuples(bra_order), hermite_tuples(ket_order)
    uses: dict[Powers, list[tuple[int, int]]] = {}
    for i, t in enumerate(bra):
        for j, s in enumerate(ket):
            uses.setdefault(add_powers(t, s), []).append((i, j))
    # High degrees first: nothing else reads their values, so that they are live for a short time only.
    tuples = sorted(uses, key=lambda u: -degree(u))
    stage = Stage(graph, tuple(R[u] for u in tuples))
    return Interaction(stage, tuple(tuple(uses[u]) for u in tuples), len(bra), len(ket))
