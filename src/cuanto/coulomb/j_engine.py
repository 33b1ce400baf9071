"""The Coulomb matrix J_pq = sum_rt (pq|rt) D_rt from Hermite densities, without four-centre integrals.

White and Head-Gordon, J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011. The density of every pair of primitives is
expanded in Hermite Gaussians, these interact (`kernels.recurrences.hermite_coulomb`), and the potentials are contracted
with the same expansions.

Screening: an interaction of a bra b with a ket density h is at most sqrt (b|b) sqrt (h|h) (Schwarz). Kets are sorted by
their bound, and a bra stops where the bounds of *all* remaining kets together are negligible, so that the threshold
limits the error of every bra, not only of every interaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from cuanto.arrays import range_starts
from cuanto.backends.base import Backend
from cuanto.backends.tiers import ITERATIONS
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import PairArrays, PairBlock, pair_blocks, primitives
from cuanto.coulomb.j_steps import CLASSES, BraClass, Contraction, HermiteClass, Interactions, Launcher, Reach, Steps
from cuanto.errors import InputError
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.engine import resolve
from cuanto.kernels.hermite_build import GROUPINGS

NUMBERS = {"double": ("double",), "mixed": ("double", "float"), "single": ("float",)}
"""Number types by precision."""
SINGLE_ERROR = 1e-6
"""Error of an interaction in single precision, relative to its bound."""
MIXED_ERROR = 1e-9
"""Largest error of a bra by single precision, when precision is mixed."""
SINGLE_RANGE = 1e30
"""Largest power of exponents in single precision."""
DENSITIES = 2
"""Largest number of densities that kernels treat at once."""


@dataclass(frozen=True)
class Statistics:
    """Interactions of primitive pairs that were evaluated, those of them in single precision, and all that exist.

    Each interaction evaluates the Boys function once. `error` estimates the error of the worst primitive pair by
    screening and single precision, as a sum of bounds.
    """

    interactions: int
    single: int
    possible: int
    error: float


@dataclass(frozen=True)
class Distributions:
    """Charge distributions by Hermite order: the pairs of a basis, functions of a fitting basis, point charges."""

    classes: tuple[HermiteClass, ...]
    arrays: PairArrays
    backend: Backend

    @classmethod
    def of(cls, blocks: Sequence[PairBlock], backend: Backend) -> Distributions:
        """Blocks of pairs, those of a set and a Hermite order one after the other."""
        groups = [tuple(mine) for _, mine in groupby(blocks, key=lambda block: (block.charges.name, block.order))]
        if len(groups) > CLASSES:
            raise InputError(
                f"{len(groups)} classes of charge distributions were given, at most {CLASSES} are possible"
            )
        return cls(tuple(HermiteClass(i, group) for i, group in enumerate(groups)), blocks[0].arrays, backend)

    @property
    def single(self) -> bool:
        """Whether powers of the exponents are within the range of single precision."""
        roots = [(c.order, float(self.arrays.geometry[c.range, 0].max())) for c in self.classes]
        return all((2.0 * root**2) ** (2 * order) < SINGLE_RANGE for order, root in roots)

    def as_bras(self, reals: Sequence[str], omega: float | None, higher: int) -> Bras:
        """Sort them as bras of some number types; bras of a `higher` order than their own give derivatives."""
        backend = self.backend
        counts, group_size = [c.count for c in self.classes], GROUPINGS[backend.traits.language].bras
        groups = range_starts([-(-count // group_size) for count in counts])
        orders = [c.order + higher for c in self.classes]
        table = backend.to_device(np.column_stack([range_starts(counts), groups, [*orders, 0]]))
        sort = Steps(backend).as_bras
        rank, record, bounds = sort(table, self.arrays, int(groups[-1]), smearing(omega), higher)
        records = {real: record if real == "double" else _in_single(record, backend.xp) for real in reals}
        found = [
            BraClass(c, order, slice(*ends), rank, {real: each[c.range] for real, each in records.items()})
            for c, order, ends in zip(self.classes, orders, pairwise(groups.tolist()), strict=True)
        ]
        return Bras(tuple(found), bounds, table)


@dataclass(frozen=True)
class Bras:
    """Classes of bras, the largest bounds of their groups, and the table of the classes for kernels."""

    classes: tuple[BraClass, ...]
    bounds: Any
    table: Any


def _in_single(geometry: Any, xp: Any) -> Any:
    """Square roots of exponents, centres in single precision, and their rounding errors."""
    high = geometry.astype(np.float32)
    return xp.ascontiguousarray(xp.concatenate([high, (geometry[:, 1:] - high[:, 1:]).astype(np.float32)], axis=1))


class Potentials:
    """Potentials of the densities of some distributions (kets), contracted with others or with the same (bras)."""

    def __init__(
        self,
        bras: Distributions,
        kets: Distributions,
        threshold: float,
        precision: str = "double",
        omega: float | None = None,
        higher: int = 0,
        signs: Mapping[tuple[str, str], int] | None = None,
        room: float = np.inf,
    ) -> None:
        """`omega`: that of the operator erf(omega r)/r, None for 1/r. Bras of a `higher` order than their own give
        derivatives of the potential.

        `signs`: sign of the densities of a set of kets for a set of bras, by the names of both sets; sets that are not
        named do not interact. By default all interact.
        `room`: bytes of memory for the potentials of parts of the kets.
        """
        self.backend, self.threshold = bras.backend, threshold
        self.precision = precision if precision == "double" or (bras.single and kets.single) else "double"
        reals, xp = NUMBERS[self.precision], self.backend.xp
        own, self._kets = bras.as_bras(reals, omega, higher), kets
        self.bras, self._bounds = own.classes, own.bounds
        starts = range_starts([c.count for c in kets.classes])
        self._table = own.table if kets is bras else self.backend.to_device(np.stack([starts] * 3, axis=1))
        self._geometry = {"double": kets.arrays.geometry}
        if "float" in reals:
            self._geometry["float"] = _in_single(kets.arrays.geometry, xp)
        self.steps = Steps(self.backend)

        def sign(bra: HermiteClass, ket: HermiteClass) -> int:
            return 1 if signs is None else signs.get((bra.name, ket.name), 0)

        self._launcher = Launcher(self.backend, self.bras, kets.classes, reals, sign, room)
        zeros = self.backend.zeros((len(self._bounds),), np.int32)
        self._zeros = [zeros[c.groups] for c in self.bras]
        self._last: list[Reach] = []

    def __call__(
        self, given: Any, expand: Callable[[Any], Any], shape: tuple[int, ...], contract: Callable[[Any], Any]
    ) -> Any:
        """contract(V) of the potentials V of densities expand(given), a few at a time.

        V [n, *shape] has half of every potential, or all of it for bras of weight two.
        """
        self._last, parts = [], []
        for n in range(0, len(given), DENSITIES):
            X = expand(given[n : n + DENSITIES])
            V = self.backend.xp.zeros((len(X), *shape))
            self.steps.collect(self.bras, self.hermite(X), V)
            parts.append(contract(V))
        return self.backend.xp.concatenate(parts)

    def expect_calls(self, count: int) -> None:
        """Set the expected number of calls in a calculation."""
        self._launcher.calls = count

    def hermite(self, X: Any) -> list[Any]:
        """Potentials of densities X in the Hermite Gaussians of the classes of bras."""
        return self.steps.add_up(self._launcher.run(list(self._jobs(X)), len(X)))

    def _jobs(self, X: Any) -> Iterator[Interactions]:
        """The Hermite densities of every class as kets, each for all classes of bras."""
        xp, classes, arrays = self.backend.xp, self._kets.classes, self._kets.arrays
        densities = self.steps.densities(classes, arrays, X)
        # Sorted by powers of four, and within these along a curve: the sums of remaining bounds allow any order.
        order = xp.argsort(densities.key)
        rest = densities.bound[order]
        for c in classes:
            xp.cumsum(rest[c.range], out=rest[c.range])
        single = {"double": 0.0, "mixed": MIXED_ERROR / SINGLE_ERROR, "single": np.inf}[self.precision]
        table_of_kets = self._table, len(classes)
        split, end = self.steps.reach(table_of_kets, rest, self._bounds, self.threshold, single)
        self._last += [Reach(rest[c.range], split[c.number], end[c.number]) for c in classes]
        kets = list(zip(classes, densities.H_knt, strict=True))
        for real in NUMBERS[self.precision]:
            rounded = replace(arrays, geometry=self._geometry[real])
            records = self.steps.records(kets, order, rounded, len(X), real)
            for ket, record in zip(classes, records, strict=True):
                for bra, zeros in zip(self.bras, self._zeros, strict=True):
                    numbers = (bra.pairs.number, ket.number)
                    if (numbers, real) in self._launcher.chunks:
                        middle = split[ket.number, bra.groups]
                        ends = (zeros, middle) if real == "double" else (middle, end[ket.number, bra.groups])
                        sides = (bra.count, ket.count, bra.record[real], record, *ends)
                        yield Interactions(numbers, (bra.order, ket.order), len(X), real, *sides)

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call; copies a few small arrays from the device."""
        to_host, grouping = self.backend.to_host, GROUPINGS[self.backend.traits.language]
        sizes = [
            np.minimum(grouping.bras, c.count - grouping.bras * np.arange(c.groups.stop - c.groups.start))
            for c in self.bras
        ]
        bras, bounds = np.concatenate(sizes), to_host(self._bounds)
        done = single = possible = 0
        error = np.zeros(len(bras))
        for reach in self._last:
            tail, end, split = (to_host(x) for x in (reach.rest, reach.end, reach.split))
            rest = np.append(tail[::-1], 0.0)
            last, first = (np.minimum(x * grouping.kets, len(tail)) for x in (end, split))
            done += int(bras @ last)
            single += int(bras @ (last - first))
            possible += int(bras.sum()) * len(tail)
            error += bounds * (rest[last] + SINGLE_ERROR * (rest[first] - rest[last]))
        return Statistics(done, single, possible, float(error.max(initial=0.0)))


