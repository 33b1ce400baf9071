"""The steps of the J engine: Hermite densities, sorted kets, their interactions with bras, and J from potentials.

Each step is one launch for all classes (templates/j_density.h, ...).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Launch, Program, when_ready
from cuanto.coulomb.hermite_pairs import PairBlock
from cuanto.coulomb.j_tables import boys_on, self_repulsion_on, tuples_on
from cuanto.kernels.hermite_build import (
    GROUPINGS,
    TILE,
    general_memory,
    general_source,
    operations,
    step_source,
    straight_source,
    unrolled,
)
from cuanto.kernels.recurrences.hermite_coulomb import GEOMETRY, hermite_count
from cuanto.kernels.text import Source

WORTH_COMPILING = tuning.sizes("j.worth_compiling")
TASK = tuning.number("cpu", "j.task_operations")
SUMMATION = ("j_transform", "j_product", "j_density", "j_reach", "j_record", "j_sum", "j_collect")
"""Steps of every potential."""


@dataclass(frozen=True)
class HermiteClass:
    """All pairs of one Hermite order on the device, block after block."""

    blocks: tuple[PairBlock, ...]
    geometry: dict[str, Any]  # number type -> [pair, field]
    factor: Any  # [pair]: weight p^-3/2
    bound: Any  # [pair]
    along: Any  # [pair]: place along a curve in space

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.blocks[0].order

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.factor)


@dataclass(frozen=True)
class BraClass:
    """The pairs of a class as bras, sorted by their bounds; their Hermite `order` may be higher than the pairs' own."""

    pairs: HermiteClass
    order: int
    rank: Any  # place of each pair among the bras
    record: dict[str, Any]  # number type -> [bra, field]
    bound: Any  # [group of bras]: the largest

    @property
    def count(self) -> int:
        """Number of bras."""
        return self.pairs.count


@dataclass(frozen=True)
class HermiteDensity:
    """H_knt of the pairs of a class, their bounds, and the keys that sort them as kets."""

    H_knt: Any
    bound: Any
    key: Any


@dataclass(frozen=True)
class Reach:
    """Groups of kets of one class that each group of bras meets in double precision (`split`) and in all (`end`).

    rest[k] is the sum of the bounds of the last k + 1 kets.
    """

    rest: Any
    split: Any
    end: Any


class Contraction:
    """The sparse matrix C_pk from functions of primitives to basis functions."""

    def __init__(self, C_pk: Any, backend: Backend) -> None:
        self.backend, self.shape, self._C_pk = backend, C_pk.shape, C_pk

    @cached_property
    def _by_p(self) -> dict[str, Any]:
        return _nonzero(self._C_pk.tocsr(), self.backend)

    @cached_property
    def _by_k(self) -> dict[str, Any]:
        return _nonzero(self._C_pk.T.tocsr(), self.backend)

    def density(self, D_npq: Any) -> Any:
        """X_nkl of the symmetric parts of densities."""
        return self._apply("j_transform", self._by_k, D_npq, 2, 0.5)

    def matrix(self, J_nkl: Any) -> Any:
        """J_npq from the result of `Potentials`: one triangle of pairs, with half of the diagonal."""
        return self._apply("j_transform", self._by_p, J_nkl, 2, 1.0)

    def spread(self, c_np: Any) -> Any:
        """c_nk = sum_p C_pk c_np"""
        return self._apply("j_product", self._by_k, c_np, 1, 1.0)

    def gather(self, x_nk: Any) -> Any:
        """x_np = sum_k C_pk x_nk"""
        return self._apply("j_product", self._by_p, x_nk, 1, 1.0)

    def _apply(self, step: str, matrix: dict[str, Any], array: Any, indices: int, scale: float) -> Any:
        rows, xp = matrix["rows"], self.backend.xp
        out = xp.empty((len(array), *(rows,) * indices))
        program = self.backend.compile(step_source(self.backend.traits.language, step))
        values = {**matrix, "scale": scale, "in": xp.ascontiguousarray(array), "out": out}
        self.backend.launch(program, len(array) * rows, values, 8 * matrix["columns"] if indices == 2 else 0)
        return out


def _nonzero(C: Any, backend: Backend) -> dict[str, Any]:
    arrays = {"start": C.indptr.astype(np.int32), "index": C.indices.astype(np.int32), "value": C.data}
    return {"rows": C.shape[0], "columns": C.shape[1], **backend.upload(arrays)}


