"""The Coulomb matrix J_pq = sum_rt (pq|rt) D_rt from Hermite densities, without four-centre integrals.

White and Head-Gordon, J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011. The density of every pair of primitives is
expanded in Hermite Gaussians, these interact (`kernels.recurrences.hermite_coulomb`), and the potentials are contracted
with the same expansions.

Screening: an interaction of a bra b with a ket density h is at most sqrt (b|b) sqrt (h|h) (Schwarz). Kets are sorted by
their bound, and a bra stops where the bounds of *all* remaining kets together are negligible, so that the threshold
limits the error of every bra, not only of every interaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from cuanto.arrays import inverse_permutation
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import PairBlock, pair_blocks, primitives, sorting_key
from cuanto.coulomb.j_steps import BraClass, Contraction, HermiteClass, Interactions, Launcher, Reach, Steps
from cuanto.errors import InputError
from cuanto.integrals.attenuation import attenuated_exponents
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
"""Densities that kernels treat at once."""


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
    backend: Backend

    @classmethod
    def of(cls, blocks: Iterable[PairBlock], backend: Backend) -> Distributions:
        """Sort blocks of pairs by their order."""
        ordered = sorted(blocks, key=lambda block: block.order)
        groups = [tuple(mine) for _, mine in groupby(ordered, key=lambda b: b.order)]
        return cls(tuple(_hermite_class(group, backend) for group in groups), backend)

    def joined(self, others: Distributions, offset: int) -> Distributions:
        """With others, whose densities begin at an offset; classes to which nothing is added stay as they are."""
        known = {c.order: c.blocks for c in self.classes}
        for c in others.classes:
            moved = tuple(replace(block, offset=block.offset + offset) for block in c.blocks)
            known[c.order] = known.get(c.order, ()) + moved
        old = {c.blocks: c for c in self.classes}
        found = [old.get(known[order]) or _hermite_class(known[order], self.backend) for order in sorted(known)]
        return replace(self, classes=tuple(found))

    @property
    def sizes(self) -> dict[int, int]:
        """Distributions by Hermite order."""
        return {c.order: c.count for c in self.classes}

    @property
    def single(self) -> bool:
        """Whether powers of the exponents are within the range of single precision."""
        roots = [(c.order, float(c.geometry["double"][:, 0].max())) for c in self.classes]
        return all((2.0 * root**2) ** (2 * order) < SINGLE_RANGE for order, root in roots)

    def as_bras(self, reals: Sequence[str], omega: float | None, higher: int) -> tuple[BraClass, ...]:
        """Sort them as bras of some number types."""
        return tuple(_bra_class(c, self.backend, reals, omega, higher) for c in self.classes)

    def with_numbers(self, reals: Sequence[str]) -> Distributions:
        """With records of some number types."""
        if "float" not in reals:
            return self
        xp = self.backend.xp
        found = [
            replace(c, geometry={**c.geometry, "float": _in_single(c.geometry["double"], xp)}) for c in self.classes
        ]
        return replace(self, classes=tuple(found))


def _hermite_class(blocks: tuple[PairBlock, ...], backend: Backend) -> HermiteClass:
    xp = backend.xp

    def joined(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        return xp.concatenate(parts) if len(parts) > 1 else parts[0]

    return HermiteClass(blocks, {"double": joined("geometry")}, *(joined(x) for x in ("factor", "bound", "along")))


def _in_single(geometry: Any, xp: Any) -> Any:
    """Square roots of exponents, centres in single precision, and what is left of them."""
    high = geometry.astype(np.float32)
    return xp.ascontiguousarray(xp.concatenate([high, (geometry[:, 1:] - high[:, 1:]).astype(np.float32)], axis=1))


def _bra_class(
    pairs: HermiteClass, backend: Backend, reals: Sequence[str], omega: float | None, higher: int
) -> BraClass:
    xp, order, geometry = backend.xp, pairs.order + higher, pairs.geometry["double"]
    bound, together = pairs.bound, GROUPINGS[backend.traits.language].bras
    if higher:  # a derivative of Gaussians of exponent p is larger by about sqrt(p) times the root of its momentum
        bound = bound * (1.0 + 2.0 * geometry[:, 0] * (order + 1.0) ** 0.5) ** higher
    # Neighbouring lanes and threads take the same branch and the same rows of the Boys function's table.
    sorted_bras = xp.argsort(sorting_key(bound, pairs.along))
    geometry = geometry[sorted_bras]
    if omega is not None:
        geometry[:, 0] = attenuated_exponents(geometry[:, 0] ** 2, omega) ** 0.5
    largest = xp.zeros(-(-pairs.count // together) * together)
    largest[: pairs.count] = bound[sorted_bras]
    largest = largest.reshape(-1, together).max(axis=1)
    record = {real: geometry if real == "double" else _in_single(geometry, xp) for real in reals}
    return BraClass(pairs, order, inverse_permutation(sorted_bras, xp), record, largest)


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
    ) -> None:
        """`omega`: of the operator erf(omega r)/r. Bras of a `higher` order than their own feel its derivatives."""
        self.backend, self.threshold = bras.backend, threshold
        self.precision = precision if precision == "double" or (bras.single and kets.single) else "double"
        reals, xp = NUMBERS[self.precision], self.backend.xp
        self.bras, self._kets = bras.as_bras(reals, omega, higher), kets.with_numbers(reals)
        self._bounds = xp.concatenate([c.bound for c in self.bras])
        self.steps = Steps(self.backend)
        self._launcher = Launcher(self.backend, {c.order: c.count for c in self.bras}, kets.sizes, reals)
        self._nothing = self.backend.zeros((len(self._bounds),), np.int32)
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

    def hermite(self, X: Any) -> dict[int, Any]:
        """Potentials of densities X in the Hermite Gaussians of the bras, by their order."""
        return self.steps.add_up(self._launcher.run(list(self._jobs(X))))

    def _jobs(self, X: Any) -> Iterator[Interactions]:
        """The Hermite densities of every class as kets, each for all classes of bras."""
        xp, classes = self.backend.xp, self._kets.classes
        densities = self.steps.densities(classes, X)
        # By powers of four, within them along a curve: any order is right for sums of the remaining bounds.
        orders = [xp.argsort(density.key) for density in densities]
        rests = [xp.cumsum(density.bound[order][::-1]) for density, order in zip(densities, orders, strict=True)]
        single = {"double": 0.0, "mixed": MIXED_ERROR / SINGLE_ERROR, "single": np.inf}[self.precision]
        reaches = self.steps.reach(rests, self._bounds, self.threshold, single)
        self._last += reaches
        kets = list(zip(classes, orders, densities, strict=True))
        for real in NUMBERS[self.precision]:
            for ket, reach, record in zip(classes, reaches, self.steps.records(kets, len(X), real), strict=True):
                first, last = (self._nothing, reach.split) if real == "double" else (reach.split, reach.end)
                at = 0
                for bra in self.bras:
                    mine = slice(at, at + len(bra.bound))
                    at = mine.stop
                    sides = (bra.count, ket.count, bra.record[real], record)
                    yield Interactions((bra.order, ket.order), len(X), real, *sides, first[mine], last[mine])

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call; copies a few small arrays from the device."""
        to_host, grouping = self.backend.to_host, GROUPINGS[self.backend.traits.language]
        sizes = [np.minimum(grouping.bras, c.count - grouping.bras * np.arange(len(c.bound)))
                 for c in self.bras]  # fmt: skip
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
    """J of a basis; pairs and Hermite expansions are set up once per geometry. `omega`: of erf(omega r)/r."""

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
