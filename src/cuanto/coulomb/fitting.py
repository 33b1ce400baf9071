"""J and K by density fitting: (pq|rt) = sum_PQ (pq|P) (P|Q)^-1 (Q|rt).

Coulomb: x_P = sum_pq (pq|P) D_pq, c = V^-1 x, J_pq = sum_P (pq|P) c_P (Whitten, J. Chem. Phys. 58, 4496 (1973),
doi:10.1063/1.1679012; Dunlap et al., 71, 3396 (1979), doi:10.1063/1.438728). Exchange, from occupied orbitals times the
square roots of their occupations: X_ipP = sum_q B_qpP C_qi with B = (qp|.) M^-T, V = M M^T, K_pq = sum_iP X_ipP X_iqP
(Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p). Both steps of K are matrix products.

A `FittedTensor` has these sums; its storage is chosen from the sizes and the available memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.fitted_forces import fitted_exchange_gradient
from cuanto.coulomb.fitted_tensor import CoulombSums, FittedTensor, ThreeCentre
from cuanto.coulomb.fitting_blocks import BlockTensor, store_all_blocks
from cuanto.coulomb.fitting_direct import DirectFit, direct_fit_bytes
from cuanto.coulomb.fitting_layout import Layout, make_layout
from cuanto.coulomb.fitting_packed import PackedRows, PairParts, cut_pairs
from cuanto.coulomb.fitting_rows import GroupedRows, NativeRows, Partners, find_partners
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.coulomb.memory import BUILD_MATRICES, COLUMNS, Plan, Sizes, make_plan, plan_recomputed, raise_limit
from cuanto.coulomb.metric import FittingMetric, MetricReport
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import check_basis, resolve
from cuanto.log import Timings, logger
from cuanto.memory import Advice, Budget
from cuanto.system import ATOMIC_NUMBERS

KINDS = ("jk", "j")
NEGLIGIBLE_OCCUPATION = 1e-14
"""Orbitals of a density whose occupation, relative to the largest, is smaller are neglected."""
FUNCTIONS_PER_ORBITAL = 5
"""Approximate number of functions per occupied orbital, where elements are not known."""
CALL_SECONDS = 1e-4
"""Host's time of a product with the orbitals of some functions (24 waters, def2-SVP, H200: 28 ms for 288)."""
GATHERING = 1.4
"""The same if rows are copied together first, relative to it."""
READ_SECONDS, COPY_SECONDS = 2.5e-13, 1.4e-12
"""Time to read a byte of integrals, and to copy one of scattered rows (valinomycin, H200)."""
CALL_BYTES = 14 << 20
"""Bytes of integrals that a device recomputes and transforms in the 0.08 ms of a call (H200), an estimate."""
ROW_INDICES = 3
"""Largest number of values stored with a row besides its integrals: its pair, weight and density."""