class JEngine:
    """J of a basis; pairs and Hermite expansions are set up once per geometry.

    `omega`: that of the operator erf(omega r)/r, None for 1/r.
    """

    def __init__(
        self,
        basis: Basis,
        *,
        backend: str | Backend = "auto",
        threshold: float = 1e-12,
        precision: str = "double",
        omega: float | None = None,
    ) -> None:
        if precision not in NUMBERS:
            raise InputError(f"unknown precision {precision!r}: choose {', '.join(NUMBERS)}")
        if not threshold > 0.0:
            raise InputError(f"threshold is {threshold}; give a positive number such as 1e-12")
        self.backend = resolve(backend)
        self.threshold, self.nbf = threshold, basis.nbf
        groups, contraction = primitives(basis)
        self._contraction = Contraction(contraction, self.backend)
        blocks = pair_blocks(groups, threshold, self.backend)
        self.nbytes = sum(int(block.E_kft.nbytes) for block in blocks)
        pairs = Distributions.of(blocks, self.backend)
        self._potentials = Potentials(pairs, pairs, threshold, precision, omega)
        self._potentials.expect_calls(ITERATIONS)
        self.precision = self._potentials.precision

    def __call__(self, D: Any) -> Any:
        """J_npq of symmetric densities D_npq, or J_pq of D_pq; arrays of the backend. Only (D + D^T)/2 matters."""
        xp = self.backend.xp
        D = xp.asarray(D, dtype=np.float64)
        if D.ndim not in (2, 3) or D.shape[-2:] != (self.nbf, self.nbf):
            raise InputError(f"a density is {self.nbf} x {self.nbf} here, an array of shape {D.shape} was given")
        if not D.size:
            return xp.zeros(D.shape)
        C, size = self._contraction, self._contraction.shape[1]
        D_npq = D.reshape(-1, self.nbf, self.nbf)
        return self._potentials(D_npq, C.density, (size, size), C.matrix).reshape(D.shape)

    def finish_compiling(self) -> None:
        """Wait for the specialised kernels requested so far; the general one is used until then."""
        self.backend.finish_compiling()

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call; copies a few small arrays from the device."""
        return self._potentials.statistics
