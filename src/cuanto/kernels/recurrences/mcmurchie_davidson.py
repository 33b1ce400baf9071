"""Coulomb integrals (ab|cd), (ab|c) and (a|c) by the McMurchie-Davidson scheme, and (t|c) of Hermite Gaussians t.

McMurchie and Davidson, J. Comput. Phys. 26, 218 (1978), doi:10.1016/0021-9991(78)90092-X; notation of Helgaker,
Jorgensen and Olsen, Molecular Electronic-Structure Theory (2000), chapter 9: E by eqs. 9.5.6-9.5.7, R by eqs.
9.9.18-9.9.20. A solid-harmonic Gaussian is the derivative S_lm(d/dC)/(2c)^l of an s function, hence its Hermite
expansion has the highest degree only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cuanto.kernels.ir import Graph, Integrals, Stage, Sweep, inputs
from cuanto.kernels.recurrences.components import (
    ORIGIN,
    Powers,
    accumulated_functions,
    cheapest_axis,
    degree,
    kernel_matrix,
    powers,
    shift_power,
)
from cuanto.kernels.recurrences.head_gordon_pople import CoulombGeometry, as_pair, side_functions
from cuanto.kernels.spec import Shells


class Expansion:
    """E_t^{ij} of a product of two one-dimensional Gaussians in Hermite Gaussians."""

    def __init__(self, graph: Graph, PA: int, PB: int, h: int) -> None:
        self.g, self.PA, self.PB, self.h = graph, PA, PB, h
        self.known: dict[tuple[int, int, int], int] = {(0, 0, 0): graph.one}

    def __call__(self, i: int, j: int, t: int) -> int:
        if t < 0 or t > i + j:
            return self.g.zero
        key = (i, j, t)
        if key not in self.known:
            shift, i1, j1 = (self.PA, i - 1, j) if i > 0 else (self.PB, i, j - 1)
            terms = (
                (1.0, self.h, self(i1, j1, t - 1)),
                (1.0, shift, self(i1, j1, t)),
                (float(t + 1), self.g.one, self(i1, j1, t + 1)),
            )
            self.known[key] = self.g.sum(terms)
        return self.known[key]


class HermiteCoulomb:
    """R_tuv^n from P - Q and R_000^n: those with t + u + v = k need those of order n + 1 with k - 1 and k - 2."""

    def __init__(self, graph: Graph, X: Sequence[int], base: Sequence[int]) -> None:
        self.g, self.X = graph, X
        self.known = {(ORIGIN, n): value for n, value in enumerate(base)}

    def __call__(self, t: Powers, n: int = 0) -> int:
        key = (t, n)
        if key not in self.known:
            i = cheapest_axis(t)
            t1 = shift_power(t, i, -1)
            terms = [(1.0, self.X[i], self(t1, n + 1))]
            if t1[i]:
                terms.append((float(t1[i]), self.g.one, self(shift_power(t1, i, -1), n + 1)))
            self.known[key] = self.g.sum(terms)
        return self.known[key]


def hermite_integrals(graph: Graph, geo: CoulombGeometry, scale: int) -> HermiteCoulomb:
    """R_tuv^n of two primitives, with a common factor."""
    step = graph.scale(-2.0, geo.rho)
    base = [graph.mul(graph.mul(scale, graph.power(step, n)), F) for n, F in enumerate(geo.F)]
    return HermiteCoulomb(graph, geo.PQ, base)


def hermite_tuples(order: int) -> list[Powers]:
    """All (t, u, v) with t + u + v <= order."""
    return [t for l in range(order + 1) for t in powers(l)]


def ket_potentials(graph: Graph, geo: CoulombGeometry, order: int, ket: Shells) -> list[dict[Powers, int]]:
    """Potential of every function of the ket, integrated with the Hermite Gaussians of the bra (t + u + v <= order)."""
    g = graph
    hq = g.scale(0.5, geo.iq)
    if len(ket.l) == 1 and ket.pure[0]:
        # (-1/2q)^l S_lm(d/dP): a common factor.
        lc = ket.l[0]
        R = hermite_integrals(g, geo, g.mul(geo.prefactor, g.power(g.scale(-1.0, hq), lc)))
        rows = [[(c, x) for c, x in zip(row, powers(lc), strict=True) if c != 0.0] for row in kernel_matrix(lc, True)]
        return [
            {t: g.sum((c, g.one, R(add_powers(t, x))) for c, x in row) for t in hermite_tuples(order)} for row in rows
        ]
    R = hermite_integrals(g, geo, geo.prefactor)
    E = [Expansion(g, geo.QC[i], geo.QD[i], hq) for i in range(3)]
    lc, ld = as_pair(ket.l, 0)
    by_tuple = {}
    for t in hermite_tuples(order):
        potential = {s: g.scale((-1.0) ** degree(s), R(add_powers(t, s))) for s in hermite_tuples(lc + ld)}
        by_tuple[t] = from_hermites(g, E, lc, ld, potential)
    return [{t: values[k] for t, values in by_tuple.items()} for k in range(len(powers(lc)) * len(powers(ld)))]


def add_powers(t: Powers, s: Powers) -> Powers:
    """Sum of two tuples."""
    return (t[0] + s[0], t[1] + s[1], t[2] + s[2])


def from_hermites(graph: Graph, E: list[Expansion], la: int, lb: int, potential: dict[Powers, int]) -> list[int]:
    """(a b| over monomials from Hermite integrals, one axis after the other; order of outputs: a, b."""
    g = graph
    along_z: dict[tuple[int, int, int, int], int] = {}
    along_yz: dict[tuple[int, int, int, int, int], int] = {}

    def z_sum(az: int, bz: int, t: int, u: int) -> int:
        key = (az, bz, t, u)
        if key not in along_z:
            along_z[key] = g.sum((1.0, E[2](az, bz, v), potential[t, u, v]) for v in range(az + bz + 1))
        return along_z[key]

    def yz_sum(ay: int, by: int, az: int, bz: int, t: int) -> int:
        key = (ay, by, az, bz, t)
        if key not in along_yz:
            along_yz[key] = g.sum((1.0, E[1](ay, by, u), z_sum(az, bz, t, u)) for u in range(ay + by + 1))
        return along_yz[key]

    return [
        g.sum((1.0, E[0](a[0], b[0], t), yz_sum(a[1], b[1], a[2], b[2], t)) for t in range(a[0] + b[0] + 1))
        for a in powers(la)
        for b in powers(lb)
    ]


def integrals(bra: Shells, ket: Shells) -> Integrals:
    """(a b|c d), where either side may be a single shell; solid harmonics of pairs after contraction.

    A bra of Hermite Gaussians is not expanded: the results are the potentials of the ket.
    """
    g = Graph()
    geo = CoulombGeometry(g, bra, ket)
    la, lb = as_pair(bra.l, 0)
    E = [Expansion(g, geo.PA[i], geo.PB[i], geo.h) for i in range(3)]
    potentials = ket_potentials(g, geo, la + lb, ket)
    if bra.hermite:
        blocks = [[potential[t] for t in hermite_tuples(la)] for potential in potentials]
    else:
        blocks = [from_hermites(g, E, la, lb, potential) for potential in potentials]
    outputs = [block[f] for f in range(len(blocks[0])) for block in blocks]
    return Integrals(
        primitive=Stage(g, tuple(outputs)),
        sweeps=(*ket_sweep(bra, ket), bra_sweep(bra, ket)),
        components=1,
        bra_functions=side_functions(bra),
        ket_functions=side_functions(ket),
    )


def monomials(side: Shells) -> int:
    """Pairs of monomials of a side, or Hermite Gaussians."""
    return side_functions(side) if side.hermite else prod(len(powers(l)) for l in side.l)


def to_functions(graph: Graph, side: Shells) -> list[int]:
    """Accumulated monomials of a side -> its functions; Hermite Gaussians are not transformed."""
    if side.hermite:
        return inputs(graph, "acc", side_functions(side), uniform=False)
    return accumulated_functions(graph, as_pair(side.l, 0), as_pair(side.pure, True))


def ket_sweep(bra: Shells, ket: Shells) -> list[Sweep]:
    """Functions of a pair on the ket, for every bra value; not needed for a single shell."""
    if len(ket.l) == 1 or monomials(ket) == side_functions(ket):
        return []
    g = Graph()
    count = monomials(ket)
    return [Sweep(Stage(g, tuple(to_functions(g, ket))), repeat=monomials(bra), outer=count, inner=1)]


def bra_sweep(bra: Shells, ket: Shells) -> Sweep:
    """Functions of the bra, for one ket function after the other."""
    g = Graph()
    count = side_functions(ket)
    return Sweep(Stage(g, tuple(to_functions(g, bra))), count, outer=1, inner=count, final=True)
