"""The Coulomb matrix J_pq = sum_rt (pq|rt) D_rt from Hermite densities: no integral is ever made.

White and Head-Gordon, J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011. The density of every pair of primitives is
expanded in Hermite Gaussians, these interact (`kernels.recurrences.hermite_coulomb`), and the potentials are contracted
with the same expansions.

Screening: an interaction of a bra b with a ket density h is at most sqrt (b|b) sqrt (h|h) (Schwarz). Kets are sorted by
their bound, and a bra stops where the bounds of *all* remaining kets together are negligible, so that the error of
every bra is below the threshold, not only that of every interaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import (
    PairBlock,
    along_a_curve,
    bound_buckets,
    pair_blocks,
    primitives,
    self_repulsion_factor,
    self_repulsion_scale,
)
from cuanto.coulomb.j_launch import Interactions, Launcher
from cuanto.coulomb.j_steps import Contraction, HermiteClass, Steps
from cuanto.errors import InputError
from cuanto.integrals.attenuation import met_exponents
from cuanto.integrals.engine import resolve
from cuanto.kernels.hermite_build import GROUPINGS
from cuanto.kernels.recurrences.components import degree
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

NUMBERS = {"double": ("double",), "mixed": ("double", "float"), "single": ("float",)}
"""Number types by precision."""
SINGLE_ERROR = 1e-6
"""Error of an interaction in single precision, relative to its bound: a few units of the last digit."""
MIXED_ERROR = 1e-9
"""What single precision may do to a bra when precision is mixed."""
SINGLE_RANGE = 1e30
"""Powers of exponents beyond this are left to double precision."""
DENSITIES = 2
"""Densities treated at once."""


@dataclass(frozen=True)
class Statistics:
    """What a call did: interactions of primitive pairs, of which so many in single precision, of all there are.

    Each interaction evaluates the Boys function once. `error` estimates what screening and single precision did to
    the worst primitive pair, as a sum of bounds.
    """

    interactions: int
    single: int
    possible: int
    error: float


@dataclass(frozen=True)
class _Reach:
    """Of the kets of one class: sums of the bounds of the last ones, and how far each group of bras goes."""

    rest: Any
    end: Any
    split: Any


@dataclass(frozen=True)
class Distributions:
    """Charge distributions that are bras or kets: the pairs of a basis, or the functions of a fitting basis.

    `bounds`: of all groups of bras; `single`: powers of the exponents stay in the range of single precision.
    """

    classes: tuple[HermiteClass, ...]
    bounds: Any
    single: bool

    @classmethod
    def of(
        cls, blocks: Iterable[PairBlock], size: int, backend: Backend, omega: float | None = None, higher: int = 0
    ) -> Distributions:
        """By Hermite order; `size`: functions in a row of the matrix that holds their densities.

        With `omega` these are bras for the operator erf(omega r)/r; as kets they are the same. Bras of a `higher` order
        than their expansion feel derivatives of the potential.
        """
        ordered = sorted(blocks, key=lambda block: block.order)
        groups = [list(mine) for _, mine in groupby(ordered, key=lambda b: b.order)]
        classes = tuple(_hermite_class(group, size, backend, omega, higher) for group in groups)
        # Powers of very large exponents with high momenta leave the range of single precision.
        single = all((2.0 * block.exponents.max()) ** (2 * block.order) < SINGLE_RANGE for block in ordered)
        return cls(classes, backend.xp.concatenate([c.bra_bound for c in classes]), single)

    @property
    def sizes(self) -> dict[int, int]:
        """Distributions by Hermite order."""
        return {c.order: c.count for c in self.classes}


def _hermite_class(
    blocks: list[PairBlock], size: int, backend: Backend, omega: float | None, higher: int
) -> HermiteClass:
    put, order = backend.to_device, blocks[0].order + higher
    p, weight, bound, centres = (
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("exponents", "weight", "bound", "centres")
    )
    if higher:  # a derivative of Gaussians of exponent p is larger by about sqrt(p) times the root of its momentum
        bound = bound * (1.0 + 2.0 * np.sqrt(p * (order + 1.0))) ** higher
    high = centres.astype(np.float32)
    geometry = {
        "double": np.column_stack([np.sqrt(p), centres]),
        "float": np.column_stack([np.sqrt(p), high, centres - high]).astype(np.float32),
    }
    curve = along_a_curve(centres, p)
    sorted_bras = np.lexsort((curve, -bound_buckets(bound)))
    bra_record = {real: values[sorted_bras] for real, values in geometry.items()}
    for record in bra_record.values():
        record[:, 0] = np.sqrt(met_exponents(p, omega))[sorted_bras]
    rank = np.empty(len(p), dtype=np.int64)
    rank[sorted_bras] = np.arange(len(p))
    signs = np.array([(-1.0) ** degree(t) for t in hermite_tuples(order)])
    starts = np.arange(0, len(p), GROUPINGS[backend.traits.language].bras)
    return HermiteClass(
        order,
        len(p),
        tuple(blocks),
        tuple(put(block.places(size)) for block in blocks),
        {real: put(values) for real, values in geometry.items()},
        put(weight[:, None] * self_repulsion_scale(p, order)),
        put(self_repulsion_factor(order)),
        put((weight * p**-1.5)[:, None] * signs),
        put(np.pi**2.5 * weight * p**-1.5),
        put(curve),
        put(rank),
        {real: put(record) for real, record in bra_record.items()},
        put(np.maximum.reduceat(bound[sorted_bras], starts)),
    )


class Potentials:
    """What the densities of one kind of distributions do to those of another, or of the same, kind."""

    def __init__(
        self, bras: Distributions, kets: Distributions, backend: Backend, threshold: float, precision: str
    ) -> None:
        self.backend, self.threshold = backend, threshold
        self._bras, self._kets = bras, kets
        self.precision = precision if bras.single and kets.single else "double"
        self._steps = Steps(backend)
        self._launcher = Launcher(backend, bras.sizes, kets.sizes, NUMBERS[self.precision])
        self._nothing = backend.zeros((len(bras.bounds),), np.int32)
        self._last: list[_Reach] = []

    def begin(self) -> None:
        """Statistics count from here."""
        self._last = []

    def __call__(self, X: Any, out: Any) -> None:
        """Half the potentials of densities X [n, ...] of the kets, into `out` [n, ...]; bras of weight two: all."""
        self._steps.collect(self._bras.classes, self.hermite(X), out)

    def hermite(self, X: Any) -> dict[int, Any]:
        """The same in the Hermite Gaussians of the bras, by their order."""
        return self._steps.add_up(self._launcher.run(list(self._jobs(X))))

    def _jobs(self, X: Any) -> Iterator[Interactions]:
        """The Hermite densities of every class as kets, each for all classes of bras."""
        xp, classes = self.backend.xp, self._kets.classes
        densities = self._steps.densities(classes, X)
        # By powers of four, within them along a curve: any order is right as far as sums of the rest go.
        orders = [xp.argsort(density.key) for density in densities]
        reaches = self._reach(
            [xp.cumsum(density.bound[order][::-1]) for density, order in zip(densities, orders, strict=True)]
        )
        self._last += reaches
        kets = list(zip(classes, orders, densities, strict=True))
        for real in NUMBERS[self.precision]:
            for ket, reach, record in zip(classes, reaches, self._steps.records(kets, len(X), real), strict=True):
                first, last = (self._nothing, reach.split) if real == "double" else (reach.split, reach.end)
                at = 0
                for bra in self._bras.classes:
                    mine = slice(at, at + len(bra.bra_bound))
                    at = mine.stop
                    sides = (bra.count, ket.count, bra.bra_record[real], record)
                    yield Interactions((bra.order, ket.order), len(X), real, *sides, first[mine], last[mine])

    def _reach(self, rests: list[Any]) -> list[_Reach]:
        """How far each group of bras goes in double precision (`split`), and in all (`end`), for classes of kets."""
        single = {"double": 0.0, "mixed": MIXED_ERROR / SINGLE_ERROR, "single": np.inf}[self.precision]
        found = self._steps.reach(rests, self._bras.bounds, self.threshold, single)
        return [_Reach(rest, end, split) for rest, (split, end) in zip(rests, found, strict=True)]

    @property
    def statistics(self) -> Statistics:
        """What was done since `begin`; copies a few small arrays from the device."""
        to_host, grouping = self.backend.to_host, GROUPINGS[self.backend.traits.language]
        sizes = [np.minimum(grouping.bras, c.count - grouping.bras * np.arange(len(c.bra_bound)))
                 for c in self._bras.classes]  # fmt: skip
        bras, bounds = np.concatenate(sizes), to_host(self._bras.bounds)
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
    """J of a basis: pairs and Hermite expansions are made once per geometry. `omega`: of erf(omega r)/r."""

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
        pairs = Distributions.of(blocks, contraction.shape[1], self.backend, omega)
        self._potentials = Potentials(pairs, pairs, self.backend, threshold, precision)
        self.precision = self._potentials.precision

    def __call__(self, D: Any) -> Any:
        """J_npq of symmetric densities D_npq, or J_pq of D_pq; arrays of the backend. Only (D + D^T)/2 matters."""
        xp = self.backend.xp
        D = xp.asarray(D, dtype=np.float64)
        if D.ndim not in (2, 3) or D.shape[-2:] != (self.nbf, self.nbf):
            raise InputError(f"a density is {self.nbf} x {self.nbf} here, an array of shape {D.shape} was given")
        D_npq = D.reshape(-1, self.nbf, self.nbf)
        self._potentials.begin()
        parts = [self._coulomb(D_npq[n : n + DENSITIES]) for n in range(0, len(D_npq), DENSITIES)]
        return xp.concatenate(parts).reshape(D.shape) if parts else xp.zeros(D.shape)

    def _coulomb(self, D_npq: Any) -> Any:
        """J of so many densities as the kernels treat at once."""
        X_nkl = self._contraction.density(D_npq)
        J_nkl = self.backend.xp.zeros_like(X_nkl)
        self._potentials(X_nkl, J_nkl)
        return self._contraction.matrix(J_nkl)

    def finish_compiling(self) -> None:
        """Wait for the specialised kernels asked for so far; the general one serves until they are there."""
        self.backend.finish_compiling()

    @property
    def statistics(self) -> Statistics:
        """What the last call did; copies a few small arrays from the device."""
        return self._potentials.statistics
