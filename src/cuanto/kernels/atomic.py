"""Radial two-electron integrals of atoms: coefficient tables and kernel texts.

Two charge distributions r^a exp(-A r^2), r^b exp(-B r^2) repel each other with (closed sums of the incomplete beta
function of half-integer order; docs/develop/atom_notes.md)

    R^k = (A + B)^(-(a+b-1)/2) [ 1/B sum_(n=0)^((b-k)/2-1) c_n (A/B)^n + 1/A sum_(n=0)^((a-k)/2-1) c'_n (B/A)^n ],

where every coefficient is positive: Horner's rule loses no digits. For a class (two symmetries) the sums over the
orders k of exchange, with their angular factors, are done once in exact arithmetic, so that an integral is one such
pair of sums for any number of orders. Products of small components of kappa > 0 have up to three powers of r,
r^a (1 + A_1 r^2 + A_2 r^4); their sums are evaluated together, coefficients c_n = sum_ij A_i B_j c_n^ij (A + B)^(-i-j).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, factorial, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.kernels.abi import Arguments, parse_arguments
from cuanto.kernels.text import Source, assemble

FIELDS = 8
"""Numbers of a pair of functions p, q: exponents, second terms of the small functions, norms LL, SS, LS, SL."""
PLANES = {True: 8, False: 1}
"""Integrals kept per two pairs, by `relativistic`: LL, SS, J of LS and SL, exchange LS for pq, qp with rs, sr."""
COMPONENTS = {True: 4, False: 1}
"""Parts of a density as a vector over pairs, by `relativistic`: LL, SS, LS, SL (LS transposed)."""
GROUP = 8
"""Columns that are contiguous in the CPU's store: one vector or several."""
THREADS = tuning.size("cuda", "atomic.threads")
CONTRACT_THREADS = tuning.size("cuda", "atomic.contract_threads")
KINDS = ("J_LL", "J_SS", "J_LS", "J_SL", "K_LL", "K_SS", "K_LS")
"""Order of the tables of a class, as in templates/atomic_class.h."""


class Task(NamedTuple):
    """Rows `begin` to `end` of symmetry `i` against symmetry `j`, as kernels read it (`TASK_BEGIN` and so on)."""

    i: int
    j: int
    begin: int
    end: int
    row_place: int
    """Offset of the pairs of i among those of all symmetries."""
    column_place: int
    columns: int
    matrix: int
    """Offset of the matrix of the class, where every class has its own."""
    items: int
    """Items of the kernel that evaluates integrals."""
    first_item: int = 0
    shape: int = 0
    """Offsets of the class in `shape` and `table`."""
    table: int = 0


TABLES = parse_arguments(
    "const INDEX* tasks, const double* row_record, const double* column_record, const int* shape, const double* table"
)
WEIGHTS = parse_arguments("INDEX total, int symmetries, const double* weight, const double* D, double* P")
RANGE = parse_arguments("INDEX begin, INDEX end")
SUPERMATRICES = parse_arguments("INDEX total, double* LL, double* SS, double* LS, double* SL, double* K")
INTEGRALS: dict[str, tuple[str, Arguments]] = {
    "cpu": ("atomic_cpu.h", RANGE + TABLES + parse_arguments("double* X")),
    "cuda": ("atomic.cuh", parse_arguments("INDEX count") + TABLES + SUPERMATRICES),
}
MATRICES = parse_arguments(
    "const INDEX* first, const double* LL, const double* SS, const double* LS, const double* SL, const double* K"
)
CONTRACT: dict[str, tuple[str, Arguments]] = {
    "cpu": ("atomic_contract_cpu.h", RANGE + TABLES[:1] + WEIGHTS + parse_arguments("const double* X, double* sums")),
    "cuda": ("atomic_contract.cuh", WEIGHTS + MATRICES),
}
"""Templates and arguments by language."""


@dataclass(frozen=True)
class Laurent:
    """c^ij_n of both sums, highest n first: [n][i][j], `below` of them for A/B, then `above` for B/A."""

    below: int
    above: int
    values: NDArray[np.float64]


def _half_gamma(n: int) -> Fraction:
    """Gamma(n + 1/2) / sqrt(pi)."""
    return Fraction(factorial(2 * n), 4**n * factorial(n))


def _inner_sum(n_inner: int, m: int, n: int) -> Fraction:
    """Coefficient of A^n B^(m-n) (over B^(m+1)) in the part where the distribution with A is inside.

    m!/4 sum_i Gamma(N+i+1/2)/i! B^i (A+B)^(m-i) has its powers of A + B expanded, which keeps every term positive.
    """
    total = Fraction(0)
    for i in range(m - n + 1):
        total += _half_gamma(n_inner + i) / factorial(i) * comb(m - i, n)
    return Fraction(factorial(m), 4) * total


