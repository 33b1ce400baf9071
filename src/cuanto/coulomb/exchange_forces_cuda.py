"""The gradient of exact exchange on a GPU: quartets of shells are selected, and each adds its forces at once.

A quartet's two-particle density Gamma_abcd = sum_s D_ac D_bd + D_ad D_bc is expanded in Hermite Gaussians of its two
pairs and contracted with R_(t+s) of one order more than the integrals need: neither integrals nor their derivatives are
formed (kernels/templates/exchange_force.cuh). Each quartet is evaluated once, with the pairs and bounds of K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cuanto.arrays import Array, range_starts
from cuanto.backends.base import Backend, Launch, Program, real_name
from cuanto.backends.exact_sums import ExactSums
from cuanto.basis import Basis
from cuanto.coulomb.base import DirectOptions
from cuanto.coulomb.digest_cpu import Window
from cuanto.coulomb.digest_cuda import BUFFER_BYTES, MIN_BUFFER_BYTES, SPAN
from cuanto.coulomb.list_kernels import BLOCKS_PER_PROCESSOR
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, pair_slopes
from cuanto.coulomb.quartets import SIZE_SHARE, QuartetEngine, round_to_single, windows
from cuanto.integrals.engine import boys_on, upload_groups
from cuanto.kernels.direct import cuda_select
from cuanto.kernels.exchange_force import ForceKernel, bra_first, force_kernels
from cuanto.kernels.exchange_force_shared import Momenta
from cuanto.kernels.recurrences.components import kernel_matrix, powers
from cuanto.memory import Budget

COPIES = 64
"""Copies of the gradient, so that fewer threads add to the same number at once."""
SCRATCH_BLOCKS = 4
"""Blocks for each multiprocessor that work in global memory."""
QUARTET_BYTES = 8
"""Bytes of a quartet in a list: indices of bra and ket."""


@dataclass(frozen=True)
class PairsWithSlopes:
    """A class of pairs on the device, with bounds of the derivatives of its bras and kets."""

    pairs: DevicePairs
    bra_slope: Array
    ket_slope: Array
    arguments: dict[str, Any]

    @property
    def momenta(self) -> Momenta:
        """Angular momenta of both shells."""
        a, b = self.pairs.host.bra.shells.l
        return a, b

    @property
    def host(self) -> PairClass:
        """The same pairs in main memory."""
        return self.pairs.host


class Monomials:
    """The functions of a basis in terms of monomials, the only functions that the kernels handle.

    `place[p]`: index of the first monomial, where function p is the first of a contraction column of a shell (0 for
    all other functions); `atom` of each monomial; `size`: number of monomials.
    """

    def __init__(self, basis: Basis) -> None:
        place = np.zeros(basis.nbf, dtype=np.int32)
        atom: list[int] = []
        rows, columns, values = [], [], []
        pure = any(shell.pure and shell.l > 1 for shell in basis.shells)
        for shell, offset in zip(basis.shells, basis.offsets, strict=True):
            block, monomials = np.array(kernel_matrix(shell.l, shell.pure or shell.l < 2)), len(powers(shell.l))
            if not shell.pure or shell.l < 2:
                block = np.eye(monomials)
            i, j = np.nonzero(block)
            for column in range(shell.ncol):
                first = offset + column * len(block)
                place[first] = len(atom)
                rows.append(first + i)
                columns.append(len(atom) + j)
                values.append(block[i, j])
                atom += [shell.atom] * monomials
        self.size, self.place, self.atom = len(atom), place, np.array(atom, dtype=np.int32)
        self._entries = (*map(np.concatenate, (rows, columns)), np.concatenate(values)) if pure else None
        self._nbf = basis.nbf

    def density(self, D_npq: Any, backend: Backend) -> Any:
        """The densities between monomials."""
        if self._entries is None:
            return backend.xp.ascontiguousarray(D_npq)
        rows, columns, values = (backend.to_device(x) for x in self._entries)
        M = backend.zeros((self._nbf, self.size), np.float64)
        M[rows, columns] = values
        return backend.xp.ascontiguousarray(M.T @ D_npq @ M)


class CudaExchangeForces:
    """Forces of exact exchange for one geometry, by lists of quartets."""

    def __init__(self, basis: Basis, budget: Budget, options: DirectOptions, engine: QuartetEngine | None) -> None:
        """`engine`: that of K, whose pairs and bounds are used; created if it is None."""
        self.basis, self.budget, self.backend, self.options = basis, budget, budget.backend, options
        self._engine = QuartetEngine(basis, budget, replace(options, precision="double")) if engine is None else engine
        self._select = self.backend.compile(cuda_select(forces=True))
        self._buffer: Any = None

    @cached_property
    def _monomials(self) -> tuple[Monomials, dict[str, Any]]:
        monomials = Monomials(self.basis)
        return monomials, self.backend.upload({"place": monomials.place, "atom": monomials.atom})

    @cached_property
    def _parts(self) -> list[tuple[list[PairsWithSlopes], np.dtype[Any], Window]]:
        """The pairs of each precision, with the window of bounds of its quartets."""
        chosen = windows(self.options.precision, self.options.threshold).items()
        return [(self._pairs_with_slopes(np.dtype(name)), np.dtype(name), window) for name, window in chosen]

    def _pairs_with_slopes(self, real: np.dtype[Any]) -> list[PairsWithSlopes]:
        """The pairs of the engine on the device, created if the engine has none of this type."""
        pairs = self._engine.device_pairs.get(real.name)
        if pairs is None:
            hosts = [round_to_single(p) if real == np.float32 else p for p in self._engine.pairs]
            pairs = [DevicePairs(host, self.backend, real) for host in hosts]
        slopes = [pair_slopes(p.host) for p in pairs]
        groups = upload_groups(self.backend, [{"bra_slope": bra, "ket_slope": ket} for bra, ket in slopes])
        return [PairsWithSlopes(p, *both, own) for p, both, own in zip(pairs, slopes, groups, strict=True)]

    def __call__(self, D_npq: Any) -> Array:
        """d/dR of -2 sum over quartets of Gamma_abcd (ab|cd), [atom, axis]; on the host."""
        xp, atoms = self.backend.xp, len(self.basis.R_ax)
        largest = self._engine.largest(D_npq)
        monomials, tables = self._monomials
        gradient = ExactSums(self.backend, (COPIES, atoms, 3))
        common = {**tables, "D": monomials.density(D_npq, self.backend), "size": monomials.size, "atoms": atoms}
        common |= {"densities": len(D_npq), "sums": gradient.numbers, "copies": COPIES, "want_j": 0}
        common |= {"largest": xp.ascontiguousarray(largest), "segments": len(largest)}
        common["cutoff"] = self.options.threshold * SIZE_SHARE
        top = 2.0 * float(largest.max()) ** 2
        for pairs, real, window in self._parts:
            table = boys_on(self.backend, real_name(real))
            more = {"lower": window[0], "upper": window[1], "boys_table": table}
            self._add(pairs, real, top, common | more)
        return -2.0 * self.backend.to_host(gradient.total().sum(axis=0))

    def _add(self, pairs: list[PairsWithSlopes], real: np.dtype[Any], top: float, common: dict[str, Any]) -> None:
        """Add the forces of all quartets, in rounds of classes whose lists of quartets fit into memory together."""
        bras_and_kets = [
            (one, other) if bra_first(one.momenta, other.momenta) else (other, one)
            for n, one in enumerate(pairs)
            for other in pairs[n:]
        ]
        kernels = [self._kernels(bra.momenta, ket.momenta, real_name(real)) for bra, ket in bras_and_kets]
        room = self._room()
        work = [
            _Work(own, bra, ket, begin, end)
            for own, (bra, ket) in zip(kernels, bras_and_kets, strict=True)
            for begin, end in _ranges(bra, ket, top, common["lower"], room)
        ]
        for some in _rounds(work, room):
            counts = self.backend.zeros((len(some), 2), np.int32)
            starts = range_starts([one.size for one in some])
            lists = self._memory(int(starts[-1]))
            arguments = [
                {**one.arguments(top), **common, "list": lists[2 * start :], "count": count}
                for one, start, count in zip(some, starts[:-1], counts, strict=True)
            ]
            selections = [Launch(self._select, one.warps, values) for one, values in zip(some, arguments, strict=True)]
            self.backend.launch_all(selections)
            launches = [
                self._launch(program, kernel, values)
                for one, values in zip(some, arguments, strict=True)
                for program, kernel in one.kernels
            ]
            self.backend.launch_all(launches)

    def _launch(self, program: Program, kernel: ForceKernel, values: dict[str, Any]) -> Launch:
        """A launch of a kernel of forces."""
        workers = self.backend.traits.workers
        if not kernel.scratch:
            more = {"scratch": values["boys_table"], "scratch_stride": 0}
            return Launch(program, BLOCKS_PER_PROCESSOR * workers, values | more, kernel.shared)
        blocks, real = SCRATCH_BLOCKS * workers, values["boys_table"].dtype
        stride = kernel.scratch // real.itemsize
        more = {"scratch": self.backend.xp.empty(blocks * stride, dtype=real), "scratch_stride": stride}
        return Launch(program, blocks, values | more)

    def _kernels(self, bra: Momenta, ket: Momenta, real: str) -> list[tuple[Program, ForceKernel]]:
        """Start to compile the kernels of a class, and return them."""
        kernels = force_kernels(bra, ket, real, self.backend.traits.shared_limit)
        return [(self.backend.compile(kernel.source), kernel) for kernel in kernels]

    def _room(self) -> int:
        """Number of quartets whose lists fit into memory."""
        held = 0 if self._buffer is None else self._buffer.nbytes
        size = min(BUFFER_BYTES, max(MIN_BUFFER_BYTES, (self.budget.available() + held) // 4))
        return size // QUARTET_BYTES

    def _memory(self, quartets: int) -> Any:
        """Return memory for lists of quartets, which is reused and grows as needed."""
        if self._buffer is None or self._buffer.size < 2 * quartets:
            self._buffer = None
            self._buffer = self.backend.xp.empty(2 * quartets, dtype=np.int32)
            self.budget.record("list of quartets", self._buffer.nbytes)
        return self._buffer


@dataclass(frozen=True)
class _Work:
    """A range of bras with all kets of a class."""

    kernels: list[tuple[Program, ForceKernel]]
    bra: PairsWithSlopes
    ket: PairsWithSlopes
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Largest possible number of quartets."""
        return (self.end - self.begin) * self.ket.host.ket.count

    @property
    def warps(self) -> int:
        """Warps that select quartets."""
        return (self.end - self.begin) * -(-self.ket.host.ket.count // SPAN)

    def arguments(self, top: float) -> dict[str, Any]:
        """Arguments of both kernels that belong to this range."""
        bra, ket = self.bra, self.ket
        values = {**bra.pairs.bra, **ket.pairs.ket, "same": int(bra is ket), "span": SPAN, "pad": 1}
        values |= {"bra_slope": bra.arguments["bra_slope"], "ket_slope": ket.arguments["ket_slope"]}
        values |= {"reach": top * float(ket.host.ket_bound.max()), "slope_reach": top * float(ket.ket_slope.max())}
        return values | {"bra_begin": self.begin, "bra_end": self.end}


def _ranges(bra: PairsWithSlopes, ket: PairsWithSlopes, top: float, lower: float, room: int) -> list[tuple[int, int]]:
    """Ranges of bras with at most `room` quartets; bras after the last one are not significant."""
    bounds = bra.host.bra_bound * float(ket.ket_slope.max()) + bra.bra_slope * float(ket.host.ket_bound.max())
    significant = np.flatnonzero(bounds * top >= lower)
    bras = int(significant[-1]) + 1 if len(significant) else 0
    step = max(1, room // ket.host.ket.count)
    return [(begin, min(begin + step, bras)) for begin in range(0, bras, step)]


def _rounds(work: list[_Work], room: int) -> list[list[_Work]]:
    """Work in rounds of at most `room` quartets, the largest classes first."""
    rounds: list[list[_Work]] = []
    left = 0
    for one in sorted(work, key=lambda one: -one.size):
        if one.size > left:
            rounds.append([])
            left = room
        rounds[-1].append(one)
        left -= one.size
    return rounds
