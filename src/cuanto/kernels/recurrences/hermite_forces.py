"""Derivatives of sum_abcd Gamma_abcd (ab|cd) for one primitive quartet, as straight-line code.

Gamma is expanded in Hermite Gaussians of the bra (`hermite_expansion`) for each product f = cd of the ket's functions,
and f itself with coefficients w. The sum is then sum_s G_s R_s with G_s = sum_f sum_t w_(s-t) h_t; R_(s+x) gives the
derivative with respect to P - Q, derivatives of w and h give those with respect to C - D and A - B.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from cuanto.kernels.ir import Graph, Stage, inputs
from cuanto.kernels.passes import schedule_order
from cuanto.kernels.recurrences.components import ORIGIN, Powers, degree, powers, shift_power
from cuanto.kernels.recurrences.hermite_expansion import PAIR_FIELDS, Hermites, multiply_out
from cuanto.kernels.recurrences.mcmurchie_davidson import (
    Expansion,
    HermiteCoulomb,
    add_powers,
    from_hermites,
    hermite_tuples,
)

Momenta = tuple[int, int]


class _Side:
    """A primitive pair: distances, 1/2p, a/p, and expansions along each axis."""

    def __init__(self, graph: Graph, name: str, l: Momenta) -> None:
        g = graph
        fields = inputs(g, name, PAIR_FIELDS, uniform=False)
        self.to_a, self.to_b, self.h, self.share = fields[:3], fields[3:6], fields[6], fields[7]
        self.l, self.E = l, [Expansion(g, self.to_a[x], self.to_b[x], self.h) for x in range(3)]
        self.other = g.sub(self.share, g.one)  # -b/p
        self.products = [(a, b) for a in powers(l[0]) for b in powers(l[1])]

    def slope(self, graph: Graph, x: int, i: int, j: int, t: int) -> int:
        """Derivative of E_t^ij along an axis with respect to A - B."""
        E, g = self.E[x], graph
        with_a = g.scale(i, E(i - 1, j, t)) if i else g.zero
        with_b = g.scale(j, E(i, j - 1, t)) if j else g.zero
        return g.sum(((1.0, self.other, with_a), (1.0, self.share, with_b)))


class _Forces:
    """Builds the graph of a class, one product of the ket's functions after the other, so that few values are live."""

    def __init__(self, bra: Momenta, ket: Momenta, part: range) -> None:
        g = self.g = Graph()
        self.bra, self.ket = _Side(g, "bra", bra), _Side(g, "ket", ket)
        order = sum(bra) + sum(ket) + 1
        R_tn = HermiteCoulomb(g, inputs(g, "X", 3, uniform=False), inputs(g, "base", order + 1, uniform=False))
        self.R = {t: R_tn(t) for t in hermite_tuples(order)}
        self.G: dict[Powers, int] = {}
        self.on_a, self.on_b, self.on_ket = ([g.zero] * 3 for _ in range(3))
        for n in part:
            elements = [m * len(part) + n - part.start for m in range(len(self.bra.products))]
            gamma = {ab: g.input("gamma", m, False) for ab, m in zip(self.bra.products, elements, strict=True)}
            self._add(*self.ket.products[n], gamma)

    @property
    def stage(self) -> Stage:
        """Energy and derivatives with respect to P - Q, A - B, C - D."""
        g, bra, by_degree = self.g, self.bra, sorted(self.G, key=degree)
        energy = g.sum((1.0, self.G[s], self.R[s]) for s in by_degree)
        total = [g.sum((1.0, self.G[s], self.R[shift_power(s, x)]) for s in by_degree) for x in range(3)]
        shares = [g.sum(((1.0, bra.other, self.on_a[x]), (1.0, bra.share, self.on_b[x]))) for x in range(3)]
        return Stage(g, (energy, *total, *shares, *self.on_ket))

    def _add(self, c: Powers, d: Powers, gamma: dict[tuple[Powers, Powers], int]) -> None:
        """Add the contribution of a product of the ket's functions."""
        g, side, weights = self.g, self.bra, list(self._weights(c, d, None))
        rows: dict[Powers, dict[Powers, Hermites]] = {}
        for (a, b), value in gamma.items():
            rows.setdefault(a, {})[b] = {ORIGIN: value}
        parts = {a: multiply_out(g, side.to_b, side.h, side.l[1], row) for a, row in rows.items()}
        h = multiply_out(g, side.to_a, side.h, side.l[0], parts)
        terms: dict[Powers, list[tuple[float, int, int]]] = {}
        for (t, weight), s in product(weights, h):
            terms.setdefault(add_powers(s, t), []).append((1.0, weight, h[s]))
        for s, found in terms.items():
            self.G[s] = g.sum(((1.0, g.one, self.G.get(s, g.zero)), *found))
        self._add_bra(weights, gamma)
        potential: dict[Powers, int] = {}
        for x in range(3):
            if not c[x] + d[x]:
                continue
            found = []
            for t, weight in self._weights(c, d, x):
                if t not in potential:
                    potential[t] = g.sum((1.0, value, self.R[add_powers(s, t)]) for s, value in h.items())
                found.append((1.0, weight, potential[t]))
            self.on_ket[x] = g.sum(((1.0, g.one, self.on_ket[x]), *found))

    def _add_bra(self, weights: list[tuple[Powers, int]], gamma: dict[tuple[Powers, Powers], int]) -> None:
        """Derivatives of the bra's polynomials about A and B, times the potential of the ket."""
        g, (la, lb) = self.g, self.bra.l
        if la + lb == 0:
            return
        potential = {
            t: g.sum((1.0, w, self.R[add_powers(s, t)]) for s, w in weights) for t in hermite_tuples(la + lb - 1)
        }
        for shell, (i, j), sums in ((0, (la - 1, lb), self.on_a), (1, (la, lb - 1), self.on_b)):
            if min(i, j) < 0:
                continue
            terms: list[list[tuple[float, int, int]]] = [[], [], []]
            values = from_hermites(g, self.bra.E, i, j, potential)
            for (a, b), value in zip(product(powers(i), powers(j)), values, strict=True):
                for x in range(3):
                    up = (shift_power(a, x), b) if shell == 0 else (a, shift_power(b, x))
                    terms[x].append((float(up[shell][x]), gamma[up], value))
            for x in range(3):
                sums[x] = g.sum(((1.0, g.one, sums[x]), *terms[x]))

    def _weights(self, c: Powers, d: Powers, derivative: int | None) -> Iterator[tuple[Powers, int]]:
        """Expansion of a product of the ket's functions, or its derivative along an axis."""
        g, along = self.g, []
        for x in range(3):
            i, j = c[x], d[x]
            if x == derivative:
                along.append([self.ket.slope(g, x, i, j, t) for t in range(i + j)])
            else:
                along.append([self.ket.E[x](i, j, t) for t in range(i + j + 1)])
        for t, u, v in product(*(range(len(values)) for values in along)):
            value = g.mul(g.mul(along[1][u], along[2][v]), along[0][t])
            yield (t, u, v), g.scale((-1.0) ** (t + u + v), value)


def operations(stage: Stage) -> int:
    """Number of products in all sums."""
    return sum(len(stage.graph.pairs[node]) for node in schedule_order(stage, stage.outputs))


@cache
def forces(bra: Momenta, ket: Momenta, part: range) -> Stage:
    """Energy, its derivatives with respect to P - Q, and those with respect to A - B and C - D without exponentials.

    For some (`part`) of the products of the ket's functions. Inputs: `bra` and `ket` (PAIR_FIELDS), `X` = P - Q, `base`
    (R_0^n of all orders n), `gamma` [bra product, ket product of this part].
    """
    return _Forces(bra, ket, part).stage
