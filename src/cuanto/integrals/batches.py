"""Bra and ket batches: the records that kernels read (layout in `kernels.abi`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.integrals.segments import SegmentClass
from cuanto.kernels.spec import Shells

Array = NDArray[np.float64]

KET_PADDING = 32
"""Kets are padded to a multiple of this: a warp, or four vectors of eight lanes."""
DIGIT_LOSS = 30.0
"""Factor of cancellation from which a pair is left to the McMurchie-Davidson scheme (unless told otherwise)."""
COULOMB_FACTOR = 2.0 * np.pi**2.5


@dataclass(frozen=True)
class BraBatch:
    """Shells or pairs of shells of one class; `delicate` pairs would lose digits in a horizontal recurrence."""

    shells: Shells
    columns: int
    first: NDArray[np.int32]
    record: Array
    coefficient: Array
    shell_record: Array
    rows: NDArray[np.int64]
    delicate: bool = False

    @property
    def count(self) -> int:
        """Number of bras."""
        return len(self.first) - 1


@dataclass(frozen=True)
class KetBatch:
    """Shells, or point charges, of one class: record [primitive, field, ket]."""

    shells: Shells
    count: int
    primitives: int
    record: Array
    cols: NDArray[np.int32]


def ket_batch(group: SegmentClass, coulomb: bool) -> KetBatch:
    """Every column of every segment as a ket; first field 1/exponent (Coulomb) or exponent."""
    kets = group.split_columns()
    n, k = kets.exponents.shape
    record = np.empty((k, 5, n))
    record[:, 0] = (1.0 / kets.exponents if coulomb else kets.exponents).T
    record[:, 1:4] = kets.centres.T
    coefficients = kets.coefficients[:, :, 0]
    record[:, 4] = (coefficients * kets.exponents**-1.5 if coulomb else coefficients).T
    return KetBatch(Shells((group.l,), (group.pure,)), n, k, _padded(record), kets.ao[:, 0].astype(np.int32))


def charge_batch(charges: Array, positions: Array) -> KetBatch:
    """Point charges as s functions of infinite exponent; the density of a unit charge tends to (c/pi)^(3/2)."""
    n = len(charges)
    record = np.zeros((1, 5, n))
    record[0, 1:4] = positions.T
    record[0, 4] = charges * np.pi**-1.5
    return KetBatch(Shells((0,)), n, 1, _padded(record), np.arange(n, dtype=np.int32))


def _padded(record: Array) -> Array:
    """The last ket repeated with coefficient zero."""
    extra = -record.shape[2] % KET_PADDING
    tail = np.repeat(record[:, :, -1:], extra, axis=2)
    tail[:, 4] = 0.0
    return np.ascontiguousarray(np.concatenate([record, tail], axis=2))


def shell_batch(group: SegmentClass, coulomb: bool) -> BraBatch:
    """Single shells as bras: of two-centre Coulomb integrals, or of one-electron integrals."""
    n, k = group.exponents.shape
    exponents = group.exponents.reshape(-1)
    centres = np.repeat(group.centres, k, axis=0)
    if coulomb:
        record = np.zeros((n * k, 14))
        record[:, 0], record[:, 1:4], record[:, 10] = exponents, centres, 0.5 / exponents
        factor = COULOMB_FACTOR / exponents
    else:
        record = np.column_stack([exponents, centres, 0.5 / exponents])
        factor = np.full(n * k, np.pi**1.5)
    functions = np.arange(group.functions)
    rows = group.ao[:, :, None] + functions
    return BraBatch(
        Shells((group.l,), (group.pure,)),
        group.columns,
        (np.arange(n + 1) * k).astype(np.int32),
        np.ascontiguousarray(record),
        group.coefficients.reshape(n * k, -1) * factor[:, None],
        np.zeros((n, 3)),
        np.ascontiguousarray(rows.reshape(n, -1)),
    )


def pair_batches(a: SegmentClass, b: SegmentClass, same: bool, row_of: RowMap, threshold: float) -> list[BraBatch]:
    """Pairs of two classes (la >= lb); with `same` class each pair once. Delicate pairs come as a batch of their own.

    A primitive pair is dropped when its overlap factor times its largest coefficients is below `threshold`.
    """
    i, j = np.tril_indices(a.count) if same else (x.reshape(-1) for x in np.indices((a.count, b.count)))
    AB = a.centres[i] - b.centres[j]
    R2 = (AB**2).sum(axis=1)[:, None, None]
    alpha, beta = a.exponents[i][:, :, None], b.exponents[j][:, None, :]
    p = alpha + beta
    size = np.exp(-alpha * beta / p * R2) / p
    size *= np.abs(a.coefficients).max(axis=2)[i][:, :, None] * np.abs(b.coefficients).max(axis=2)[j][:, None, :]
    if a.l + b.l:
        # The polynomial part is bounded by the spread of the product Gaussian and by the distance.
        size *= np.maximum(1.0, np.maximum(1.0 / p, R2)) ** (0.5 * (a.l + b.l))
    keep = size > threshold
    delicate = _loses_digits(b.l, alpha / p, beta / p, np.sqrt(R2), np.sqrt(0.5 / p), keep)
    kept = keep.any(axis=(1, 2))
    batches = []
    for wanted in (kept & ~delicate, kept & delicate):
        if wanted.any():
            batches.append(_pairs(a, b, i[wanted], j[wanted], keep[wanted], same, row_of, bool(delicate[wanted][0])))
    return batches


def _loses_digits(lb: int, a_share: Array, b_share: Array, R: Array, spread: Array, keep: Array) -> NDArray[np.bool_]:
    """Pairs whose horizontal recurrence would make small moments about B from large ones about A.

    The ratio of the moments is that of the distances of P from both centres; it matters for a tight b beside a
    diffuse a, with l_b > 0. The McMurchie-Davidson scheme has no such loss.
    """
    ratio = (b_share * R + spread) / (a_share * R + spread)
    worst: Array = np.where(keep, ratio, 0.0).max(axis=(1, 2))
    return worst**lb > DIGIT_LOSS


def _pairs(
    a: SegmentClass,
    b: SegmentClass,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    keep: NDArray[np.bool_],
    same: bool,
    row_of: RowMap,
    delicate: bool,
) -> BraBatch:
    """The records of the pairs (i, j) with the primitives marked in `keep`."""
    AB = a.centres[i] - b.centres[j]
    s, x, y = np.nonzero(keep)  # pair, primitive of a, primitive of b
    first = np.concatenate([[0], np.cumsum(keep.sum(axis=(1, 2)))]).astype(np.int32)
    alpha, beta = a.exponents[i[s], x], b.exponents[j[s], y]
    p = alpha + beta
    record = np.empty((len(s), 14))
    record[:, 0] = p
    record[:, 4:7] = -(beta / p)[:, None] * AB[s]
    record[:, 7:10] = (alpha / p)[:, None] * AB[s]
    near_a = (alpha >= beta)[:, None]
    start = np.where(near_a, a.centres[i[s]], b.centres[j[s]])
    record[:, 1:4], record[:, 11:14] = _two_sum(start, np.where(near_a, record[:, 4:7], record[:, 7:10]))
    record[:, 10] = 0.5 / p
    factor = COULOMB_FACTOR / p * np.exp(-alpha * beta / p * (AB**2).sum(axis=1)[s])
    products = a.coefficients[i[s], x][:, :, None] * b.coefficients[j[s], y][:, None, :]
    return BraBatch(
        Shells((a.l, b.l), (a.pure, b.pure)),
        a.columns * b.columns,
        first,
        record,
        products.reshape(len(s), -1) * factor[:, None],
        np.ascontiguousarray(AB),
        _pair_rows(a, b, i, j, same, row_of),
        delicate,
    )


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y as a rounded sum and its exact error (Knuth)."""
    total = x + y
    shift = total - x
    return total, (x - (total - shift)) + (y - shift)


class RowMap:
    """Row of an AO pair in the result: packed lower triangle, or full square (lower part filled)."""

    def __init__(self, nbf: int, packed: bool) -> None:
        self.nbf, self.packed = nbf, packed

    def __call__(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int64]:
        high, low = np.maximum(i, j), np.minimum(i, j)
        return high * (high + 1) // 2 + low if self.packed else high * self.nbf + low


def _pair_rows(
    a: SegmentClass, b: SegmentClass, i: NDArray[np.int64], j: NDArray[np.int64], same: bool, row_of: RowMap
) -> NDArray[np.int64]:
    """[pair, column a, column b, function a, function b] -> row; the upper half of a diagonal pair is not wanted."""
    ao_a = a.ao[i][:, :, None, None, None] + np.arange(a.functions)[:, None]
    ao_b = b.ao[j][:, None, :, None, None] + np.arange(b.functions)
    rows = row_of(ao_a, ao_b)
    if same:
        twice = (i == j)[:, None, None, None, None] & (ao_a < ao_b)
        rows = np.where(twice, -1, rows)
    return np.ascontiguousarray(rows.reshape(len(i), -1))
