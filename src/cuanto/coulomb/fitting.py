"""J and K by density fitting: (pq|rt) = sum_PQ (pq|P) (P|Q)^-1 (Q|rt).

Coulomb: x_P = sum_pq (pq|P) D_pq, c = V^-1 x, J_pq = sum_P (pq|P) c_P (Whitten, J. Chem. Phys. 58, 4496 (1973),
doi:10.1063/1.1679012; Dunlap et al., 71, 3396 (1979), doi:10.1063/1.438728). Exchange, from occupied orbitals times the
roots of their occupations: X_ipP = sum_q B_qpP C_qi with B = (qp|.) M^-T, V = M M^T, and K_pq = sum_iP X_ipP X_iqP
(Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p). Both steps of K are matrix products.

Rows of B are kept per block of functions (`fitting_blocks`); blocks that the memory plan has no room for are made again
in every build, and then it is X that is multiplied by M^-T: X is smaller than B.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.fitting_blocks import Block, all_integrals, aux_slices, block_integrals, make_layout
from cuanto.coulomb.memory import Plan, Sizes, make_plan, memory_limit
from cuanto.coulomb.metric import FittingMetric, MetricReport
from cuanto.errors import InputError
from cuanto.integrals import eri_2c
from cuanto.integrals.engine import resolve
from cuanto.log import Timings, logger

KINDS = ("jk", "j")
SYMMETRIC_MATRICES = 8
"""Square matrices over the basis that a build has at once."""
METRIC_COPIES = 4
"""Square matrices over the fitting basis while the metric is factorised."""
MIRRORED_HOST, MIRRORED_DEVICE = 128, 16384
"""Rows copied at once: on the host through the cache, on a GPU with few launches."""
EMPTY = 1e-14
"""Orbitals of a density with a smaller occupation are left out, relative to the largest."""


class FittedJK:
    """J and K of a basis through a fitting basis; `kind` "j" makes J only and keeps half as much.

    `max_memory`: bytes that the process (on a GPU: these arrays) may take. `plan` says what is kept, `metric` how (P|Q)
    was factorised, `timings` what the set-up took.
    """

    def __init__(
        self,
        basis: Basis,
        aux: Basis,
        *,
        backend: str | Backend = "auto",
        max_memory: float | None = None,
        kind: str = "jk",
    ) -> None:
        for given, what in ((basis, "basis"), (aux, "aux")):
            if not isinstance(given, Basis):
                raise InputError(f"{what} must be a cuanto.Basis, {type(given).__name__} was given")
        if kind not in KINDS:
            raise InputError(f"unknown kind of fitting {kind!r}: choose {', '.join(KINDS)}")
        self.basis, self.aux, self.kind = basis, aux, kind
        self.backend = resolve(backend)
        self.timings = Timings()
        self._host = self.backend.xp is np
        with self.timings.measure("plan"):
            self._layout = make_layout(basis, triangle=kind == "j")
            self.plan: Plan = make_plan(self._sizes(), memory_limit(self.backend, max_memory))
        logger.info("density fitting: %s", self.plan)
        with self.timings.measure("metric"):
            self._metric = FittingMetric(eri_2c(aux, backend=self.backend), self.backend)
        logger.info("fitting metric: %s", self._metric.report)
        put = self.backend.to_device
        self._order, self._place = put(self._layout.order), put(self._layout.place)
        self._q = [put(block.q) for block in self._layout.blocks]
        self._kept: list[Any] = []
        self._X: Any = None
        self._buffer: Any = None
        self._flat: tuple[Any, Any, Any, Any] | None = None
        with self.timings.measure("three-centre integrals"):
            self._keep()

    @property
    def metric(self) -> MetricReport:
        """How the metric was factorised."""
        return self._metric.report

    # ------------------------------------------------------------------------------------------------ set-up

    def _sizes(self) -> Sizes:
        n, naux = self.basis.nbf, self.aux.nbf
        blocks = tuple(8 * block.rows * naux for block in self._layout.blocks)
        factor = 8 * naux**2
        jk = self.kind == "jk"
        # Products with M^-T are not in place; a GPU multiplies a whole block.
        work = max(blocks) if jk and not self._host else 0
        fixed = factor + 8 * SYMMETRIC_MATRICES * n**2
        work = max(work, (METRIC_COPIES - 1) * factor - sum(blocks))  # the metric is done before blocks are made
        column = 8 * n * naux * (1 if self._host else 2) if jk else 0  # a GPU has X in both orders
        return Sizes(blocks, fixed, column, work, naux, max(s.nbf for s in self.aux.shells))

    def _keep(self) -> None:
        """Make the blocks that stay in memory."""
        if self.plan.mode == "in-core":
            self._keep_all()
            return
        naux = self.aux.nbf
        for block in self._layout.blocks[: self.plan.kept]:
            rows = self.backend.zeros((block.rows, naux), np.float64)
            block_integrals(self._layout, block, self.aux, rows, self.backend)
            if self.kind == "jk":
                self._metric.half_solve(rows)
            self._kept.append(rows)

    def _keep_all(self) -> None:
        """All blocks one after the other; each pair is made, and solved for, once."""
        layout, naux, put = self._layout, self.aux.nbf, self.backend.to_device
        starts, table = layout.starts, layout.row_table()
        rows = self.backend.zeros((int(starts[-1]), naux), np.float64)
        all_integrals(layout, table, self.aux, rows, self.backend)
        self._kept = [rows[starts[b.number] : starts[b.number + 1]] for b in layout.blocks]
        if self.kind == "jk":
            for block, mine in zip(layout.blocks, self._kept, strict=True):
                self._metric.half_solve(mine[: (block.before + block.functions) * block.functions])
        to, source = (put(x) for x in layout.mirrored_rows(table))
        step = MIRRORED_HOST if self._host else MIRRORED_DEVICE
        for start in range(0, len(to), step):
            rows[to[start : start + step]] = rows[source[start : start + step]]
        if self.kind == "j" or not self._host:
            p, q = layout.pairs_of_rows()
            self._flat = (rows, put(p), put(q), put(layout.weights_of_rows()))

    # ------------------------------------------------------------------------------------------------ builds

    def __call__(
        self, D_spq: Any, C_spi: Any | None = None, want_j: bool = True, want_k: bool = True
    ) -> tuple[Any, Any]:
        """J_spq and K_spq (None where not wanted) of symmetric densities; C_spi with D_s = C_s C_s^T saves time."""
        xp, n = self.backend.xp, self.basis.nbf
        if want_k and self.kind == "j":
            raise InputError("this fit was made for J only: FittedJK(..., kind='jk') makes K as well")
        D_spq = xp.asarray(D_spq, dtype=np.float64)
        if D_spq.ndim != 3 or D_spq.shape[1:] != (n, n):
            raise InputError(f"densities are [s, {n}, {n}] here, an array of shape {D_spq.shape} was given")
        J_spq = xp.stack([self._coulomb(D_pq) for D_pq in D_spq]) if want_j else None
        if not want_k:
            return J_spq, None
        if C_spi is None:
            return J_spq, xp.stack([self._exchange_of_density(D_pq) for D_pq in D_spq])
        return J_spq, xp.stack([self._exchange(xp.asarray(C_pi)) for C_pi in C_spi])

    def _coulomb(self, D_pq: Any) -> Any:
        """J of one density."""
        return self._coulomb_by_blocks(D_pq) if self._flat is None else self._coulomb_at_once(D_pq, *self._flat)

    def _coulomb_at_once(self, D_pq: Any, rows: Any, p: Any, q: Any, weight: Any) -> Any:
        """All rows in memory: two products of a matrix and a vector."""
        d = (0.5 * weight) * (D_pq[p, q] + D_pq[q, p])
        x = d[None, :] @ rows
        J = rows @ (x if self.kind == "jk" else self._metric.solve(x))[0]
        J_pq = self.backend.xp.zeros_like(D_pq)
        J_pq[q, p] = J
        J_pq[p, q] = J
        return J_pq

    def _coulomb_by_blocks(self, D_pq: Any) -> Any:
        """Some blocks are made now, or half of a kept one is enough."""
        xp, naux = self.backend.xp, self.aux.nbf
        D_pq = (0.5 * (D_pq + D_pq.T))[self._order][:, self._order]
        x_half, x_raw = xp.zeros((1, naux)), xp.zeros((1, naux))
        kept_x = x_half if self.kind == "jk" else x_raw
        for block in self._layout.blocks:
            d_qp = D_pq[self._q[block.number], block.first : block.last]
            if block.number < self.plan.kept:
                kept_x += self._fit(block, d_qp, self._kept[block.number])
                continue
            for part, rows in self._made(block):
                x_raw[:, part] += self._fit(block, d_qp, rows)
        if kept_x is x_raw or self.plan.mode != "in-core":
            x_half += self._metric.half_solve(x_raw)
        c = self._metric.back_solve(x_half)[0]
        J_pq = xp.zeros_like(D_pq)
        for block in self._layout.blocks:
            if block.number < self.plan.kept:
                J = self._potential(block, self._kept[block.number], x_half[0] if self.kind == "jk" else c)
            else:
                J = sum(self._potential(block, rows, c[part]) for part, rows in self._made(block))
            reach, twice = self._reach(block)
            q = self._q[block.number]
            J_pq[q[:reach], block.first : block.last] = J
            J_pq[block.first : block.last, q[:twice]] = J[:twice].T
        return J_pq[self._place][:, self._place]

    def _reach(self, block: Block) -> tuple[int, int]:
        """Partners that J takes from a block, own and earlier ones; the latter stand for their transposes as well."""
        return block.before + block.functions, block.before

    def _fit(self, block: Block, d_qp: Any, rows: Any) -> Any:
        """x_P [1, P] of a block."""
        reach, twice = self._reach(block)
        d_qp = d_qp[:reach].copy()
        d_qp[:twice] *= 2.0
        return d_qp.reshape(1, -1) @ rows[: reach * block.functions]

    def _potential(self, block: Block, rows: Any, c_P: Any) -> Any:
        """J_qp = sum_P (qp|P) c_P for the partners that J takes."""
        reach, _ = self._reach(block)
        return (rows[: reach * block.functions] @ c_P).reshape(reach, block.functions)

    def _exchange_of_density(self, D_pq: Any) -> Any:
        """K of a density without orbitals: of its eigenvectors, those with negative weights apart."""
        xp = self.backend.xp
        weights, U = xp.linalg.eigh(0.5 * (D_pq + D_pq.T))
        weights_host = self.backend.to_host(weights)
        smallest = EMPTY * float(np.abs(weights_host).max())
        K_pq = xp.zeros_like(D_pq)
        for sign in (1.0, -1.0):
            mine = np.flatnonzero(sign * weights_host > smallest)
            if len(mine):
                C_pi = U[:, mine[0] : mine[-1] + 1] * xp.sqrt(abs(weights[mine[0] : mine[-1] + 1]))
                K_pq += sign * self._exchange(C_pi)
        return K_pq

    def _exchange(self, C_pi: Any) -> Any:
        """K of orbitals, so many at once as memory allows."""
        xp, n = self.backend.xp, self.basis.nbf
        C_pi = C_pi[self._order]
        K_pq = xp.zeros((n, n))
        at_once = min(C_pi.shape[1], self.plan.columns)
        for start in range(0, C_pi.shape[1], at_once):
            X_ipP = self._half_transformed(C_pi[:, start : start + at_once])
            if self._host:
                for X_pP in X_ipP:
                    K_pq += X_pP @ X_pP.T  # half of a product: NumPy sees that it is symmetric
            else:
                X_px = X_ipP.transpose(1, 0, 2).reshape(n, -1)
                K_pq += X_px @ X_px.T
        return K_pq[self._place][:, self._place]

    def _half_transformed(self, C_pi: Any) -> Any:
        """X_ipP"""
        n, naux, columns = self.basis.nbf, self.aux.nbf, C_pi.shape[1]
        X_ipP = self._space(columns)
        for block in self._layout.blocks:
            C_iq = C_pi[self._q[block.number]].T
            if block.number < self.plan.kept:
                B_qx = self._kept[block.number].reshape(len(block.q), -1)
                mine = X_ipP.reshape(columns, n * naux)[:, block.first * naux : block.last * naux]
                if self._host:
                    np.matmul(C_iq, B_qx, out=mine)
                else:
                    mine[...] = C_iq @ B_qx
                continue
            X = self.backend.xp.empty((columns, block.functions, naux))
            for part, rows in self._made(block):
                X[:, :, part] = (C_iq @ rows.reshape(len(block.q), -1)).reshape(columns, block.functions, -1)
            X_ipP[:, block.first : block.last] = self._metric.half_solve(X.reshape(-1, naux)).reshape(X.shape)
        return X_ipP

    def _space(self, columns: int) -> Any:
        """Memory of X, kept from build to build: fresh pages cost more than the transformation of a few orbitals."""
        n, naux = self.basis.nbf, self.aux.nbf
        if self._X is None or self._X.size < n * columns * naux:
            self._X = None  # before its successor is made
            self._X = self.backend.xp.empty(n * columns * naux)
        return self._X[: n * columns * naux].reshape(columns, n, naux)

    def _made(self, block: Block) -> Iterator[tuple[slice, Any]]:
        """Integrals of a block that is not kept, by slices of the fitting basis."""
        for part, aux in aux_slices(self.aux, self.plan.aux_at_once):
            size = block.rows * aux.nbf
            if self._buffer is None or self._buffer.size < size:
                self._buffer = None  # before its successor is made
                self._buffer = self.backend.zeros((size,), np.float64)
            rows = self._buffer[:size].reshape(block.rows, aux.nbf)
            rows[...] = 0.0
            block_integrals(self._layout, block, aux, rows, self.backend)
            yield part, rows
