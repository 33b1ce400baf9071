"""Coulomb integrals (ab|cd), (ab|c) and (a|c) by Obara-Saika and Head-Gordon-Pople recurrences.

Obara and Saika, J. Chem. Phys. 84, 3963 (1986), doi:10.1063/1.450106 (vertical recurrence, eq. 39);
Head-Gordon and Pople, J. Chem. Phys. 89, 5777 (1988), doi:10.1063/1.455553 (horizontal recurrence, eq. 18);
Ahlrichs, Phys. Chem. Chem. Phys. 6, 5119 (2004), doi:10.1039/b413539c (solid harmonics on the third centre: the terms
that lower it cancel).

The ket's exponent c enters through 1/c only, and (2 pi^(5/2) / c^(3/2)) d_c through its coefficient: a point charge is
the limit 1/c = 0 of an s function, so the same kernels give the nuclear attraction.

Attenuated operators erf(omega r)/r (`integrals.attenuation`): the record has p' with 1/p' = 1/p + 1/omega^2 in place of
p; h = 1/2p is unchanged. The factor q/(p + q) of the recurrences is rho/p in general (Ahlrichs, Phys. Chem. Chem. Phys.
8, 3072 (2006), doi:10.1039/b605188j), hence the factor p'/p = 2 h p'.
"""

from __future__ import annotations

from math import prod
from typing import TypeVar

from cuanto.kernels import abi
from cuanto.kernels.ir import Graph, Integrals, Stage, Sweep, inputs
from cuanto.kernels.recurrences.components import (
    ORIGIN,
    Powers,
    cheapest_axis,
    function_count,
    pair_functions,
    powers,
    shift_power,
)
from cuanto.kernels.spec import Shells

T = TypeVar("T")


class CoulombGeometry:
    """Scalars of two primitive charge distributions that both Coulomb algorithms need.

    Either side is a single shell or a pair; a single shell has its charge cloud at its own centre.
    """

    def __init__(self, graph: Graph, bra: Shells, ket: Shells) -> None:
        g = graph
        order = sum(bra.l) + sum(ket.l)
        zeros = [g.zero] * 3
        p, *rest = inputs(g, "bra", abi.COULOMB_BRA, uniform=True)
        P, self.h, pair_bra = rest[0:3], rest[9], len(bra.l) == 2
        self.PA, self.PB = (rest[3:6], rest[6:9]) if pair_bra else (zeros, zeros)
        iq, *rest_ket = inputs(g, "ket", abi.ket_fields(ket), uniform=False)
        Q, ck, pair_ket = rest_ket[0:3], rest_ket[3], len(ket.l) == 2
        self.QC, self.QD = (rest_ket[4:7], rest_ket[7:10]) if pair_ket else (zeros, zeros)
        self.p, self.iq = p, iq
        root = g.call("rsqrt", g.add(g.one, g.mul(p, iq)))
        self.r = g.mul(root, root)  # q / (p + q)
        self.rho = g.mul(p, self.r)
        # P and Q have a high and a low part: P may differ from a nucleus by less than the coordinates' last digit.
        low = [rest[10 + i] if pair_bra or bra.hermite else g.zero for i in range(3)]
        low_ket = [rest_ket[10 + i] if pair_ket else g.zero for i in range(3)]
        self.PQ = [g.add(g.sub(P[i], Q[i]), g.sub(low[i], low_ket[i])) for i in range(3)]
        R2 = g.sum((1.0, x, x) for x in self.PQ)
        self.T = g.mul(self.rho, R2)
        self.prefactor = g.mul(root, ck)
        self.F = [g.call(f"boys{order}", self.T, m) for m in range(order + 1)]