class FittedJK(JKBuilder):
    """J and K of a basis with a fitting basis; `kind` "j" computes J only and stores half as much.

    The memory of the integrals is reserved from `budget`, by default all free memory.
    `pairs`: those of `integrals.uploaded_pairs`, if they exist. `omega` (1/Bohr): that of the attenuated operator
    erf(omega r)/r, which then replaces 1/r, also in the metric.
    `plan`: what is stored; `metric`: how (P|Q) was factorised; `timings` of the set-up; `tensor`: the sums over the
    integrals.
    """

    def __init__(
        self,
        basis: Basis,
        aux: Basis,
        *,
        backend: str | Backend = "auto",
        kind: str = "jk",
        omega: float | None = None,
        budget: Budget | None = None,
        pairs: Sequence[BraBatch] | None = None,
        timings: Timings | None = None,
    ) -> None:
        check_basis(basis)
        check_basis(aux, "aux")
        if kind not in KINDS:
            raise InputError(f"unknown kind of fitting {kind!r}: choose {', '.join(KINDS)}")
        self.basis, self.aux, self.kind, self.omega = basis, aux, kind, omega
        self.backend = resolve(backend)
        self.timings = Timings() if timings is None else timings
        self.budget = budget = Budget(self.backend) if budget is None else budget
        budget.require_room()
        integrals = ThreeCentre(basis, aux, self.backend, omega, pairs)
        with self.timings.measure("plan"):
            choice = plan_tensor(integrals, kind == "jk", budget.available(), budget.advice)
            self.plan: Plan = choice.memory
            name = "fitted integrals" if omega is None else "fitted integrals at long range"
            budget.reserve(name, self.plan.expected)
        logger.info("density fitting: %s; %s, %d orbitals at once", self.plan, choice.storage, self.plan.columns)
        with self.timings.measure("metric"):
            metric = integrals.metric(keep=kind == "j" or self.plan.mode != "in-core")
        self.metric: MetricReport = metric.report
        logger.info("fitting metric: %s", self.metric)
        self.tensor: FittedTensor = make_tensor(integrals, metric, choice, self.timings)

    def __call__(
        self, D_spq: Any, C_spi: Any | None = None, want_j: bool = True, want_k: bool = True
    ) -> tuple[Any, Any]:
        """J_spq and K_spq (None where not wanted) of symmetric densities; faster with C_spi, D_s = C_s C_s^T."""
        xp, n = self.backend.xp, self.basis.nbf
        if want_k and self.kind == "j":
            raise InputError("this fit is for J only: use FittedJK(..., kind='jk') for K")
        D_spq = xp.asarray(D_spq, dtype=np.float64)
        if D_spq.ndim != 3 or D_spq.shape[1:] != (n, n):
            raise InputError(f"densities are [s, {n}, {n}] here, an array of shape {D_spq.shape} was given")
        add = self.backend.communicator.sum
        J_spq = add(self.tensor.potential(add(self.tensor.fit(D_spq)))) if want_j else None
        if not want_k:
            return J_spq, None
        if C_spi is None:
            return J_spq, add(xp.stack([self._exchange_of_density(D_pq) for D_pq in D_spq]))
        return J_spq, add(xp.stack([self.tensor.exchange(xp.asarray(C_pi)) for C_pi in C_spi]))

    def coulomb_sources(self, D_pq: Any) -> Sources | None:
        """The fitted density, for which the energy is stationary."""
        return self._fitted_density(D_pq) if self.omega is None else None

    def coulomb_gradient(self, D_pq: Any) -> Array:
        """Gradient of J, from the potential of the fitted density."""
        return electronic_gradient(self.basis, D_pq, self._fitted_density(D_pq), self.backend, self.omega)

    def _fitted_density(self, D_pq: Any) -> Sources:
        self._check_metric()
        return Sources(fit=(self.aux, self.tensor.coefficients(self.tensor.fit(D_pq[None]))[0]))

    def exchange_gradient(self, D_spq: Any, C_spi: Any | None) -> Array:
        """Gradient of K, from orbitals times the square roots of their occupations."""
        if C_spi is None:
            raise InputError("the gradient of fitted exchange needs orbitals")
        self._check_metric()
        factor = -0.25 if len(C_spi) == 1 else -0.5
        return factor * fitted_exchange_gradient(self.tensor, self.tensor.metric, C_spi, self.budget)

    def _check_metric(self) -> None:
        """Refuse a gradient if eigenvalues were raised. Functions that were left out have no forces."""
        if self.metric.raised:
            raise InputError(
                f"no gradient: the fitting basis is nearly linearly dependent ({self.metric}); use fitting='none'"
            )

    def notes(self) -> Sequence[str]:
        """The memory plan, and the treatment of a nearly singular metric."""
        where = "" if self.omega is None else " at long range"
        notes = [] if where else [f"density fitting: {self.plan}"]
        if self.metric.raised or self.metric.left_out:
            notes.append(f"fitting metric{where}: {self.metric}")
        return notes

    def _exchange_of_density(self, D_pq: Any) -> Any:
        """K of a density without orbitals, from its eigenvectors with positive and with negative weights."""
        xp = self.backend.xp
        weights, U = self.backend.linalg.eigh(0.5 * (D_pq + D_pq.T))
        weights_host = self.backend.to_host(weights)
        smallest = NEGLIGIBLE_OCCUPATION * float(np.abs(weights_host).max())
        K_pq = xp.zeros_like(D_pq)
        for sign in (1.0, -1.0):
            mine = np.flatnonzero(sign * weights_host > smallest)
            if len(mine):
                C_pi = U[:, mine[0] : mine[-1] + 1] * xp.sqrt(abs(weights[mine[0] : mine[-1] + 1]))
                K_pq += sign * self.tensor.exchange(C_pi)
        return K_pq


