"""Overlap, kinetic energy and multipole moments of two shells by one-dimensional Obara-Saika recurrences.

Obara and Saika, J. Chem. Phys. 84, 3963 (1986), doi:10.1063/1.450106: overlap (eq. A2), kinetic energy (eqs. A12-A13,
which need only the reduced exponent and lose no digits for a tight and a diffuse function).
The bra is shell a (uniform), the ket shell b (lanes); the origin of moments is the coordinate origin.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb

from cuanto.kernels.ir import Graph, Integrals, Stage, Sweep, inputs
from cuanto.kernels.recurrences.components import Powers, accumulated_functions, function_count, powers
from cuanto.kernels.spec import Shells


class Overlap1D:
    """S_ij along one axis without the factor (pi/p)^(3/2) K_ab."""

    def __init__(self, graph: Graph, PA: int, PB: int, h: int) -> None:
        self.g, self.PA, self.PB, self.h = graph, PA, PB, h
        self.known: dict[tuple[int, int], int] = {(0, 0): graph.one}

    def __call__(self, i: int, j: int) -> int:
        if i < 0 or j < 0:
            return self.g.zero
        if (i, j) not in self.known:
            shift, i1, j1 = (self.PA, i - 1, j) if i > 0 else (self.PB, i, j - 1)
            terms = ((1.0, shift, self(i1, j1)), (i1, self.h, self(i1 - 1, j1)), (j1, self.h, self(i1, j1 - 1)))
            self.known[i, j] = self.g.sum(terms)
        return self.known[i, j]


class Kinetic1D:
    """T_ij = <i|-1/2 d^2/dx^2|j> along one axis, without the same factor."""

    def __init__(self, graph: Graph, S: Overlap1D, xi: int, X: int, half_a: int, half_b: int) -> None:
        self.g, self.S, self.half_a, self.half_b = graph, S, half_a, half_b
        self.twice_xi = graph.scale(2.0, xi)
        start = graph.sum(((1.0, xi, graph.one), (-2.0, graph.mul(xi, xi), graph.mul(X, X))))
        self.known: dict[tuple[int, int], int] = {(0, 0): start}

    def __call__(self, i: int, j: int) -> int:
        if i < 0 or j < 0:
            return self.g.zero
        if (i, j) not in self.known:
            g, S = self.g, self.S
            if i > 0:
                shift, i1, j1 = S.PA, i - 1, j
                lowered = g.sum(((1.0, g.one, S(i, j)), (-i1, self.half_a, S(i1 - 1, j1))))
            else:
                shift, i1, j1 = S.PB, i, j - 1
                lowered = g.sum(((1.0, g.one, S(i, j)), (-j1, self.half_b, S(i1, j1 - 1))))
            terms = (
                (1.0, shift, self(i1, j1)),
                (i1, S.h, self(i1 - 1, j1)),
                (j1, S.h, self(i1, j1 - 1)),
                (1.0, self.twice_xi, lowered),
            )
            self.known[i, j] = g.sum(terms)
        return self.known[i, j]


class PairGeometry:
    """Gaussian product of the two primitives; records: exponent, centre, then 1/2a (bra) or the coefficient."""

    def __init__(self, graph: Graph) -> None:
        g = graph
        a, *A, self.half_a = inputs(g, "bra", 5, uniform=True)
        self.b, *self.B, cb = inputs(g, "ket", 5, uniform=False)
        p = g.add(a, self.b)
        ip = g.call("rcp", p)
        self.AB = AB = [g.sub(A[i], self.B[i]) for i in range(3)]
        R2 = g.sum((1.0, x, x) for x in AB)
        b_share, a_share = g.mul(self.b, ip), g.mul(a, ip)
        self.xi = g.mul(a, b_share)
        K = g.call("decay", g.scale(-1.0, g.mul(self.xi, R2)))
        self.prefactor = g.mul(g.mul(g.mul(ip, g.call("sqrt", ip)), K), cb)
        h = g.scale(0.5, ip)
        self.S = [Overlap1D(g, g.scale(-1.0, g.mul(b_share, AB[i])), g.mul(a_share, AB[i]), h) for i in range(3)]


def overlap(g: Graph, geo: PairGeometry) -> list[Callable[[Powers, Powers], int]]:
    """<a|b>"""

    def element(a: Powers, b: Powers) -> int:
        return product(g, geo, [geo.S[i](a[i], b[i]) for i in range(3)])

    return [element]


def kinetic(g: Graph, geo: PairGeometry) -> list[Callable[[Powers, Powers], int]]:
    """<a|-1/2 nabla^2|b>"""
    half_b = g.scale(0.5, g.call("rcp", geo.b))
    T = [Kinetic1D(g, geo.S[i], geo.xi, geo.AB[i], geo.half_a, half_b) for i in range(3)]

    def element(a: Powers, b: Powers) -> int:
        S = [geo.S[i](a[i], b[i]) for i in range(3)]
        yz, xz, xy = g.mul(S[1], S[2]), g.mul(S[0], S[2]), g.mul(S[0], S[1])
        total = g.sum((1.0, T[i](a[i], b[i]), others) for i, others in enumerate((yz, xz, xy)))
        return g.mul(geo.prefactor, total)

    return [element]


def dipole(g: Graph, geo: PairGeometry) -> list[Callable[[Powers, Powers], int]]:
    """<a|x|b>, <a|y|b>, <a|z|b>"""

    def component(axis: int) -> Callable[[Powers, Powers], int]:
        def element(a: Powers, b: Powers) -> int:
            factors = [geo.S[i](a[i], b[i]) for i in range(3)]
            moment = ((1.0, g.one, geo.S[axis](a[axis], b[axis] + 1)), (1.0, geo.B[axis], factors[axis]))
            factors[axis] = g.sum(moment)
            return product(g, geo, factors)

        return element

    return [component(axis) for axis in range(3)]


def quadrupole(g: Graph, geo: PairGeometry) -> list[Callable[[Powers, Powers], int]]:
    """<a|xx|b>, <a|xy|b>, <a|xz|b>, <a|yy|b>, <a|yz|b>, <a|zz|b>"""

    def moment(axis: int, order: int, i: int, j: int) -> int:
        """<i|x^order|j> along an axis, from x = (x - B) + B."""
        S, B = geo.S[axis], geo.B[axis]
        terms = ((comb(order, k), g.power(B, order - k), S(i, j + k)) for k in range(order + 1))
        return g.sum(tuple((float(c), power, value) for c, power, value in terms))

    def component(*axes: int) -> Callable[[Powers, Powers], int]:
        def element(a: Powers, b: Powers) -> int:
            return product(g, geo, [moment(x, axes.count(x), a[x], b[x]) for x in range(3)])

        return element

    return [component(x, y) for x, y in combinations_with_replacement(range(3), 2)]


def product(g: Graph, geo: PairGeometry, factors: list[int]) -> int:
    """The three axes and the prefactor."""
    return g.mul(g.mul(geo.prefactor, factors[0]), g.mul(factors[1], factors[2]))


OPERATORS = {"overlap": overlap, "kinetic": kinetic, "dipole": dipole, "quadrupole": quadrupole}


def integrals(operator: str, bra: Shells, ket: Shells) -> Integrals:
    """<a|operator|b>; solid harmonics after contraction."""
    la, lb = bra.l[0], ket.l[0]
    g = Graph()
    elements = OPERATORS[operator](g, PairGeometry(g))
    outputs = [f(a, b) for f in elements for a in powers(la) for b in powers(lb)]
    return Integrals(
        primitive=Stage(g, tuple(outputs)),
        sweeps=(to_functions(len(elements), bra, ket),),
        components=len(elements),
        bra_functions=function_count(la, bra.pure[0]),
        ket_functions=function_count(lb, ket.pure[0]),
    )


def to_functions(components: int, bra: Shells, ket: Shells) -> Sweep:
    """Monomials -> functions of both shells, for one component of the operator after the other."""
    g = Graph()
    l, pure = (bra.l[0], ket.l[0]), (bra.pure[0], ket.pure[0])
    outputs = accumulated_functions(g, l, pure)
    size = len(powers(l[0])) * len(powers(l[1]))
    return Sweep(Stage(g, tuple(outputs)), components, outer=size, inner=1, final=True, per_component=True)
