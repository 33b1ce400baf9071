"""Fitted J and K on the host with everything kept: for each function p the rows B_pqP of the functions q beside it.

Where blocks of functions (`fitting_blocks`) hold whole rectangles, here every pair of shells is there or not for
itself, by a bound of its self-repulsion: of octadecane in cc-pVDZ 111,000 rows instead of 148,000. The product with
M^-T and the first step of K, half of all the work, are proportional to their number. Rows of one function are enough
for matrix products to run at their full speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Basis
from cuanto.coulomb.fitting_blocks import THRESHOLD
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.pair_classes import primitive_sizes, taken
from cuanto.integrals.api import basis_kets, basis_pairs
from cuanto.integrals.attenuation import attenuated
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap
from cuanto.integrals.segments import Array, Indices

PAIR = 1e-11
"""Pairs of shells with a smaller sqrt (pq|pq) are left out: what that does to J and K is smaller still."""
SOLVED_AT_ONCE = 1024
"""Rows multiplied by M^-T at once: enough for the speed of a product, and they stay in the cache."""

PARTS = 8
"""Parts of the work for each thread: enough to balance it."""
SMALL_PART = 4
"""Orbitals are taken apart where parts have at most one of so many functions."""
WORTH_A_PART = 2e7
"""Operations: a millisecond, far more than a thread takes to begin."""


@dataclass(frozen=True)
class Partners:
    """Functions q of every function p, ascending; rows of p begin at `starts[p]`, the first `lower[p]` have q <= p."""

    q: tuple[Indices, ...]
    starts: Indices
    lower: Indices

    @property
    def rows(self) -> int:
        """Of all functions."""
        return int(self.starts[-1])

    def row_table(self) -> Indices:
        """[p, q] -> row; -1 for none."""
        n = len(self.q)
        table = np.full((n, n), -1, dtype=np.int64)
        for p, q in enumerate(self.q):
            table[p, q] = np.arange(self.starts[p], self.starts[p + 1])
        return table


def large_pairs(basis: Basis) -> Iterator[BraBatch]:
    """The pairs of shells that matter, with p n + q (p >= q) for rows."""
    for batch in basis_pairs(basis, RowMap(basis.nbf, packed=False), THRESHOLD):
        sizes = primitive_sizes(batch, None)  # of 1/r, which is larger than what is attenuated
        large = np.add.reduceat(sizes, batch.first[:-1]) > PAIR
        if large.any():
            yield batch if large.all() else taken(batch, np.flatnonzero(large))


def find_partners(basis: Basis) -> Partners:
    """The pairs of functions of these."""
    n = basis.nbf
    near: NDArray[np.bool_] = np.zeros(n * n, dtype=bool)
    for batch in large_pairs(basis):
        near[batch.rows.reshape(-1)] = True
    square = near.reshape(n, n)
    square |= square.T
    q = tuple(np.flatnonzero(row) for row in square)
    starts = np.concatenate([[0], np.cumsum([len(mine) for mine in q])])
    lower = np.array([int(np.searchsorted(mine, p, side="right")) for p, mine in enumerate(q)])
    return Partners(q, starts, lower)


def integral_rows(basis: Basis, table: Indices, aux: Basis, backend: Backend, omega: float | None) -> Any:
    """(pq|P) of p >= q in the rows of a `row_table`, on the backend; those of q > p are zero."""
    out = backend.zeros((int(table.max()) + 1, aux.nbf), np.float64)
    rows = table.reshape(-1)
    placed = (replace(attenuated(pair, omega), rows=rows[pair.rows]) for pair in large_pairs(basis))
    Engine(backend, out, row_stride=aux.nbf).run("coulomb", placed, basis_kets(aux, coulomb=True))
    return out


class FunctionRows:
    """B_pqP = (pq|P') M^-T of all pairs, with the builds of J and K.

    Work is done in parts of the functions or orbitals, each by one thread: with all threads on one part after the other
    they would wait for each other.
    """

    def __init__(
        self,
        basis: Basis,
        partners: Partners,
        aux: Basis,
        metric: FittingMetric,
        backend: Backend,
        omega: float | None = None,
    ) -> None:
        self.partners, self.n, self.naux, self.backend = partners, len(partners.q), aux.nbf, backend
        table = partners.row_table()
        self._rows: Array = integral_rows(basis, table, aux, backend, omega)
        self._solve(table, metric)

    def _solve(self, table: Indices, metric: FittingMetric) -> None:
        """Rows p >= q times M^-T, to the places of p, q and of q, p."""
        p, q = np.nonzero(np.tril(table >= 0))
        room = np.empty((min(SOLVED_AT_ONCE, len(p)), self.naux))
        for start in range(0, len(p), len(room)):
            some = slice(start, start + len(room))
            one, other = table[p[some], q[some]], table[q[some], p[some]]
            part = room[: len(one)]
            np.take(self._rows, one, axis=0, out=part, mode="clip")  # "clip" writes without a buffer
            metric.half_solve(part)
            self._rows[one] = part
            self._rows[other] = part

    def _parts(self, operations: float) -> list[range]:
        """The functions in parts of about as many rows each, so many as are worth it."""
        count = max(1, min(PARTS * threads_of(self.backend), int(operations / WORTH_A_PART)))
        rows = self.partners.starts
        ends = np.searchsorted(rows, rows[-1] * np.arange(1, count + 1) / count).tolist()
        return [range(a, b) for a, b in pairwise([0, *ends]) if b > a]

    def _do(self, calls: Sequence[Callable[[], None]]) -> None:
        """All calls, each with linear algebra on one thread."""
        with one_thread:
            if len(calls) > 1 and isinstance(self.backend, CpuBackend):
                self.backend.parallel(calls)
            else:
                for call in calls:
                    call()

    def _lower(self, functions: range) -> Iterator[tuple[int, Indices, Array]]:
        """Of functions p the functions q <= p, with their rows."""
        for p in functions:
            start, count = self.partners.starts[p], self.partners.lower[p]
            yield p, self.partners.q[p][:count], self._rows[start : start + count]

    def fit(self, D_pq: Array) -> Array:
        """x_P = sum_pq B_pqP D_pq"""
        D_pq = D_pq + D_pq.T
        D_pq[np.diag_indices(self.n)] *= 0.5
        parts = self._parts(2.0 * self._rows.size)
        x_nP = np.zeros((len(parts), self.naux))

        def some(functions: range, x_P: Array) -> None:
            for p, q, rows in self._lower(functions):
                x_P += D_pq[p, q] @ rows

        self._do([partial(some, functions, x_P) for functions, x_P in zip(parts, x_nP, strict=True)])
        total: Array = x_nP.sum(axis=0)
        return total

    def potential(self, x_P: Array) -> Array:
        """J_pq = sum_P B_pqP x_P"""
        J_pq = np.zeros((self.n, self.n))

        def some(functions: range) -> None:
            for p, q, rows in self._lower(functions):
                J_pq[p, q] = rows @ x_P

        self._do([partial(some, functions) for functions in self._parts(2.0 * self._rows.size)])
        return np.tril(J_pq) + np.tril(J_pq, -1).T

    def exchange(self, C_pi: Array, X_ipP: Array) -> Array:
        """K of some orbitals; X is work space."""
        operations = 2.0 * self._rows.size * len(X_ipP)
        parts = self._parts(operations)
        self._do([partial(self._transform, functions, C_pi, X_ipP) for functions in parts])
        count = min(len(parts), threads_of(self.backend))
        K_npq = np.zeros((count, self.n, self.n))
        self._do([partial(_add_squares, X_ipP[n::count], K_npq[n]) for n in range(count)])
        total: Array = K_npq.sum(axis=0)
        return total

    def exchange_of_parts(self, parts: Sequence[tuple[Indices, Array]], rooms: Sequence[Array]) -> Array:
        """K of orbitals C_qi that are zero but for functions q of one part each, as in superposed atomic densities.

        Only functions p beside a part see its orbitals. `rooms`: numbers for X of the largest part, for each thread.
        """
        count = min(len(parts), len(rooms))
        K_npq = np.zeros((count, self.n, self.n))
        self._do([partial(self._some_parts, parts[n::count], rooms[n], K_npq[n]) for n in range(count)])
        total: Array = K_npq.sum(axis=0)
        return total

    def beside(self, part: Indices) -> Indices:
        """Functions that have one of these for a partner."""
        return np.unique(np.concatenate([self.partners.q[q] for q in part]))

    def _some_parts(self, parts: Sequence[tuple[Indices, Array]], room: Array, K_pq: Array) -> None:
        place, starts = np.full(self.n, -1), self.partners.starts
        for part, C_qi in parts:
            near = self.beside(part)
            place[part] = np.arange(len(part))
            X_ipP = room[: C_qi.shape[1] * len(near) * self.naux].reshape(C_qi.shape[1], len(near), self.naux)
            for a, p in enumerate(near):
                places = place[self.partners.q[p]]
                mine = np.flatnonzero(places >= 0)
                first, last = int(starts[p] + mine[0]), int(starts[p] + mine[-1]) + 1
                together = last - first == len(mine)  # as the functions of an atom are
                rows = self._rows[first:last] if together else self._rows[starts[p] + mine]
                np.matmul(C_qi[places[mine]].T, rows, out=X_ipP[:, a])
            K_own = np.zeros((len(near), len(near)))
            _add_squares(X_ipP, K_own)
            K_pq[np.ix_(near, near)] += K_own
            place[part] = -1

    def _transform(self, functions: range, C_pi: Array, X_ipP: Array) -> None:
        """X_ipP = sum_q C_qi B_pqP"""
        starts = self.partners.starts
        for p in functions:
            np.matmul(C_pi[self.partners.q[p]].T, self._rows[starts[p] : starts[p + 1]], out=X_ipP[:, p])


def separate_parts(C_pi: Array) -> list[tuple[Indices, Array]]:
    """Parts of the functions with the orbitals C_qi of each, as in superposed atomic densities.

    Nothing where there are no parts, or where they are so large that taking them apart does not pay.
    """
    if not C_pi.size or SMALL_PART * np.count_nonzero(C_pi) > C_pi.size:
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    there = csr_array(C_pi != 0.0, dtype=np.int32)
    _, owner = connected_components(there @ there.T, directed=False)
    orbital_owner = owner[np.argmax(C_pi != 0.0, axis=0)]
    parts = []
    for number in np.unique(orbital_owner):
        part = np.flatnonzero(owner == number)
        parts.append((part, np.ascontiguousarray(C_pi[part][:, orbital_owner == number])))
    return parts if SMALL_PART * max(len(part) for part, _ in parts) <= len(C_pi) else []


def _add_squares(X_ipP: Array, K_pq: Array) -> None:
    """K_pq += sum_iP X_ipP X_iqP"""
    room = np.empty_like(K_pq)
    for X_pP in X_ipP:
        np.matmul(X_pP, X_pP.T, out=room)  # half of a product: NumPy sees that it is symmetric
        K_pq += room


def threads_of(backend: Backend) -> int:
    """How many work at once."""
    return backend.threads if isinstance(backend, CpuBackend) else 1