@dataclass(frozen=True)
class Schedule:
    """Storage on a device.

    `storages` of all integrals of J and K, the fastest first; `partial`: the one of which a part can be stored;
    `functions`: minimum per block, enough to be worth a call, few enough to have few partners; `rows`: the Python
    class of tensors stored in rows.
    """

    storages: tuple[str, ...]
    partial: str
    functions: int
    rows: Callable[..., FittedTensor]


FUNCTIONS = tuning.sizes("fitting.block_functions")
SCHEDULES = {
    "cpu": Schedule(("rows",), "blocks", FUNCTIONS["cpu"], NativeRows),
    "cuda": Schedule(("blocks", "rows", "packed"), "packed", FUNCTIONS["cuda"], GroupedRows),
}
"""Schedules by the language of kernels. A GPU needs few calls, which blocks have; if they do not fit, it uses the
storage whose passes take least time."""


@dataclass(frozen=True)
class TensorPlan:
    """A memory plan with its storage: `blocks` of the layout, `rows` of the partners, or `packed` in parts."""

    memory: Plan
    storage: str
    layout: Layout
    partners: Partners | None = None
    parts: PairParts | None = None


def plan_tensor(integrals: ThreeCentre, exchange: bool, limit: int, advice: Advice = raise_limit) -> TensorPlan:
    """Choose the fastest storage within `limit` bytes: a compact one that needs fewer passes may be faster.

    `exchange`: integrals are for K as well. `advice`: what an error suggests if the memory is not sufficient.
    """
    schedule, basis = SCHEDULES[integrals.backend.traits.language], integrals.basis
    layout = make_layout(basis, triangle=not exchange, functions=schedule.functions)
    partners, parts, found = None, None, {}
    plans: list[TensorPlan] = []
    for storage in schedule.storages if exchange else ("blocks",):
        if storage != "blocks" and partners is None:
            partners = find_partners(basis)
        if storage == "packed" and partners is not None:
            parts = cut_pairs(basis, partners, schedule.functions, integrals.aux.nbf)
        found[storage] = sizes = _storage_sizes(integrals, storage, layout, partners, parts)
        if sizes.in_core <= limit:
            plans.append(TensorPlan(make_plan(sizes, limit), storage, layout, partners, parts))
            if partners is None and sizes.stored(sizes.columns) <= limit:  # few calls, one pass: the fastest
                break
    if plans:
        return min(plans, key=lambda plan: plan.memory.seconds)
    partial = schedule.partial if exchange else "blocks"
    engine = engine_bytes(integrals, exchange)
    if parts is None:
        sizes = found.get(partial) or block_sizes(integrals, layout)
        plan = make_plan(replace(sizes, engine=engine), limit, advice)
    else:
        plan = plan_recomputed(replace(recomputed_sizes(integrals, parts), engine=engine), limit, advice)
    plan = replace(plan, in_core=min(one.in_core for one in found.values()))
    return TensorPlan(plan, partial, layout, partners, parts)


def make_tensor(integrals: ThreeCentre, metric: FittingMetric, plan: TensorPlan, timings: Timings) -> FittedTensor:
    """Make the tensor of a plan."""
    engine: CoulombSums | None = None
    if plan.memory.mode != "in-core":
        with timings.measure("J engine"):
            engine = DirectFit(integrals.basis, integrals.aux, integrals.backend, omega=integrals.omega)
    with timings.measure("three-centre integrals"):
        if plan.storage == "packed" and plan.parts is not None:
            return PackedRows(integrals, metric, plan.memory, plan.parts, engine)
        if plan.storage == "rows":
            return SCHEDULES[integrals.backend.traits.language].rows(integrals, metric, plan.memory, plan.partners)
        sums = store_all_blocks(integrals, metric, plan.layout) if engine is None else engine
        return BlockTensor(integrals, metric, plan.memory, plan.layout, sums)


def _storage_sizes(
    integrals: ThreeCentre, storage: str, layout: Layout, partners: Partners | None, parts: PairParts | None
) -> Sizes:
    """Bytes of a storage."""
    if storage == "packed" and parts is not None:
        return packed_sizes(integrals, parts)
    return block_sizes(integrals, layout) if partners is None else row_sizes(integrals, partners)


def engine_bytes(integrals: ThreeCentre, exchange: bool) -> int:
    """Bytes of the J engine, and of the metric, which is kept for its solves; `block_sizes` counts it for J alone."""
    metric = 8 * integrals.aux.nbf**2 if exchange else 0
    return metric + direct_fit_bytes(integrals.basis, integrals.aux, integrals.backend)


