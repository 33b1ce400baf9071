"""The Coulomb matrix J_pq = sum_rt (pq|rt) D_rt from Hermite densities, without four-centre integrals.

White and Head-Gordon, J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011. The density of every pair of primitives is
expanded in Hermite Gaussians, these interact (`kernels.recurrences.hermite_coulomb`), and the potentials are contracted
with the same expansions.

Screening: an interaction of a bra b with a ket density h is at most sqrt (b|b) sqrt (h|h) (Schwarz). Kets are sorted by
their bound, and a bra stops where the bounds of *all* remaining kets together are negligible, so that the threshold
limits the error of every bra, not only of every interaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from cuanto.arrays import inverse_permutation, morton_codes
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import (
    PairBlock,
    bound_buckets,
    pair_blocks,
    primitives,
    self_repulsion_factor,
    self_repulsion_scale,
)
from cuanto.coulomb.j_steps import Contraction, HermiteClass, Interactions, Launcher, Reach, Steps
from cuanto.errors import InputError
from cuanto.integrals.attenuation import attenuated_exponents
from cuanto.integrals.engine import resolve
from cuanto.kernels.hermite_build import GROUPINGS
from cuanto.kernels.recurrences.components import degree
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

NUMBERS = {"double": ("double",), "mixed": ("double", "float"), "single": ("float",)}
"""Number types by precision."""
SINGLE_ERROR = 1e-6
"""Error of an interaction in single precision, relative to its bound."""
MIXED_ERROR = 1e-9
"""Largest error of a bra by single precision, when precision is mixed."""
SINGLE_RANGE = 1e30
"""Largest power of exponents in single precision."""
CELL = 1.0
"""Side of the cells by which pairs are sorted in space, in Bohr."""
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
    """Charge distributions as bras or kets: the pairs of a basis, or the functions of a fitting basis.

    `bounds` of all groups of bras; `single`: powers of the exponents are within the range of single precision.
    """

    classes: tuple[HermiteClass, ...]
    bounds: Any
    single: bool

    @classmethod
    def of(
        cls, blocks: Iterable[PairBlock], size: int, backend: Backend, omega: float | None = None, higher: int = 0
    ) -> Distributions:
        """By Hermite order; `size`: functions in a row of the matrix of their densities.

        `omega`: as bras they are for the operator erf(omega r)/r; kets do not depend on it. Bras of a `higher` order
        than their expansion feel derivatives of the potential.
        """
        ordered = sorted(blocks, key=lambda block: block.order)
        groups = [list(mine) for _, mine in groupby(ordered, key=lambda b: b.order)]
        classes = tuple(_hermite_class(group, size, backend, omega, higher) for group in groups)
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
    # Neighbouring lanes and threads then take the same branch and the same rows of the Boys function's table.
    curve = inverse_permutation(np.lexsort((p, morton_codes(centres, CELL))))
    sorted_bras = np.lexsort((curve, -bound_buckets(bound)))
    bra_record = {real: values[sorted_bras] for real, values in geometry.items()}
    for record in bra_record.values():
        record[:, 0] = np.sqrt(attenuated_exponents(p, omega))[sorted_bras]
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
        put(inverse_permutation(sorted_bras)),
        {real: put(record) for real, record in bra_record.items()},
        put(np.maximum.reduceat(bound[sorted_bras], starts)),
    )


class Potentials:
    """Potentials of the densities of some distributions (kets), contracted with others or with the same (bras)."""

    def __init__(
        self, bras: Distributions, kets: Distributions, backend: Backend, threshold: float, precision: str
    ) -> None:
        self.backend, self.threshold = backend, threshold
        self._bras, self._kets = bras, kets
        self.precision = precision if bras.single and kets.single else "double"
        self._steps = Steps(backend)
        self._launcher = Launcher(backend, bras.sizes, kets.sizes, NUMBERS[self.precision])
        self._nothing = backend.zeros((len(bras.bounds),), np.int32)
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
            self._steps.collect(self._bras.classes, self.hermite(X), V)
            parts.append(contract(V))
        return self.backend.xp.concatenate(parts)

    def hermite(self, X: Any) -> dict[int, Any]:
        """Potentials of densities X in the Hermite Gaussians of the bras, by their order."""
        return self._steps.add_up(self._launcher.run(list(self._jobs(X))))

    def _jobs(self, X: Any) -> Iterator[Interactions]:
        """The Hermite densities of every class as kets, each for all classes of bras."""
        xp, classes = self.backend.xp, self._kets.classes
        densities = self._steps.densities(classes, X)
        # By powers of four, within them along a curve: any order is right for sums of the remaining bounds.
        orders = [xp.argsort(density.key) for density in densities]
        rests = [xp.cumsum(density.bound[order][::-1]) for density, order in zip(densities, orders, strict=True)]
        single = {"double": 0.0, "mixed": MIXED_ERROR / SINGLE_ERROR, "single": np.inf}[self.precision]
        reaches = self._steps.reach(rests, self._bras.bounds, self.threshold, single)
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

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call; copies a few small arrays from the device."""
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
        pairs = Distributions.of(blocks, contraction.shape[1], self.backend, omega)
        self._potentials = Potentials(pairs, pairs, self.backend, threshold, precision)
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
