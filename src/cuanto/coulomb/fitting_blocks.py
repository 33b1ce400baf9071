"""B_pqP in blocks of functions (`fitting_layout`): all of them stored, or some, and the others recomputed.

Blocks that are not stored are recomputed in every build of K; instead of B, X is then multiplied by M^-T, because it is
smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cuanto.backends.tiers import ITERATIONS
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import CoulombSums, FittedTensor, StoredRows, ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting_layout import THRESHOLD, Block, Layout, block_pairs
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals.api import basis_kets, basis_pairs
from cuanto.integrals.batches import KetBatch
from cuanto.integrals.pairs import RowMap


class BlockTensor(FittedTensor):
    """X_ipP and K by blocks: the first ones are `stored`, as B [q, p P], the others are recomputed."""

    def __init__(
        self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, layout: Layout, sums: CoulombSums
    ) -> None:
        put = integrals.backend.to_device
        self.integrals, self.metric, self.sums, self._layout = integrals, metric, sums, layout
        self.columns, self.order = plan.columns, layout.order
        self._q = [put(layout.order[block.q]) for block in layout.blocks]
        self._positions_pq = put(layout.positions[:, None] * integrals.basis.nbf + layout.positions)
        self.stored = [] if layout.triangle else self._store(plan.kept)
        recomputed = not layout.triangle and len(self.stored) < len(layout.blocks)
        self._slices = aux_slices(integrals.aux, plan.aux_at_once) if recomputed else []
        self._X, self._buffer = Workspace(integrals.backend), Workspace(integrals.backend)

    def _store(self, count: int) -> Sequence[Any]:
        """The first blocks of B: views of the rows that `sums` has, or computed."""
        integrals, layout, stored = self.integrals, self._layout, []
        kets = integrals.kets()
        for block, start in zip(layout.blocks[:count], layout.starts, strict=False):
            if isinstance(self.sums, StoredRows):
                rows = self.sums.rows[start : start + block.rows]
            else:
                rows = integrals.backend.zeros((block.rows, integrals.aux.nbf), np.float64)
                integrals.fill(rows, list(integrals.attenuate(block_pairs(layout, block))), kets, calls=count)
                self.metric.half_solve(rows)
            stored.append(rows.reshape(len(block.q), -1))
        return stored

    def exchange(self, C_pi: Any) -> Any:
        """K_pq in the order of the basis."""
        return super().exchange(C_pi).take(self._positions_pq)

    def half_transform(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP of `columns` orbitals at a time."""
        n, naux, linalg = self.integrals.basis.nbf, self.integrals.aux.nbf, self.integrals.backend.linalg
        for some in portions(C_pi.shape[1], self.columns):
            C_qi = C_pi[:, some]
            X_ipP = self._X(C_qi.shape[1], n, naux)
            for block in self._layout.blocks:
                C_iq, X_block = C_qi[self._q[block.number]].T, X_ipP[:, block.first : block.last]
                if block.number < len(self.stored):
                    X_block[...] = linalg.product(C_iq, self.stored[block.number]).reshape(X_block.shape)
                else:
                    X_block[...] = self._recompute(block, C_iq)
            yield X_ipP

    def _recompute(self, block: Block, C_iq: Any) -> Any:
        """X_ipP of a block that is not stored, by slices of the fitting basis."""
        integrals = self.integrals
        X_ipP = integrals.backend.xp.empty((len(C_iq), block.functions, integrals.aux.nbf))
        bras = list(integrals.attenuate(block_pairs(self._layout, block)))
        calls = ITERATIONS * len(self._slices) * (len(self._layout.blocks) - len(self.stored))
        for part, kets in self._slices:
            rows = self._buffer(block.rows, part.stop - part.start)
            rows[...] = 0.0
            integrals.fill(rows, bras, kets, calls)
            product = integrals.backend.linalg.product(C_iq, rows.reshape(len(block.q), -1))
            X_ipP[:, :, part] = product.reshape(len(C_iq), block.functions, -1)
        return self.metric.half_solve(X_ipP.reshape(-1, integrals.aux.nbf)).reshape(X_ipP.shape)


def store_all_blocks(integrals: ThreeCentre, metric: FittingMetric, layout: Layout) -> StoredRows:
    """All blocks one after the other: of B, or of (pq|P) if the layout is a triangle, for J alone."""
    given = None if integrals.pairs is None else list(integrals.pairs)
    pairs = given or basis_pairs(layout.basis, RowMap(layout.basis.nbf, packed=False), THRESHOLD)
    sums = StoredRows(integrals, layout.row_table(), pairs)
    if not layout.triangle:
        sums.solve(metric)
    return sums


def aux_slices(aux: Basis, at_once: int) -> list[tuple[slice, list[KetBatch]]]:
    """Slices of a fitting basis of at most `at_once` functions (but one shell at least), as kets."""
    slices: list[tuple[slice, list[KetBatch]]] = []
    begin, first = 0, 0
    ends = np.append(aux.offsets[1:], aux.nbf)
    for k, end in enumerate(ends):
        following = ends[k + 1] if k + 1 < len(ends) else None
        if following is None or following - first > at_once:
            part = Basis.from_shells(aux.shells[begin : k + 1], aux.R_ax)
            slices.append((slice(first, int(end)), basis_kets(part, coulomb=True)))
            begin, first = k + 1, int(end)
    return slices
