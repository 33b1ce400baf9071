"""Fitted J and K on the host with everything kept: for each function p the rows B_pqP of the functions q beside it.

Where blocks of functions (`fitting_blocks`) hold whole rectangles, here every pair of shells is there or not for
itself, by a bound of its self-repulsion: of octadecane in cc-pVDZ 111,000 rows instead of 148,000. The product with
M^-T and the first step of K, half of all the work, are proportional to their number. Rows of one function are enough
for matrix products to run at their full speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend, Launch
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
from cuanto.kernels.products import rows_kernel

PAIR = 1e-11
"""Pairs of shells with a smaller sqrt (pq|pq) are left out: what that does to J and K is smaller still."""
SMALL_PART = 4
"""Orbitals are taken apart where parts have at most one of so many functions."""
TILE = 64
"""Functions of a tile of K."""
ORBITALS = 4
"""Orbitals that are added to a tile at once: about a millisecond."""


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


@dataclass(frozen=True, eq=False)
class Parts:
    """Orbitals of parts of the molecule: columns `first[k]` to `first[k + 1]` of C_pi are zero but for some functions.

    `near[k]`: functions p that have one of these for a partner; `items` of the transformation to X, and of its squares,
    by the names of kernel arguments; `size`: numbers in X.
    """

    items: dict[str, Any]
    squares: dict[str, Any]
    size: int


class FunctionRows:
    """B_pqP = (pq|P') M^-T of all pairs, with the builds of J and K, each of a few native launches."""

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
        p, q = np.nonzero(np.tril(table >= 0))
        one, other = table[p, q], table[q, p]
        metric.half_solve_to(self._rows, one, other)
        self._list = np.concatenate(partners.q).astype(np.int32)
        self._lower = np.stack([partners.starts[:-1], partners.starts[:-1] + partners.lower], axis=1)
        order = np.argsort(one)
        self._row, self._pair = one[order], (p * self.n + q)[order]
        self._weight = np.where(p == q, 0.5, 1.0)[order]

    def fit(self, D_pq: Array) -> Array:
        """x_P = sum_pq B_pqP D_pq"""
        density = np.zeros(self.partners.rows)
        density[self._row] = self._weight * (D_pq + D_pq.T).take(self._pair)
        x_P = np.zeros(self.naux)
        values = {"first": self._lower, "density": density, "out": x_P}
        self._launch("fit", self.n, values, sums="out")
        return x_P

    def potential(self, x_P: Array) -> Array:
        """J_pq = sum_P B_pqP x_P"""
        potential = np.empty(self.partners.rows)
        values = {"first": self._lower, "fit": np.ascontiguousarray(x_P), "out": potential}
        self._launch("potential", self.n, values)
        J_pq = np.zeros((self.n, self.n))
        J_pq.reshape(-1)[self._pair] = potential[self._row]
        return J_pq + np.tril(J_pq, -1).T

    def exchange(self, C_pi: Array, X: Array, parts: Parts | None = None) -> Array:
        """K of some orbitals; X is work space."""
        parts = self.dense(C_pi.shape[1]) if parts is None else parts
        C_pi, K_pq = np.ascontiguousarray(C_pi), np.zeros((self.n, self.n))
        widest = int(parts.items["item_columns"].max()) * max(len(q) for q in self.partners.q)
        values = {**parts.items, "C": C_pi, "columns": C_pi.shape[1], "X": X}
        self._launch("transform", len(parts.items["item_row"]), values, scratch=8 * widest, grain=1)
        values = {**parts.squares, "tile": TILE, "X": X, "n_all": self.n, "K": K_pq}
        items = len(parts.squares["item"])
        self._launch("squares", items, values, grain=1, sums="K", sums_size=TILE * TILE)
        return K_pq

    def _launch(self, name: str, items: int, values: dict[str, Any], **how: Any) -> None:
        program = self.backend.compile(rows_kernel(name))
        arguments = {"rows": self._rows, "naux": self.naux, **values}
        self.backend.launch_all([Launch(program, items, arguments, **how)])

    def dense(self, columns: int) -> Parts:
        """So many orbitals of the whole molecule."""
        starts, ones = self.partners.starts, np.ones(self.n, dtype=np.int32)
        items = {
            "item_row": starts[:-1],
            "item_list": starts,
            "list": self._list,
            "item_column": 0 * ones,
            "item_columns": columns * ones,
            "item_out": np.arange(self.n) * self.naux,
            "item_step": np.full(self.n, self.n * self.naux),
        }
        squares = {"item": self._squares([(0, self.n, columns, 0)]), "place": np.arange(self.n, dtype=np.int32)}
        return Parts(items, squares, columns * self.n * self.naux)

    def separate(self, parts: Sequence[tuple[Indices, int, int]]) -> Parts:
        """Orbitals (columns from .. to of C) that are zero but for the functions of one part each.

        Only functions p beside a part see its orbitals.
        """
        starts, naux = self.partners.starts, self.naux
        rows, lists, columns, counts, outs, steps, places, blocks = [], [], [], [], [], [], [], []
        size = place = 0
        for part, first, last in parts:
            near = self.beside(part)
            for a, p in enumerate(near):
                mine = np.flatnonzero(np.isin(self.partners.q[p], part))
                begin, end = int(mine[0]), int(mine[-1]) + 1  # what lies between has coefficients of zero
                rows.append(int(starts[p]) + begin)
                lists.append(self.partners.q[p][begin:end])
                outs.append(size + a * naux)
                columns.append(first)
                counts.append(last - first)
                steps.append(len(near) * naux)
            blocks.append((size, len(near), last - first, place))
            places.append(near)
            size, place = size + (last - first) * len(near) * naux, place + len(near)
        items = {
            "item_row": np.array(rows),
            "item_list": np.concatenate([[0], np.cumsum([len(some) for some in lists])]),
            "list": np.concatenate(lists).astype(np.int32),
            "item_column": np.array(columns, dtype=np.int32),
            "item_columns": np.array(counts, dtype=np.int32),
            "item_out": np.array(outs),
            "item_step": np.array(steps),
        }
        squares = {"item": self._squares(blocks), "place": np.concatenate(places).astype(np.int32)}
        return Parts(items, squares, size)

    def _squares(self, blocks: Sequence[tuple[int, int, int, int]]) -> Indices:
        """Tiles of the lower half, in portions of the orbitals (`Square` of the kernel)."""
        found = []
        for X, functions, orbitals, place in blocks:
            for p in range(0, functions, TILE):
                for q in range(0, p + 1, TILE):
                    found += [
                        (X, functions, i, min(i + ORBITALS, orbitals), p, q, place)
                        for i in range(0, orbitals, ORBITALS)
                    ]
        return np.array(found, dtype=np.int64)

    def beside(self, part: Indices) -> Indices:
        """Functions that have one of these for a partner."""
        return np.unique(np.concatenate([self.partners.q[q] for q in part]))


def separate_parts(C_pi: Array) -> list[tuple[Indices, Indices]]:
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
