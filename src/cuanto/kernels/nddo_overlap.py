"""Overlap of Slater functions in elliptic coordinates as straight-line code.

R. S. Mulliken, C. A. Rieke, D. Orloff and H. Orloff, J. Chem. Phys. 17, 1248 (1949), doi:10.1063/1.1747150:
S = N (R/2)^(n+m+1) sum_ij c_ij A_i(p) B_j(b), p = R (za + zb)/2, b = R (za - zb)/2. A and B are scaled by exp(p) and
exp(-|b|), to avoid overflow: the common factor is exp(-R min(za, zb)).
"""

from __future__ import annotations

from functools import cache
from math import factorial, sqrt

Polynomial = dict[tuple[int, int], int]
"""Coefficients by powers of xi and eta."""
Kind = tuple[int, ...]
"""Principal quantum numbers of the shells s, p and d of an atom."""

SERIES_LIMIT, SERIES = 3.0, 28
"""|b| up to which B is computed from its power series, and the highest power in it."""
MOPAC_POWERS = ((7, 0.5), (8, 1.0), (13, 2.0), (16, 1e9))
"""(power, limit): MOPAC 23 leaves out this and higher powers of b unless |b| exceeds the limit."""

LIGHT = ((1,), (2, 2), (3, 3))
"""Kinds of atoms from H to Cl for which MOPAC has a routine of its own, without He, Ne and d functions."""

NORMS = {(0, 0): 0.5, (1, 0): 1.5, (1, 1): 0.75, (2, 0): 0.625, (2, 1): 3.75, (2, 2): 0.9375}
"""Squared normalisation factors of the functions Theta_lm, by (l, m)."""


def _multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    out: Polynomial = {}
    for (i, j), c in one.items():
        for (k, l), d in other.items():
            out[i + k, j + l] = out.get((i + k, j + l), 0) + c * d
    return {powers: c for powers, c in out.items() if c}


def _power(one: Polynomial, exponent: int) -> Polynomial:
    out: Polynomial = {(0, 0): 1}
    for _ in range(exponent):
        out = _multiply(out, one)
    return out


def _solid(l: int, m: int, z: Polynomial, perpendicular: Polynomial) -> Polynomial:
    """r^l Theta_lm / (norm rho^m)."""
    if l - m < 2:
        return _power(z, l - m)
    out = {powers: 2 * c for powers, c in _power(z, 2).items()}  # 3 z^2 - r^2 = 2 z^2 - rho^2
    for powers, c in perpendicular.items():
        out[powers] = out.get(powers, 0) - c
    return out


@cache
def polynomial(n: int, l: int, k: int, q: int, m: int) -> dict[tuple[int, int], float]:
    """c_ij of the overlap of (n, l, m) with (k, q, m), including the normalisation of the angular functions."""
    perpendicular = _multiply({(2, 0): 1, (0, 0): -1}, {(0, 0): 1, (0, 2): -1})
    radial = _multiply(_power({(1, 0): 1, (0, 1): 1}, n - l), _power({(1, 0): 1, (0, 1): -1}, k - q))
    z_a, z_b = {(0, 0): 1, (1, 1): 1}, {(0, 0): -1, (1, 1): 1}
    angular = _multiply(_solid(l, m, z_a, perpendicular), _solid(q, m, z_b, perpendicular))
    norm = sqrt(NORMS[l, m] * NORMS[q, m])
    whole = _multiply(_multiply(radial, angular), _power(perpendicular, m))
    return {powers: c * norm for powers, c in whole.items()}


def mopac_limit(kind_a: Kind, kind_b: Kind) -> float:
    """|b| up to which MOPAC uses the series for B; its two routines have different limits."""
    if not {kind_a, kind_b} <= set(LIGHT):
        return SERIES_LIMIT
    return 1.0 if kind_a == kind_b == LIGHT[-1] else 0.5


