"""(ab|cd) of high angular momenta on the CPU: McMurchie-Davidson as products of small matrices, in one general kernel.

(ab|cd) = sum_tu E^ab_t R_(t+u) (-1)^u E^cd_u, where E expands the functions of a pair, solid harmonics included, in
Hermite Gaussians. The kernel (`templates/md_matrices_cpu.h`) multiplies panels of `PANEL` rows of E with R. A row has
only some Hermite Gaussians, fewer still if both shells have the same coordinate along an axis (their parity is then
fixed): rows with similar ones share a panel, and a panel lists those that any of its rows has. The tables here depend
on angular momenta only; E of every primitive pair is computed from them by kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.recurrences.components import kernel_matrix, powers
from cuanto.kernels.spec import Shells

PANEL = 5
"""Rows of a panel: the accumulators of 5 x 5 products fit into the 32 registers of AVX-512, and 5, 10, 15, 25, 35 pairs
of functions need no padding."""
PARITIES = 8
"""Sets of axes, as bits, along which both shells of a pair have the same coordinate."""

Tuples = NDArray[np.int64]


@cache
def hermite_table(order: int) -> Tuples:
    """All (t, u, v) by degree, [Hermite Gaussian, axis]."""
    return np.array([t for k in range(order + 1) for t in powers(k)], dtype=np.int64)


@dataclass(frozen=True)
class Plan:
    """Panels of the functions of a pair, and how their coefficients E are computed.

    `rows` [panel, PANEL]: numbers of the functions, -1 for padding; `start` and `hermites`: the Hermite Gaussians of
    panel p are hermites[start[p]:start[p + 1]]. The coefficients are stored as [panel, Hermite Gaussian, row]; number e
    of them is the sum of weights[k] Ex[..] Ey[..] Ez[..] for k from first[e] to first[e + 1], with factors[k] as
    places in the one-dimensional expansions [axis, i, j, t].
    """

    rows: NDArray[np.int32]
    start: NDArray[np.int32]
    hermites: NDArray[np.int32]
    first: NDArray[np.int32]
    factors: NDArray[np.int32]
    weights: NDArray[np.float64]

    @property
    def coefficients(self) -> int:
        """Coefficients E of a primitive pair, with padding."""
        return len(self.hermites) * PANEL


@lru_cache(maxsize=256)
def plan_of(side: Shells, parity: int, ket: bool) -> Plan:
    """The plan of a pair of shells; a `ket` has the factors (-1)^(t + u + v)."""
    H = hermite_table(sum(side.l))
    terms = [np.concatenate(columns) for columns in zip(*_terms(side, parity), strict=True)]
    function, hermite, factors, weight = terms[0], terms[1], np.stack(terms[2:5], axis=-1), terms[5]
    used = np.zeros((int(function.max()) + 1, len(H)), dtype=bool)
    used[function, hermite] = True
    rows = _panels(used)
    lists = [np.flatnonzero(used[own[own >= 0]].any(axis=0)) for own in rows]
    start = np.cumsum([0, *map(len, lists)])
    place = np.zeros(used.shape, dtype=np.int64)
    for p, own in enumerate(rows):
        members = own[own >= 0]
        place[np.ix_(members, lists[p])] = (
            PANEL * (start[p] + np.arange(len(lists[p]))) + np.arange(len(members))[:, None]
        )
    target = place[function, hermite]
    order = np.argsort(target, kind="stable")
    if ket:
        weight = weight * (-1.0) ** H[hermite].sum(axis=1)
    first = np.searchsorted(target[order], np.arange(PANEL * start[-1] + 1))
    hermites = np.concatenate(lists)
    integers = (np.ascontiguousarray(array, dtype=np.int32) for array in (rows, start, hermites, first, factors[order]))
    values: tuple[Any, ...] = (*integers, np.ascontiguousarray(weight[order]))
    return Plan(*values)


def _terms(side: Shells, parity: int) -> Iterator[tuple[NDArray[np.int64 | np.float64], ...]]:
    """Function, Hermite Gaussian, three places in the expansions along the axes, and weight, of all terms of E."""
    (la, lb), (pure_a, pure_b) = side.l, side.pure
    Ma, Mb, H = np.array(kernel_matrix(la, pure_a)), np.array(kernel_matrix(lb, pure_b)), hermite_table(la + lb)
    powers_a, powers_b = np.array(powers(la)), np.array(powers(lb))
    j, b = np.nonzero(Mb)
    n = la + lb + 1
    same = np.array([parity >> x & 1 for x in range(3)], dtype=bool)
    for i, row in enumerate(Ma):
        for a in np.flatnonzero(row):
            total = powers_a[a] + powers_b[b]
            left = total[:, None, :] - H
            k, hermite = np.nonzero(((left >= 0) & ~(same & (left % 2 == 1))).all(axis=2))
            places = (powers_a[a] * (lb + 1) + powers_b[b][k]) * n + H[hermite]
            places += np.arange(3) * (la + 1) * (lb + 1) * n
            yield i * len(Mb) + j[k], hermite, *places.T, row[a] * Mb[j, b][k]


def _panels(used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Group rows so that those of a panel have many Hermite Gaussians in common: the row that adds fewest is next."""
    left = np.ones(len(used), dtype=bool)
    size = used.sum(axis=1)
    panels = []
    while left.any():
        own = [int(np.where(left, size, -1).argmax())]
        union = used[own[0]].copy()
        left[own[0]] = False
        while len(own) < PANEL and left.any():
            more = (used & ~union).sum(axis=1) * len(used[0]) - size
            best = int(np.where(left, more, np.iinfo(np.int64).max).argmin())
            own.append(best)
            union |= used[best]
            left[best] = False
        panels.append(own + [-1] * (PANEL - len(own)))
    return np.array(panels, dtype=np.int64)


def cube_places(order: int, total: int) -> NDArray[np.int32]:
    """Places of Hermite Gaussians in a cube of R_tuv up to the order `total`: that of a sum is the sum of places."""
    side = total + 1
    places: NDArray[np.int32] = (hermite_table(order) @ np.array([side * side, side, 1])).astype(np.int32)
    return places
