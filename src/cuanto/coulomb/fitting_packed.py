"""B_pqP with one row for each significant pair p >= q: half the memory of `fitting_rows`, for GPUs.

The rows of a function are not contiguous here. They are copied together before they are multiplied with orbitals: on
an H200 the 1,100 rows of a function of valinomycin in 0.09 ms, while the product with 150 orbitals takes 0.12 ms.
Recomputing integrals would take far longer. Functions with few rows are copied together with their neighbours, because
every call takes the host 0.1 ms: the functions of such a group are multiplied with all functions that any of them
occurs with, and an empty row stands for a pair that is not significant.

If even these rows do not fit, those of the first atoms are stored, and the others are recomputed in every build of K, a
portion of atoms at a time. Recomputed integrals (pq|P) are multiplied by M^-T before or after the transformation to
orbitals, whichever takes fewer products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from cuanto.arrays import Ints, range_starts
from cuanto.backends.base import Backend
from cuanto.backends.tiers import ITERATIONS
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import CoulombSums, FittedTensor, StoredRows, ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting_blocks import aux_slices
from cuanto.coulomb.fitting_layout import cut_atoms
from cuanto.coulomb.fitting_rows import Partners, large_pairs
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.pair_classes import select_bras
from cuanto.integrals.batches import BraBatch, KetBatch

GATHERED = 4
"""Functions whose rows are copied together at once, if they occur with the same functions."""
GROUP_BYTES = 32 << 20
"""Largest size of the rows that are copied together if they occur with different functions: the device copies and
multiplies these in the time of a call."""
GROUPS = 16
"""Their largest share of all rows is one in this number."""
PADDING = 2.0
"""Largest ratio of the rows of such a group to those that are not empty."""
PARTS = 16
"""Number of parts that the atoms of a large molecule are divided into: few, because every part adds to X once."""


class Group(NamedTuple):
    """Functions first to last - 1, and the functions q that any of them occurs with."""

    first: int
    last: int
    q: Ints


def group_functions(partners: Sequence[Ints], most_rows: int) -> list[Group]:
    """Groups of consecutive functions with the same partners, or with at most `most_rows` rows together."""
    groups: list[Group] = []
    used = 0  # rows of the last group that are not empty
    for p, mine in enumerate(partners):
        if not len(mine):
            continue
        wider = _add_function(groups[-1], p, mine, most_rows, used) if groups else None
        if wider is None:
            groups.append(Group(p, p + 1, mine))
            used = len(mine)
        else:
            groups[-1], used = wider, used + len(mine)
    return groups


def _add_function(group: Group, p: int, q: Ints, most_rows: int, used: int) -> Group | None:
    """The group with the function p and its partners q as well; None if p does not follow, or adds too many rows.

    `used`: rows of the group that are not empty.
    """
    if group.last != p:
        return None
    count, same = p - group.first + 1, np.array_equal(group.q, q)
    if not same and count * max(len(group.q), len(q)) > most_rows:
        return None
    union = group.q if same else np.union1d(group.q, q)
    rows = count * len(union)
    fits = rows <= most_rows and rows <= PADDING * (used + len(q))
    return Group(group.first, p + 1, union) if fits or (same and count <= GATHERED) else None


@dataclass(frozen=True)
class PairParts:
    """The pairs of `partners` in parts: `part_p` of each function; a pair belongs to the later part of its two
    functions. `naux`: numbers in a row."""

    partners: Partners
    part_p: Ints
    naux: int

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Pairs p >= q of each part."""
        p, q, part = self._entries()
        return tuple(np.bincount(part[p >= q], minlength=int(self.part_p.max()) + 1).tolist())

    @cached_property
    def groups(self) -> list[Group]:
        """Functions whose rows are copied together if all parts are stored."""
        return group_functions(self.partners.q, self._most_rows)

    @property
    def places(self) -> int:
        """Rows of all groups, with empty ones."""
        return sum((group.last - group.first) * len(group.q) for group in self.groups)

    @property
    def gathered_rows(self) -> int:
        """Largest number of rows that are copied together, also if some parts are recomputed."""
        most = max(len(q) for q in self.partners.q)
        return max(min(GATHERED, len(self.partners.q)) * most, self._most_rows)

    @cached_property
    def _most_rows(self) -> int:
        """Largest number of rows of a group of functions with different partners: few in a small molecule."""
        return min(GROUP_BYTES // (8 * self.naux), sum(self.rows) // GROUPS)

    def pairs(self, first: int, last: int, backend: Backend) -> PairRows:
        """The pairs of the parts from `first` to `last`, excluding it."""
        n = len(self.part_p)
        p, q, part = self._entries()
        selected = (part >= first) & (part < last)
        p, q = p[selected], q[selected]
        keys = (p * n + q)[p >= q]  # ascending, because p and the partners of each p are
        starts, put = range_starts(np.bincount(p, minlength=n)), backend.to_device
        found = group_functions([q[starts[k] : starts[k + 1]] for k in range(n)], self._most_rows)
        rows = [_rows_of_group(group, keys, n) for group in found]
        row, partner = put(np.concatenate(rows)), put(np.concatenate([group.q for group in found]))
        at, begin = range_starts([len(some) for some in rows]), range_starts([len(group.q) for group in found])
        groups = [
            GroupRows(group.first, group.last, row[at[k] : at[k + 1]], partner[begin[k] : begin[k + 1]])
            for k, group in enumerate(found)
        ]
        return PairRows(keys, n, groups)

    def _entries(self) -> tuple[Ints, Ints, Ints]:
        """p, q and part of all pairs, of p and q in both orders."""
        q = np.concatenate(self.partners.q)
        p = np.repeat(np.arange(len(self.part_p)), np.diff(self.partners.starts))
        return p, q, np.maximum(self.part_p[p], self.part_p[q])


def _rows_of_group(group: Group, keys: Ints, n: int) -> Ints:
    """Row of every pair of a function of the group with one of its q, [p, q]; len(keys) for those that have none."""
    p = np.arange(group.first, group.last)[:, None]
    key = (np.maximum(p, group.q) * n + np.minimum(p, group.q)).reshape(-1)
    row = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[row] == key, row, len(keys))


