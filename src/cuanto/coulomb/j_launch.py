"""Interactions of classes of Hermite distributions: which kernel, in how many parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from cuanto import tuning
from cuanto.backends.base import Backend, Launch, Program, when_ready
from cuanto.kernels.hermite_build import (
    GROUPINGS,
    TILE,
    general_memory,
    general_source,
    operations,
    straight_source,
    tuple_table,
    unrolled,
)
from cuanto.kernels.recurrences.boys import boys_table, table_float
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.text import Source

WORTH_COMPILING = tuning.sizes("j.worth_compiling")
TASK = tuning.number("cpu", "j.task_operations")


@dataclass(frozen=True)
class Interactions:
    """Bras of one Hermite order against kets of one order.

    Group g of bras meets the groups of kets from ket_begin[g] to ket_end[g]; `GROUPINGS` says how long groups are.
    """

    orders: tuple[int, int]
    densities: int
    real: str
    bras: int
    kets: int
    bra_record: Any
    ket_record: Any
    ket_begin: Any
    ket_end: Any

    @property
    def width(self) -> int:
        """Numbers of a bra's potential."""
        return self.densities * hermite_count(self.orders[0])

    @property
    def operations(self) -> int:
        """Multiply-adds of one interaction."""
        return operations(*self.orders, self.densities)

    def straight(self, target: str) -> Source | None:
        """Straight-line code, where it is right for the class and worth its compilation."""
        if not unrolled(target, *self.orders, self.densities) or self.bras * self.kets < WORTH_COMPILING[target]:
            return None
        return straight_source(target, *self.orders, self.densities, self.real)


def chunks_of_kets(backend: Backend, bras: int, kets: int) -> int:
    """Parts into which the kets of a job are cut: enough for all multiprocessors, none smaller than a tile."""
    grouping = GROUPINGS[backend.traits.language]
    blocks = grouping.blocks * backend.traits.workers
    return max(1, min(-(-blocks // -(-bras // grouping.bras)), -(-kets // TILE)))


class Launcher:
    """Runs interactions; `bras`, `kets`: how many by Hermite order. Sums of a bra are made in a fixed order."""

    def __init__(self, backend: Backend, bras: dict[int, int], kets: dict[int, int], reals: Sequence[str]) -> None:
        self.backend = backend
        self._tables = {"double": backend.to_device(boys_table()), "float": backend.to_device(table_float())}
        self._tuples = backend.to_device(tuple_table())
        for real in reals:
            backend.compile(general_source(backend.traits.language, real))
        # (orders, number type) -> the job's chunks among those of all jobs with the same bras
        self._chunks: dict[tuple[tuple[int, int], str], slice] = {}
        self._totals: dict[int, int] = {}
        for bra in bras:
            at = 0
            for ket, real in product(kets, reals):
                count = chunks_of_kets(backend, bras[bra], kets[ket])
                self._chunks[(bra, ket), real] = slice(at, at + count)
                at += count
            self._totals[bra] = at

    def run(self, jobs: Sequence[Interactions]) -> dict[int, Any]:
        """Parts of the potentials of the bras by their order, [part, ...], to be added up."""
        parts: dict[int, Any] = {}
        launches = []
        for job in jobs:
            order = job.orders[0]
            if order not in parts:
                parts[order] = self.backend.xp.empty((self._totals[order], job.width * job.bras))
            chunks = self._chunks[job.orders, job.real]
            launches.append(self._launch(job, chunks.stop - chunks.start, parts[order][chunks]))
        self.backend.launch_all(launches)
        return parts

    def _launch(self, job: Interactions, chunks: int, out: Any) -> Launch:
        """With the best kernel there is."""
        target = self.backend.traits.language
        values = {
            "bras": job.bras,
            "chunks": chunks,
            "bra_record": job.bra_record,
            "ket_begin": job.ket_begin,
            "ket_end": job.ket_end,
            "ket_record": job.ket_record,
            "boys_table": self._tables[job.real],
            "out": out,
        }
        grain = max(1, int(TASK / (job.kets * job.operations)))

        def launch(program: Program, scratch: int, **more: Any) -> Launch:
            together = program.source.per_block
            items = -(-job.bras // together) * together * chunks
            return Launch(program, items, {**values, **more}, scratch, grain)

        source = job.straight(target)
        straight = None if source is None else launch(self.backend.compile(source, later=True), 0)
        if straight is not None and straight.program.ready:
            return straight
        lanes, scratch = general_memory(target, job.orders, job.densities, job.real)
        orders = {"bra_order": job.orders[0], "ket_order": job.orders[1], "densities": job.densities}
        program = self.backend.compile(general_source(target, job.real))
        general = launch(program, scratch, **orders, tuples=self._tuples, lanes=lanes)
        return general if straight is None else replace(general, better=when_ready(straight))
