"""(pq|P) in blocks of functions (`fitting_layout`): all of them in memory, or some, and the others made again.

Blocks that are not kept are made in every build of K, and then it is X that is multiplied by M^-T: X is smaller than B.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import FittedTensor, ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting_layout import THRESHOLD, Block, Layout, block_pairs
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals.api import basis_kets, basis_pairs
from cuanto.integrals.batches import KetBatch
from cuanto.integrals.pairs import RowMap


class BlockTensor(FittedTensor):
    """X_ipP and K by blocks: the first `kept` are there, as B [q, p P], the others are made again."""

    def __init__(
        self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, layout: Layout, kept: Sequence[Any]
    ) -> None:
        put = integrals.backend.to_device
        self.integrals, self._metric, self._layout, self._kept = integrals, metric, layout, kept
        self.columns, self.order = plan.columns, layout.order
        self._q = [put(layout.order[block.q]) for block in layout.blocks]
        self._place_pq = put(layout.place[:, None] * integrals.basis.nbf + layout.place)
        remade = plan.exchange and len(kept) < len(layout.blocks)
        self._slices = aux_slices(integrals.aux, plan.aux_at_once) if remade else []
        self._X, self._buffer = Workspace(integrals.backend), Workspace(integrals.backend)

    def exchange(self, C_pi: Any) -> Any:
        """In the order of the basis."""
        return super().exchange(C_pi).take(self._place_pq)

    def half_transformed(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP of some orbitals at once."""
        n, naux, linalg = self.integrals.basis.nbf, self.integrals.aux.nbf, self.integrals.backend.linalg
        for some in portions(C_pi.shape[1], self.columns):
            C_qi = C_pi[:, some]
            X_ipP = self._X(C_qi.shape[1], n, naux)
            for block in self._layout.blocks:
                C_iq, mine = C_qi[self._q[block.number]].T, X_ipP[:, block.first : block.last]
                if block.number < len(self._kept):
                    mine[...] = linalg.product(C_iq, self._kept[block.number]).reshape(mine.shape)
                else:
                    mine[...] = self._remake(block, C_iq)
            yield X_ipP

    def _remake(self, block: Block, C_iq: Any) -> Any:
        """X_ipP of a block that is not kept, by slices of the fitting basis."""
        integrals = self.integrals
        X_ipP = integrals.backend.xp.empty((len(C_iq), block.functions, integrals.aux.nbf))
        bras = list(integrals.attenuate(block_pairs(self._layout, block)))
        for part, kets in self._slices:
            rows = self._buffer(block.rows, part.stop - part.start)
            rows[...] = 0.0
            integrals.fill(rows, bras, kets)
            product = integrals.backend.linalg.product(C_iq, rows.reshape(len(block.q), -1))
            X_ipP[:, :, part] = product.reshape(len(C_iq), block.functions, -1)
        return self._metric.half_solve(X_ipP.reshape(-1, integrals.aux.nbf)).reshape(X_ipP.shape)


class KeptBlocks(BlockTensor):
    """All blocks one after the other: of B, or, where the layout is a triangle, of (pq|P) for J alone."""

    def __init__(self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, layout: Layout) -> None:
        put, table = integrals.backend.to_device, layout.row_table()
        self._rows, self._raw = _all_rows(integrals, layout, table), layout.triangle
        self._pair, self._weight, self._row_pq = (put(x) for x in layout.rows_at_once(table))
        kept = []
        if not self._raw:
            metric.half_solve_to(self._rows, *(put(x) for x in layout.mirrored_rows(table)))
            each = zip(layout.blocks, layout.starts, strict=False)
            kept = [self._rows[start : start + b.rows].reshape(len(b.q), -1) for b, start in each]
        super().__init__(integrals, metric, plan, layout, kept)

    def fit(self, D_spq: Any) -> Any:
        """One product of the rows with a vector for each density."""
        backend = self.integrals.backend
        weights = (self._weight * (D_pq + D_pq.T).take(self._pair) for D_pq in D_spq)
        x_sP = backend.xp.stack([backend.linalg.combine_rows(self._rows, d) for d in weights])
        return self._metric.half_solve(x_sP) if self._raw else x_sP

    def potential(self, x_sP: Any) -> Any:
        """One product of the rows with a vector for each density."""
        backend = self.integrals.backend
        c_sP = self._metric.back_solve(x_sP) if self._raw else x_sP
        return backend.xp.stack([backend.linalg.rows_times(self._rows, c_P).take(self._row_pq) for c_P in c_sP])


def keep_blocks(integrals: ThreeCentre, metric: FittingMetric, layout: Layout, count: int) -> list[Any]:
    """The first blocks of B."""
    kept, kets = [], integrals.kets()
    for block in layout.blocks[:count]:
        rows = integrals.backend.zeros((block.rows, integrals.aux.nbf), np.float64)
        integrals.fill(rows, list(integrals.attenuate(block_pairs(layout, block))), kets)
        kept.append(metric.half_solve(rows).reshape(len(block.q), -1))
    return kept


def _all_rows(integrals: ThreeCentre, layout: Layout, table: Any) -> Any:
    """(pq|P) of every pair once, at places p >= q of the table, and one more row of zeros for pairs that have none."""
    n, place, given = layout.basis.nbf, layout.place, integrals.pairs
    # Another row takes pairs that blocks have no room for.
    out = integrals.backend.zeros((int(layout.starts[-1]) + 2, integrals.aux.nbf), np.float64)
    rows = table[np.maximum(place[:, None], place), np.minimum(place[:, None], place)].reshape(-1)
    rows[rows < 0] = len(out) - 1
    bras = integrals.attenuate(given or basis_pairs(layout.basis, RowMap(n, packed=False), THRESHOLD))
    placed = (replace(bra, rows=rows[bra.rows]) for bra in bras)
    integrals.fill(out, placed if given is None else list(placed), integrals.kets())
    return out[:-1]


def aux_slices(aux: Basis, at_once: int) -> list[tuple[slice, list[KetBatch]]]:
    """Parts of a fitting basis of at most so many functions (one shell at least), with their places."""
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
