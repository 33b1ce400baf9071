"""Pairs of shells for direct J and K: by class, as bras and as kets, with what screening and digestion need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.integrals.attenuation import attenuated, smearing
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.derivative import DerivativeShells
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets
from cuanto.integrals.segments import Array, Indices, SegmentClass, segments
from cuanto.kernels.abi import SIZE, bra_fields, ket_fields

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class PairClass:
    """Pairs of one class; a shell with itself counts half, so that unique quartets add up with their transposes.

    Bras are in descending order of `bound`; kets (one for each contraction column of a pair) by number of primitives.
    """

    bra: BraBatch
    ket: KetBatch
    functions: tuple[int, int]
    bra_ao: Ints  # [bra, column, 2]: first functions of both shells
    bra_segment: Ints  # [bra, 2]
    bra_pair: Ints  # [bra]
    ket_ao: Ints  # [ket, 2]
    ket_segment: Ints  # [ket, 2]
    ket_pair: Ints  # [ket]
    ket_column: Ints  # [ket]
    bra_bound: Array  # [bra]
    ket_bound: Array  # [ket]

    @property
    def columns(self) -> int:
        """Contraction columns of a pair."""
        return self.bra.columns


class DevicePairs:
    """A class of pairs on the device, as bras and as kets of kernels with numbers of the type `real`."""

    def __init__(self, pairs: PairClass, backend: Backend, real: np.dtype[Any]) -> None:
        self.host, put = pairs, backend.to_device
        bra, ket = pairs.bra, pairs.ket

        def numbers(array: Array) -> Any:
            return put(array.astype(real, copy=False))

        self.bra: dict[str, Any] = {
            "bras": bra.count,
            "bra_first": put(bra.first),
            "bra_record": numbers(bra.record),
            "bra_coefficient": numbers(bra.coefficient),
            "bra_shell": numbers(bra.shell),
            "columns": bra.columns,
            "bra_fields": bra_fields("coulomb"),
            "bra_bound": put(pairs.bra_bound),
            "bra_pair": put(pairs.bra_pair),
            "bra_segment": put(pairs.bra_segment),
            "bra_ao": put(pairs.bra_ao),
            "na": pairs.functions[0],
            "nb": pairs.functions[1],
        }
        self.ket: dict[str, Any] = {
            "kets": ket.count,
            "ket_first": put(ket.first),
            "ket_record": numbers(ket.record),
            "ket_shell": numbers(ket.shell),
            "ket_fields": ket_fields(ket.shells),
            "ket_bound": put(pairs.ket_bound),
            "ket_pair": put(pairs.ket_pair),
            "ket_segment": put(pairs.ket_segment),
            "ket_ao": put(pairs.ket_ao),
            "nc": pairs.functions[0],
            "nd": pairs.functions[1],
        }


class _Together(RowMap):
    """Both function numbers in one."""

    def __call__(self, i: Indices, j: Indices) -> Indices:
        return i * self.nbf + j


def pair_classes(basis: Basis, threshold: float, omega: float | None = None) -> list[PairClass]:
    """All pairs of shells, high momenta first; primitive pairs below `threshold` are left out. Bounds are zero yet."""
    classes = segments(basis)
    owner, _ = segment_of_function(classes, basis.nbf)
    found = []
    for x in reversed(range(len(classes))):
        for y in reversed(range(x + 1)):
            for batch in pair_batches(classes[x], classes[y], x == y, _Together(basis.nbf, False), threshold, False):
                functions = classes[x].functions, classes[y].functions
                found.append(_pair_class(batch, owner, basis.nbf, functions, omega))
    return found


def derivative_pair_classes(
    basis: Basis, shells: DerivativeShells, threshold: float, omega: float | None = None
) -> list[PairClass]:
    """Pairs of a shell of derivatives with a shell of the basis, as bras; the first one is in its parent's segment."""
    owner, _ = segment_of_function(segments(basis), basis.nbf)
    parent = np.zeros(shells.size, dtype=np.int64)
    parent[shells.function] = shells.p
    found = []
    for a in reversed(shells.classes):
        for b in reversed(segments(basis)):
            for batch in pair_batches(a, b, False, _Together(basis.nbf, False), threshold, False):
                found.append(_pair_class(batch, owner, basis.nbf, (a.functions, b.functions), omega, parent))
    return found


