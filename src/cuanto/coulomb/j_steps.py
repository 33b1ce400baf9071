"""The steps of the J engine: Hermite densities, sorted kets, their interactions with bras, and J from potentials.

Each step is one launch for all classes (templates/j_density.h, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import SparseMatrix
from cuanto.backends.base import Backend, Launch, Program
from cuanto.backends.tiers import is_worth_waiting, uses_special
from cuanto.coulomb.hermite_pairs import PairArrays, PairBlock
from cuanto.coulomb.j_tables import self_repulsion_on, tuples_on
from cuanto.integrals.engine import boys_on
from cuanto.kernels.cost import BOYS_OPERATIONS
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
CLASSES = 64
"""Maximum number of classes: their numbers are part of 64-bit keys."""


@dataclass(frozen=True)
class HermiteClass:
    """Pairs of a set of charges with the same Hermite order, block after block."""

    number: int
    blocks: tuple[PairBlock, ...]

    @property
    def name(self) -> str:
        """Name of the set of charges."""
        return self.blocks[0].charges.name

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.blocks[0].order

    @property
    def first(self) -> int:
        """The first pair."""
        return self.blocks[0].first

    @cached_property
    def count(self) -> int:
        """Number of pairs."""
        return sum(block.count for block in self.blocks)

    @property
    def range(self) -> slice:
        """Range of the pairs in the arrays over all pairs."""
        return slice(self.first, self.first + self.count)


@dataclass(frozen=True)
class BraClass:
    """The pairs of a class as bras, sorted by their bounds; their Hermite `order` may be higher than the pairs' own."""

    pairs: HermiteClass
    order: int
    groups: slice  # of bras, which share their range of kets
    rank: Any  # [pair of all classes]: position among the bras of its class
    record: dict[str, Any]  # number type -> [bra, field]

    @property
    def count(self) -> int:
        """Number of bras."""
        return self.pairs.count


@dataclass(frozen=True)
class HermiteDensities:
    """H_knt of the pairs of each class; for all pairs their bounds, and the keys that sort them as kets."""

    H_knt: list[Any]
    bound: Any
    key: Any


@dataclass(frozen=True)
class Reach:
    """Number of groups of kets of one class that interact with each group of bras: in double precision (`split`), and
    in total (`end`).

    rest[k] is the sum of the bounds of the last k + 1 kets.
    """

    rest: Any
    split: Any
    end: Any


class Contraction:
    """The sparse matrix C_pk from functions of primitives to basis functions."""

    def __init__(self, C_pk: SparseMatrix, backend: Backend) -> None:
        self.backend, self.shape, self._C_pk = backend, C_pk.shape, C_pk

    @cached_property
    def _by_p(self) -> dict[str, Any]:
        return _nonzero(self._C_pk, self.backend)

    @cached_property
    def _by_k(self) -> dict[str, Any]:
        return _nonzero(self._C_pk.T, self.backend)

    def density(self, D_npq: Any, out: Any | None = None) -> Any:
        """X_nkl of the symmetric parts of densities, written to `out` if given."""
        return self._apply("j_transform", self._by_k, D_npq, 2, 0.5, out)

    def matrix(self, J_nkl: Any) -> Any:
        """J_npq from the result of `Potentials`: one triangle of pairs, with half of the diagonal."""
        return self._apply("j_transform", self._by_p, J_nkl, 2, 1.0)

    def spread(self, c_np: Any, out: Any | None = None) -> Any:
        """c_nk = sum_p C_pk c_np, written to `out` if given."""
        return self._apply("j_product", self._by_k, c_np, 1, 1.0, out)

    def gather(self, x_nk: Any) -> Any:
        """x_np = sum_k C_pk x_nk"""
        return self._apply("j_product", self._by_p, x_nk, 1, 1.0)

    def _apply(
        self, step: str, matrix: dict[str, Any], array: Any, indices: int, scale: float, out: Any | None = None
    ) -> Any:
        rows, xp = matrix["rows"], self.backend.xp
        out = xp.empty((len(array), *(rows,) * indices)) if out is None else out
        program = self.backend.compile(step_source(self.backend.traits.language, step))
        values = {**matrix, "scale": scale, "in": xp.ascontiguousarray(array), "out": out}
        self.backend.launch(program, len(array) * rows, values, 8 * matrix["columns"] if indices == 2 else 0)
        return out


def _nonzero(C: SparseMatrix, backend: Backend) -> dict[str, Any]:
    start, index, value = C.compressed_rows
    arrays: dict[str, NDArray[Any]] = {"start": start.astype(np.int32), "index": index.astype(np.int32), "value": value}
    return {"rows": C.shape[0], "columns": C.shape[1], **backend.upload(arrays)}


