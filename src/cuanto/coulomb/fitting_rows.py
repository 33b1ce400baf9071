"""All of B_pqP in memory: for each function p the rows of the functions q beside it.

Where blocks of functions (`fitting_blocks`) hold whole rectangles, here every pair of shells is there or not for
itself, by a bound of its self-repulsion: of octadecane in cc-pVDZ 111,000 rows instead of 148,000, of taxol in
def2-TZVP 106 instead of 222 GB. The product with M^-T and the first step of K, half of all the work, are proportional
to their number. On a CPU rows of one function are enough for matrix products to run at their full speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Launch
from cuanto.backends.linalg import add_squares
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import FittedTensor, ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting_layout import THRESHOLD
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.pair_classes import primitive_sizes, taken
from cuanto.integrals.api import basis_pairs
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.pairs import RowMap
from cuanto.integrals.segments import Array, Indices
from cuanto.kernels.products import rows_kernel

PAIR = 1e-11
"""Pairs of shells with a smaller sqrt (pq|pq) are left out: what that does to J and K is smaller still."""
SMALL_PART = 4
"""Orbitals are taken apart where parts have at most one of so many functions."""
Part = tuple[Indices, Indices]
"""Functions, and the orbitals that are zero elsewhere."""


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


def _integral_rows(integrals: ThreeCentre, table: Indices) -> Any:
    """(pq|P) of p >= q in the rows of a `row_table`, on the backend; those of q > p are zero."""
    out = integrals.backend.zeros((int(table.max()) + 1, integrals.aux.nbf), np.float64)
    rows = table.reshape(-1)
    pairs = integrals.attenuate(large_pairs(integrals.basis))
    integrals.fill(out, (replace(pair, rows=rows[pair.rows]) for pair in pairs), integrals.kets())
    return out


class RowTensor(FittedTensor):
    """B_pqP of all pairs that matter, P contiguous."""

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        put = integrals.backend.to_device
        self.integrals, self.columns, self.order = integrals, plan.columns, np.arange(integrals.basis.nbf)
        self.n, self.naux, self.backend = integrals.basis.nbf, integrals.aux.nbf, integrals.backend
        self.partners = partners
        table = partners.row_table()
        self._rows: Any = _integral_rows(integrals, table)
        p, q = np.nonzero(np.tril(table >= 0))
        self._row, self._pair = put(table[p, q]), put(p * self.n + q)
        self._weight = put(np.where(p == q, 0.5, 1.0))
        metric.half_solve_to(self._rows, self._row, put(table[q, p]))
        self._lower = np.stack([partners.starts[:-1], partners.starts[:-1] + partners.lower], axis=1)
        self._X = Workspace(self.backend)

    def fit(self, D_spq: Any) -> Any:
        """From the rows with q <= p."""
        return self.backend.xp.stack([self._fit(D_pq) for D_pq in D_spq])

    def _fit(self, D_pq: Any) -> Any:
        weights = self.backend.xp.zeros(self.partners.rows)
        weights[self._row] = self._weight * (D_pq + D_pq.T).take(self._pair)
        return self.backend.linalg.combine_rows(self._rows, weights, self._lower)

    def potential(self, x_sP: Any) -> Any:
        """From the rows with q <= p."""
        xp = self.backend.xp
        J_spq = xp.zeros((len(x_sP), self.n, self.n))
        for J_pq, x_P in zip(J_spq, x_sP, strict=True):
            J_pq.reshape(-1)[self._pair] = self.backend.linalg.rows_times(self._rows, x_P, self._lower)[self._row]
        return J_spq + xp.tril(J_spq, -1).transpose(0, 2, 1)


class GroupedRows(RowTensor):
    """Products of the array library; functions with the same partners, such as those of a shell, in one call."""

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        super().__init__(integrals, metric, plan, partners)
        self._q = self.backend.to_device(np.concatenate(partners.q))
        edges = [p for p in range(1, self.n) if not np.array_equal(partners.q[p - 1], partners.q[p])]
        self._alike = list(pairwise([0, *edges, self.n]))

    def half_transformed(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP with p outermost in memory."""
        for some in portions(C_pi.shape[1], self.columns):
            C_iq = self.backend.xp.ascontiguousarray(C_pi[:, some].T)
            X_piP = self._X(self.n, len(C_iq), self.naux)
            for first, last in self._alike:
                begin, end = int(self.partners.starts[first]), int(self.partners.starts[last])
                B_pqP = self._rows[begin:end].reshape(last - first, -1, self.naux)
                C_iq_near = C_iq.take(self._q[begin : begin + B_pqP.shape[1]], axis=1)
                if last - first == 1:  # the library's batches cost more
                    self.backend.xp.matmul(C_iq_near, B_pqP[0], out=X_piP[first])
                else:
                    self.backend.xp.matmul(C_iq_near, B_pqP, out=X_piP[first:last])
            yield X_piP.transpose(1, 0, 2)