def vertical(graph: Graph, bra: Shells, ket: Shells, attenuated: bool) -> Stage:
    """[e 0|f 0] for e from la to la + lb and f from lc to lc + ld, per primitive; order of outputs: e, f."""
    g = graph
    geo = CoulombGeometry(g, bra, ket)
    r = g.mul(g.scale(2.0, g.mul(geo.h, geo.p)), geo.r) if attenuated else geo.r  # rho / p
    # On a side of one shell the terms that lower a solid harmonic cancel; computing them would also lose digits.
    solid_bra, solid_ket = (len(side.l) == 1 and side.pure[0] for side in (bra, ket))
    WP = [g.scale(-1.0, g.mul(r, x)) for x in geo.PQ]
    p_share = g.mul(geo.p, g.mul(geo.iq, geo.r))  # p / (p + q), or rho / q
    WQ = [g.mul(p_share, x) for x in geo.PQ]
    hs = g.scale(0.5, g.mul(geo.iq, r))  # 1 / 2(p + q), or rho / 2pq
    hr = g.mul(geo.h, r)
    hq = g.scale(0.5, geo.iq)
    hqp = g.mul(hq, p_share)
    known: dict[tuple[Powers, Powers, int], int] = {}

    def value(e: Powers, f: Powers, m: int) -> int:
        key = (e, f, m)
        if key not in known:
            known[key] = lower_ket(e, f, m) if f != ORIGIN else lower_bra(e, m) if e != ORIGIN else base(m)
        return known[key]

    def base(m: int) -> int:
        return g.mul(geo.prefactor, geo.F[m])

    def lower_bra(e: Powers, m: int) -> int:
        i = cheapest_axis(e)
        e1 = shift_power(e, i, -1)
        terms = [(1.0, WP[i], value(e1, ORIGIN, m + 1))]
        if geo.PA[i] != g.zero:
            terms.append((1.0, geo.PA[i], value(e1, ORIGIN, m)))
        if (n := e1[i]) and not solid_bra:
            e2 = shift_power(e1, i, -1)
            terms += [(n, geo.h, value(e2, ORIGIN, m)), (-n, hr, value(e2, ORIGIN, m + 1))]
        return g.sum(terms)

    def lower_ket(e: Powers, f: Powers, m: int) -> int:
        i = cheapest_axis(f)
        f1 = shift_power(f, i, -1)
        terms = [(1.0, WQ[i], value(e, f1, m + 1))]
        if geo.QC[i] != g.zero:
            terms.append((1.0, geo.QC[i], value(e, f1, m)))
        if e[i]:
            terms.append((float(e[i]), hs, value(shift_power(e, i, -1), f1, m + 1)))
        if f1[i] and not solid_ket:
            f2 = shift_power(f1, i, -1)
            terms += [(f1[i], hq, value(e, f2, m)), (-f1[i], hqp, value(e, f2, m + 1))]
        return g.sum(terms)

    return Stage(g, tuple(value(e, f, 0) for e in vertical_monomials(bra) for f in vertical_monomials(ket)))


def vertical_monomials(side: Shells) -> list[Powers]:
    """Monomials that the vertical recurrence produces for a side, with all angular momentum on its first centre."""
    return [e for l in range(side.l[0], sum(side.l) + 1) for e in powers(l)]


def horizontal(graph: Graph, side: Shells, values: list[int], distance: list[int]) -> list[int]:
    """Horizontal recurrence (e 0| -> (a b| (Head-Gordon and Pople, eq. 18), in the functions of the shells; a single
    shell is only transformed."""
    la, lb = as_pair(side.l, 0)
    known = {(e, ORIGIN): x for e, x in zip(vertical_monomials(side), values, strict=True)}

    def value(a: Powers, b: Powers) -> int:
        if (a, b) not in known:
            i = cheapest_axis(b)
            b1 = shift_power(b, i, -1)
            terms = ((1.0, value(shift_power(a, i), b1), graph.one), (1.0, distance[i], value(a, b1)))
            known[a, b] = graph.sum(terms)
        return known[a, b]

    table = [[value(a, b) for b in powers(lb)] for a in powers(la)]
    return pair_functions(graph, (la, lb), as_pair(side.pure, True), table)


def ket_sweep(bra: Shells, ket: Shells) -> list[Sweep]:
    """Horizontal recurrence and functions of the ket, for every bra value; empty if there is nothing to do,
    as for a single shell of s, p or Cartesian functions."""
    if sum(ket.l[1:]) == 0 and (ket.l[0] < 2 or not any(p and l > 1 for l, p in zip(ket.l, ket.pure, strict=True))):
        return []
    g = Graph()
    count = len(vertical_monomials(ket))
    values = inputs(g, "acc", count, uniform=False)
    outputs = horizontal(g, ket, values, inputs(g, "ket_shell", 3, uniform=False))
    return [Sweep(Stage(g, tuple(outputs)), repeat=len(vertical_monomials(bra)), outer=count, inner=1)]


def bra_sweep(bra: Shells, ket: Shells) -> Sweep:
    """Horizontal recurrence and functions of the bra, for one ket function after the other."""
    g = Graph()
    values = inputs(g, "acc", len(vertical_monomials(bra)), uniform=False)
    outputs = horizontal(g, bra, values, inputs(g, "bra_shell", 3, uniform=True))
    count = side_functions(ket)
    return Sweep(Stage(g, tuple(outputs)), count, outer=1, inner=count, final=True)


def side_functions(side: Shells) -> int:
    """Functions of a shell or of a pair, or Hermite Gaussians up to an order."""
    if side.hermite:
        order = side.l[0]
        return (order + 1) * (order + 2) * (order + 3) // 6
    return prod(function_count(l, pure) for l, pure in zip(side.l, side.pure, strict=True))


def integrals(bra: Shells, ket: Shells, attenuated: bool = False) -> Integrals:
    """(a b|c d), where either side may be a single shell."""
    return Integrals(
        primitive=vertical(Graph(), bra, ket, attenuated),
        sweeps=(*ket_sweep(bra, ket), bra_sweep(bra, ket)),
        components=1,
        bra_functions=side_functions(bra),
        ket_functions=side_functions(ket),
    )


def as_pair(pair: tuple[T, ...], missing: T) -> tuple[T, T]:
    """Return both items of a side; for a single shell the second one is `missing`, that of an s function of exponent
    zero."""
    return pair[0], pair[1] if len(pair) == 2 else missing