class Steps:
    """Hermite densities, records of kets, and J of primitive functions."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self._grouping = backend, GROUPINGS[backend.traits.language]
        self._table = tuples_on(backend)
        for step in SUMMATION:  # compiled concurrently
            backend.compile(step_source(backend.traits.language, step))

    def _launch(
        self, step: str, items: int, values: Mapping[str, Any], scratch: int = 0, real: str = "double"
    ) -> Launch:
        program = self.backend.compile(step_source(self.backend.traits.language, step, real))
        return Launch(program, items, values, scratch)

    def as_bras(
        self, table: Any, arrays: PairArrays, groups: int, smearing: float, higher: int
    ) -> tuple[Any, Any, Any]:
        """Sort pairs by their bounds as bras of a `higher` order: their ranks and records, and bounds of groups."""
        xp, count = self.backend.xp, len(arrays.u)
        raised, key = xp.empty(count), xp.empty(count, dtype=np.int64)
        values = {**vars(arrays), "classes": table, "higher": higher, "raised": raised, "key": key}
        self.backend.launch_all([self._launch("j_keys", count, values)])
        # Neighbouring lanes and threads take the same branch and the same rows of the Boys function's table.
        values |= {"order": xp.argsort(key), "smearing": smearing, "rank": key}
        values |= {"record": xp.empty((count, 4)), "largest": xp.empty(groups)}
        self.backend.launch_all([self._launch("j_bras", groups, values)])
        return key, values["record"], values["largest"]

    def densities(self, classes: Sequence[HermiteClass], arrays: PairArrays, X_nkl: Any) -> HermiteDensities:
        """Hermite densities of classes from the density X of primitive functions."""
        xp, n, count = self.backend.xp, len(X_nkl), len(arrays.u)
        found, launches = HermiteDensities([], xp.empty(count), xp.empty(count, dtype=np.int64)), []
        common = {**vars(arrays), "densities": n, "size": X_nkl[0].size, "X": X_nkl}
        common |= {"bound": found.bound, "key": found.key}
        for c in classes:
            width = n * hermite_count(c.order)
            found.H_knt.append(xp.empty((c.count, width)))
            own = {**common, "start": c.first, "number": c.number, "H": found.H_knt[-1]}
            own["W"] = self_repulsion_on(self.backend, c.order)
            for block in c.blocks:
                launches.append(self._launch("j_density", block.count, {**own, **self._values(block)}, 8 * width))
        self.backend.launch_all(launches)
        return found

    def reach(
        self, kets: tuple[Any, int], rest: Any, bounds: Any, limit: float, single_limit: float
    ) -> tuple[Any, Any]:
        """The kets that interact with every group of bras [class of kets, group]: in double precision, and in total.

        `kets`: table of their classes, and its length. A limit is the largest contribution of all neglected kets (or
        of all in single precision) together.
        """
        (table, count), groups = kets, len(bounds)
        both = self.backend.xp.empty((2, count, groups), dtype=np.int32)
        values = {"classes": table, "groups": groups, "rest": rest, "bounds": bounds, "limit": limit}
        values |= {"single_limit": single_limit, "split": both[0], "last": both[1]}
        self.backend.launch_all([self._launch("j_reach", count * groups, values)])
        return both[0], both[1]

    def records(
        self, kets: Sequence[tuple[HermiteClass, Any]], order: Any, arrays: PairArrays, n: int, real: str
    ) -> list[Any]:
        """Records of the kets of classes, last ones first: [group, field, ket of the group]; `kets`: with their H_knt.

        Geometries in `arrays` have the number type `real`.
        """
        found, launches = [], []
        common = {"densities": n, "order": order, "geometry": arrays.geometry, "factor": arrays.factor}
        for c, H_knt in kets:
            tuples, side = hermite_count(c.order), self._grouping.kets
            shape = (-(-c.count // side), GEOMETRY[real] + n * tuples, side)
            record = self.backend.xp.empty(shape, dtype=arrays.geometry.dtype)
            values = {**common, "first": c.first, "kets": c.count, "tuples": tuples, "H": H_knt, "record": record}
            values["table"] = self._table
            launches.append(self._launch("j_record", shape[0] * shape[1], values, real=real))
            found.append(record)
        self.backend.launch_all(launches)
        return found

    def add_up(self, parts: Sequence[tuple[Any, int]]) -> list[Any]:
        """Sums of potentials of classes of bras, each given as ([part, ...], number of positive parts); the other
        parts are subtracted."""
        sums, launches = [], []
        for V, plus in parts:
            sums.append(self.backend.xp.empty(V.shape[1]))
            values = {"parts": len(V), "plus": plus, "size": V.shape[1], "potentials": V, "V": sums[-1]}
            launches.append(self._launch("j_sum", V.shape[1], values))
        self.backend.launch_all(launches)
        return sums

    def collect(self, bras: Sequence[BraClass], V: Sequence[Any], J_nkl: Any) -> None:
        """Write the potentials of classes, contracted with their expansions, into J of primitive functions."""
        parts = []
        for c, V_c in zip(bras, V, strict=True):
            common = self.potential(c, V_c, len(J_nkl))
            parts += [(block, common) for block in c.pairs.blocks]
        self.collect_blocks(parts, J_nkl)

    def collect_blocks(self, parts: Sequence[tuple[PairBlock, Mapping[str, Any]]], J_nkl: Any) -> None:
        """The same for blocks of pairs with their potentials, given as by `potential`."""
        common = {"densities": len(J_nkl), "size": J_nkl[0].size, "J": J_nkl}
        launches = [
            self._launch("j_collect", block.count * block.functions, {**V, **common, **self._values(block)})
            for block, V in parts
        ]
        self.backend.launch_all(launches)

    def potential(self, bras: BraClass, V: Any, densities: int) -> dict[str, Any]:
        """Arguments of kernels: the potential V of the bras of a class, from `add_up`."""
        width = densities * hermite_count(bras.order)
        bra, value = (width, 1) if self._grouping.bra_major else (1, bras.count)
        factor = bras.pairs.blocks[0].arrays.factor
        return {"bra_stride": bra, "value_stride": value, "rank": bras.rank, "factor": factor, "V": V}

    def _values(self, block: PairBlock) -> dict[str, Any]:
        return {**block.pairs(self._table), **block.density_offsets, "E": block.E_kft}


@dataclass(frozen=True)
class Interactions:
    """Bras of one Hermite order against kets of one order; fields are also arguments of the kernels.

    Group g of bras interacts with the groups of kets from ket_begin[g] to ket_end[g]; `GROUPINGS` has the sizes of
    groups.
    `classes`: numbers of the classes.
    """

    classes: tuple[int, int]
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
    """Runs interactions of classes; sums of a bra have a fixed order. `sign` of the kets' densities; 0: they do not
    interact.

    `room`: bytes for the potentials of one density. Kets are divided into fewer chunks if it is not sufficient.
    `calls`: expected number of calls in a calculation.
    """

    calls = 1

    def __init__(
        self,
        backend: Backend,
        bras: Sequence[BraClass],
        kets: Sequence[HermiteClass],
        reals: Sequence[str],
        sign: Callable[[HermiteClass, HermiteClass], int],
        room: float = np.inf,
    ) -> None:
        self.backend, self._bras = backend, bras
        self._tables = {real: boys_on(backend, real) for real in reals}
        self._tuples = tuples_on(backend)
        for real in reals:
            backend.compile(general_source(backend.traits.language, real))
        # (classes, number type) -> chunks of the job, numbered over all jobs with the same bras
        self.chunks: dict[tuple[tuple[int, int], str], slice] = {}
        self._sizes: list[tuple[int, int]] = []  # chunks of a class of bras, those with positive signs
        signed_kets = [[(n, ket) for n in (1, -1) for ket in kets if sign(bra.pairs, ket) == n] for bra in bras]
        wanted_bytes = sum(
            8 * len(reals) * hermite_count(bra.order) * bra.count * chunks_of_kets(backend, bra.count, ket.count)
            for bra, kets_of_bra in zip(bras, signed_kets, strict=True)
            for _, ket in kets_of_bra
        )
        share = min(1.0, room / max(1, wanted_bytes))
        for bra, kets_of_bra in zip(bras, signed_kets, strict=True):
            at = plus = 0
            for (wanted, ket), real in product(kets_of_bra, reals):
                end = at + max(1, int(share * chunks_of_kets(backend, bra.count, ket.count)))
                self.chunks[(bra.pairs.number, ket.number), real] = slice(at, end)
                at, plus = end, end if wanted > 0 else plus
            self._sizes.append((at, plus))

    def run(self, jobs: Sequence[Interactions], densities: int) -> list[tuple[Any, int]]:
        """Potentials of the classes of bras [part, ...], which have to be summed, and the first negative one."""
        parts = []
        for bra, (chunks, plus) in zip(self._bras, self._sizes, strict=True):
            width = densities * hermite_count(bra.order) * bra.count
            parts.append((self.backend.xp.empty((chunks, width)), plus))
        launches = []
        for job in jobs:
            span = self.chunks[job.classes, job.real]
            launches.append(self._launch(job, span.stop - span.start, parts[job.classes[0]][0][span]))
        self.backend.launch_all(launches)
        return parts

    def _launch(self, job: Interactions, chunks: int, out: Any) -> Launch:
        """The launch with the kernel that the calculation has chosen for the class."""
        target = self.backend.traits.language
        values = {**vars(job), "chunks": chunks, "boys_table": self._tables[job.real], "out": out}
        grain = max(1, int(TASK / (job.kets * job.operations)))

        def launch(program: Program, scratch: int = 0, **more: Any) -> Launch:
            per_block = program.source.per_block
            items = -(-job.bras // per_block) * per_block * chunks
            return Launch(program, items, values, scratch, grain, **more)

        def general() -> Launch:
            lanes, scratch = general_memory(target, job.orders, job.densities, job.real)
            bra_order, ket_order = job.orders
            values.update(bra_order=bra_order, ket_order=ket_order, tuples=self._tuples, lanes=lanes)
            return launch(self.backend.compile(general_source(target, job.real)), scratch)

        if (source := job.straight(target)) is not None:
            work = self.calls * job.bras * job.kets * (job.operations + BOYS_OPERATIONS)
            wait = is_worth_waiting(self.backend, "j.worth_waiting", work, job.operations)
            program = self.backend.compile(source, later=not wait)
            if uses_special(program, wait):
                return launch(program, otherwise=None if program.ready else general)
        return general()
