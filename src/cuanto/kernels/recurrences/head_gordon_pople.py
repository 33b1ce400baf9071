"""Coulomb integrals over a pair of shells and one shell by Obara-Saika and Head-Gordon-Pople recurrences.

Obara and Saika, J. Chem. Phys. 84, 3963 (1986), doi:10.1063/1.450106 (vertical recurrence, eq. 39);
Head-Gordon and Pople, J. Chem. Phys. 89, 5777 (1988), doi:10.1063/1.455553 (horizontal recurrence, eq. 18);
Ahlrichs, Phys. Chem. Chem. Phys. 6, 5119 (2004), doi:10.1039/b413539c (solid harmonics on the third centre: the terms
that lower it cancel).

The ket's exponent c enters through 1/c only, and (2 pi^(5/2) / c^(3/2)) d_c through its coefficient: a point charge is
the limit 1/c = 0 of an s function, so the same kernels give the nuclear attraction.
"""

from __future__ import annotations

from typing import TypeVar

from cuanto.kernels.ir import Graph, Integrals, Stage, Sweep, inputs
from cuanto.kernels.recurrences.components import (
    ORIGIN,
    Powers,
    cheapest_axis,
    function_count,
    ket_sweep,
    pair_functions,
    powers,
    raised,
)
from cuanto.kernels.spec import Shells

T = TypeVar("T")


class CoulombGeometry:
    """Scalars of a primitive (pair | single) that both Coulomb algorithms need."""

    def __init__(self, graph: Graph, order: int, two_centres: bool) -> None:
        g = graph
        bra = inputs(g, "bra", 14, uniform=True)
        ket = inputs(g, "ket", 5, uniform=False)
        self.p, P, self.h = bra[0], bra[1:4], bra[10]
        # A single shell as bra has its charge cloud at its own centre.
        self.PA = bra[4:7] if two_centres else [g.zero] * 3
        self.PB = bra[7:10] if two_centres else [g.zero] * 3
        self.ic, C, ck = ket[0], ket[1:4], ket[4]
        pc = g.mul(self.p, self.ic)
        self.r = g.call("rcp", g.add(g.one, pc))  # c / (p + c)
        self.rho = g.mul(self.p, self.r)
        # P in two parts: a tight function on a nucleus C sees a P that differs from C by less than P's last digit.
        P_low = bra[11:14] if two_centres else [g.zero] * 3
        self.PC = [g.add(g.sub(P[i], C[i]), P_low[i]) for i in range(3)]
        R2 = g.sum((1.0, x, x) for x in self.PC)
        self.T = g.mul(self.rho, R2)
        self.prefactor = g.mul(g.call("sqrt", self.r), ck)
        self.F = [g.call(f"boys{order}", self.T, m) for m in range(order + 1)]


def vertical(graph: Graph, bra: Shells, ket: Shells) -> Stage:
    """[e 0|c] for all e from la to la + lb, per primitive; order of outputs: e, component of e, component of c."""
    la, lb, lc = *padded(bra.l, 0), ket.l[0]
    two_centres = len(bra.l) == 2
    # The terms that lower a solid harmonic cancel: on the ket, and on a bra of one shell, where they would cost
    # digits as well.
    solid_bra, solid_ket = not two_centres and bra.pure[0], ket.pure[0]
    g = graph
    geo = CoulombGeometry(g, la + lb + lc, two_centres)
    WP = [g.scale(-1.0, g.mul(geo.r, x)) for x in geo.PC]
    p_share = g.mul(geo.p, g.mul(geo.ic, geo.r))  # p / (p + c)
    WC = [g.mul(p_share, x) for x in geo.PC]
    hq = g.scale(0.5, g.mul(geo.ic, geo.r))  # 1 / 2(p + c)
    hr = g.mul(geo.h, geo.r)
    hc = g.scale(0.5, geo.ic)
    hcp = g.mul(hc, p_share)
    known: dict[tuple[Powers, Powers, int], int] = {}

    def value(e: Powers, c: Powers, m: int) -> int:
        key = (e, c, m)
        if key not in known:
            known[key] = lower_ket(e, c, m) if c != ORIGIN else lower_bra(e, m) if e != ORIGIN else base(m)
        return known[key]

    def base(m: int) -> int:
        return g.mul(geo.prefactor, geo.F[m])

    def lower_bra(e: Powers, m: int) -> int:
        i = cheapest_axis(e)
        e1 = raised(e, i, -1)
        terms = [(1.0, geo.PA[i], value(e1, ORIGIN, m)), (1.0, WP[i], value(e1, ORIGIN, m + 1))]
        if (n := e1[i]) and not solid_bra:
            e2 = raised(e1, i, -1)
            terms += [(n, geo.h, value(e2, ORIGIN, m)), (-n, hr, value(e2, ORIGIN, m + 1))]
        return g.sum(terms)

    def lower_ket(e: Powers, c: Powers, m: int) -> int:
        i = cheapest_axis(c)
        c1 = raised(c, i, -1)
        terms = [(1.0, WC[i], value(e, c1, m + 1))]
        if e[i]:
            terms.append((float(e[i]), hq, value(raised(e, i, -1), c1, m + 1)))
        if c1[i] and not solid_ket:
            c2 = raised(c1, i, -1)
            terms += [(c1[i], hc, value(e, c2, m)), (-c1[i], hcp, value(e, c2, m + 1))]
        return g.sum(terms)

    targets = [value(e, c, 0) for l in range(la, la + lb + 1) for e in powers(l) for c in powers(lc)]
    return Stage(g, tuple(targets))


def horizontal(la: int, lb: int, pure: tuple[bool, bool], ket_functions: int) -> Sweep:
    """Contracted (e 0|c) -> (a b|c) in the functions of a and b, for one function of c after the other."""
    g = Graph()
    AB = inputs(g, "shell", 3, uniform=True)
    bra = [e for l in range(la, la + lb + 1) for e in powers(l)]
    known = {(e, ORIGIN): x for e, x in zip(bra, inputs(g, "acc", len(bra), uniform=False), strict=True)}

    def value(a: Powers, b: Powers) -> int:
        if (a, b) not in known:
            i = cheapest_axis(b)
            b1 = raised(b, i, -1)
            known[a, b] = g.sum(((1.0, value(raised(a, i), b1), g.one), (1.0, AB[i], value(a, b1))))
        return known[a, b]

    values = [[value(a, b) for b in powers(lb)] for a in powers(la)]
    outputs = pair_functions(g, (la, lb), pure, values)
    return Sweep(Stage(g, tuple(outputs)), ket_functions, outer=1, inner=ket_functions, final=True)


def integrals(bra: Shells, ket: Shells) -> Integrals:
    """(a b|c), or (a|c) for a bra of one shell."""
    la, lb, lc = *padded(bra.l, 0), ket.l[0]
    pure = padded(bra.pure, True)
    primitive = vertical(Graph(), bra, ket)
    functions = function_count(lc, ket.pure[0])
    to_functions = ket_sweep(lc, ket.pure[0], len(primitive.outputs) // len(powers(lc)))
    return Integrals(
        primitive=primitive,
        sweeps=(*to_functions, horizontal(la, lb, pure, functions)),
        components=1,
        bra_functions=function_count(la, pure[0]) * function_count(lb, pure[1]),
        ket_functions=functions,
    )


def padded(pair: tuple[T, ...], missing: T) -> tuple[T, T]:
    """A bra of one shell has an s function of exponent zero as its second."""
    return pair[0], pair[1] if len(pair) == 2 else missing
