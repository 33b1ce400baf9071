"""Two-electron integrals of a basis (supermatrices) and their contraction with densities, P = (J - K)[D].

The integrals depend neither on c nor on the nucleus: one `Repulsion` serves every calculation with these exponents.
Pairs of all symmetries have one numbering, each symmetry padded to whole groups of columns; integrals of the padding
are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.atomic.atom import AtomBasis
from cuanto.atomic.pairs import LAYOUTS, Matrices, PairOffsets, Pairs, Triangle
from cuanto.atomic.species import SPECIES, exchange_factors
from cuanto.backends.base import Backend, Launch, get_backend
from cuanto.kernels.atomic import COMPONENTS, Task, class_tables, contract_source, integral_source
from cuanto.kernels.text import Source
from cuanto.log import Timings
from cuanto.memory import Budget


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that depends on the numbers of pairs only: `tasks` [task][field of `Task`], launches, tables."""

    places: PairOffsets
    layout: Triangle | Matrices
    tasks: NDArray[np.int64]
    parts: tuple[tuple[Source, slice, int], ...]
    """Kernels with their tasks and numbers of items."""
    tables: dict[str, NDArray[Any]]


@cache
def make_plan(counts: tuple[int, ...], relativistic: bool, language: str) -> Plan:
    """Make the plan for these numbers of pairs; it does not depend on the exponents, and is cached."""
    positions = PairOffsets.of(counts)
    layout = LAYOUTS[language](positions, relativistic)
    by_source: dict[Source, list[Task]] = {}
    tables = {}
    for task in layout.tasks():
        one, other = SPECIES[task.i], SPECIES[task.j]
        by_source.setdefault(integral_source(language, one.kappa, other.kappa, relativistic), []).append(task)
        tables[task.i, task.j] = class_tables(one.kappa, other.kappa, tuple(exchange_factors(one, other).items()))
    shapes, values = [one.shape for one in tables.values()], [one.values for one in tables.values()]
    starts = dict(zip(tables, zip(_starts(shapes), _starts(values), strict=True), strict=True))
    records: list[Task] = []
    parts = []
    for source, tasks in by_source.items():
        begin, items = len(records), 0
        for task in tasks:
            shape, table = starts[task.i, task.j]
            records.append(task._replace(first_item=items, shape=shape, table=table))
            items += task.items
        parts.append((source, slice(begin, len(records)), items))
    joined: dict[str, NDArray[Any]] = {"shape": np.concatenate(shapes), "table": np.concatenate(values)}
    return Plan(positions, layout, np.array(records, dtype=np.int64), tuple(parts), joined)


def _starts(arrays: Sequence[NDArray[Any]]) -> list[int]:
    """Offset of each array when they are concatenated."""
    return list(accumulate((len(one) for one in arrays[:-1]), initial=0))


class Repulsion:
    """Supermatrices of a basis on a backend; without `relativistic` those of large components only.

    `max_memory` limits their size in bytes. Densities and potentials are matrices of every symmetry, 2n x 2n
    (n x n without relativity).
    """

    def __init__(
        self,
        basis: AtomBasis,
        backend: str | Backend = "auto",
        relativistic: bool = True,
        max_memory: float | None = None,
    ) -> None:
        self.basis, self.relativistic = basis, relativistic
        self.backend = backend = get_backend(backend) if isinstance(backend, str) else backend
        self.timings = Timings(synchronize=backend.synchronize)
        self.pairs = [Pairs.of(species, z) for species, z in zip(SPECIES, basis.exponents, strict=False)]
        self.plan = make_plan(tuple(one.count for one in self.pairs), relativistic, backend.traits.language)
        budget = Budget(backend, max_memory)
        budget.require_room()
        budget.reserve(f"two-electron integrals of {sum(basis.sizes)} functions", self.plan.layout.bytes_needed)
        with self.timings.measure("integrals"):
            self.matrices = self._compute()

    def _compute(self) -> dict[str, Any]:
        plan, backend = self.plan, self.backend
        self._program = backend.compile(contract_source(backend.traits.language, self.relativistic))
        programs = [backend.compile(source) for source, _, _ in plan.parts]
        matrices = plan.layout.allocate(backend)
        records = {
            "row_record": np.concatenate([one.row_record for one in self.pairs]),
            "column_record": np.concatenate([one.column_record for one in self.pairs]),
        }
        given = backend.upload({"tasks": plan.tasks, **plan.tables, **records})
        self._arguments = {**given, **matrices, "total": plan.places.total}
        self._equal_weights = self._weights([0, plan.places.total], np.ones((1, 1)))
        launches = []
        for program, (_, part, items) in zip(programs, plan.parts, strict=True):
            own = {"tasks": given["tasks"][part], "count": part.stop - part.start}
            launches.append(Launch(program, items, {**self._arguments, **own}, grain=1))
        backend.launch_all(launches)
        return matrices

    def potential(self, D_i: Sequence[Array]) -> list[Array]:
        """P of every symmetry from the densities of all."""
        return self._start(D_i, range(len(self.pairs)), self._equal_weights)()

    def open_shell(self, D_i: Sequence[Array], chosen: Sequence[int], A_lm: Array) -> list[Array]:
        """Q_l = sum_m A_lm (J - K)[D_m] for the symmetries `chosen`, in their order; A is symmetric."""
        return self._start(D_i, chosen, self._open_weights(chosen, A_lm))()

    def both(
        self, D_i: Sequence[Array], D_open: Sequence[Array], chosen: Sequence[int], A_lm: Array
    ) -> tuple[list[Array], list[Array]]:
        """P and Q together; a GPU starts the second product while it computes the first."""
        wait_for_P = self._start(D_i, range(len(self.pairs)), self._equal_weights)
        wait_for_Q = self._start(D_open, chosen, self._open_weights(chosen, A_lm))
        return wait_for_P(), wait_for_Q()

    def _open_weights(self, chosen: Sequence[int], A_lm: Array) -> dict[str, Any]:
        weight = np.zeros((len(self.pairs), len(self.pairs)))
        weight[np.ix_(chosen, chosen)] = A_lm
        return self._weights(self.plan.places.first, weight)

    def _weights(self, first: Sequence[int], weight: Array) -> dict[str, Any]:
        arrays = self.backend.upload({"first": np.array(first, dtype=np.int64), "weight": weight})
        return {"symmetries": len(weight), **arrays}

    def _start(self, D_i: Sequence[Array], chosen: Sequence[int], weights: dict[str, Any]) -> Callable[[], list[Array]]:
        """Launch a contraction; the returned function waits for its matrices."""
        components, backend, plan = COMPONENTS[self.relativistic], self.backend, self.plan
        D_cP = np.concatenate([one.vectors(D, components) for one, D in zip(self.pairs, D_i, strict=True)], axis=1)
        P = backend.zeros(D_cP.shape, np.float64)
        values = {**self._arguments, **weights, "D": backend.to_device(D_cP), "P": P}
        items, grain = plan.layout.contraction(len(plan.tasks))
        backend.launch_all([Launch(self._program, items, values, grain=grain, sums="P")])

        def wait() -> list[Array]:
            (host,) = backend.download([P])
            return [self.pairs[i].matrix(host[:, plan.places.span(i)]) for i in chosen]

        return wait
