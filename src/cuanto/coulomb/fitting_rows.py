"""All of B_pqP in memory: for each function p the rows of its significant partners q.

Blocks of functions (`fitting_blocks`) hold whole rectangles; here every pair of shells is selected individually, by a
bound on its self-repulsion: 111,000 rows instead of 148,000 for octadecane in cc-pVDZ, 106 instead of 222 GB for taxol
in def2-TZVP. The product with M^-T and the first step of K, half of all the work, are proportional to the number of
rows.
On a CPU the rows of one function suffice for matrix products at full speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto.arrays import Array, Flags, Ints, range_starts
from cuanto.backends.base import Launch
from cuanto.backends.host_linalg import add_squares
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import FittedTensor, StoredRows, ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting_layout import THRESHOLD
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.pair_classes import primitive_sizes, select_bras
from cuanto.integrals.api import basis_pairs
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.pairs import RowMap
from cuanto.kernels.products import rows_kernel

PAIR_BOUND = 1e-11
"""Pairs of shells with a smaller sqrt (pq|pq) are neglected."""
MIN_PARTS = 4
"""Orbitals are split into parts if none of the parts has more than 1 / MIN_PARTS of the functions."""
Part = tuple[Ints, Ints]
"""Functions, and the orbitals that vanish elsewhere."""


@dataclass(frozen=True)
class Partners:
    """Partners q of every function p, ascending; rows of p begin at `starts[p]`, the first `lower[p]` have q <= p."""

    q: tuple[Ints, ...]
    starts: Ints
    lower: Ints

    @property
    def rows(self) -> int:
        """Rows of all functions."""
        return int(self.starts[-1])

    @cached_property
    def alike(self) -> list[tuple[int, int]]:
        """Ranges of functions with the same partners, such as those of a shell."""
        n = len(self.q)
        return list(pairwise([0, *(p for p in range(1, n) if not np.array_equal(self.q[p - 1], self.q[p])), n]))

    def row_table(self) -> Ints:
        """[p, q] -> row; -1 for none."""
        n = len(self.q)
        table = np.full((n, n), -1, dtype=np.int64)
        for p, q in enumerate(self.q):
            table[p, q] = np.arange(self.starts[p], self.starts[p + 1])
        return table


def large_pairs(basis: Basis) -> Iterator[BraBatch]:
    """The significant pairs of shells, with rows p n + q (p >= q)."""
    for batch in basis_pairs(basis, RowMap(basis.nbf, packed=False), THRESHOLD):
        sizes = primitive_sizes(batch, None)  # bounds for 1/r, which are larger than those for the attenuated operator
        large = np.add.reduceat(sizes, batch.first[:-1]) > PAIR_BOUND
        if large.any():
            yield batch if large.all() else select_bras(batch, np.flatnonzero(large))


def find_partners(basis: Basis) -> Partners:
    """The functions of the significant pairs."""
    n = basis.nbf
    near: Flags = np.zeros(n * n, dtype=bool)
    for batch in large_pairs(basis):
        near[batch.rows.reshape(-1)] = True
    square = near.reshape(n, n)
    square |= square.T
    q = tuple(np.flatnonzero(row) for row in square)
    starts = range_starts([len(mine) for mine in q])
    lower = np.array([int(np.searchsorted(mine, p, side="right")) for p, mine in enumerate(q)])
    return Partners(q, starts, lower)


class RowTensor(FittedTensor):
    """B_pqP of all significant pairs, P contiguous."""

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        self.integrals, self.metric, self.columns = integrals, metric, plan.columns
        self.n, self.naux, self.backend = integrals.basis.nbf, integrals.aux.nbf, integrals.backend
        self.partners, self.order = partners, np.arange(self.n)
        lower = np.stack([partners.starts[:-1], partners.starts[:-1] + partners.lower], axis=1)
        rows = StoredRows(integrals, partners.row_table(), large_pairs(integrals.basis), lower)
        rows.solve(metric)
        self.sums, self._rows, self._X = rows, rows.rows, Workspace(self.backend)


class GroupedRows(RowTensor):
    """Products by the array library; functions with the same partners, such as those of a shell, in one call."""

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        super().__init__(integrals, metric, plan, partners)
        self._q = self.backend.to_device(np.concatenate(partners.q))

    def half_transform(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP with p outermost in memory."""
        for some in portions(C_pi.shape[1], self.columns):
            C_iq = self.backend.xp.ascontiguousarray(C_pi[:, some].T)
            X_piP = self._X(self.n, len(C_iq), self.naux)
            for first, last in self.partners.alike:
                begin, end = int(self.partners.starts[first]), int(self.partners.starts[last])
                B_pqP = self._rows[begin:end].reshape(last - first, -1, self.naux)
                C_iq_near = C_iq.take(self._q[begin : begin + B_pqP.shape[1]], axis=1)
                if last - first == 1:  # faster than a batch of one
                    self.backend.xp.matmul(C_iq_near, B_pqP[0], out=X_piP[first])
                else:
                    self.backend.xp.matmul(C_iq_near, B_pqP, out=X_piP[first:last])
            yield X_piP.transpose(1, 0, 2)