class Steps:
    """Hermite densities, records of kets, and J of primitive functions."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self._grouping = backend, GROUPINGS[backend.traits.language]
        self._table = tuples_on(backend)
        for step in SUMMATION:  # compiled side by side
            backend.compile(step_source(backend.traits.language, step))

    def _launch(
        self, step: str, items: int, values: Mapping[str, Any], scratch: int = 0, real: str = "double"
    ) -> Launch:
        program = self.backend.compile(step_source(self.backend.traits.language, step, real))
        return Launch(program, items, values, scratch)

    def densities(self, classes: Sequence[HermiteClass], X_nkl: Any) -> list[HermiteDensity]:
        """Hermite densities of classes from the density X of primitive functions."""
        xp, n = self.backend.xp, len(X_nkl)
        found, launches = [], []
        for c in classes:
            width = n * hermite_count(c.order)
            mine = HermiteDensity(xp.empty((c.count, width)), xp.empty(c.count), xp.empty(c.count, dtype=np.int64))
            common = {"densities": n, "size": X_nkl[0].size, "X": X_nkl, "geometry": c.geometry["double"]}
            common |= {"factor": c.factor, "W": self_repulsion_on(self.backend, c.order), "along": c.along}
            common |= {"H": mine.H_knt, "bound": mine.bound, "key": mine.key}
            launches += [
                self._launch("j_density", block.count, {**common, **self._values(block, first)}, 8 * width)
                for block, first in blocks_of(c)
            ]
            found.append(mine)
        self.backend.launch_all(launches)
        return found

    def reach(self, rests: Sequence[Any], bounds: Any, limit: float, single_limit: float) -> list[Reach]:
        """The kets that every group of bras meets, for classes of kets.

        A limit is the largest contribution of all neglected kets (or of all in single precision) together.
        """
        both = self.backend.xp.empty((len(rests), 2, len(bounds)), dtype=np.int32)
        found = [Reach(rest, both[i, 0], both[i, 1]) for i, rest in enumerate(rests)]
        common = {"bounds": bounds, "limit": limit, "single_limit": single_limit}
        launches = []
        for r in found:
            values = {**common, "kets": len(r.rest), "rest": r.rest, "split": r.split, "last": r.end}
            launches.append(self._launch("j_reach", len(bounds), values))
        self.backend.launch_all(launches)
        return found

    def records(self, kets: Sequence[tuple[HermiteClass, Any, HermiteDensity]], n: int, real: str) -> list[Any]:
        """Records of the sorted kets of classes: [group, field, ket of the group]."""
        found, launches = [], []
        for c, order, density in kets:
            geometry, tuples, side = c.geometry[real], hermite_count(c.order), self._grouping.kets
            shape = (-(-c.count // side), GEOMETRY[real] + n * tuples, side)
            record = self.backend.xp.empty(shape, dtype=geometry.dtype)
            values = {"kets": c.count, "densities": n, "tuples": tuples, "order": order, "geometry": geometry}
            values |= {"H": density.H_knt, "factor": c.factor, "record": record, "table": self._table}
            launches.append(self._launch("j_record", shape[0] * shape[1], values, real=real))
            found.append(record)
        self.backend.launch_all(launches)
        return found

    def add_up(self, parts: Mapping[int, Any]) -> dict[int, Any]:
        """Sums of potentials [part, ...] by Hermite order."""
        sums, launches = {}, []
        for order, V in parts.items():
            sums[order] = self.backend.xp.empty(V.shape[1])
            values = {"parts": len(V), "size": V.shape[1], "potentials": V, "V": sums[order]}
            launches.append(self._launch("j_sum", V.shape[1], values))
        self.backend.launch_all(launches)
        return sums

    def collect(self, bras: Sequence[BraClass], V: Mapping[int, Any], J_nkl: Any) -> None:
        """Write the potentials of classes, contracted with their expansions, into J of primitive functions."""
        launches = []
        for c in bras:
            common = {**self.potential(c, V, len(J_nkl)), "densities": len(J_nkl), "size": J_nkl[0].size, "J": J_nkl}
            launches += [
                self._launch("j_collect", block.count * block.functions, {**common, **self._values(block, first)})
                for block, first in blocks_of(c.pairs)
            ]
        self.backend.launch_all(launches)

    def potential(self, bras: BraClass, V: Mapping[int, Any], densities: int) -> dict[str, Any]:
        """Arguments of kernels: the potentials V of the bras of a class, from `add_up`."""
        width = densities * hermite_count(bras.order)
        bra, value = (width, 1) if self._grouping.bra_major else (1, bras.count)
        strides = {"bra_stride": bra, "value_stride": value}
        return {**strides, "rank": bras.rank, "factor": bras.pairs.factor, "V": V[bras.order]}

    def _values(self, block: PairBlock, first: int) -> dict[str, Any]:
        return {**block.pairs(self._table), **block.places, "first": first, "E": block.E_kft}


def blocks_of(c: HermiteClass) -> Iterator[tuple[PairBlock, int]]:
    """The blocks of a class, with their first pairs."""
    starts = accumulate((block.count for block in c.blocks), initial=0)
    return zip(c.blocks, starts, strict=False)


@dataclass(frozen=True)
class Interactions:
    """Bras of one Hermite order against kets of one order; fields are also arguments of the kernels.

    Group g of bras meets the groups of kets from ket_begin[g] to ket_end[g]; `GROUPINGS` has the sizes of groups.
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
        """The straight-line kernel, if the class has one that is worth its compilation."""
        if not unrolled(target, *self.orders, self.densities) or self.bras * self.kets < WORTH_COMPILING[target]:
            return None
        return straight_source(target, *self.orders, self.densities, self.real)


def chunks_of_kets(backend: Backend, bras: int, kets: int) -> int:
    """Number of chunks of the kets of a job: enough for all multiprocessors, none smaller than a tile."""
    grouping = GROUPINGS[backend.traits.language]
    blocks = grouping.blocks * backend.traits.workers
    return max(1, min(-(-blocks // -(-bras // grouping.bras)), -(-kets // TILE)))


class Launcher:
    """Runs interactions; `bras`, `kets`: their numbers by Hermite order. Sums of a bra have a fixed order."""

    def __init__(self, backend: Backend, bras: dict[int, int], kets: dict[int, int], reals: Sequence[str]) -> None:
        self.backend = backend
        self._tables = {real: boys_on(backend, real) for real in reals}
        self._tuples = tuples_on(backend)
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
        """Partial potentials of the bras by their order, [part, ...], which have to be summed."""
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
        """The launch with the fastest kernel that is compiled."""
        target = self.backend.traits.language
        values = {**vars(job), "chunks": chunks, "boys_table": self._tables[job.real], "out": out}
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
        bra_order, ket_order = job.orders
        program = self.backend.compile(general_source(target, job.real))
        general = launch(program, scratch, bra_order=bra_order, ket_order=ket_order, tuples=self._tuples, lanes=lanes)
        return general if straight is None else replace(general, better=when_ready(straight))
