"""The choice of the storage of fitted integrals, from their sizes and the available memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cuanto.coulomb.fitted_tensor import FittedTensor, ThreeCentre
from cuanto.coulomb.fitting_blocks import BlockTensor, store_all_blocks
from cuanto.coulomb.fitting_direct import DirectFit, direct_fit_bytes
from cuanto.coulomb.fitting_layout import Layout, make_layout
from cuanto.coulomb.fitting_rows import GroupedRows, NativeRows, Partners, find_partners
from cuanto.coulomb.memory import BUILD_MATRICES, COLUMNS, Plan, Sizes, make_plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.log import Timings

OCCUPIED = 5
"""Functions per occupied orbital, about: all orbitals are transformed at once where integrals are recomputed."""
ROW_INDICES = 3
"""Numbers that are stored with a row besides its integrals, at most: its pair, its weight, its density."""


@dataclass(frozen=True)
class Schedule:
    """Storage on a device.

    `storages` of all integrals of J and K, the fastest first; `functions` of a block at least: enough to be worth a
    call, few enough to have few partners; `rows`: the class of tensors in rows.
    """

    storages: tuple[str, ...]
    functions: int
    rows: Callable[..., FittedTensor]


SCHEDULES = {"cpu": Schedule(("rows",), 24, NativeRows), "cuda": Schedule(("blocks", "rows"), 72, GroupedRows)}
"""By the language of kernels. A GPU needs few calls, and uses rows if blocks do not fit."""


@dataclass(frozen=True)
class TensorPlan:
    """A memory plan, with rows of functions if there are `partners`, else with the blocks of the layout."""

    memory: Plan
    layout: Layout
    partners: Partners | None = None


def plan_tensor(integrals: ThreeCentre, exchange: bool, limit: int) -> TensorPlan:
    """The fastest storage within `limit` bytes; `exchange`: for K as well."""
    schedule = SCHEDULES[integrals.backend.traits.language]
    layout = make_layout(integrals.basis, triangle=not exchange, functions=schedule.functions)
    sizes, needed = block_sizes(integrals, layout), []
    for storage in schedule.storages if exchange else ("blocks",):
        partners = find_partners(integrals.basis) if storage == "rows" else None
        whole = sizes if partners is None else row_sizes(integrals, partners)
        if whole.in_core <= limit:
            return TensorPlan(make_plan(whole, limit), layout, partners)
        needed.append(whole.in_core)
    engine = direct_fit_bytes(integrals.basis, integrals.aux, integrals.backend)
    plan = make_plan(replace(sizes, engine=engine), limit)
    return TensorPlan(replace(plan, in_core=min(needed)), layout)


def make_tensor(integrals: ThreeCentre, metric: FittingMetric, plan: TensorPlan, timings: Timings) -> FittedTensor:
    """The tensor of a plan."""
    if plan.memory.mode != "in-core":
        with timings.measure("J engine"):
            engine = DirectFit(integrals.basis, integrals.aux, integrals.backend, omega=integrals.omega)
        with timings.measure("three-centre integrals"):
            return BlockTensor(integrals, metric, plan.memory, plan.layout, engine)
    with timings.measure("three-centre integrals"):
        if plan.partners is not None:
            return SCHEDULES[integrals.backend.traits.language].rows(integrals, metric, plan.memory, plan.partners)
        rows = store_all_blocks(integrals, metric, plan.layout)
        return BlockTensor(integrals, metric, plan.memory, plan.layout, rows)


def block_sizes(integrals: ThreeCentre, layout: Layout) -> Sizes:
    """Bytes of integrals in blocks, with copies of X that a device reorders, X of a block and of a slice."""
    n, naux, linalg = integrals.basis.nbf, integrals.aux.nbf, integrals.backend.linalg
    rows = tuple(block.rows for block in layout.blocks)
    column = linalg.stack_copies * n + 2 * max(block.functions for block in layout.blocks)
    return _sizes(integrals, rows, naux, 0 if layout.triangle else column)


def row_sizes(integrals: ThreeCentre, partners: Partners) -> Sizes:
    """Bytes of integrals in rows of functions."""
    n, naux = integrals.basis.nbf, integrals.aux.nbf
    return _sizes(integrals, (partners.rows,), naux + ROW_INDICES, n)


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
        columns=max(COLUMNS, n // OCCUPIED),
    )
