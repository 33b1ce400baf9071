"""Direct J and K by lists: select quartets, compute their integrals, digest them; many classes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Launch, Program, real_name
from cuanto.backends.exact_sums import ExactSums
from cuanto.backends.tables import make_tables
from cuanto.backends.tiers import ITERATIONS, is_worth_waiting, uses_special
from cuanto.coulomb.list_kernels import EXPANSION_BYTES, ListKernels, ListLaunch, blocks_for
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, with_bounds
from cuanto.integrals.engine import boys_on
from cuanto.kernels.build import LIST_THREADS
from cuanto.kernels.direct import cuda_digest, cuda_select
from cuanto.memory import Budget

BUFFER_BYTES = tuning.size("cuda", "direct.buffer_bytes")
MIN_BUFFER_BYTES = 2**26
"""Minimum size of the buffer, even if the limit is lower."""
SPAN = tuning.size("cuda", "direct.span")
MAX_FIXED = tuning.size("cuda", "direct.most_fixed_functions")
ALIGNMENT = 32
"""Numbers: parts of buffers begin at multiples of it."""


@dataclass(frozen=True)
class Chunk:
    """A range of bras with all kets of a class, and how many quartets they can have at most."""

    bra: DevicePairs
    ket: DevicePairs
    begin: int
    end: int

    @property
    def spans(self) -> int:
        """Number of ranges of kets that are screened separately."""
        return -(-self.ket.host.ket.count // SPAN)

    @property
    def stride(self) -> int:
        """Upper bound of the quartets, with padding of each span."""
        return (self.end - self.begin) * (self.ket.host.ket.count + 32 * self.spans)

    @property
    def serial_work(self) -> int:
        """Relative time of the longest quartet; long ones are started first, so that short ones run beside them."""
        longest = self.bra.host.longest_bra * self.ket.host.longest_ket
        return longest * prod(self.bra.host.functions) * prod(self.ket.host.functions)

    @property
    def numbers(self) -> int:
        """Number of integrals of all these quartets."""
        return self.stride * _quartet_integrals(self.bra.host, self.ket.host)


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
        self.backend, self.budget, self.cutoff = backend, budget, cutoff
        self.real = np.dtype(real)
        self.name = real_name(self.real)
        *_, self._select, self._general_digest = self.begin(backend, self.name)
        self.boys = boys_on(backend, self.name)
        room = min(EXPANSION_BYTES, max(MIN_BUFFER_BYTES, budget.available() // 8))
        self._kernels = ListKernels(backend, algorithm, self.real, room)
        self._buffers: dict[str, Any] = {}
        self._reservation = f"quartet buffers, {self.name} precision"
        if backend.traits.schedule == "group":
            make_tables(self._kernels.classes(pairs), levels=True)
        self._kernels.request(pairs)
        self.pairs = [self._with_bounds(p) if not p.ket_bound.any() else p for p in pairs]
        self._kernels.forget()  # pairs without bounds are not used again
        self.device_pairs = [DevicePairs(p, backend, self.real) for p in self.pairs]
        self._class_pairs = [
            (bra, ket) for y, ket in enumerate(self.device_pairs) for bra in self.device_pairs[: y + 1]
        ]

    @classmethod
    def begin(cls, backend: Backend, real: str) -> list[Program]:
        """Start compiling the kernels that every molecule needs: integrals, selection, digestion."""
        sources = *ListKernels.general(backend, real), cuda_select(), cuda_digest(real, None)
        return [backend.compile(source) for source in sources]

    def add(self, D: Any, largest: Any, window: tuple[float, float], J: Any | None, K: Any | None) -> Any:
        """Add half of J and K, without their transposes; returns the number of quartets (on the device).

        `D` [density, row, column]; `largest` [segment, segment]: largest |D|; `window` of the bounds.
        """
        xp = self.backend.xp
        top = float(largest.max()) * (2.0 if J is not None else 1.0)  # largest factor of the densities in a bound
        wanted = {"J": J, "K": K}
        sums = {name: ExactSums(self.backend, M.shape) for name, M in wanted.items() if M is not None}
        common = {
            "D": xp.ascontiguousarray(D),
            **{name: D if M is None else sums[name].numbers for name, M in wanted.items()},
            "nbf": D.shape[1],
            "densities": len(D),
            "want_j": int(J is not None),
            "want_k": int(K is not None),
            "largest": xp.ascontiguousarray(largest),
            "segments": len(largest),
            "lower": window[0],
            "upper": window[1],
            "span": SPAN,
            "boys_table": self.boys,
            "cutoff": self.cutoff,
        }
        limit = self._limit()
        chunks = [
            Chunk(bra, ket, begin, end)
            for bra, ket in self._class_pairs
            for begin, end in self._ranges(bra.host, ket.host, limit, top, window[0])
        ]
        counts = self.backend.zeros((len(chunks), 2), np.int32)
        done = 0
        for group in self._groups(chunks, limit):
            self._run(group, counts[done : done + len(group)], top, common)
            done += len(group)
        for name, one in sums.items():
            one.add_to(wanted[name])
        columns = self.backend.to_device(np.array([chunk.bra.host.columns for chunk in chunks]))
        return (counts[:, 1] * columns).sum()

    def _limit(self) -> int:
        """Bytes of the buffer of integrals."""
        available = self.budget.available() + self.budget.reserved.get(self._reservation, 0)
        return min(BUFFER_BYTES, max(MIN_BUFFER_BYTES, available // 4))

    def _ranges(self, bra: PairClass, ket: PairClass, limit: int, top: float, lower: float) -> list[tuple[int, int]]:
        """Ranges of significant bras whose quartets fit into `limit` bytes."""
        bras = int(np.searchsorted(-(bra.bra_bound * float(ket.ket_bound.max()) * top), -lower, side="right"))
        capacity = limit // (_quartet_integrals(bra, ket) * self.real.itemsize + 8)
        step = max(1, capacity // (ket.ket.count + 32 * -(-ket.ket.count // SPAN)))
        return [(begin, min(begin + step, bras)) for begin in range(0, bras, step)]

    def _groups(self, chunks: Sequence[Chunk], limit: int) -> Iterator[list[Chunk]]:
        """Divide chunks into groups whose integrals fit into `limit` bytes together."""
        group, size = list[Chunk](), 0
        for chunk in chunks:
            if group and (size + chunk.numbers) * self.real.itemsize > limit:
                yield group
                group, size = [], 0
            group.append(chunk)
            size += _aligned(chunk.numbers)
        if group:
            yield group

    def _run(self, chunks: Sequence[Chunk], counts: Any, top: float, common: dict[str, Any]) -> None:
        """Select, evaluate and digest quartets; chunks do not depend on each other, so each step overlaps them."""
        chosen = [self._kernels(chunk.bra, chunk.ket, chunk.stride) for chunk in chunks]
        self.budget.record(f"Hermite expansions, {self.name} precision", self._kernels.expanded)
        integrals = self._parts("integrals", [chunk.numbers for chunk in chunks], self.real)
        lists = self._parts("list", [2 * chunk.stride for chunk in chunks], np.int32)
        scratch = self._parts("scratch", [launch.scratch for launch in chosen], self.real)
        select, evaluate, digest = list[Launch](), list[Launch](), list[Launch]()
        for n, (chunk, launch) in enumerate(zip(chunks, chosen, strict=True)):
            values = {
                **chunk.bra.bra,
                **chunk.ket.ket,
                **common,
                **launch.arguments,
                "bra_begin": chunk.begin,
                "bra_end": chunk.end,
                "pad": launch.pad,
                "same": int(chunk.bra is chunk.ket),
                "reach": float(chunk.ket.host.ket_bound.max()) * top,
                "list": lists[n],
                "count": counts[n],
                "stride": chunk.stride,
                "out": integrals[n],
                "integrals": integrals[n],
                "scratch": scratch[n],
            }
            blocks = blocks_for(self.backend, chunk.stride * chunk.bra.host.columns, LIST_THREADS)
            select.append(Launch(self._select, (chunk.end - chunk.begin) * chunk.spans, values))
            evaluate.append(Launch(launch.program, launch.blocks, values, launch.shared))
            digest.append(self._digest(chunk, blocks, values))
        order = sorted(range(len(chunks)), key=lambda n: chunks[n].serial_work, reverse=True)
        for launches in (select, [evaluate[n] for n in order], digest):
            self.backend.launch_all(launches)

    def _parts(self, name: str, sizes: Sequence[int], dtype: Any) -> list[Any]:
        """Divide a buffer, which is reused and grows as needed."""
        ends = np.cumsum([_aligned(size) for size in sizes]).tolist()
        if name not in self._buffers or self._buffers[name].size < ends[-1]:
            self._buffers.pop(name, None)
            self._buffers[name] = self.backend.xp.empty(ends[-1], dtype=dtype)
            self.budget.record(self._reservation, sum(buffer.nbytes for buffer in self._buffers.values()))
        return [self._buffers[name][begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def _digest(self, chunk: Chunk, blocks: int, values: dict[str, Any]) -> Launch:
        """The launch of the kernel for these numbers of functions of b, c and d if the calculation uses it, or of the
        general one."""
        sizes, general = (chunk.bra.host.functions[1], *chunk.ket.host.functions), self._general_digest
        if max(sizes) <= MAX_FIXED:
            integrals = chunk.numbers * chunk.bra.host.bra.count / (chunk.end - chunk.begin)
            wait = is_worth_waiting(self.backend, "direct.worth_waiting", ITERATIONS * integrals, prod(sizes))
            special = self.backend.compile(cuda_digest(self.name, sizes), later=not wait)
            if uses_special(special, wait):
                otherwise = None if special.ready else partial(Launch, general, blocks, values)
                return Launch(special, blocks, values, otherwise=otherwise)
        return Launch(general, blocks, values)

    def _with_bounds(self, pairs: PairClass) -> PairClass:
        """Compute the bounds sqrt (ab|ab) of all kets, from quartets of each pair with itself."""
        xp = self.backend.xp
        kets, functions = pairs.ket.count, prod(pairs.functions)
        device = DevicePairs(pairs, self.backend, self.real)
        bound = np.zeros(kets)
        step = max(1, BUFFER_BYTES // (pairs.columns * functions**2 * self.real.itemsize * 32))
        launch = self._kernels(device, device, step, general=True)  # the same bounds with any tier
        for begin in range(0, kets, step):
            part = np.arange(begin, min(begin + step, kets))
            listed = np.full((len(part), launch.pad, 2), -1, dtype=np.int32)
            listed[:, :, 0] = pairs.ket_pair[part, None]
            listed[:, 0, 1] = part
            out = xp.zeros((pairs.columns, functions, functions, listed.size // 2), dtype=self.real)
            self._diagonal(launch, device, listed, out)
            diagonal = self.backend.to_host(xp.diagonal(out, axis1=1, axis2=2)[:, :: launch.pad].max(axis=2))
            bound[part] = np.sqrt(np.maximum(0.0, diagonal[pairs.ket_column[part], np.arange(len(part))]))
        return with_bounds(pairs, bound)

    def _diagonal(self, launch: ListLaunch, pairs: DevicePairs, listed: Any, out: Any) -> None:
        """Integrals of listed quartets of a class with itself."""
        stride = listed.size // 2
        values = {
            **pairs.bra,
            **pairs.ket,
            "boys_table": self.boys,
            "cutoff": 0.0,
            "list": self.backend.to_device(listed.reshape(-1)),
            "count": self.backend.to_device(np.array([stride], dtype=np.int32)),
            "out": out,
            "stride": stride,
            **launch.arguments,
            "scratch": self._parts("scratch", [launch.scratch], self.real)[0],
        }
        self.backend.launch(launch.program, launch.blocks, values, launch.shared)


def _quartet_integrals(bra: PairClass, ket: PairClass) -> int:
    """Number of integrals of a quartet: a bra with all its columns, and a ket."""
    return bra.columns * prod(bra.functions) * prod(ket.functions)


def _aligned(size: int) -> int:
    return -(-max(1, size) // ALIGNMENT) * ALIGNMENT
