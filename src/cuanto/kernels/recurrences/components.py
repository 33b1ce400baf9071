"""Cartesian components of a shell and their transformation inside kernels.

A kernel works with bare monomials x^a y^b z^c. The factor common to a shell (`shell_scale`) is folded into the
contraction coefficients of the records, so that s and p need no transformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.ir import Graph, inputs, linear

Powers = tuple[int, int, int]
ORIGIN: Powers = (0, 0, 0)


@cache
def powers(l: int) -> tuple[Powers, ...]:
    """Monomials of degree l in AO order."""
    return tuple(cartesian_powers(l))


def shift_power(a: Powers, axis: int, change: int = 1) -> Powers:
    """Change the power of a monomial along an axis."""
    return (a[0] + change * (axis == 0), a[1] + change * (axis == 1), a[2] + change * (axis == 2))


def degree(a: Powers) -> int:
    """Total power."""
    return a[0] + a[1] + a[2]


def cheapest_axis(a: Powers) -> int:
    """The axis to lower: the smallest non-zero power, where the (n - 1) terms of a recurrence vanish soonest."""
    return min((i for i in range(3) if a[i] > 0), key=lambda i: a[i])


@cache
def shell_scale(l: int, pure: bool) -> float:
    """The factor taken out of the transformation: it makes the first coefficient one."""
    row = shell_matrix(l, pure)[0]
    return float(row[np.flatnonzero(row)[0]])


@cache
def kernel_matrix(l: int, pure: bool) -> tuple[tuple[float, ...], ...]:
    """Rows: functions of the shell; columns: monomials; `shell_scale` taken out."""
    matrix = shell_matrix(l, pure) / shell_scale(l, pure)
    return tuple(tuple(float(x) for x in row) for row in matrix)


@cache
def polynomials(
    shells: tuple[tuple[int, bool], ...],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """The functions of shells (momentum, solid harmonics?) as sums of monomials: the first term of every function and
    the end of the last, powers [term, axis] and coefficients of all terms."""
    functions = [(powers(l), row) for l, pure in shells for row in kernel_matrix(l, pure)]
    rows = [[(a, c) for a, c in zip(monomials, row, strict=True) if c] for monomials, row in functions]
    start = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    power = np.array([a for row in rows for a, _ in row], dtype=np.int32)
    return start, power, np.array([c for row in rows for _, c in row])


def function_count(l: int, pure: bool) -> int:
    """2l + 1 or (l + 1)(l + 2)/2"""
    return 2 * l + 1 if pure or l < 2 else (l + 1) * (l + 2) // 2


def transform(graph: Graph, l: int, pure: bool, values: Sequence[int]) -> list[int]:
    """Monomials of one shell -> its functions."""
    if l < 2 or not pure:
        return list(values)
    return [linear(graph, row, values) for row in kernel_matrix(l, pure)]


def pair_functions(
    graph: Graph, l: tuple[int, int], pure: tuple[bool, bool], values: Sequence[Sequence[int]]
) -> list[int]:
    """values[a][b] over monomials -> functions of both shells, the second one fastest."""
    columns = [transform(graph, l[1], pure[1], row) for row in values]
    rows = [transform(graph, l[0], pure[0], column) for column in zip(*columns, strict=True)]
    return [rows[j][i] for i in range(len(rows[0])) for j in range(len(rows))]


def accumulated_functions(graph: Graph, l: tuple[int, int], pure: tuple[bool, bool]) -> list[int]:
    """Accumulated sums over monomials -> functions of both shells."""
    na, nb = len(powers(l[0])), len(powers(l[1]))
    acc = inputs(graph, "acc", na * nb, uniform=False)
    return pair_functions(graph, l, pure, [acc[a * nb : (a + 1) * nb] for a in range(na)])
