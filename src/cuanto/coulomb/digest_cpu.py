"""Direct J and K on the CPU: vectors of kets, interleaved over tasks that each have matrices of their own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.background import ready
from cuanto.backends.cpu.backend import WORTH_COMPILING, CpuBackend
from cuanto.backends.cpu.compiler import Function
from cuanto.backends.programs import class_cost, class_tables
from cuanto.coulomb.pair_classes import PairClass, with_bounds
from cuanto.integrals.segments import Array
from cuanto.kernels.abi import bra_fields, ket_fields
from cuanto.kernels.build import unrolled
from cuanto.kernels.listed import cpu_bounds, cpu_digest, cpu_straight, cpu_table
from cuanto.kernels.recurrences.boys import boys_table, table_float
from cuanto.kernels.recurrences.head_gordon_pople import built_up
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.spec import KernelSpec, Shells, coulomb_operator
from cuanto.kernels.tuning import choose_algorithm

TASKS = 16
"""Parts of the work, each summed up in a fixed order: results do not depend on who came first."""

CALLS = 10
"""Calls to expect of one geometry."""
LOOP_SECONDS, TABLE_SECONDS = 2e-10, 3e-4
"""Measured: of an operation of a quartet by loops; of making the tables of a class, for each of its built-up values."""


Window = tuple[float, float]
"""Bounds of the quartets that are wanted, from .. to."""


class Record(ctypes.Structure):
    """A C structure of pointers and 64-bit numbers that keeps the arrays behind its pointers."""

    def __init__(self, **values: Any) -> None:
        self.keep = values
        super().__init__(*(self._plain(values[name]) for name, _ in self._fields_))  # type: ignore[misc]

    @staticmethod
    def _plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.ctypes.data
        if isinstance(value, ctypes.Structure):
            return ctypes.addressof(value)
        return value


def fields_of(names: str) -> list[tuple[str, Any]]:
    """Fields in order: `*name` is a pointer, `~name` a double, any other a 64-bit integer."""
    kinds: dict[str, Any] = {"*": ctypes.c_void_p, "~": ctypes.c_double}
    return [(name.lstrip("*~"), kinds.get(name[0], ctypes.c_longlong)) for name in names.split()]


class _Sides(Record):
    _fields_ = fields_of(
        "*bra_first *bra_record *bra_coefficient columns *bra_shell "
        "*ket_first *ket_record *ket_shell *boys_table ~cutoff"
    )


class _Tables(Record):
    _fields_ = fields_of(
        "bra_fields ket_fields width bra_functions *primitive_table *primitive_constants "
        "*ket_table *ket_constants *bra_table *bra_constants"
    )


class _BraClass(Record):
    _fields_ = fields_of("*kernel *sides *tables bras columns na nb same *bound *pair *ao *segment")


class _KetClass(Record):
    _fields_ = fields_of("kets nc nd *bound *pair *ao *segment")


class DensitiesRecord(Record):
    """Densities, and the quartets that are wanted."""

    _fields_ = fields_of("nbf segments count *D *largest ~lower ~upper want_j want_k")


@dataclass(frozen=True)
class Kernel:
    """The best kernel of a class there is at a moment: straight-line when it is compiled, else the general one."""

    general: Callable[[], tuple[Function, _Tables]]
    special: Future[Function] | None
    patient: bool  # wait for the special one

    def now(self) -> tuple[int, _Tables | None]:
        """Address and tables."""
        if self.special is not None and (self.patient or ready(self.special)):
            return _address(self.special.result()), None
        function, tables = self.general()
        return _address(function), tables


def densities_record(D: Array, largest: Array, window: Window, want_j: bool, want_k: bool) -> DensitiesRecord:
    """What kernels are told of densities [density, row, column] and of the quartets that are wanted."""
    count, nbf, _ = D.shape
    return DensitiesRecord(
        nbf=nbf,
        segments=len(largest),
        count=count,
        D=np.ascontiguousarray(D.transpose(0, 2, 1)),
        largest=np.ascontiguousarray(largest),
        lower=window[0],
        upper=window[1],
        want_j=int(want_j),
        want_k=int(want_k),
    )


def _address(function: Function) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None
    return address


class CpuDigest:
    """Pairs of a basis on the CPU, with their bounds; quartets whose bound lies between two numbers into J and K."""

    def __init__(
        self,
        backend: CpuBackend,
        pairs: Sequence[PairClass],
        algorithm: str,
        real: type[np.floating[Any]],
        cutoff: float,
    ) -> None:
        self.backend, self.algorithm, self.cutoff = backend, algorithm, cutoff
        self.real = np.dtype(real)
        self.name = "double" if self.real == np.float64 else "float"
        self.boys = boys_table() if self.name == "double" else table_float()
        self._tables: dict[Any, _Tables] = {}
        self._lock = threading.Lock()
        self.pairs = [with_bounds(pair, self._bounds(pair)) if not pair.ket_bound.any() else pair for pair in pairs]
        self._kets = [
            _KetClass(
                kets=p.ket.count,
                nc=p.functions[0],
                nd=p.functions[1],
                bound=p.ket_bound,
                pair=p.ket_pair,
                ao=p.ket_ao,
                segment=p.ket_segment,
            )
            for p in self.pairs
        ]
        self._sides = {
            (x, y): self._side(self.pairs[x], self.pairs[y], self.cutoff)
            for x in range(len(pairs))
            for y in range(x, len(pairs))
        }
        self._kernels = {key: self._kernel(self.pairs[key[0]], self.pairs[key[1]]) for key in self._sides}

    def _cast(self, array: Array) -> NDArray[Any]:
        return np.ascontiguousarray(array, dtype=self.real)

    def _side(self, bra: PairClass, ket: PairClass, cutoff: float) -> _Sides:
        return _Sides(
            bra_first=bra.bra.first,
            bra_record=self._cast(bra.bra.record),
            bra_coefficient=self._cast(bra.bra.coefficient),
            columns=bra.columns,
            bra_shell=self._cast(bra.bra.shell),
            ket_first=ket.ket.first,
            ket_record=self._cast(ket.ket.record),
            ket_shell=self._cast(ket.ket.shell),
            boys_table=self.boys,
            cutoff=cutoff,
        )

    def _kernel(self, bra: PairClass, ket: PairClass) -> Kernel:
        shells = bra.bra.shells, ket.bra.shells
        primitives = len(bra.bra.record) / bra.bra.count * ket.ket.primitives
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = choose_algorithm("cpu", "coulomb", *shells, primitives)
            if self._loops_pay(bra, ket, primitives):
                algorithm = "md"
        operator = coulomb_operator(bra.bra.attenuated, algorithm)
        cost = class_cost(operator, *shells, algorithm)
        work = bra.bra.count * ket.ket.count * cost.total(primitives, bra.columns)
        schedule, special = self.backend.schedule, None
        if schedule == "lane" or (schedule == "auto" and unrolled("cpu", cost) and work > WORTH_COMPILING):
            special = self.backend.begin(cpu_straight(KernelSpec(operator, *shells, algorithm, "lane", self.name)))
        return Kernel(partial(self._general, operator, *shells, algorithm), special, schedule == "lane")

    def _loops_pay(self, bra: PairClass, ket: PairClass, primitives: float) -> bool:
        """Few quartets of high momenta: done by loops before the tables of their class would be made."""
        shells = bra.bra.shells, ket.bra.shells
        if not by_loops("coulomb", *shells, "md"):
            return False
        operations = class_cost("coulomb", *shells, "md").total(primitives, bra.columns)
        run = bra.bra.count * ket.ket.count * operations * LOOP_SECONDS / self.backend.threads
        return CALLS * run < TABLE_SECONDS * len(built_up(shells[0])) * len(built_up(shells[1]))

    def _general(self, operator: str, bra: Shells, ket: Shells, algorithm: str) -> tuple[Function, _Tables]:
        function = self.backend.function(cpu_table(self.name))
        key = (operator, bra, ket, algorithm)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self._class_tables(*key)
            return function, self._tables[key]

    def _class_tables(self, operator: str, bra: Shells, ket: Shells, algorithm: str) -> _Tables:
        tables = class_tables(operator, bra, ket, algorithm, levels=False)
        arrays = {}
        for prefix, program in zip(("primitive", "ket", "bra"), tables.programs, strict=True):
            arrays[f"{prefix}_table"] = program.table
            arrays[f"{prefix}_constants"] = program.constants.astype(self.real)
        return _Tables(
            bra_fields=bra_fields(operator),
            ket_fields=ket_fields(ket),
            width=tables.width,
            bra_functions=tables.bra_functions,
            **arrays,
        )

    def _bounds(self, pairs: PairClass) -> Array:
        """sqrt (ab|ab) of every ket."""
        bound = np.zeros(pairs.ket.count)
        kernel, tables = self._kernel(pairs, pairs).now()
        sides = self._side(pairs, pairs, 0.0)
        na, nb = pairs.functions
        function = self.backend.function(cpu_bounds(self.name))
        pair, column = np.ascontiguousarray(pairs.ket_pair), np.ascontiguousarray(pairs.ket_column)

        def part(begin: int, end: int) -> None:
            function(
                kernel,
                ctypes.addressof(sides),
                ctypes.addressof(tables) if tables is not None else 0,
                pairs.columns,
                na * nb,
                begin,
                end,
                pair.ctypes.data,
                column.ctypes.data,
                bound.ctypes.data,
            )

        step = max(64, len(bound) // (4 * self.backend.threads) // 64 * 64)
        self.backend.parallel(partial(part, i, min(i + step, len(bound))) for i in range(0, len(bound), step))
        return bound

    def add(self, D: Array, largest: Array, window: Window, J: Array | None, K: Array | None) -> int:
        """Half of J and K, to be completed by their transposes; returns the number of quartets evaluated.

        `D` [density, row, column]; `largest` [segment, segment]: largest |D|; `window`: bounds from .. to.
        """
        record = densities_record(D, largest, window, J is not None, K is not None)
        tasks, digest = self.tasks(D.nbytes), self.backend.function(cpu_digest(self.name))
        quartets = np.zeros(tasks, dtype=np.int64)

        def task(t: int, part_j: Array, part_k: Array) -> None:
            for y in range(len(self.pairs)):
                bras = self.bras(y)
                given = (*self.classes(record, y, bras), t, tasks, part_j.ctypes.data, part_k.ctypes.data)
                digest(*given, quartets[t:].ctypes.data)

        self.sum_over_tasks(task, tasks, D.shape, J, K)
        return int(quartets.sum())

    def classes(self, record: DensitiesRecord, y: int, bras: Any) -> tuple[int, int, int, int]:
        """Arguments of a kernel: densities, kets of class y, and all classes of bras they meet."""
        return ctypes.addressof(record), ctypes.addressof(self._kets[y]), ctypes.addressof(bras), y + 1

    def sum_over_tasks(
        self,
        task: Callable[[int, Array, Array], None],
        tasks: int,
        shape: tuple[int, ...],
        J: Array | None,
        K: Array | None,
    ) -> None:
        """J and K from tasks that have matrices of their own, added up in a fixed order."""
        parts = [[np.zeros(shape if M is not None else 1) for M in (J, K)] for _ in range(tasks)]
        self.backend.parallel(partial(task, t, *parts[t]) for t in range(tasks))
        for total, own in zip((J, K), zip(*parts, strict=True), strict=True):
            if total is not None:
                for part in own:
                    total += part
        if K is not None:
            K[:] = K.transpose(0, 2, 1)

    def tasks(self, matrix_bytes: int) -> int:
        """As many tasks as balance the work, as few as memory for their matrices asks for."""
        room = self.backend.memory()[0] // (8 * matrix_bytes)
        return max(self.backend.threads, min(self.most_tasks, room))

    @property
    def most_tasks(self) -> int:
        """Enough to balance the work."""
        return max(TASKS, 2 * self.backend.threads)

    def bras(self, y: int) -> Any:
        """All classes of bras that meet the kets of class y, with their kernels of this moment."""
        bras = (_BraClass * (y + 1))()
        for x in range(y + 1):
            p = self.pairs[x]
            kernel, tables = self._kernels[x, y].now()
            fresh = _BraClass(
                kernel=kernel,
                sides=self._sides[x, y],
                tables=tables if tables is not None else 0,
                bras=p.bra.count,
                columns=p.columns,
                na=p.functions[0],
                nb=p.functions[1],
                same=int(x == y),
                bound=p.bra_bound,
                pair=p.bra_pair,
                ao=p.bra_ao,
                segment=p.bra_segment,
            )
            ctypes.memmove(ctypes.addressof(bras[x]), ctypes.addressof(fresh), ctypes.sizeof(_BraClass))
        return bras
