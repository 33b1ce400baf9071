"""Supermatrices on a device: their integrals, and their products with densities.

How the matrices lie in memory is chosen by the language of the device's kernels (`LAYOUTS`), because both are bound by
memory: a CPU reads one triangle once and uses every number twice; a GPU reads whole rows, so that no two blocks of
threads add to the same number. Everything else is shared. Pairs of all symmetries have one numbering, each symmetry
filled up to whole groups of columns; the elements of what is not there are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.pairs import Pairs, Places
from cuanto.atomic.species import SPECIES, exchange_factors
from cuanto.atomic.store_matrix import Matrices
from cuanto.atomic.store_triangle import Triangle
from cuanto.backends.base import Backend, Launch
from cuanto.kernels.atomic import ClassTables, Task, class_tables, contract_source, integral_source
from cuanto.kernels.text import Source

Array = NDArray[np.float64]
Waiting = Callable[[], list[Array]]
"""Something that was begun: the call waits for it."""


class Layout(Protocol):
    """How supermatrices lie in memory."""

    def __init__(self, places: Places, relativistic: bool) -> None: ...

    @property
    def bytes_needed(self) -> int:
        """Memory of all matrices."""

    def tasks(self) -> Iterator[Task]:
        """Rows of every class that is kept."""

    def allocate(self, backend: Backend) -> dict[str, Any]:
        """Memory by the names of the kernels' arguments."""

    def contraction(self, tasks: int) -> tuple[int, int]:
        """Items of the product with a density, and how many a thread of a CPU takes at once."""


LAYOUTS: dict[str, type[Layout]] = {"cpu": Triangle, "cuda": Matrices}


@dataclass(frozen=True, eq=False)
class Plan:
    """Parts of a store that the numbers of pairs decide: `tasks` [task][field of `Task`], tables of all classes."""

    places: Places
    layout: Layout
    tasks: NDArray[np.int64]
    parts: tuple[tuple[Source, slice, int], ...]
    """Sources with their tasks and items."""
    tables: dict[str, NDArray[Any]]


@cache
def make_plan(counts: tuple[int, ...], relativistic: bool, language: str) -> Plan:
    """Made once for all sets of as many functions."""
    places = Places.of(counts)
    layout = LAYOUTS[language](places, relativistic)
    by_source: dict[Source, list[Task]] = {}
    tables: dict[tuple[int, int], ClassTables] = {}
    for task in layout.tasks():
        one, other = SPECIES[task.i], SPECIES[task.j]
        by_source.setdefault(integral_source(language, one.kappa, other.kappa, relativistic), []).append(task)
        factors = tuple(exchange_factors(one, other).items())
        tables[task.i, task.j] = class_tables(one.kappa, other.kappa, factors)
    shapes, values = ([getattr(one, name) for one in tables.values()] for name in ("shape", "values"))
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
    joined = {"shape": np.concatenate(shapes), "table": np.concatenate(values)}
    return Plan(places, layout, np.array(records, dtype=np.int64), tuple(parts), joined)


def _starts(arrays: Sequence[NDArray[Any]]) -> list[int]:
    """Where arrays begin that are laid one behind the other."""
    return list(accumulate((len(one) for one in arrays[:-1]), initial=0))


class Store:
    """The supermatrices of all pairs."""

    def __init__(self, pairs: Sequence[Pairs], backend: Backend, relativistic: bool) -> None:
        self.backend, self.relativistic, language = backend, relativistic, backend.traits.language
        self.plan = plan = make_plan(tuple(one.count for one in pairs), relativistic, language)
        self._contract = backend.compile(contract_source(language, relativistic))
        programs = [backend.compile(source) for source, _, _ in plan.parts]
        self.matrices = plan.layout.allocate(backend)
        records = {
            "row_record": np.concatenate([one.row_record for one in pairs]),
            "column_record": np.concatenate([one.column_record for one in pairs]),
        }
        given = backend.upload({"tasks": plan.tasks, **plan.tables, **records})
        self._given = {**given, **self.matrices, "total": plan.places.total}
        self._whole = self._weights([0, plan.places.total], np.ones((1, 1)))
        launches = []
        for program, (_, part, items) in zip(programs, plan.parts, strict=True):
            own = {"tasks": given["tasks"][part], "count": part.stop - part.start}
            launches.append(Launch(program, items, {**self._given, **own}, grain=1))
        backend.launch_all(launches)

    def _weights(self, first: Sequence[int], weight: Array) -> dict[str, Any]:
        arrays = self.backend.upload({"first": np.array(first, dtype=np.int64), "weight": weight})
        return {"symmetries": len(weight), **arrays}

    def contract(self, D_cP: Array) -> Waiting:
        """sum_j X_ij D_j of every symmetry i; D as [component, pair of any symmetry]."""
        return self._begin(D_cP, self._whole, range(len(self.plan.places.counts)))

    def contract_weighted(self, D_cP: Array, chosen: Sequence[int], A_lm: Array) -> Waiting:
        """sum_m A_lm X_lm D_m of the chosen symmetries l, m; A is symmetric."""
        places = self.plan.places
        weight = np.zeros((len(places.counts), len(places.counts)))
        weight[np.ix_(chosen, chosen)] = A_lm
        return self._begin(D_cP, self._weights(places.first, weight), chosen)

    def _begin(self, D_cP: Array, weights: dict[str, Any], chosen: Sequence[int]) -> Waiting:
        P = self.backend.zeros(D_cP.shape, np.float64)
        values = {**self._given, **weights, "D": self.backend.to_device(D_cP), "P": P}
        items, grain = self.plan.layout.contraction(len(self.plan.tasks))
        self.backend.launch_all([Launch(self._contract, items, values, grain=grain, sums="P")])

        def wait() -> list[Array]:
            (host,) = self.backend.download([P])
            return [host[:, self.plan.places.span(i)] for i in chosen]

        return wait