class NativeRows(RowTensor):
    """Native launches: a function with its rows is the item of a thread.

    Orbitals of parts of the molecule, such as those of its atoms, are transformed with the rows near each part only.
    """

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        super().__init__(integrals, metric, plan, partners)
        self._q = np.concatenate(partners.q).astype(np.int32)
        self._owner = np.repeat(np.arange(self.n), np.diff(partners.starts))

    def half_transformed(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP, contiguous."""
        starts, out = self.partners.starts, np.arange(self.n) * self.naux
        for some in portions(C_pi.shape[1], self.columns):
            C_qi = C_pi[:, some]
            X_ipP = self._X(C_qi.shape[1], self.n, self.naux)
            self._transform(C_qi, X_ipP, _items(starts[:-1], starts[1:], 0, C_qi.shape[1], out, self.n * self.naux))
            yield X_ipP

    def exchange(self, C_pi: Any) -> Any:
        """By parts where there are any."""
        parts = separate_parts(C_pi)
        return self._exchange_of_parts(C_pi, parts) if parts else super().exchange(C_pi)

    def _exchange_of_parts(self, C_pi: Any, parts: Sequence[Part]) -> Any:
        """Several parts at once, as memory allows."""
        K_pq, size = np.zeros((self.n, self.n)), 0
        taken: list[Part] = []
        for part, columns in parts:
            for some in portions(len(columns), self.columns):
                near = np.unique(np.concatenate([self.partners.q[q] for q in part]))
                more = (some.stop - some.start) * len(near)
                if taken and size + more > self.columns * self.n:
                    K_pq += self._exchange_at_once(C_pi, taken)
                    size, taken = 0, []
                taken.append((part, columns[some]))
                size += more
        return K_pq + self._exchange_at_once(C_pi, taken)

    def _exchange_at_once(self, C_pi: Any, parts: Sequence[Part]) -> Any:
        """K of orbitals that are zero but for the functions of one part each: only functions beside it see them."""
        naux, inside = self.naux, np.zeros(self.n, dtype=bool)
        items, stacks, places = [], [], []
        size = place = column = 0
        for part, columns in parts:
            inside[part] = True
            at = np.flatnonzero(inside[self._q])
            inside[part] = False
            near, first = np.unique(self._owner[at], return_index=True)
            last = at[np.append(first[1:], len(at)) - 1] + 1  # what lies between has coefficients of zero
            count, out = len(columns), size + np.arange(len(near)) * naux
            items.append(_items(at[first], last, column, count, out, len(near) * naux))
            stacks.append((size, len(near), count, place))
            places.append(near)
            size, place, column = size + count * len(near) * naux, place + len(near), column + count
        X = self._X(size)
        C_qi = C_pi[:, np.concatenate([columns for _, columns in parts])]
        self._transform(C_qi, X, np.concatenate(items, axis=1))
        return add_squares(self.backend, X, naux, stacks, np.concatenate(places).astype(np.int32), self.n)

    def _transform(self, C_qi: Any, X: Any, items: Indices) -> None:
        """X_iP of `_items`."""
        C_qi, (first, last, column, columns, out, step) = np.ascontiguousarray(C_qi), items
        values = {
            "rows": self._rows,
            "naux": self.naux,
            "item_row": first,
            "item_list": np.stack([first, last], axis=1),
            "list": self._q,
            "item_column": column.astype(np.int32),
            "item_columns": columns.astype(np.int32),
            "item_out": out,
            "item_step": step,
            "C": C_qi,
            "columns": C_qi.shape[1],
            "X": X,
        }
        scratch = 8 * int(columns.max()) * max(len(q) for q in self.partners.q)
        program = self.backend.compile(rows_kernel("transform"))
        self.backend.launch_all([Launch(program, len(first), values, scratch, grain=1)])


def _items(*fields: Indices | int) -> Indices:
    """Items of a transformation: first and last row of B, first column of C and their number, where X_iP is written to,
    and the step from i to i + 1."""
    return np.stack(np.broadcast_arrays(*fields))


def separate_parts(C_pi: Array) -> list[Part]:
    """Parts of the functions with the columns of C of each, as in superposed atomic densities.

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
        parts.append((part, np.flatnonzero(orbital_owner == number)))
    return parts if SMALL_PART * max(len(part) for part, _ in parts) <= len(C_pi) else []