class NativeRows(RowTensor):
    """Products by native launches; an item is a function with its rows.

    Orbitals of parts of the molecule, such as its atoms, are transformed with the rows near each part only.
    """

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, partners: Partners) -> None:
        super().__init__(integrals, metric, plan, partners)
        self._q = np.concatenate(partners.q).astype(np.int32)
        self._owner = np.repeat(np.arange(self.n), np.diff(partners.starts))

    def half_transform(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP, contiguous."""
        starts, out = self.partners.starts, np.arange(self.n) * self.naux
        for some in portions(C_pi.shape[1], self.columns):
            C_qi = C_pi[:, some]
            X_ipP = self._X(C_qi.shape[1], self.n, self.naux)
            self._transform(C_qi, X_ipP, _items(starts[:-1], starts[1:], 0, C_qi.shape[1], out, self.n * self.naux))
            yield X_ipP

    def exchange(self, C_pi: Any) -> Any:
        """K_pq, by parts if there are any."""
        parts = separate_parts(C_pi)
        return self._exchange_of_parts(C_pi, parts) if parts else super().exchange(C_pi)

    def _exchange_of_parts(self, C_pi: Any, parts: Sequence[Part]) -> Any:
        """K of several parts at a time, within the memory of `columns` orbitals."""
        K_pq, size = np.zeros((self.n, self.n)), 0
        batch: list[Part] = []
        for part, columns in parts:
            for some in portions(len(columns), self.columns):
                near = np.unique(np.concatenate([self.partners.q[q] for q in part]))
                more = (some.stop - some.start) * len(near)
                if batch and size + more > self.columns * self.n:
                    K_pq += self._exchange_at_once(C_pi, batch)
                    size, batch = 0, []
                batch.append((part, columns[some]))
                size += more
        return K_pq + self._exchange_at_once(C_pi, batch)

    def _exchange_at_once(self, C_pi: Any, parts: Sequence[Part]) -> Any:
        """K of orbitals that are restricted to one part each: only functions near the part contribute."""
        naux, inside = self.naux, np.zeros(self.n, dtype=bool)
        items, stacks, near_functions = [], [], []
        size = offset = column = 0
        for part, columns in parts:
            inside[part] = True
            at = np.flatnonzero(inside[self._q])
            inside[part] = False
            near, first = np.unique(self._owner[at], return_index=True)
            last = at[np.append(first[1:], len(at)) - 1] + 1  # rows in between have coefficients of zero
            count, out = len(columns), size + np.arange(len(near)) * naux
            items.append(_items(at[first], last, column, count, out, len(near) * naux))
            stacks.append((size, len(near), count, offset))
            near_functions.append(near)
            size, offset, column = size + count * len(near) * naux, offset + len(near), column + count
        X = self._X(size)
        C_qi = C_pi[:, np.concatenate([columns for _, columns in parts])]
        self._transform(C_qi, X, np.concatenate(items, axis=1))
        return add_squares(self.backend, X, naux, stacks, np.concatenate(near_functions).astype(np.int32), self.n)

    def _transform(self, C_qi: Any, X: Any, items: Ints) -> None:
        """Compute X_iP for `_items`."""
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


def _items(*fields: Ints | int) -> Ints:
    """Items of a transformation: first and last row of B, first column of C, number of columns, offset of X_iP, and its
    stride from i to i + 1."""
    return np.stack(np.broadcast_arrays(*fields))


def separate_parts(C_pi: Array) -> list[Part]:
    """Disjoint parts of the functions with the columns of C of each, as in superposed atomic densities.

    Empty if there are no parts, or if they are too large to be worth it.
    """
    if not C_pi.size or MIN_PARTS * np.count_nonzero(C_pi) > C_pi.size:
        return []
    nonzero, none = C_pi != 0.0, len(C_pi)
    owner, before = np.arange(none), np.arange(0)
    while not np.array_equal(owner, before):  # the lowest function of each part, from function to orbital and back
        before = owner
        lowest = np.where(nonzero, owner[:, None], none).min(axis=0)
        owner = np.minimum(owner, np.where(nonzero, lowest, none).min(axis=1))
    orbital_owner = owner[np.argmax(nonzero, axis=0)]
    parts = []
    for number in np.unique(orbital_owner):
        part = np.flatnonzero(owner == number)
        parts.append((part, np.flatnonzero(orbital_owner == number)))
    return parts if MIN_PARTS * max(len(part) for part, _ in parts) <= len(C_pi) else []