def block_sizes(integrals: ThreeCentre, layout: Layout) -> Sizes:
    """Bytes of integrals in blocks; for J alone also of the metric, which is kept for its solves.

    A column of X counts with the copies that a device needs to reorder it, and with its parts for a block and for a
    slice.
    """
    n, naux, linalg = integrals.basis.nbf, integrals.aux.nbf, integrals.backend.linalg
    rows = tuple(block.rows for block in layout.blocks)
    column = linalg.stack_copies * n + 2 * max(block.functions for block in layout.blocks)
    sizes = _sizes(integrals, rows, naux, 0 if layout.triangle else column)
    metric = 8 * naux**2 if layout.triangle else 0
    seconds = _pass_seconds(len(rows), READ_SECONDS * sum(sizes.blocks))
    return replace(sizes, fixed=sizes.fixed + metric, pass_seconds=seconds)


def row_sizes(integrals: ThreeCentre, partners: Partners) -> Sizes:
    """Bytes of integrals in rows of functions."""
    n, naux = integrals.basis.nbf, integrals.aux.nbf
    sizes = _sizes(integrals, (partners.rows,), naux + ROW_INDICES, n)
    return replace(sizes, pass_seconds=_pass_seconds(len(partners.alike), READ_SECONDS * sum(sizes.blocks)))


def packed_sizes(integrals: ThreeCentre, parts: PairParts) -> Sizes:
    """Bytes of packed rows, with the places of all rows, and the rows that are copied together."""
    n, naux, linalg = integrals.basis.nbf, integrals.aux.nbf, integrals.backend.linalg
    sizes = _sizes(integrals, parts.rows, naux + ROW_INDICES, n + 1)
    places = 2 * parts.places + naux * parts.gathered_rows
    work = 8 * min(linalg.solved_rows(naux), 2 * sum(parts.rows)) * naux
    seconds = _pass_seconds(GATHERING * len(parts.groups), (READ_SECONDS + COPY_SECONDS) * 8 * parts.places * naux)
    return replace(sizes, fixed=sizes.fixed + 8 * places, work=work, pass_seconds=seconds)


def recomputed_sizes(integrals: ThreeCentre, parts: PairParts) -> Sizes:
    """Bytes of packed rows if some are recomputed: B or X is multiplied by M^-T in the memory of the rows that are
    copied together."""
    sizes, naux = packed_sizes(integrals, parts), integrals.aux.nbf
    copies = 8 * integrals.backend.linalg.solved_rows(naux, parts.gathered_rows) * naux
    momenta, aux_momenta = (1 + max(shell.l for shell in one.shells) for one in (integrals.basis, integrals.aux))
    # classes of integrals, and groups of functions, of which parts have more than all functions together
    calls = momenta * (momenta + 1) // 2 * aux_momenta + 2 * len(parts.groups) // len(parts.rows)
    return replace(sizes, work=0, fixed=sizes.fixed + copies, call_bytes=CALL_BYTES * calls)


def _pass_seconds(calls: float, reading: float) -> float:
    """Time of a pass: the host starts calls while the device reads."""
    return max(CALL_SECONDS * calls, reading)


def _sizes(integrals: ThreeCentre, rows: tuple[int, ...], numbers: int, column: int) -> Sizes:
    """Bytes from the rows of all blocks, the numbers of a row, and the rows of a column of X."""
    n, naux, linalg = integrals.basis.nbf, integrals.aux.nbf, integrals.backend.linalg
    factor = 8 * naux**2
    return Sizes(
        blocks=tuple(8 * count * numbers for count in rows),
        fixed=factor + 8 * BUILD_MATRICES * n**2,
        column=8 * column * naux,
        work=8 * min(linalg.copied_rows, sum(rows)) * naux,
        naux=naux,
        widest=max(shell.nbf for shell in integrals.aux.shells),
        metric=linalg.factor_copies * factor,
        columns=max(COLUMNS, _expected_orbitals(integrals.basis)),
    )


def _expected_orbitals(basis: Basis) -> int:
    """Occupied orbitals of the neutral molecule; estimated if elements are not known."""
    numbers = [ATOMIC_NUMBERS.get(symbol, 0) for symbol in basis.symbols]
    electrons = sum(numbers) - int(basis.core_electrons.sum())
    return -(-electrons // 2) if all(numbers) else basis.nbf // FUNCTIONS_PER_ORBITAL
