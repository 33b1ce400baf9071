"""J and K by density fitting: (pq|rt) = sum_PQ (pq|P) (P|Q)^-1 (Q|rt).

Coulomb: x_P = sum_pq (pq|P) D_pq, c = V^-1 x, J_pq = sum_P (pq|P) c_P (Whitten, J. Chem. Phys. 58, 4496 (1973),
doi:10.1063/1.1679012; Dunlap et al., 71, 3396 (1979), doi:10.1063/1.438728). Exchange, from occupied orbitals times the
roots of their occupations: X_ipP = sum_q B_qpP C_qi with B = (qp|.) M^-T, V = M M^T, and K_pq = sum_iP X_ipP X_iqP
(Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p). Both steps of K are matrix products.

Rows of B are kept per function on a host that keeps all of them (`fitting_rows`) and on a GPU where that makes them fit
(`fitting_rows_device`), otherwise per block of functions (`fitting_blocks`); blocks that the memory plan has no room
for are made again in every build of K, and then it is X that is multiplied by M^-T: X is smaller than B. J comes from
the J engine where not all blocks are kept (`fitting_direct`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.backends.linalg import COPIED_ROWS
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.fitting_blocks import Block, all_integrals, aux_slices, block_integrals, block_pairs, make_layout
from cuanto.coulomb.fitting_direct import DirectFit, direct_fit_bytes
from cuanto.coulomb.fitting_rows import FunctionRows, Partners, find_partners, separate_parts
from cuanto.coulomb.fitting_rows_device import DeviceRows
from cuanto.coulomb.memory import COLUMNS, SQUARE_MATRICES, Plan, Sizes, make_plan, memory_limit
from cuanto.coulomb.metric import FittingMetric, MetricReport
from cuanto.errors import InputError
from cuanto.integrals import eri_2c
from cuanto.integrals.api import basis_kets
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.engine import resolve
from cuanto.kernels.products import SOLVED_AT_ONCE
from cuanto.log import Timings, logger

KINDS = ("jk", "j")
METRIC_HOST, METRIC_DEVICE = 3, 7
"""Square matrices over the fitting basis while the metric is factorised: in place, and by products."""
FUNCTIONS, FUNCTIONS_DEVICE = 24, 72
"""Functions of a block at least: enough to be worth a call, few enough to have few partners; a GPU wants few calls."""
MIRRORED_HOST, MIRRORED_DEVICE = 128, 16384
"""Rows copied at once: on the host through the cache, on a GPU with few launches."""
OCCUPIED = 5
"""Functions for each occupied orbital, about: where integrals are made again, all orbitals should go at once."""
EMPTY = 1e-14
"""Orbitals of a density with a smaller occupation are left out, relative to the largest."""


class FittedJK(JKBuilder):
    """J and K of a basis through a fitting basis; `kind` "j" makes J only and keeps half as much.

    `max_memory`: bytes that the process (on a GPU: these arrays) may take; `share` of what that leaves, where there is
    another one beside this; `others`: bytes that something else will take, for which half is left at most. `direct`:
    keep no integrals even if there is room for them. `pairs`: of `integrals.api.uploaded_pairs`, if they are there
    already. `omega`: in 1/Bohr, of the attenuated operator erf(omega r)/r in place of 1/r, also in the metric.
    `plan` says what is kept, `metric` how (P|Q) was factorised, `timings` what the set-up took. `profile`, where it is
    set, adds up the three steps of J.
    """

    def __init__(
        self,
        basis: Basis,
        aux: Basis,
        *,
        backend: str | Backend = "auto",
        max_memory: float | None = None,
        kind: str = "jk",
        direct: bool = False,
        pairs: Sequence[BraBatch] | None = None,
        timings: Timings | None = None,
        omega: float | None = None,
        share: float = 1.0,
        others: int = 0,
    ) -> None:
        for given, what in ((basis, "basis"), (aux, "aux")):
            if not isinstance(given, Basis):
                raise InputError(f"{what} must be a cuanto.Basis, {type(given).__name__} was given")
        if kind not in KINDS:
            raise InputError(f"unknown kind of fitting {kind!r}: choose {', '.join(KINDS)}")
        self.basis, self.aux, self.kind, self.omega = basis, aux, kind, omega
        self.backend = resolve(backend)
        self.timings = Timings() if timings is None else timings
        self.profile: Timings | None = None
        self._host = self.backend.traits.unified_memory
        with self.timings.measure("plan"):
            functions = FUNCTIONS if self._host else FUNCTIONS_DEVICE
            self._layout = make_layout(basis, triangle=kind == "j", functions=functions)
            self._partners: Partners | None = find_partners(basis) if self._host and kind == "jk" else None
            limit = memory_limit(self.backend, max_memory)
            self.plan: Plan = self._plan(int(share * max(limit - others, limit // 2)), direct)
        logger.info("density fitting: %s", self.plan)
        with self.timings.measure("metric"):
            V_PQ = eri_2c(aux, backend=self.backend, omega=omega)
            self._metric = FittingMetric(V_PQ, self.backend, attenuated=omega is not None)
            del V_PQ
        logger.info("fitting metric: %s", self._metric.report)
        put = self.backend.to_device
        place = self._layout.place
        self._order, self._place_pq = put(self._layout.order), put(place[:, None] * basis.nbf + place)
        self._q = [put(block.q) for block in self._layout.blocks]
        self._kept: list[Any] = []
        self._rows: FunctionRows | DeviceRows | None = None
        self._X: Any = None
        self._buffer: Any = None
        self._slices: list[tuple[slice, list[KetBatch]]] = []
        self._flat: tuple[Any, Any, Any, Any] | None = None
        self._engine: DirectFit | None = None
        if self.plan.mode != "in-core":
            with self.timings.measure("J engine"):
                self._engine = DirectFit(basis, aux, self.backend, omega=omega)
        with self.timings.measure("three-centre integrals"):
            self._keep(pairs)

    @property
    def metric(self) -> MetricReport:
        """How the metric was factorised."""
        return self._metric.report

    def notes(self) -> Sequence[str]:
        """What is kept, and what was done to a metric that is nearly singular; others need no words."""
        found = [f"density fitting: {self.plan}"] if self.omega is None else []
        if self.metric.raised or self.metric.left_out:
            found.append(f"fitting metric{'' if self.omega is None else ' at long range'}: {self.metric}")
        return found

    # ------------------------------------------------------------------------------------------------ set-up

    def _plan(self, limit: int, direct: bool) -> Plan:
        """What the J engine needs is counted only where it may be used."""
        sizes = self._sizes()
        if sizes.in_core > limit and not direct and not self._host and self.kind == "jk":
            partners = find_partners(self.basis)
            of_rows = self._sizes_of_rows(sizes, partners)
            if of_rows.in_core <= limit:
                self._partners = partners
                return make_plan(of_rows, limit)
        if direct or sizes.in_core > limit:
            sizes = replace(sizes, engine=direct_fit_bytes(self.basis, self.aux, self.backend))
        return make_plan(sizes, limit, direct)

    def _sizes(self) -> Sizes:
        n, naux = self.basis.nbf, self.aux.nbf
        blocks = tuple(8 * block.rows * naux for block in self._layout.blocks)
        factor = 8 * naux**2
        jk = self.kind == "jk"
        # Products with M^-T are not in place; a GPU multiplies a whole block.
        work = max(blocks) if jk and not self._host else 0
        mirrored = min(MIRRORED_HOST if self._host else MIRRORED_DEVICE, int(self._layout.starts[-1]))
        work = max(work, 8 * mirrored * naux)
        fixed = factor + 8 * SQUARE_MATRICES * n**2
        whole = (
            0
            if self._partners is None
            else 8 * (self._partners.rows + 2 * SOLVED_AT_ONCE * self.backend.traits.workers) * naux
        )
        widest_block = max(block.functions for block in self._layout.blocks)
        column = again = 0
        if jk:
            again = 8 * 2 * widest_block * naux  # X of a block, and a part of it
            column = 8 * n * naux if self._host else 8 * 2 * n * naux + again  # a GPU has X in both orders
        widest = max(s.nbf for s in self.aux.shells)
        metric = (METRIC_HOST if self._host else METRIC_DEVICE) * factor
        columns = max(COLUMNS, n // OCCUPIED)
        return Sizes(blocks, fixed, column, work, naux, widest, metric, columns=columns, again=again, whole=whole)

    def _sizes_of_rows(self, sizes: Sizes, partners: Partners) -> Sizes:
        """On a GPU: rows of functions instead of blocks, and X in one order."""
        n, naux = self.basis.nbf, self.aux.nbf
        work = 8 * 3 * min(COPIED_ROWS, partners.rows) * naux
        return replace(sizes, whole=8 * partners.rows * (naux + 2), column=8 * n * naux, work=work)

    def _keep(self, pairs: Sequence[BraBatch] | None) -> None:
        """Make the blocks that stay in memory."""
        if self.plan.mode == "in-core" and self._partners is not None:
            given = (self.basis, self._partners, self.aux, self._metric, self.backend, self.omega)
            self._rows = FunctionRows(*given) if self._host else DeviceRows(*given)
            return
        self._partners = None
        if self.plan.mode == "in-core":
            self._keep_all(pairs)
            return
        naux, kets = self.aux.nbf, basis_kets(self.aux, coulomb=True)
        if self.kind == "jk":
            self._slices = aux_slices(self.aux, self.plan.aux_at_once)
        for block in self._layout.blocks[: self.plan.kept]:
            rows = self.backend.zeros((block.rows, naux), np.float64)
            block_integrals(block_pairs(self._layout, block, omega=self.omega), kets, rows, self.backend)
            self._kept.append(self._metric.half_solve(rows))

    def _keep_all(self, pairs: Sequence[BraBatch] | None) -> None:
        """All blocks one after the other; each pair is made, and solved for, once."""
        layout, naux, put = self._layout, self.aux.nbf, self.backend.to_device
        starts, table = layout.starts, layout.row_table()
        # One row more stays zero, for pairs that have none; another one takes what nobody needs.
        rows = self.backend.zeros((int(starts[-1]) + 2, naux), np.float64)
        all_integrals(layout, table, self.aux, rows, self.backend, pairs, self.omega)
        rows = rows[:-1]
        self._kept = [rows[starts[b.number] : starts[b.number + 1]] for b in layout.blocks]
        if self.kind == "jk":
            for block, mine in zip(layout.blocks, self._kept, strict=True):
                self._metric.half_solve(mine[: (block.before + block.functions) * block.functions])
        to, source = (put(x) for x in layout.mirrored_rows(table))
        step = MIRRORED_HOST if self._host else MIRRORED_DEVICE
        for start in range(0, len(to), step):
            rows[to[start : start + step]] = rows[source[start : start + step]]
        self._flat = (rows, *(put(x) for x in layout.rows_at_once(table)))

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
        J_spq = self._coulomb(D_spq) if want_j else None
        if not want_k:
            return J_spq, None
        if C_spi is None:
            return J_spq, xp.stack([self._exchange_of_density(D_pq) for D_pq in D_spq])
        return J_spq, xp.stack([self._exchange(xp.asarray(C_pi)) for C_pi in C_spi])

    def _coulomb(self, D_spq: Any) -> Any:
        """J from whatever is there."""
        if self._engine is not None:
            return self._coulomb_direct(D_spq, self._engine)
        if self._rows is not None:
            return self.backend.xp.stack([self._coulomb_by_rows(D_pq, self._rows) for D_pq in D_spq])
        assert self._flat is not None  # all is kept
        return self.backend.xp.stack([self._coulomb_at_once(D_pq, *self._flat) for D_pq in D_spq])

    def _coulomb_direct(self, D_spq: Any, engine: DirectFit) -> Any:
        """No integrals in memory."""
        with self._step("fit vector"):
            x_sP = engine.fit(D_spq)
        with self._step("solve"):
            c_sP = self._metric.solve(x_sP)
        with self._step("J from fit"):
            return engine.potential(c_sP)

    def _coulomb_at_once(self, D_pq: Any, rows: Any, pair: Any, weight: Any, row_pq: Any) -> Any:
        """All rows in memory: two products of a matrix and a vector."""
        with self._step("fit vector"):
            d = weight * (D_pq + D_pq.T).take(pair)
            x = d[None, :] @ rows
        with self._step("solve"):
            c_P = (x if self.kind == "jk" else self._metric.solve(x))[0]
        with self._step("J from fit"):
            J_pq = (rows @ c_P).take(row_pq)
        return J_pq

    def _step(self, name: str) -> AbstractContextManager[None]:
        """Measures a step of J where that was asked for; on a GPU this waits for it."""
        return nullcontext() if self.profile is None else self.profile.measure(name)

    def _coulomb_by_rows(self, D_pq: Any, rows: FunctionRows | DeviceRows) -> Any:
        """All rows of B in memory."""
        with self._step("fit vector"):
            x_P = rows.fit(D_pq)
        with self._step("J from fit"):
            return rows.potential(x_P)

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

    def _exchange_of_parts(self, C_pi: Any, parts: list[tuple[Any, Any]], rows: FunctionRows) -> Any:
        """K of orbitals of parts of the molecule, such as its atoms, so many at once as memory allows."""
        n, naux, most = self.basis.nbf, self.aux.nbf, self.plan.columns
        pieces = [(part, columns[i : i + most]) for part, columns in parts for i in range(0, len(columns), most)]
        K_pq, size = np.zeros((n, n)), 0
        taken: list[tuple[Any, Any]] = []
        for part, columns in [*pieces, (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]:
            more = len(columns) * len(rows.beside(part)) if len(part) else 0
            if taken and (not more or size + more > most * n):
                ends = np.cumsum([0, *(len(own) for _, own in taken)]).tolist()
                made = rows.separate([(own, *ends[k : k + 2]) for k, (own, _) in enumerate(taken)])
                chosen = np.concatenate([own for _, own in taken])
                K_pq += rows.exchange(C_pi[:, chosen], self._space(-(-made.size // (n * naux))).reshape(-1), made)
                taken, size = [], 0
            taken.append((part, columns))
            size += more
        return K_pq

    def _exchange(self, C_pi: Any) -> Any:
        """K of orbitals, so many at once as memory allows."""
        xp, n = self.backend.xp, self.basis.nbf
        if isinstance(self._rows, FunctionRows) and (parts := separate_parts(C_pi)):
            return self._exchange_of_parts(C_pi, parts, self._rows)
        K_pq = xp.zeros((n, n))
        passes = -(-C_pi.shape[1] // self.plan.columns)
        at_once = max(1, -(-C_pi.shape[1] // max(1, passes)))
        if self._rows is None:
            C_pi = C_pi[self._order]
        for start in range(0, C_pi.shape[1], at_once):
            some = C_pi[:, start : start + at_once]
            if self._rows is not None:
                K_pq += self._rows.exchange(some, self._space(some.shape[1]))
                continue
            X_ipP = self._half_transformed(some)
            K_pq += self.backend.linalg.gram(X_ipP.transpose(1, 0, 2).reshape(n, -1))
        return K_pq.take(self._place_pq) if self._rows is None else K_pq

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
        bras = block_pairs(self._layout, block, omega=self.omega)
        for part, kets in self._slices:
            size = block.rows * (part.stop - part.start)
            if self._buffer is None or self._buffer.size < size:
                self._buffer = None  # before its successor is made
                self._buffer = self.backend.zeros((size,), np.float64)
            rows = self._buffer[:size].reshape(block.rows, -1)
            rows[...] = 0.0
            block_integrals(bras, kets, rows, self.backend)
            yield part, rows