def segment_of_function(classes: Sequence[SegmentClass], nbf: int) -> tuple[Ints, int]:
    """Number of the segment each basis function belongs to, and how many there are."""
    owner = np.zeros(nbf, dtype=np.int32)
    count = 0
    for group in classes:
        functions = group.ao[:, :, None] + np.arange(group.functions)
        owner[functions] = count + np.arange(group.count)[:, None, None]
        count += group.count
    return owner, count


def _pair_class(
    batch: BraBatch,
    owner: Ints,
    nbf: int,
    functions: tuple[int, int],
    omega: float | None,
    parent: Indices | None = None,
) -> PairClass:
    """`owner`: segment of each function; `parent`: the function whose derivative a first function is part of."""
    columns = batch.columns
    first = batch.rows.reshape(batch.count, columns, -1)[:, :, 0]
    ao = np.stack(np.divmod(first, nbf), axis=-1).astype(np.int32)
    segment = owner[np.stack([ao[:, 0, 0] if parent is None else parent[ao[:, 0, 0]], ao[:, 0, 1]], axis=-1)]
    own = (segment[:, 0] == segment[:, 1]) & (parent is None)
    weight = np.repeat(np.where(own, 0.5, 1.0), np.diff(batch.first))
    # Kets carry their pair and column instead of places in a result.
    names = np.stack(np.broadcast_arrays(np.arange(batch.count)[:, None], np.arange(columns)), axis=-1)
    batch = replace(batch, coefficient=batch.coefficient * weight[:, None], rows=names.reshape(batch.count, -1))
    batch = _large_first(batch, omega)
    ket = pair_kets(batch)
    pair, column = ket.cols
    return PairClass(
        bra=attenuated(batch, omega),
        ket=ket,
        functions=functions,
        bra_ao=ao,
        bra_segment=segment,
        bra_pair=np.arange(batch.count, dtype=np.int32),
        ket_ao=np.ascontiguousarray(ao[pair, column]),
        ket_segment=np.ascontiguousarray(segment[pair]),
        ket_pair=pair,
        ket_column=column,
        bra_bound=np.zeros(batch.count),
        ket_bound=np.zeros(ket.count),
    )


def primitive_sizes(batch: BraBatch, omega: float | None) -> Array:
    """The square root of the self-repulsion of every product of primitives, of its largest column.

    Exact for s functions; a polynomial factor is taken at its centre's distance plus one standard deviation.
    """
    p, PA, PB = batch.record[:, 0], batch.record[:, 4:7], batch.record[:, 7:10]
    la, lb = batch.shells.l
    spread = np.sqrt(0.5 / p)
    # Under the attenuated operator a self-repulsion is smaller by sqrt(rho'/rho), with rho = p/2.
    repulsion = p * (1.0 + 0.5 * smearing(omega) * p)
    size: Array = np.abs(batch.coefficient).max(axis=1) * repulsion**-0.25 * (2.0**0.25 / (2.0 * np.pi**1.25))
    size *= (np.linalg.norm(PA, axis=1) + spread) ** la * (np.linalg.norm(PB, axis=1) + spread) ** lb
    return size


def _large_first(batch: BraBatch, omega: float | None) -> BraBatch:
    """Primitives of each pair in descending order of their size, which becomes a field of their record."""
    size = primitive_sizes(batch, omega)
    owner = np.repeat(np.arange(batch.count), np.diff(batch.first))
    order = np.lexsort((-size, owner))
    record = batch.record[order]
    record[:, SIZE] = size[order]
    return replace(batch, record=record, coefficient=batch.coefficient[order])


def with_bounds(pairs: PairClass, ket_bound: Array) -> PairClass:
    """Bras sorted by their bound: the largest one of their columns."""
    bra_bound = np.zeros(pairs.bra.count)
    np.maximum.at(bra_bound, pairs.ket_pair, ket_bound)
    order = np.argsort(-bra_bound, kind="stable")
    return replace(
        pairs,
        bra=taken(pairs.bra, order),
        bra_ao=np.ascontiguousarray(pairs.bra_ao[order]),
        bra_segment=np.ascontiguousarray(pairs.bra_segment[order]),
        bra_pair=np.ascontiguousarray(pairs.bra_pair[order]),
        bra_bound=bra_bound[order],
        ket_bound=ket_bound,
    )


def taken(batch: BraBatch, order: Indices) -> BraBatch:
    """Some of the bras, or all in another order."""
    sizes = np.diff(batch.first)[order]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    source = np.repeat(batch.first[order] - first[:-1], sizes) + np.arange(first[-1])
    return replace(
        batch,
        first=first,
        record=batch.record[source],
        coefficient=batch.coefficient[source],
        shell=batch.shell[order],
        rows=batch.rows[order],
    )
