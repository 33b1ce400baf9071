"""The three-centre integrals of density fitting, with one protocol for every kind of storage.

All, some or none of the integrals are stored, as rows of every function (`fitting_rows`) or in blocks of functions
(`fitting_blocks`); the others are computed when they are needed (`fitting_direct`). Consumers use B_pqP = sum_Q (pq|Q)
(M^-T)_QP with V = M M^T: (pq|rt) = sum_P B_pqP B_rtP, J = `potential(fit(D))`, K = sum_i X_i X_i^T.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from cuanto.arrays import Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals import eri_2c
from cuanto.integrals.api import basis_kets
from cuanto.integrals.attenuation import attenuate
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.engine import Engine


@dataclass(frozen=True, eq=False)
class ThreeCentre:
    """The integrals (pq|P) of a basis and a fitting basis.

    `omega` (1/Bohr): that of the attenuated operator erf(omega r)/r, which then replaces 1/r, also in the metric.
    `pairs`: those of `integrals.uploaded_pairs`, if they exist.
    """

    basis: Basis
    aux: Basis
    backend: Backend
    omega: float | None = None
    pairs: Sequence[BraBatch] | None = None

    def metric(self, keep: bool = False) -> FittingMetric:
        """(P|Q), factorised, and kept as well if wanted."""
        V_PQ = eri_2c(self.aux, backend=self.backend, omega=self.omega)
        return FittingMetric(V_PQ, self.backend, self.omega is not None, keep)

    def kets(self) -> list[KetBatch]:
        """All fitting functions."""
        return basis_kets(self.aux, coulomb=True)

    def fill(self, out: Any, bras: Iterable[BraBatch], kets: list[KetBatch], calls: float = 1.0) -> None:
        """Compute the integrals of some pairs with some fitting functions into zeroed rows of `out`.

        `calls`: how often the calculation is expected to do as much work.
        """
        Engine(self.backend, out, row_stride=out.shape[1]).run("coulomb", bras, kets, calls=calls)

    def attenuate(self, bras: Iterable[BraBatch]) -> Iterator[BraBatch]:
        """The same pairs for the operator of these integrals."""
        return (attenuate(bra, self.omega) for bra in bras)


class CoulombSums(Protocol):
    """Sums over (pq|P), or over B_pqP if not `raw`."""

    raw: bool

    def fit(self, D_spq: Any) -> Any:
        """x_sP = sum_pq (pq|P) D_spq of symmetric densities."""

    def potential(self, c_sP: Any) -> Any:
        """J_spq = sum_P (pq|P) c_sP"""


class FittedTensor(Protocol):
    """B_pqP of a basis and a fitting basis.

    `columns`: number of orbitals of X that are computed at once; `order`: the functions p of X, in the order of the
    storage; `sums`: the sums of fit and potential.
    """

    integrals: ThreeCentre
    metric: FittingMetric
    sums: CoulombSums
    columns: int
    order: Ints

    def fit(self, D_spq: Any) -> Any:
        """x_sP = sum_pq B_pqP D_spq of symmetric densities, or with (pq|P) if the sums are `raw`."""
        return self.sums.fit(D_spq)

    def coefficients(self, x_sP: Any) -> Any:
        """Coefficients of the fitted densities, from `fit`."""
        return self.metric.solve(x_sP) if self.sums.raw else self.metric.back_solve(x_sP)

    def potential(self, x_sP: Any) -> Any:
        """J_spq of the fitted densities, from `fit`."""
        return self.sums.potential(self.coefficients(x_sP) if self.sums.raw else x_sP)

    def half_transform(self, C_pi: Any) -> Iterator[Any]:
        """Yield X_ipP = sum_q B_pqP C_qi for `columns` orbitals at a time, in memory that the next ones overwrite."""

    def exchange(self, C_pi: Any) -> Any:
        """K_pq = sum_iP X_ipP X_iqP, if the order of X is that of the basis."""
        n, backend = self.integrals.basis.nbf, self.integrals.backend
        K_pq = backend.xp.zeros((n, n))
        for X_ipP in self.half_transform(C_pi):
            K_pq += backend.linalg.gram_of_stack(X_ipP)
        return K_pq


class StoredRows(CoulombSums):
    """Rows of (pq|P), or of B_pqP after `solve`; `table` [p, q]: row of a pair, -1 for none. `padded`: one more, of
    zeros.

    `pairs` of shells with rows p n + q, p >= q; `ranges` [k, 2]: ranges of the rows with p >= q, if contiguous.
    """

    def __init__(self, integrals: ThreeCentre, table: Ints, pairs: Iterable[BraBatch], ranges: Any = None) -> None:
        self.raw, self._backend, self._n, self._ranges = True, integrals.backend, len(table), ranges
        # One more row for pairs that have none.
        out = self._backend.zeros((int(table.max()) + 2, integrals.aux.nbf), np.float64)
        rows = np.where(table < 0, len(out) - 1, table).reshape(-1)
        placed = (replace(bra, rows=rows[bra.rows]) for bra in integrals.attenuate(pairs))
        integrals.fill(out, list(placed) if isinstance(pairs, list) else placed, integrals.kets())
        out[-1] = 0.0
        self.padded, self.rows = out, out[:-1]
        self._table, is_lower = table, np.tri(self._n, dtype=bool)
        lower = np.where(is_lower, table, table.T)
        present = lower >= 0
        stored = np.flatnonzero(is_lower & present)
        pair, weight = np.zeros(len(self.rows), dtype=np.int64), np.zeros(len(self.rows))
        row = table.reshape(-1)[stored]
        pair[row], weight[row] = stored, 1.0
        diagonal = table.diagonal()
        weight[diagonal[diagonal >= 0]] = 0.5
        arrays: dict[str, Any] = {"pair": pair, "weight": weight, "row_of_pair": np.maximum(lower, 0)}
        if not present.all():
            arrays["present"] = present.astype(float)
        found = self._backend.upload(arrays)
        self._pair, self._weight, self._row_of_pair = (found[name] for name in ("pair", "weight", "row_of_pair"))
        self._present = found.get("present")

    def solve(self, metric: FittingMetric) -> None:
        """Replace (pq|P) by B_pqP, in the rows of (p, q) and of (q, p)."""
        p, q = np.nonzero(np.tril(self._table >= 0))
        row, mirror = self._table[p, q], self._table[q, p]
        if np.array_equal(row, mirror):
            metric.half_solve(self.rows)
        else:
            found = self._backend.upload({"row": row, "mirror": mirror})
            metric.half_solve_to(self.rows, found["row"], found["mirror"])
        self.raw = False

    def fit(self, D_spq: Any) -> Any:
        """x_sP from the rows with p >= q."""
        return self._backend.xp.stack([self._fit(D_pq) for D_pq in D_spq])

    def _fit(self, D_pq: Any) -> Any:
        weights = self._weight * (D_pq + D_pq.T).take(self._pair)
        return self._backend.linalg.combine_rows(self.rows, weights, self._ranges)

    def potential(self, c_sP: Any) -> Any:
        """J_spq from the rows with p >= q."""
        found = []
        for c_P in c_sP:
            J_pq = self._backend.linalg.rows_times(self.rows, c_P, self._ranges).take(self._row_of_pair)
            found.append(J_pq if self._present is None else J_pq * self._present)
        return self._backend.xp.stack(found)


class Workspace:
    """Memory that is reused from build to build: new pages cost more than the transformation of a few orbitals."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._array: Any = None

    def __call__(self, *shape: int) -> Any:
        """An uninitialised array."""
        size = prod(shape)
        if self._array is None or self._array.size < size:
            self._array = None  # freed before the next one is allocated
            self._array = self._backend.xp.empty(size)
        return self._array[:size].reshape(shape)


def portions(count: int, at_once: int) -> Iterator[slice]:
    """Slices of nearly equal length, at most `at_once`."""
    step = -(-count // max(1, -(-count // at_once)))
    return (slice(start, min(start + step, count)) for start in range(0, count, max(1, step)))
