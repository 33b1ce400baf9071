"""How fitted integrals are stored: chosen once, from sizes and the memory that is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cuanto import tuning
from cuanto.coulomb.fitted_tensor import FittedTensor, ThreeCentre
from cuanto.coulomb.fitting_blocks import KeptBlocks
from cuanto.coulomb.fitting_direct import DirectFit, DirectTensor, direct_fit_bytes
from cuanto.coulomb.fitting_layout import Layout, make_layout
from cuanto.coulomb.fitting_rows import GroupedRows, NativeRows, Partners, find_partners
from cuanto.coulomb.memory import BUILD_MATRICES, COLUMNS, Plan, Sizes, make_plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.log import Timings

OCCUPIED = 5
"""Functions for each occupied orbital, about: where integrals are made again, all orbitals should go at once."""
ROW_INDICES = 3
"""Numbers that are kept with a row beside its integrals, at most: where it belongs, its weight, its density."""


@dataclass(frozen=True)
class Schedule:
    """What suits a device.

    `storages` of all integrals of J and K, the fastest first; `functions` of a block at least: enough to be worth a
    call, few enough to have few partners; `rows`: how rows of functions are multiplied.
    """

    storages: tuple[str, ...]
    functions: int
    rows: Callable[..., FittedTensor]


FUNCTIONS = tuning.sizes("fitting.block_functions")
SCHEDULES = {
    "cpu": Schedule(("rows",), FUNCTIONS["cpu"], NativeRows),
    "cuda": Schedule(("blocks", "rows"), FUNCTIONS["cuda"], GroupedRows),
}
"""By the language of kernels. A GPU wants few calls, and has rows where blocks do not fit."""


@dataclass(frozen=True)
class TensorPlan:
    """What is kept, as rows of functions where there are `partners`, else in the blocks of the layout."""

    memory: Plan
    layout: Layout
    partners: Partners | None = None


def plan_tensor(integrals: ThreeCentre, exchange: bool, limit: int) -> TensorPlan:
    """The fastest storage within so many bytes; `exchange`: for K, too."""
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
    """What a plan says."""
    engine = None
    if plan.memory.mode != "in-core":
        with timings.measure("J engine"):
            engine = DirectFit(integrals.basis, integrals.aux, integrals.backend, omega=integrals.omega)
    with timings.measure("three-centre integrals"):
        if engine is not None:
            return DirectTensor(integrals, metric, plan.memory, plan.layout, engine)
        if plan.partners is None:
            return KeptBlocks(integrals, metric, plan.memory, plan.layout)
        return SCHEDULES[integrals.backend.traits.language].rows(integrals, metric, plan.memory, plan.partners)


def block_sizes(integrals: ThreeCentre, layout: Layout) -> Sizes:
    """Bytes of integrals in blocks; X is there twice where a device reorders it, beside that of a block and a part."""
    n, naux, linalg = integrals.basis.nbf, integrals.aux.nbf, integrals.backend.linalg
    rows = tuple(block.rows for block in layout.blocks)
    column = linalg.stack_copies * n + 2 * max(block.functions for block in layout.blocks)
    return _sizes(integrals, rows, naux, 0 if layout.triangle else column)


def row_sizes(integrals: ThreeCentre, partners: Partners) -> Sizes:
    """Bytes of integrals in rows of functions."""
    n, naux = integrals.basis.nbf, integrals.aux.nbf
    return _sizes(integrals, (partners.rows,), naux + ROW_INDICES, n)


def _sizes(integrals: ThreeCentre, rows: tuple[int, ...], numbers: int, column: int) -> Sizes:
    """Bytes from the rows of all blocks, numbers of a row, and rows of a column of X."""
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
