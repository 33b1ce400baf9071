"""Direct J and K by lists: select quartets, compute their integrals, digest them, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Job, Program
from cuanto.backends.kinds import GroupTables, group_lanes, kind_of
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, with_bounds
from cuanto.kernels.build import LIST_THREADS, choose_algorithm, general_source, source_of
from cuanto.kernels.direct import cuda_digest, cuda_select
from cuanto.kernels.recurrences.boys import boys_table, table_float
from cuanto.kernels.spec import KernelSpec, coulomb_operator
from cuanto.memory import Budget

BUFFER_BYTES = tuning.size("cuda", "direct.buffer_bytes")
LEAST_BUFFER_BYTES = 2**26
"""Minimum size of the buffer, even if the limit is lower."""
SPAN = tuning.size("cuda", "direct.span")
BLOCKS_PER_PROCESSOR = tuning.size("cuda", "direct.blocks_per_processor")
STATIC_SHARED = 64
"""Bytes of static shared memory of the general kernel."""
MOST_FIXED = tuning.size("cuda", "direct.most_fixed_functions")


class CudaDigest:
    """Adds the quartets of the pairs of a basis whose bounds are in a window to J and K."""

    storable = False
    """Whether integrals can be stored."""

    def __init__(
        self,
        budget: Budget,
        pairs: Sequence[PairClass],
        algorithm: str,
        real: type[np.floating[Any]],
        cutoff: float,
    ) -> None:
        """`pairs` are combined with themselves, each combination once; missing bounds are computed."""
        backend = budget.backend
        self.backend, self.budget, self.algorithm, self.cutoff = backend, budget, algorithm, cutoff
        self.real = np.dtype(real)
        self.name = "double" if self.real == np.float64 else "float"
        self._group, self._select, self._any_digest = self.begin(backend, self.name)
        self.boys = backend.to_device(boys_table() if self.name == "double" else table_float())
        self._tables = GroupTables(backend.to_device)
        self._buffers: dict[str, Any] = {}
        self._reservation = f"quartet buffers, {self.name} precision"
        self.pairs = [self._with_bounds(p) if not p.ket_bound.any() else p for p in pairs]
        self.device_pairs = [DevicePairs(p, backend, self.real) for p in self.pairs]
        self._meeting = [(bra, ket) for y, ket in enumerate(self.device_pairs) for bra in self.device_pairs[: y + 1]]

    @classmethod
    def begin(cls, backend: Backend, real: str) -> list[Program]:
        """Start compiling the kernels that every molecule needs: integrals, selection, digestion."""
        integrals = replace(general_source("group", real, "list"), threads=backend.traits.group_threads)
        sources = integrals, cuda_select(), cuda_digest(real, None)
        return [backend.compile(source) for source in sources]

    def add(self, D: Any, largest: Any, window: tuple[float, float], J: Any | None, K: Any | None) -> Any:
        """Add half of J and K, without their transposes; returns the number of quartets (on the device).

        `D` [density, row, column]; `largest` [segment, segment]: largest |D|; `window` of the bounds.
        """
        xp = self.backend.xp
        top = float(largest.max()) * (2.0 if J is not None else 1.0)  # largest factor of the densities in a bound
        common = {
            "D": xp.ascontiguousarray(D),
            "J": J if J is not None else D,
            "K": K if K is not None else D,
            "nbf": D.shape[1],
            "densities": len(D),
            "want_j": int(J is not None),
            "want_k": int(K is not None),
            "largest": xp.ascontiguousarray(largest),
            "segments": len(largest),
            "lower": window[0],
            "upper": window[1],
        }
        chunks = [
            (bra, ket, begin, end)
            for bra, ket in self._meeting
            for begin, end in self._chunks(bra.host, ket.host, top, window[0])
        ]
        counts = self.backend.zeros((len(chunks), 2), np.int32)
        for number, (bra, ket, begin, end) in enumerate(chunks):
            self._chunk(bra, ket, begin, end, counts[number], top, common)
        columns = self.backend.to_device(np.array([bra.host.columns for bra, *_ in chunks]))
        return (counts[:, 1] * columns).sum()

    def _capacity(self, bra: PairClass, ket: PairClass) -> int:
        """Quartets whose integrals fit into the buffer."""
        size = bra.columns * prod(bra.functions) * prod(ket.functions) * self.real.itemsize + 8
        available = self.budget.available() + self.budget.reserved.get(self._reservation, 0)
        return min(BUFFER_BYTES, max(LEAST_BUFFER_BYTES, available // 4)) // size

    def _chunks(self, bra: PairClass, ket: PairClass, top: float, lower: float) -> list[tuple[int, int]]:
        """Ranges of significant bras whose quartets fit into the buffer."""
        bras = int(np.searchsorted(-(bra.bra_bound * float(ket.ket_bound.max()) * top), -lower, side="right"))
        step = max(1, self._capacity(bra, ket) // (ket.ket.count + 32 * -(-ket.ket.count // SPAN)))
        return [(begin, min(begin + step, bras)) for begin in range(0, bras, step)]

    def _buffer(self, name: str, size: int, dtype: Any) -> Any:
        """Return a buffer that is reused and grows as needed."""
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers.pop(name, None)
            self._buffers[name] = self.backend.xp.empty(size, dtype=dtype)
            self.budget.record(self._reservation, sum(buffer.nbytes for buffer in self._buffers.values()))
        return self._buffers[name]

    def _chunk(
        self, bra: DevicePairs, ket: DevicePairs, begin: int, end: int, count: Any, top: float, common: dict[str, Any]
    ) -> None:
        spans = -(-ket.host.ket.count // SPAN)
        # Upper bound of the quartets, with padding of each span.
        stride = (end - begin) * (ket.host.ket.count + 32 * spans)
        functions = bra.host.columns * prod(bra.host.functions) * prod(ket.host.functions)
        integrals = self._buffer("integrals", functions * stride, self.real)
        program, blocks, shared, extra = self._integrals(bra.host, ket.host, stride)
        values = {
            **bra.bra,
            **ket.ket,
            **common,
            **extra,
            "bra_begin": begin,
            "bra_end": end,
            "span": SPAN,
            "pad": extra.get("lanes", 1),
            "same": int(bra is ket),
            "reach": float(ket.host.ket_bound.max()) * top,
            "list": self._buffer("list", 2 * stride, np.int32),
            "count": count,
            "stride": stride,
            "out": integrals,
            "integrals": integrals,
            "boys_table": self.boys,
            "cutoff": self.cutoff,
        }
        self.backend.launch(self._select, (end - begin) * spans, values)
        self.backend.launch(program, blocks, values, shared)
        digest = self._digest((bra.host.functions[1], *ket.host.functions))
        self.backend.launch(digest, self._blocks(stride * bra.host.columns, LIST_THREADS), values)

    def _blocks(self, items: int, block: int) -> int:
        """Blocks of threads that keep all multiprocessors busy."""
        return max(1, min(-(-items // block), BLOCKS_PER_PROCESSOR * self.backend.traits.workers))

    def _digest(self, sizes: tuple[int, int, int]) -> Program:
        """The kernel for these numbers of functions of b, c and d if it is compiled, else the general one."""
        if max(sizes) > MOST_FIXED:
            return self._any_digest
        special = self.backend.compile(cuda_digest(self.name, sizes), later=True)
        return special if special.ready else self._any_digest

    def _job(self, bra: PairClass, ket: PairClass) -> Job:
        """Description of the classes and counts, from which a kernel is chosen."""
        shells = bra.bra.shells, ket.bra.shells
        primitives = len(bra.bra.record) / bra.bra.count * ket.ket.primitives
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = choose_algorithm("cuda", "coulomb", *shells, primitives)
        out = {"out": np.empty(0, dtype=self.real)}
        operator = coulomb_operator(bra.bra.attenuated, algorithm)
        return Job(operator, *shells, algorithm, bra.columns, bra.bra.count, ket.ket.count, primitives, out)

    def _integrals(self, bra: PairClass, ket: PairClass, items: int) -> tuple[Program, int, int, dict[str, Any]]:
        """Kernel, blocks of threads, shared memory and further arguments for the integrals of a list."""
        job, traits = self._job(bra, ket), self.backend.traits
        kind = kind_of(job)
        work = job.bras * job.kets * kind.cost.total(job.primitives, job.columns)
        wait = traits.schedule == "thread"
        if wait or (traits.schedule == "auto" and kind.straight and work > traits.worth_compiling):
            class_ = (job.operator, job.bra, job.ket, job.algorithm)
            spec = KernelSpec(*class_, "thread", self.name, kind.at_once, consumer="list")
            program = self.backend.compile(source_of(spec), later=True)
            if wait or program.ready:
                return program, self._blocks(items, LIST_THREADS), 0, {}
        lanes, shared = group_lanes(job, kind.need, self.real.itemsize, traits.shared_limit - STATIC_SHARED)
        blocks = self._blocks(items // lanes + 1, 1)
        stride = 0 if shared else kind.need.numbers(lanes)
        extra = {
            **self._tables(job),
            "lanes": lanes,
            "slots": kind.need.slots,
            "scratch": self._buffer("scratch", max(1, blocks * stride), self.real),
            "scratch_stride": stride,
        }
        return self._group, blocks, shared, extra

    def _with_bounds(self, pairs: PairClass) -> PairClass:
        """Compute the bounds sqrt (ab|ab) of all kets, by lists of pairs with themselves."""
        xp = self.backend.xp
        kets, functions = pairs.ket.count, prod(pairs.functions)
        device = DevicePairs(pairs, self.backend, self.real)
        bound = np.zeros(kets)
        step = max(1, BUFFER_BYTES // (pairs.columns * functions**2 * self.real.itemsize * 32))
        program, blocks, shared, extra = self._integrals(pairs, pairs, step)
        lanes = extra.get("lanes", 1)
        for begin in range(0, kets, step):
            part = np.arange(begin, min(begin + step, kets))
            listed = np.full((len(part), lanes, 2), -1, dtype=np.int32)
            listed[:, :, 0] = pairs.ket_pair[part, None]
            listed[:, 0, 1] = part
            stride = listed.size // 2
            out = xp.zeros((pairs.columns, functions, functions, stride), dtype=self.real)
            values = {
                **device.bra,
                **device.ket,
                "boys_table": self.boys,
                "cutoff": 0.0,
                "list": self.backend.to_device(listed.reshape(-1)),
                "count": self.backend.to_device(np.array([stride], dtype=np.int32)),
                "out": out,
                "stride": stride,
                **extra,
            }
            self.backend.launch(program, blocks, values, shared)
            diagonal = self.backend.to_host(xp.diagonal(out, axis1=1, axis2=2)[:, ::lanes].max(axis=2))
            bound[part] = np.sqrt(np.maximum(0.0, diagonal[pairs.ket_column[part], np.arange(len(part))]))
        return with_bounds(pairs, bound)
