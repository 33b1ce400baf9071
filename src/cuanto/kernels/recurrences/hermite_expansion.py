"""A density between two shells in Hermite Gaussians, and its derivative with respect to the vector between the shells.

The product of primitives with monomials a and b is sum_t E_t^ab Lambda_t(P) (McMurchie and Davidson;
`mcmurchie_davidson`). E depends on the centres through P - A = -(beta/p) (A - B) and P - B = (alpha/p) (A - B), where
alpha and beta are the exponents and p = alpha + beta.
Polynomials are multiplied out factor by factor, all monomials of a shell at once (Horner), with h = 1/2p and

    x_A Lambda_t = h Lambda_(t+1) + (P - A) Lambda_t + t Lambda_(t-1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuanto.kernels.ir import Graph, Stage, inputs
from cuanto.kernels.recurrences.components import ORIGIN, Powers, powers, shift_power
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

PAIR_FIELDS = 8
"""P - A, P - B, h and alpha/p of a primitive pair."""
Hermites = Mapping[Powers, int]
"""Coefficients of Hermite Gaussians."""


def multiply_out(graph: Graph, shift: Sequence[int], h: int, l: int, parts: Mapping[Powers, Hermites]) -> Hermites:
    """sum_a x^a parts[a] over monomials of degree l about a centre C, with `shift` = P - C."""
    g, level = graph, parts
    for d in range(l, 0, -1):
        terms: dict[Powers, dict[Powers, list[tuple[float, int, int]]]] = {}
        for a in powers(d):
            if a not in level:
                continue
            i = next(axis for axis in range(3) if a[axis])
            target = terms.setdefault(shift_power(a, i, -1), {})
            for t, value in level[a].items():
                target.setdefault(shift_power(t, i), []).append((1.0, h, value))
                target.setdefault(t, []).append((1.0, shift[i], value))
                if t[i]:
                    target.setdefault(shift_power(t, i, -1), []).append((float(t[i]), g.one, value))
        level = {a: {t: g.sum(found) for t, found in one.items()} for a, one in terms.items()}
    return level.get(ORIGIN, {})


def expansion(la: int, lb: int) -> Stage:
    """Hermite expansion of the density `gamma` [a, b] of a primitive `pair` (PAIR_FIELDS), and of its derivatives.

    Outputs: the coefficients H_t of the density, t <= la + lb; then for x = 0, 1, 2 the coefficients K_xt of its
    derivative with respect to (A - B)_x, t <= la + lb - 1. The exponential factor of the pair is not differentiated.
    """
    g = Graph()
    PA, PB = inputs(g, "pair", 3, uniform=False), [g.input("pair", 3 + i, False) for i in range(3)]
    h, share = g.input("pair", 6, False), g.input("pair", 7, False)  # share: alpha/p
    other = g.sub(share, g.one)  # -beta/p
    gamma = {
        (a, b): g.input("gamma", i * len(powers(lb)) + j, False)
        for i, a in enumerate(powers(la))
        for j, b in enumerate(powers(lb))
    }

    def transformed(values: Mapping[tuple[Powers, Powers], int], a_order: int, b_order: int) -> Hermites:
        rows: dict[Powers, dict[Powers, Hermites]] = {}
        for (a, b), value in values.items():
            rows.setdefault(a, {})[b] = {ORIGIN: value}
        parts = {a: multiply_out(g, PB, h, b_order, row) for a, row in rows.items()}
        return multiply_out(g, PA, h, a_order, parts)

    density = transformed(gamma, la, lb)
    outputs = [density[t] for t in hermite_tuples(la + lb)]
    for x in range(3):
        with_a = {(shift_power(a, x, -1), b): g.scale(a[x], v) for (a, b), v in gamma.items() if a[x]}
        with_b = {(a, shift_power(b, x, -1)): g.scale(b[x], v) for (a, b), v in gamma.items() if b[x]}
        by_a, by_b = transformed(with_a, la - 1, lb), transformed(with_b, la, lb - 1)
        outputs += [
            g.sum(((1.0, other, by_a.get(t, g.zero)), (1.0, share, by_b.get(t, g.zero))))
            for t in (hermite_tuples(la + lb - 1) if la + lb else ())
        ]
    return Stage(g, tuple(outputs))