def laurent(a: int, b: int, factors: Mapping[int, Fraction], a_terms: int, b_terms: int) -> Laurent:
    """Table for r^(a+2i) against r^(b+2j), i < a_terms, j < b_terms, summed over k with these factors."""
    least = min(factors)
    below, above = (b - least) // 2 + b_terms - 1, (a - least) // 2 + a_terms - 1
    exact = [[[Fraction(0)] * b_terms for _ in range(a_terms)] for _ in range(below + above)]
    for i in range(a_terms):
        for j in range(b_terms):
            for k, factor in factors.items():
                inside, outside = (a + 2 * i + k) // 2, (b + 2 * j - k - 2) // 2
                for n in range(outside + 1):  # r1 < r2
                    exact[below - 1 - n][i][j] += factor * _inner_sum(inside, outside, n)
                inside, outside = (b + 2 * j + k) // 2, (a + 2 * i - k - 2) // 2
                for n in range(outside + 1):  # r2 < r1
                    exact[below + above - 1 - n][i][j] += factor * _inner_sum(inside, outside, n)
    values = np.array([[[float(x) for x in row] for row in matrix] for matrix in exact]) * sqrt(pi)
    return Laurent(below, above, values)


@dataclass(frozen=True)
class ClassTables:
    """All tables of a class: `shape` has (below, above, offset) of each of KINDS, then the powers of 1/(A + B)."""

    shape: NDArray[np.int32]
    values: NDArray[np.float64]


def _momenta(kappa: int) -> tuple[int, int, int]:
    """l, lbar, and 1 where the small functions have two terms."""
    return (kappa, kappa - 1, 1) if kappa > 0 else (-kappa - 1, -kappa, 0)


@cache
def class_tables(kappa: int, other: int, factors: tuple[tuple[int, Fraction], ...]) -> ClassTables:
    """Rows are pairs of `kappa`, columns pairs of `other`; `factors`: the orders k of exchange with their factors."""
    (l, s, row_two), (m, u, column_two) = _momenta(kappa), _momenta(other)
    direct, exchange = {0: Fraction(1)}, dict(factors)
    rows, columns, mixed = 1 + 2 * row_two, 1 + 2 * column_two, 1 + row_two + column_two
    tables = {
        "J_LL": laurent(2 * l + 2, 2 * m + 2, direct, 1, 1),
        "J_SS": laurent(2 * s + 2, 2 * u + 2, direct, rows, columns),
        "J_LS": laurent(2 * l + 2, 2 * u + 2, direct, 1, columns),
        "J_SL": laurent(2 * s + 2, 2 * m + 2, direct, rows, 1),
        "K_LL": laurent(l + m + 2, l + m + 2, exchange, 1, 1),
        "K_SS": laurent(s + u + 2, s + u + 2, exchange, mixed, mixed),
        "K_LS": laurent(l + m + 2, s + u + 2, exchange, 1, mixed),
    }
    shape, offset = [], 0
    for kind in KINDS:
        shape += [tables[kind].below, tables[kind].above, offset]
        offset += tables[kind].values.size
    # 1/(A+B)^(n + 1/2): n of LL, SS, J_LS, J_SL, K_LS
    shape += [l + m + 1, s + u + 1, l + u + 1, s + m + 1, (l + m + s + u) // 2 + 1]
    values = np.concatenate([tables[kind].values.reshape(-1) for kind in KINDS])
    return ClassTables(np.array(shape, dtype=np.int32), values)


def _source(
    language: str,
    entry: str,
    template_of: Mapping[str, tuple[str, Arguments]],
    relativistic: bool,
    threads: int,
    parts: Sequence[str] = (),
    **defines: object,
) -> Source:
    name, arguments = template_of[language]
    fields = {f"TASK_{field.upper()}": k for k, field in enumerate(Task._fields)}
    macros: dict[str, object] = {
        "RELATIVISTIC": int(relativistic),
        "FIELDS": FIELDS,
        "GROUP": GROUP,
        "PLANES": PLANES[relativistic],
        "COMPONENTS": COMPONENTS[relativistic],
        "TASK_FIELDS": len(fields),
        **fields,
        **defines,
        "THREADS": threads,
    }
    return assemble(entry, language, "double", arguments, macros, (*parts, name), threads=threads)


@cache
def integral_source(language: str, kappa: int, other: int, relativistic: bool = True) -> Source:
    """Kernel of integrals; it depends only on which of the two species have two-term small functions."""
    row, column = (int(k > 0 and relativistic) for k in (kappa, other))
    entry = f"atomic_{'integrals' if relativistic else 'large'}_{row}{column}"
    given = (language, entry, INTEGRALS, relativistic, THREADS, ("atomic_class.h",))
    return _source(*given, ROW_TWO=row, COLUMN_TWO=column)


@cache
def contract_source(language: str, relativistic: bool = True) -> Source:
    """Kernel of supermatrix times density; on the CPU both halves of a symmetric matrix in one pass."""
    entry = "atomic_contract" if relativistic else "atomic_contract_large"
    return _source(language, entry, CONTRACT, relativistic, CONTRACT_THREADS)
