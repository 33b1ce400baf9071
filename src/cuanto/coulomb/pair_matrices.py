"""Tables of four-centre integrals by products of matrices: plans and expansion coefficients of pairs, by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints32, range_members, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.coulomb.pair_classes import DevicePairs
from cuanto.kernels.direct import cpu_expand
from cuanto.kernels.layout import MATRICES, PAIR_PLAN, Layout, Records
from cuanto.kernels.md_matrices import PARITIES, Plan, cube_places, hermite_table, plan_of
from cuanto.kernels.spec import Shells

_stamps = count()


@dataclass(frozen=True)
class BraMatrices:
    """Plans of the bras of a class, and the coefficients of their primitives, which begin at `start` [primitive]."""

    plans: Records
    start: Any
    expansion: Any


class PairMatrices:
    """Makes the tables of classes, in numbers of the type `real`; those of a class of pairs only once."""

    def __init__(self, backend: Backend, real: np.dtype[Any]) -> None:
        self.backend, self.real, self._stamp = backend, real, next(_stamps)
        self._expand = backend.compile(cpu_expand())
        self._bras: dict[int, tuple[DevicePairs, BraMatrices]] = {}
        self._kets: dict[int, tuple[DevicePairs, Records]] = {}

    def tables(self, bra: DevicePairs, ket: DevicePairs) -> Records:
        """The record of a class."""
        bras, kets = self._bra(bra), self._ket(ket)
        order_bra, order_ket = (sum(pairs.host.bra.shells.l) for pairs in (bra, ket))
        total, hermites = order_bra + order_ket, len(hermite_table(order_bra))
        ket_functions = ket.host.functions[0] * ket.host.functions[1]
        row = {
            "order": total,
            "cube": (total + 1) ** 3,
            "bra_functions": bra.host.functions[0] * bra.host.functions[1],
            "ket_functions": ket_functions,
            "bra_hermites": hermites,
            "ket_hermites": len(hermite_table(order_ket)),
            "bra_places": cube_places(order_bra, total),
            "ket_places": cube_places(order_ket, total),
            "identity": np.arange(hermites, dtype=np.int32),
            "ket_columns": hermites * np.arange(ket_functions, dtype=np.int32),
            "bra_plans": bras.plans,
            "ket_plans": kets,
            "bra_start": bras.start,
            "bra_expansion": bras.expansion,
            "stamp": self._stamp,
        }
        return self._records(MATRICES, [row])

    def _records(self, layout: Layout, rows: Sequence[dict[str, Any]]) -> Records:
        return Records(layout, rows, self.backend.address)

    def _bra(self, pairs: DevicePairs) -> BraMatrices:
        if id(pairs) not in self._bras:
            batch = pairs.host.bra
            parity = _parity(batch.shell)
            plans = _plans(batch.shells, parity, ket=False)
            owner, _ = range_members(np.diff(batch.first))
            sizes = np.array([0 if plan is None else plan.coefficients for plan in plans])[parity[owner]]
            records = self._records(PAIR_PLAN, [_plan_row(batch.shells, plan) for plan in plans])
            start = range_starts(sizes)
            expansion = np.empty(start[-1])
            values = {"plans": records.array, "parity": parity[owner], "start": start, "bra_record": batch.record}
            self.backend.launch_all([Launch(self._expand, len(owner), {**values, "out": expansion})])
            self._bras[id(pairs)] = pairs, BraMatrices(records, start, expansion.astype(self.real, copy=False))
        return self._bras[id(pairs)][1]

    def _ket(self, pairs: DevicePairs) -> Records:
        if id(pairs) not in self._kets:
            shells = pairs.host.bra.shells
            plans = _plans(shells, _parity(pairs.host.bra.shell), ket=True)
            self._kets[id(pairs)] = pairs, self._records(PAIR_PLAN, [_plan_row(shells, plan) for plan in plans])
        return self._kets[id(pairs)][1]


def _parity(AB: Array) -> Ints32:
    """Axes, as bits, along which both centres of a pair have the same coordinate."""
    parity: Ints32 = ((AB == 0.0) @ np.array([1, 2, 4])).astype(np.int32)
    return parity


def _plans(shells: Shells, parity: Ints32, ket: bool) -> list[Plan | None]:
    """The plans that are needed, for each parity; that of no parity can replace all others."""
    needed = {0, *parity.tolist()}
    return [plan_of(shells, i, ket) if i in needed else None for i in range(PARITIES)]


def _plan_row(shells: Shells, plan: Plan | None) -> dict[str, Any]:
    names = ("rows", "start", "hermites", "first", "factors", "weights")
    row: dict[str, Any] = {"la": shells.l[0], "lb": shells.l[1]}
    row |= {"panels": 0 if plan is None else len(plan.rows), "coefficients": 0 if plan is None else plan.coefficients}
    return row | {name: None if plan is None else getattr(plan, name) for name in names}
