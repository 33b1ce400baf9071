"""Pairs of shells for direct J and K: by class, as bras and as kets, with the data of screening and digestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints, Ints32, range_members, range_starts
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.integrals.api import basis_pairs
from cuanto.integrals.attenuation import attenuate, smearing
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.derivative import DerivativeShells
from cuanto.integrals.engine import bra_arrays, ket_arrays
from cuanto.integrals.pairs import pair_batches, pair_kets
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.abi import SIZE, bra_fields, ket_fields
from cuanto.kernels.recurrences.components import function_count

HIGH_POWER = 3
"""Angular momentum of Cartesian functions from which the size of their powers matters."""
GROWTH = 0.3
"""Exponent of the double factorial with which sizes of high powers are right within a factor of three."""


@dataclass(frozen=True, eq=False)
class PairClass:
    """Pairs of one class; that of a shell with itself has a factor 1/2, since transposes of quartets are added too.

    Bras are sorted by descending bound; kets, one for each contraction column of a pair, by number of primitives.
    """

    bra: BraBatch
    ket: KetBatch
    functions: tuple[int, int]
    ao: Ints32  # [pair, column, 2]: first functions of both shells
    segment: Ints32  # [pair, 2]
    bra_pair: Ints32  # [bra]
    bra_bound: Array  # [bra]
    ket_bound: Array  # [ket]

    @property
    def columns(self) -> int:
        """Contraction columns of a pair."""
        return self.bra.columns

    @cached_property
    def longest_bra(self) -> int:
        """The largest number of primitives of a bra."""
        return int(np.diff(self.bra.first).max(initial=0))

    @cached_property
    def longest_ket(self) -> int:
        """The largest number of primitives of a ket."""
        return int(np.diff(self.ket.first).max(initial=0))

    @property
    def ket_pair(self) -> Ints32:
        """Pair of each ket."""
        pair: Ints32 = self.ket.cols[0]
        return pair

    @property
    def ket_column(self) -> Ints32:
        """Contraction column of each ket."""
        column: Ints32 = self.ket.cols[1]
        return column


class DevicePairs:
    """A class of pairs on the device: arguments of kernels as bras and as kets, in numbers of the type `real`.

    `expansions`: Hermite expansions, if kernels need them (`list_kernels.py`).
    """

    def __init__(self, pairs: PairClass, backend: Backend, real: np.dtype[Any]) -> None:
        self.host = pairs
        self.expansions: dict[str, Any] = {}
        (na, nb), put = pairs.functions, backend.to_device
        bras = {
            **bra_arrays(pairs.bra, real.type),
            "bra_bound": pairs.bra_bound,
            "bra_pair": pairs.bra_pair,
            "bra_segment": pairs.segment[pairs.bra_pair],
            "bra_ao": pairs.ao[pairs.bra_pair],
        }
        kets = {
            **ket_arrays(pairs.ket, real.type),
            "ket_bound": pairs.ket_bound,
            "ket_pair": pairs.ket_pair,
            "ket_segment": pairs.segment[pairs.ket_pair],
            "ket_ao": pairs.ao[pairs.ket_pair, pairs.ket_column],
        }
        sizes = {"bras": pairs.bra.count, "columns": pairs.columns, "bra_fields": bra_fields("coulomb")}
        self.bra: dict[str, Any] = {**sizes, "na": na, "nb": nb, **{name: put(array) for name, array in bras.items()}}
        sizes = {"kets": pairs.ket.count, "ket_fields": ket_fields(pairs.ket.shells)}
        self.ket: dict[str, Any] = {**sizes, "nc": na, "nd": nb, **{name: put(array) for name, array in kets.items()}}


def pair_classes(basis: Basis, threshold: float, omega: float | None = None) -> list[PairClass]:
    """All pairs of shells, high momenta first, with bounds of zero; primitive pairs below `threshold` are neglected."""
    n = basis.nbf
    owner, _ = segment_of_function(segments(basis), n)
    batches = basis_pairs(basis, lambda p, q: p * n + q, threshold, split=False)
    return [_pair_class(n, owner, batch, omega) for batch in batches]


def derivative_pair_classes(
    basis: Basis, shells: DerivativeShells, threshold: float, omega: float | None = None
) -> list[PairClass]:
    """Pairs of a shell of derivatives and a shell of the basis, as bras; bounds are still zero."""
    n, classes = basis.nbf, segments(basis)
    owner, _ = segment_of_function(classes, n)
    owner_k = np.zeros(shells.size, dtype=np.int32)
    owner_k[shells.function] = owner[shells.p]
    found = []
    for a in reversed(shells.classes):
        for b in reversed(classes):
            batches = pair_batches(a, b, False, lambda k, q: k * n + q, threshold, split=False)
            found += [_pair_class(n, owner, batch, omega, owner_k) for batch in batches]
    return found


def segment_of_function(classes: Sequence[SegmentClass], nbf: int) -> tuple[Ints32, int]:
    """Segment of each basis function, and the number of segments."""
    owner = np.zeros(nbf, dtype=np.int32)
    count = 0
    for group in classes:
        functions = group.ao[:, :, None] + np.arange(group.functions)
        owner[functions] = count + np.arange(group.count)[:, None, None]
        count += group.count
    return owner, count


def _pair_class(
    nbf: int, owner: Ints32, batch: BraBatch, omega: float | None, owner_k: Ints32 | None = None
) -> PairClass:
    """The pairs of a batch as a class, with bounds of zero.

    `owner`: segment of each basis function; `owner_k`: segment of each derivative function, if the first shells of the
    pairs are derivatives.
    """
    na, nb = (function_count(l, pure) for l, pure in zip(batch.shells.l, batch.shells.pure, strict=True))
    columns = batch.columns
    first = batch.rows.reshape(batch.count, columns, -1)[:, :, 0]
    ao = np.stack(np.divmod(first, nbf), axis=-1).astype(np.int32)
    segment = np.stack([(owner if owner_k is None else owner_k)[ao[:, 0, 0]], owner[ao[:, 0, 1]]], axis=-1)
    own = (segment[:, 0] == segment[:, 1]) & (owner_k is None)
    weight = np.repeat(np.where(own, 0.5, 1.0), np.diff(batch.first))
    # Kets have their pair and column in place of columns of a result.
    names = np.stack(np.broadcast_arrays(np.arange(batch.count)[:, None], np.arange(columns)), axis=-1)
    batch = replace(batch, coefficient=batch.coefficient * weight[:, None], rows=names.reshape(batch.count, -1))
    batch = _sort_primitives(batch, omega)
    ket, pairs = pair_kets(batch), np.arange(batch.count, dtype=np.int32)
    bounds = np.zeros(batch.count), np.zeros(ket.count)
    return PairClass(attenuate(batch, omega), ket, (na, nb), ao, segment, pairs, *bounds)


def primitive_sizes(batch: BraBatch, omega: float | None) -> Array:
    """Square root of the self-repulsion of every product of primitives, for its largest column.

    Exact for s functions; a polynomial factor is evaluated at the distance of its centre from that of the product, plus
    one standard deviation. High powers of Cartesian functions are larger: the mean of x^2L is (2L - 1)!! times the
    L-th power of that of x^2.
    """
    p, PA, PB = batch.record[:, 0], batch.record[:, 4:7], batch.record[:, 7:10]
    la, lb = batch.shells.l
    spread = np.sqrt(0.5 / p)
    if any(l >= HIGH_POWER and not pure for l, pure in zip(batch.shells.l, batch.shells.pure, strict=True)):
        spread *= float(prod(range(1, 2 * (la + lb), 2))) ** (GROWTH / (la + lb))
    # Under the attenuated operator a self-repulsion is smaller by sqrt(rho'/rho), with rho = p/2.
    repulsion = p * (1.0 + 0.5 * smearing(omega) * p)
    size: Array = np.abs(batch.coefficient).max(axis=1) * repulsion**-0.25 * (2.0**0.25 / (2.0 * np.pi**1.25))
    size *= (np.linalg.norm(PA, axis=1) + spread) ** la * (np.linalg.norm(PB, axis=1) + spread) ** lb
    return size


def pair_slopes(pairs: PairClass) -> tuple[Array, Array]:
    """Bounds like sqrt (ab|ab), of the derivatives of bras and kets with respect to the centre of a or b.

    The derivative of x^l exp(-a x^2) is 2a x^(l + 1) - l x^(l - 1) times the exponential; each primitive counts with
    its size (`primitive_sizes`).
    """
    record, AB = pairs.bra.record, pairs.bra.shell
    owner, _ = range_members(np.diff(pairs.bra.first))
    p, spread = 0.5 / record[:, 10], np.sqrt(record[:, 10])
    # a/p from P - B = a/p (A - B); all of p counts if both shells have the same centre.
    length2 = (AB**2).sum(axis=1)[owner]
    share = np.divide((record[:, 7:10] * AB[owner]).sum(axis=1), length2, out=np.ones(len(p)), where=length2 > 0.0)
    slope = np.zeros(len(p))
    for exponent, l, first in zip((share * p, (1.0 - share) * p), pairs.bra.shells.l, (4, 7), strict=True):
        distance = np.sqrt((record[:, first : first + 3] ** 2).sum(axis=1)) + spread
        slope += 2.0 * exponent * distance + l / distance
    bra_slope: Array = np.add.reduceat(slope * record[:, SIZE], pairs.bra.first[:-1])
    ratio = np.zeros(pairs.bra.count)
    ratio[pairs.bra_pair] = bra_slope / np.maximum(pairs.bra_bound, np.finfo(float).tiny)
    return bra_slope, ratio[pairs.ket_pair] * pairs.ket_bound


def _sort_primitives(batch: BraBatch, omega: float | None) -> BraBatch:
    """Sort the primitives of each pair by descending size, which becomes a field of their record."""
    size = primitive_sizes(batch, omega)
    owner, _ = range_members(np.diff(batch.first))
    order = np.lexsort((-size, owner))
    record = batch.record[order]
    record[:, SIZE] = size[order]
    return replace(batch, record=record, coefficient=batch.coefficient[order])


def with_bounds(pairs: PairClass, ket_bound: Array) -> PairClass:
    """The same pairs with the bounds of their kets; bras are sorted by the largest bound of their columns."""
    bra_bound = np.zeros(pairs.bra.count)
    np.maximum.at(bra_bound, pairs.ket_pair, ket_bound)
    order = np.argsort(-bra_bound, kind="stable")
    return replace(
        pairs,
        bra=select_bras(pairs.bra, order),
        bra_pair=pairs.bra_pair[order],
        bra_bound=bra_bound[order],
        ket_bound=ket_bound,
    )


def select_bras(batch: BraBatch, chosen: Ints) -> BraBatch:
    """Some of the bras, or all in another order."""
    owner, within = range_members(np.diff(batch.first)[chosen])
    source = batch.first[chosen][owner] + within
    return replace(
        batch,
        first=range_starts(np.diff(batch.first)[chosen]).astype(np.int32),
        record=batch.record[source],
        coefficient=batch.coefficient[source],
        shell=batch.shell[chosen],
        rows=batch.rows[chosen],
    )
