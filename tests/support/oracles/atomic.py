"""Oracle of the atomic integrals: plain Python, written from the formulas.

Functions are lists of (coefficient, power of r) with one exponent; every integral is a sum over monomials of
W(n, m; alpha, beta), the part of the repulsion in which the first distribution is inside (docs/develop/atom_notes.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import factorial, gamma, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Terms = list[tuple[float, int]]
Factors = Mapping[int, Fraction]


def large(kappa: int, z: float) -> Terms:
    """Normalised r^(l+1) exp(-z r^2)."""
    l = kappa if kappa > 0 else -kappa - 1
    return [(sqrt(2.0 * (2.0 * z) ** (l + 1.5) / gamma(l + 1.5)), l + 1)]


def small(kappa: int, z: float) -> Terms:
    """Normalised (d/dr + kappa/r) of the large function."""
    l = kappa if kappa > 0 else -kappa - 1
    [(norm, _)] = large(kappa, z)
    norm /= sqrt((2 * l + 3) * z)
    terms = [(norm * (l + 1 + kappa), l), (-2.0 * z * norm, l + 2)]
    return [(c, power) for c, power in terms if c != 0.0]


def inside(n: int, m: int, alpha: float, beta: float) -> float:
    """W(n, m; alpha, beta): all terms are positive."""
    total = sum(gamma(n + i + 0.5) / factorial(i) * beta**i / (alpha + beta) ** (n + i + 0.5) for i in range(m + 1))
    return float(factorial(m) / (4.0 * beta ** (m + 1)) * total)


def monomials(k: int, a: int, b: int, alpha: float, beta: float) -> float:
    """R^k of r^a exp(-alpha r^2) and r^b exp(-beta r^2)."""
    one = inside((a + k) // 2, (b - k - 2) // 2, alpha, beta)
    return one + inside((b + k) // 2, (a - k - 2) // 2, beta, alpha)


def radial(k: int, f: Terms, g: Terms, alpha: float, h: Terms, i: Terms, beta: float) -> float:
    """R^k of the products f g and h i."""
    total = 0.0
    for (cf, pf), (cg, pg), (ch, ph), (ci, pi) in product(f, g, h, i):
        total += cf * cg * ch * ci * monomials(k, pf + pg, ph + pi, alpha, beta)
    return total


def supermatrices(
    kappa: int, z_p: Sequence[float], other: int, z_r: Sequence[float], factors: Factors, sizes: bool = False
) -> dict[str, Array]:
    """J of LL, SS, LS, SL and K of LL, SS, LS as [p, q, r, s] (K with its angular factors).

    `sizes`: sums of the absolute values of all terms instead.
    """

    def functions(k: int, z_p: Sequence[float]) -> dict[str, list[Terms]]:
        result = {"L": [large(k, z) for z in z_p], "S": [small(k, z) for z in z_p]}
        return {X: [[(abs(c) if sizes else c, n) for c, n in f] for f in result[X]] for X in "LS"}

    bra, ket = functions(kappa, z_p), functions(other, z_r)
    n, m = len(z_p), len(z_r)
    found = {f"J_{X}{Y}": np.zeros((n, n, m, m)) for X in "LS" for Y in "LS"}
    found |= {f"K_{X}": np.zeros((n, n, m, m)) for X in ("LL", "SS", "LS")}
    for p, q, r, s in product(range(n), range(n), range(m), range(m)):
        for X, Y in product("LS", "LS"):
            found[f"J_{X}{Y}"][p, q, r, s] = radial(
                0, bra[X][p], bra[X][q], z_p[p] + z_p[q], ket[Y][r], ket[Y][s], z_r[r] + z_r[s]
            )
        for X, Y in (("L", "L"), ("S", "S"), ("L", "S")):
            found[f"K_{X}{Y}"][p, q, r, s] = sum(
                float(factor) * radial(k, bra[X][p], ket[X][r], z_p[p] + z_r[r], bra[Y][q], ket[Y][s], z_p[q] + z_r[s])
                for k, factor in factors.items()
            )
    return found


def potential(found: Mapping[str, Array], D: Array) -> Array:
    """Contribution of a density (2m x 2m) of the second symmetry to P (2n x 2n) of the first."""
    n, m = found["J_LL"].shape[0], found["J_LL"].shape[2]
    LL, SS, LS = D[:m, :m], D[m:, m:], D[:m, m:]
    P = np.zeros((2 * n, 2 * n))
    P[:n, :n] = np.einsum("pqrs,rs->pq", found["J_LL"] - found["K_LL"], LL) + np.einsum(
        "pqrs,rs->pq", found["J_LS"], SS
    )
    P[n:, n:] = np.einsum("pqrs,rs->pq", found["J_SS"] - found["K_SS"], SS) + np.einsum(
        "pqrs,rs->pq", found["J_SL"], LL
    )
    P[:n, n:] = -np.einsum("pqrs,rs->pq", found["K_LS"], LS)
    P[n:, :n] = P[:n, n:].T
    return P
