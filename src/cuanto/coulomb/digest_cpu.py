"""Direct J and K by vectors of kets: one launch selects the quartets, computes their integrals and digests them.

The vectors are distributed over chunks, each with its own matrices, which are summed in the order of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, range_starts
from cuanto.backends.background import ready
from cuanto.backends.base import Backend, Launch, Program, real_name
from cuanto.backends.programs import class_cost, class_tables
from cuanto.backends.texts import Request, request_kernel
from cuanto.backends.tiers import ITERATIONS, choose_once, is_worth_waiting
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, with_bounds
from cuanto.coulomb.pair_matrices import PairMatrices
from cuanto.integrals.engine import boys_on
from cuanto.kernels.abi import bra_fields, ket_fields
from cuanto.kernels.build import UNROLL_LIMIT, choose_algorithm, general_source, unrolled
from cuanto.kernels.direct import cpu_bounds, cpu_digest, cpu_matrices
from cuanto.kernels.layout import BRA_CLASS, DENSITIES, KET_CLASS, SIDES, TABLES, Layout, Records
from cuanto.kernels.recurrences.head_gordon_pople import vertical_monomials
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.spec import KernelSpec, Shells, coulomb_operator
from cuanto.memory import Budget

CHUNKS = tuning.size("cpu", "direct.chunks")
VECTOR_KETS = 8
"""Approximate number of kets in the longest vector; a chunk has at least one vector."""
LOOP_SECONDS = tuning.number("cpu", "direct.loop_seconds")
TABLE_SECONDS = tuning.number("cpu", "direct.table_seconds")
MOST_STRAIGHT = 7
"""Sum of the four angular momenta above which no class is small enough for straight-line code."""
Window = tuple[float, float]
"""Range of the bounds of the selected quartets."""
Class = tuple[str, Shells, Shells, str]
"""Operator, shells of bra and ket, algorithm."""


@dataclass(frozen=True)
class Choice:
    """Kernels of a class: the general one, and perhaps a straight-line one, which may not be compiled yet.

    `worth_waiting`: all calls together have enough work to wait for it; `required`: there is no other kernel.
    """

    spec: KernelSpec
    sides: tuple[DevicePairs, DevicePairs]
    straight: Request | None
    worth_waiting: bool = False
    required: bool = False

    @property
    def kind(self) -> Class:
        """The class of integrals."""
        return self.spec.operator, self.spec.bra, self.spec.ket, self.spec.algorithm

    @property
    def program(self) -> Program | None:
        """The straight-line kernel, None if there is none or not yet."""
        return self.straight.result() if self.straight is not None and ready(self.straight) else None

    @property
    def compiled(self) -> bool:
        """Whether the straight-line kernel is compiled."""
        return (program := self.program) is not None and program.ready

    @property
    def expected(self) -> bool:
        """Whether there is a straight-line kernel, or will be."""
        if self.straight is None or not self.straight.done():
            return self.straight is not None
        return (program := self.program) is not None and not program.failed

    def is_straight(self, wait: bool) -> bool:
        """Whether the calculation uses the straight-line kernel, for which it may `wait`."""
        chosen = choose_once(self.spec, lambda: self.compiled or wait)
        return self.required or (chosen and self.expected)

    def finish(self) -> None:
        """Wait until the straight-line kernel is compiled or has failed."""
        with suppress(Exception):  # the general kernel is used instead
            if self.straight is not None and (program := self.straight.result()) is not None:
                program.wait()


def _by_matrices(backend: Backend, algorithm: str) -> bool:
    """Whether classes without straight-line code are evaluated by products of matrices, not by index tables."""
    return backend.traits.schedule == "auto" and algorithm != "hgp"


class CpuDigest:
    """Adds the quartets of the pairs of a basis whose bounds are in a window to J and K."""

    storable = True
    """Whether integrals can be stored."""
    calls = ITERATIONS
    """Expected number of calls for one geometry."""
    digest_source = staticmethod(cpu_digest)
    """The kernel that selects quartets and uses their integrals, by the type of numbers."""

    def __init__(
        self,
        budget: Budget,
        pairs: Sequence[PairClass],
        algorithm: str,
        real: type[np.floating[Any]],
        cutoff: float,
        bra_pairs: Sequence[PairClass] = (),
    ) -> None:
        """`bra_pairs` are bras for all `pairs` as kets; without them, `pairs` are combined with themselves, each
        combination once."""
        backend = budget.backend
        self.backend, self.algorithm = backend, algorithm
        self.real = np.dtype(real)
        self.name = real_name(self.real)
        self._general, self._bound, self._digest = self.begin(backend, self.name, algorithm)
        self._boys = boys_on(backend, self.name)
        self._matrices = PairMatrices(backend, self.real)
        self._tables: dict[Any, Records] = {}
        self.pairs = self._with_bounds(pairs)
        self.chunks = min(CHUNKS, sum(-(-p.ket.count // VECTOR_KETS) for p in self.pairs))
        device = [DevicePairs(p, backend, self.real) for p in self.pairs]
        self.bra_pairs = self._with_bounds(bra_pairs)
        device_bras = [DevicePairs(p, backend, self.real) for p in self.bra_pairs]
        bras_of = [device_bras or device[: y + 1] for y in range(len(device))]
        kets = [{name.removeprefix("ket_"): value for name, value in p.ket.items()} for p in device]
        counts = np.array([len(bras) for bras in bras_of])
        for ket, first, count in zip(kets, range_starts(counts)[:-1], counts, strict=True):
            ket |= {"first_bras": first, "bra_classes": count}
        self._kets = self.records(KET_CLASS, kets)
        pairs_of_classes = [(bra, ket) for ket, bras in zip(device, bras_of, strict=True) for bra in bras]
        self._bras = self.records(BRA_CLASS, [self._class(bra, ket, cutoff) for bra, ket in pairs_of_classes])
        self._kernels = self._bras.array
        self._unfinished = {i: self._choose(x, y, x.host.bra.count) for i, (x, y) in enumerate(pairs_of_classes)}

    @classmethod
    def begin(cls, backend: Backend, real: str, algorithm: str = "auto") -> list[Program]:
        """Start compiling kernels: integrals, bounds, and digestion, which is not needed where integrals are stored."""
        general = cpu_matrices(real) if _by_matrices(backend, algorithm) else general_source("table", real, "list")
        needed = [backend.compile(source) for source in (general, cpu_bounds(real))]
        return [*needed, backend.compile(cls.digest_source(real), later=cls.storable)]

    def records(self, layout: Layout, rows: Sequence[dict[str, Any]]) -> Records:
        """Records that kernels read."""
        return Records(layout, rows, self.backend.address)

    def _put(self, array: Array) -> Any:
        return self.backend.to_device(np.asarray(array, dtype=self.real))

    def _sides(self, bra: DevicePairs, ket: DevicePairs, cutoff: float) -> Records:
        return self.records(SIDES, [{**bra.bra, **ket.ket, "boys_table": self._boys, "cutoff": cutoff}])

    def _class(self, bra: DevicePairs, ket: DevicePairs, cutoff: float) -> dict[str, Any]:
        """Record of the bras that are combined with some kets, without kernels."""
        row = {"sides": self._sides(bra, ket, cutoff), "kernel": None, "tables": None, "same": int(bra is ket)}
        return row | {name.removeprefix("bra_"): value for name, value in bra.bra.items()}

    # ---- kernels ------------------------------------------------------------------------------------------

    def _choose(self, bra: DevicePairs, ket: DevicePairs, bras: int) -> Choice:
        """Choose kernels for this number of bras with all kets."""
        shells, traits = (bra.host.bra.shells, ket.host.bra.shells), self.backend.traits
        primitives = len(bra.host.bra.record) / bra.host.bra.count * ket.host.ket.primitives
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = choose_algorithm("cpu", "coulomb", *shells, primitives)
            if traits.schedule != "auto" and self._loops_are_faster(bra.host, ket.host, bras, primitives):
                algorithm = "md"
        kind = (coulomb_operator(bra.host.bra.attenuated, algorithm), *shells, algorithm)
        spec = KernelSpec(*kind, "lane", self.name, consumer="list")
        if traits.schedule == "lane":
            required = request_kernel(self.backend, spec, lambda: True, later=False)
            return Choice(spec, (bra, ket), required, required=True)
        # Beyond that no class is small enough, and making its graph to count its operations takes seconds.
        small = traits.schedule == "auto" and sum(kind[1].l) + sum(kind[2].l) <= MOST_STRAIGHT
        quartets = bra.host.bra.count * ket.host.ket.count
        products = quartets * primitives * prod(hermite_count(sum(side.l)) for side in shells)
        wait = is_worth_waiting(self.backend, "direct.worth_waiting", self.calls * products, UNROLL_LIMIT["cpu"])
        worthwhile = partial(self._repays_compiling, kind, bra.host, ket.host, primitives)
        straight = request_kernel(self.backend, spec, worthwhile, later=not wait) if small else None
        return Choice(spec, (bra, ket), straight, wait)

    def _repays_compiling(self, kind: Class, bra: PairClass, ket: PairClass, primitives: float) -> bool:
        """Whether a class has few enough operations for straight-line code, and enough work."""
        cost = class_cost(*kind)
        work = bra.bra.count * ket.ket.count * cost.total(primitives, bra.columns)
        return unrolled("cpu", cost) and work > self.backend.traits.worth_compiling

    def _loops_are_faster(self, bra: PairClass, ket: PairClass, bras: int, primitives: float) -> bool:
        """Whether loops are faster than making the tables of a class, as for few quartets of high angular momenta."""
        shells = bra.bra.shells, ket.bra.shells
        if not by_loops("coulomb", *shells, "md"):
            return False
        operations = class_cost("coulomb", *shells, "md").total(primitives, bra.columns)
        run = bras * ket.ket.count * operations * LOOP_SECONDS
        monomials = len(vertical_monomials(shells[0])) * len(vertical_monomials(shells[1]))
        return ITERATIONS * run < TABLE_SECONDS * monomials

    def _kernel(self, choice: Choice, straight: bool) -> tuple[int, int]:
        """Addresses of the straight-line or the general kernel, and of its tables."""
        address = self.backend.address
        if straight and choice.straight is not None:
            return address(choice.straight.result()), 0
        by_matrices = _by_matrices(self.backend, self.algorithm)
        key = tuple(map(id, choice.sides)) if by_matrices else choice.kind
        if key not in self._tables:
            tables = self._matrices.tables(*choice.sides) if by_matrices else self._class_tables(*choice.kind)
            self._tables[key] = tables
        return address(self._general), address(self._tables[key].array)

    def _class_tables(self, operator: str, bra: Shells, ket: Shells, algorithm: str) -> Records:
        tables = class_tables(operator, bra, ket, algorithm, levels=False)
        row: dict[str, Any] = {"bra_fields": bra_fields(operator), "ket_fields": ket_fields(ket)}
        row |= {"width": tables.width, "bra_functions": tables.bra_functions}
        for prefix, program in zip(("primitive", "ket", "bra"), tables.programs, strict=True):
            row |= {f"{prefix}_table": program.table, f"{prefix}_constants": self._put(program.constants)}
        return self.records(TABLES, [row])

    def _choose_kernels(self, wait: bool) -> list[int]:
        """Choose the kernels of all classes of bras; returns the classes whose kernels are still being compiled."""
        waiting, kernels = [], self._kernels.copy()  # a running launch may still use the old ones
        worth_waiting = {choice.spec for choice in self._unfinished.values() if wait and choice.worth_waiting}
        for i, choice in list(self._unfinished.items()):
            straight = choice.is_straight(choice.spec in worth_waiting)
            if straight and not (choice.compiled or choice.required):
                waiting.append(i)
                continue
            if straight or not kernels["kernel"][i]:
                kernels["kernel"][i], kernels["tables"][i] = self._kernel(choice, straight)
            if straight or not choice.expected:
                del self._unfinished[i]
        self._kernels = kernels
        return waiting

    def bras(self, wait: bool = True) -> Iterator[Any]:
        """Records of the classes of bras with their kernels: those with compiled kernels, then those for which it is
        worthwhile to `wait`; records of the others have no bras."""
        waiting = self._choose_kernels(wait)
        yield self._only(np.setdiff1d(np.arange(len(self._kernels)), waiting)) if waiting else self._kernels
        if waiting:
            for i in waiting:
                self._unfinished[i].finish()
            self._choose_kernels(wait)
            yield self._only(np.array(waiting))

    def _only(self, classes: Any) -> Any:
        """Records with the bras of some classes only."""
        records = self._kernels.copy()
        records["bras"] = 0
        records["bras"][classes] = self._kernels["bras"][classes]
        return records

    def _with_bounds(self, pairs: Sequence[PairClass]) -> list[PairClass]:
        """Compute the bounds sqrt (ab|ab) of all kets that have none."""
        missing = {i: np.zeros(p.ket.count) for i, p in enumerate(pairs) if not p.ket_bound.any()}
        launches, kept = [], []
        for i, bound in missing.items():
            p, device = pairs[i], DevicePairs(pairs[i], self.backend, self.real)
            sides = self._sides(device, device, 0.0)
            choice = self._choose(device, device, 1)
            kernel, tables = self._kernel(choice, choice.required)  # the same bounds with any tier
            values = {"kernel": kernel, "sides": sides.array, "tables": tables, "columns": p.columns, "bound": bound}
            values |= {"pair": device.ket["ket_pair"], "column": self.backend.to_device(p.ket_column)}
            launches.append(Launch(self._bound, p.ket.count, {**values, "functions": p.functions[0] * p.functions[1]}))
            kept.append((sides, device))
        self.backend.launch_all(launches)
        self._matrices, self._tables = PairMatrices(self.backend, self.real), {}  # bras are sorted by their bounds next
        return [with_bounds(p, missing[i]) if i in missing else p for i, p in enumerate(pairs)]

    # ---- builds -------------------------------------------------------------------------------------------

    def add(self, D: Array, largest: Array, window: Window, J: Array | None, K: Array | None) -> int:
        """Add half of J and K, without their transposes; returns the number of quartets evaluated.

        `D` [density, row, column]; `largest` [segment, segment]: largest |D|; `window` of the bounds. `J`: one matrix
        for each density, or one for their sum.
        """
        quartets = np.zeros(self.chunks, dtype=np.int64)
        self.digest(self._digest, D, largest, window, (J, K), {"quartets": quartets})
        return int(quartets.sum())

    def digest(
        self,
        program: Program,
        D: Array,
        largest: Array,
        window: Window,
        matrices: tuple[Array | None, Array | None],
        values: dict[str, Any],
    ) -> None:
        """Run a kernel that adds to J and K, unless they are None."""
        J, K = matrices
        coulombs = 0 if J is None else len(J)
        densities = self.densities(D, largest, window, coulombs, K is not None)
        sums = np.zeros((coulombs + (0 if K is None else len(K)), *D.shape[1:]))
        self.run(program, densities, {**values, "matrices": sums}, sums="matrices")
        if J is not None:
            J += sums[:coulombs]
        if K is not None:
            K += sums[coulombs:].transpose(0, 2, 1)

    def densities(self, D: Array, largest: Array, window: Window, coulombs: int, want_k: bool, **more: int) -> Records:
        """Record of densities [density, row, column] and of the window of quartets; `more`: other values of fields.

        `coulombs`: number of matrices J; a single one belongs to the sum of the densities.
        """
        by_columns = np.ascontiguousarray(D.transpose(0, 2, 1))
        row = {
            "nbf": D.shape[1],
            "segments": len(largest),
            "count": len(D),
            "D": by_columns,
            "D_j": by_columns.sum(axis=0, keepdims=True) if coulombs == 1 < len(D) else by_columns,
            "largest": np.ascontiguousarray(largest),
            "lower": window[0],
            "upper": window[1],
            "coulombs": coulombs,
            "want_k": int(want_k),
            "rows": D.shape[1],
            "products": 0,
        }
        return self.records(DENSITIES, [row | more])

    def run(
        self, program: Program, densities: Records, values: dict[str, Any], sums: str = "", wait: bool = True
    ) -> None:
        """Run a kernel on all chunks, with `bras` unless `values` has others; `wait` as there."""
        common = {"densities": densities.array, "kets": self._kets.array, "classes": len(self.pairs)}
        common |= {**values, "chunks": self.chunks}
        quartets = np.zeros(self.chunks, dtype=np.int64)
        for bras in [values["bras"]] if "bras" in values else self.bras(wait):
            self.backend.launch_all([Launch(program, self.chunks, {**common, "bras": bras}, grain=1, sums=sums)])
            quartets += values.get("quartets", 0)
        if "quartets" in values:
            values["quartets"][...] = quartets

    @property
    def without_kernels(self) -> Any:
        """Records of all classes of bras, for kernels that compute no integrals."""
        return self._bras.array

    @property
    def copies(self) -> int:
        """Number of copies of the matrices that exist at the same time during summation."""
        return min(self.chunks, 2 * self.backend.traits.workers + 2)