@cache
def overlap_text(kind_a: Kind, kind_b: Kind) -> str:
    """Text of local_overlap: s[i * NB + k] in the local frame, whose z axis points from A to B for both atoms."""
    orbitals, others = len(kind_a) ** 2, len(kind_b) ** 2
    lines = ["template <class V> FN void local_overlap(V R, const VEC* a, const VEC* b, bool mopac, V* s) {"]
    lines += [f"    UNROLL for (int i = 0; i < {orbitals * others}; ++i) s[i] = number<V>(0);"]
    lines += ["    const V half = REAL(0.5) * R;"]
    for power in sorted({n + k for n in kind_a for k in kind_b}):
        lines += [f"    V scale_{power} = half;"]
        lines += [f"    UNROLL for (int i = 0; i < {power}; ++i) scale_{power} = scale_{power} * half;"]
    for l, n in enumerate(kind_a):
        for q, k in enumerate(kind_b):
            count = n + k + 1
            lines += ["    {", f"        V A[{count}], B[{count}];"]
            lines += [f"        const VEC za = a[ZETA + {l}], zb = b[ZETA + {q}];"]
            lines += [
                f"        auxiliary_a<{count}>(half * (za + zb), A);",
                f"        auxiliary_b<{count}>(half, za - zb, mopac, B);",
            ]
            norms = f"a[NORM + {l}] * b[NORM + {q}] * scale_{n + k}"
            lines += [f"        const V front = {norms} * exponential(R * -smaller(za, zb));"]
            for m in range(min(l, q) + 1):
                lines += _sum(polynomial(n, l, k, q, m))
                lines += [f"        s[{i * others + j}] = sum;" for i, j in _orbital_pairs(l, q, m)]
                lines += ["        }"]
            lines += ["    }"]
    return "\n".join([*lines, "}\n"])


def _sum(c_ij: dict[tuple[int, int], float]) -> list[str]:
    """sum_i A_i sum_j c_ij B_j"""
    rows = []
    for i in sorted({i for i, _ in c_ij}):
        inner = " + ".join(f"REAL({c!r}) * B[{j}]" for (k, j), c in sorted(c_ij.items()) if k == i)
        rows.append(f"A[{i}] * ({inner})")
    return ["        {", f"        const V sum = front * ({' + '.join(rows)});"]


def _orbital_pairs(l: int, q: int, m: int) -> list[tuple[int, int]]:
    """Pairs of orbitals of both shells with this m; order of orbitals: s; x, y, z; x2-y2, xz, z2, yz, xy."""
    by_l: list[dict[int, tuple[int, ...]]] = [{0: (0,)}, {0: (3,), 1: (1, 2)}, {0: (6,), 1: (5, 7), 2: (4, 8)}]
    return list(zip(by_l[l][m], by_l[q][m], strict=True))


@cache
def series_text() -> str:
    """Text of series_b: int_-1^1 x^k exp(-b x) dx by powers of b, whose terms have one sign; `mopac`: truncated."""
    lines = [
        "template <int COUNT, class V> FN void series_b(V b, bool mopac, V* B) {",
        "    UNROLL for (int k = 0; k < COUNT; ++k) B[k] = number<V>(0);",
        "    V power = number<V>(2);",
    ]
    for j in range(SERIES + 1):
        if j:
            lines.append(f"    power = power * b * REAL({-1.0 / j!r});")
        above = max((x for first, x in MOPAC_POWERS if j >= first), default=0.0)
        if above:
            lines.append(f"    if (mopac) power = keep_where(value_of(b) > REAL({above!r}), power);")
        lines.append(
            f"    UNROLL for (int k = {j % 2}; k < COUNT; k += 2) B[k] = B[k] + power * (REAL(1) / REAL(k + {j + 1}));"
        )
    return "\n".join([*lines, "}\n"])


def radial_norm(n: int, zeta: float) -> float:
    """Normalisation factor of r^(n-1) exp(-zeta r)."""
    return float((2.0 * zeta) ** (n + 0.5) / sqrt(factorial(2 * n)))