class GroupRows(NamedTuple):
    """Rows of the functions first to last - 1 with the functions `q`, on the device."""

    first: int
    last: int
    row: Any
    q: Any


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rows of pairs with `keys` p n + q, p >= q, ascending, and one more of zeros; `groups` of functions that are
    transformed together."""

    keys: Ints
    n: int
    groups: list[GroupRows]

    def table(self) -> Ints:
        """[p, q]: row of a pair, -1 for none; symmetric."""
        table = np.full((self.n, self.n), -1, dtype=np.int64)
        p, q = np.divmod(self.keys, self.n)
        table[p, q] = table[q, p] = np.arange(len(self.keys))
        return table

    def place(self, batches: Sequence[BraBatch]) -> Iterator[BraBatch]:
        """Select the pairs of shells of this part from batches with rows p n + q, and number their rows within it."""
        for batch in batches:
            at = np.minimum(np.searchsorted(self.keys, batch.rows), len(self.keys) - 1)
            selected = np.flatnonzero(self.keys[at[:, 0]] == batch.rows[:, 0])
            if len(selected):
                yield replace(select_bras(batch, selected), rows=at[selected])


def cut_pairs(basis: Basis, partners: Partners, functions: int, naux: int) -> PairParts:
    """Parts with about the same number of pairs: one for each `functions` functions, but not more than `PARTS`."""
    own = np.bincount(basis.function_atoms, minlength=len(basis.R_ax))
    count = max(1, min(PARTS, basis.nbf // functions))
    pairs = np.diff(np.cumsum([0, *own]) ** 2)  # with functions of the same and of earlier atoms
    part_of_atom = np.zeros(len(own), dtype=np.int64)
    for number, atoms in enumerate(cut_atoms(np.arange(len(own)), pairs.tolist(), -(-(basis.nbf**2) // count))):
        part_of_atom[atoms] = number
    return PairParts(partners, part_of_atom[basis.function_atoms], naux)


class Recomputed(NamedTuple):
    """The pairs of a part that is recomputed, and the slices of the fitting basis that are computed at once."""

    pairs: PairRows
    bras: list[BraBatch]
    slices: list[tuple[slice, list[KetBatch]]]


class PackedRows(FittedTensor):
    """The first parts are stored, as B, the others are recomputed; `sums`: those of J, unless all parts are stored."""

    def __init__(
        self,
        integrals: ThreeCentre,
        metric: FittingMetric,
        plan: Plan,
        parts: PairParts,
        sums: CoulombSums | None = None,
    ) -> None:
        self.integrals, self.metric, self.columns = integrals, metric, plan.columns
        self.n, self.naux, self.backend = integrals.basis.nbf, integrals.aux.nbf, integrals.backend
        self.order = np.arange(self.n)
        self._X, self._buffer, self._gathered = (Workspace(self.backend) for _ in range(3))
        self._gathered_rows = parts.gathered_rows
        count, batches = len(parts.rows), list(large_pairs(integrals.basis))
        self._stored: list[tuple[PairRows, Any]] = []
        if plan.kept:
            pairs = parts.pairs(0, plan.kept, self.backend)
            if sums is None:
                sums = StoredRows(integrals, pairs.table(), batches)
                sums.solve(metric)
                rows = sums.padded
            else:
                rows = self._compute(pairs, list(integrals.attenuate(pairs.place(batches))))
                self._half_solve(rows)
            self._stored.append((pairs, rows))
        assert sums is not None
        self.sums = sums
        slices, numbers = cache(partial(aux_slices, integrals.aux)), plan.aux_at_once * max(parts.rows)
        self._recomputed = [
            Recomputed(
                pairs,
                list(integrals.attenuate(pairs.place(batches))),
                slices(min(self.naux, numbers // max(1, len(pairs.keys)))),
            )
            for pairs in (parts.pairs(k, k + 1, self.backend) for k in range(plan.kept, count))
        ]
        covered = sum(group.last - group.first for pairs, _ in self._stored for group in pairs.groups)
        self._adds = bool(self._recomputed) or covered < self.n

    def half_transform(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP with p outermost in memory."""
        for some in portions(C_pi.shape[1], self.columns):
            C_iq = self.backend.xp.ascontiguousarray(C_pi[:, some].T)
            X_piP = self._X(self.n, len(C_iq), self.naux)
            if self._adds:
                X_piP[...] = 0.0
            if self._recomputed:
                self._add_recomputed(C_iq, X_piP)
            for pairs, B_rP in self._stored:
                self._transform(pairs, B_rP, C_iq, X_piP, self._adds)
            yield X_piP.transpose(1, 0, 2)

    def _add_recomputed(self, C_iq: Any, X_piP: Any) -> None:
        """Add the pairs that are not stored to X; nothing else may have been added before."""
        calls = sum(len(part.slices) for part in self._recomputed)
        recomputed = sum(len(part.pairs.keys) for part in self._recomputed)
        solve_rows = calls == len(self._recomputed) and recomputed < self.n * len(C_iq)
        rows: Any = None
        for pairs, bras, slices in self._recomputed:
            for some, kets in slices:
                del rows  # as in `_transform`
                rows = self._buffer(len(pairs.keys) + 1, some.stop - some.start)
                rows[...] = 0.0
                self.integrals.fill(rows, bras, kets, ITERATIONS * calls)
                if solve_rows:
                    self._half_solve(rows)
                self._transform(pairs, rows, C_iq, X_piP[:, :, some], add=True)
        if not solve_rows:
            self._half_solve(X_piP.reshape(-1, self.naux))

    def _half_solve(self, rows: Any) -> None:
        """Multiply by M^-T, in the memory of the rows that are copied together."""
        self.metric.half_solve(rows, self._gathered(min(len(rows), self._gathered_rows), self.naux))

    def _transform(self, pairs: PairRows, B_rP: Any, C_iq: Any, X_piP: Any, add: bool) -> None:
        """Compute sum_q B_pqP C_qi of the pairs, or add it to X."""
        matmul, add_products = self.backend.xp.matmul, self.backend.linalg.add_products
        B_pqP: Any = None
        for first, last, row, q in pairs.groups:
            del B_pqP  # otherwise its memory would be kept if the next group needs more
            B_pqP, C_iq_near = self._gather(B_rP, row), C_iq.take(q, axis=1)
            B_pqP = B_pqP.reshape(last - first, -1, B_pqP.shape[1])
            if add:
                add_products(C_iq_near, B_pqP, X_piP[first:last])
            elif last - first > 1:
                matmul(C_iq_near, B_pqP, out=X_piP[first:last])
            else:
                matmul(C_iq_near, B_pqP[0], out=X_piP[first])  # faster than a batch of one

    def _gather(self, B_rP: Any, row: Any) -> Any:
        """Copy rows together; as complex numbers if possible, because fewer numbers take less time."""
        found = self._gathered(len(row), B_rP.shape[1])
        kind = np.complex128 if B_rP.shape[1] % 2 == 0 else np.float64
        self.backend.xp.take(B_rP.view(kind), row, axis=0, out=found.view(kind))
        return found

    def _compute(self, pairs: PairRows, bras: list[BraBatch]) -> Any:
        """(pq|P) of some pairs, and a row of zeros."""
        rows = self.backend.zeros((len(pairs.keys) + 1, self.naux), np.float64)
        self.integrals.fill(rows, bras, self.integrals.kets())
        return rows
