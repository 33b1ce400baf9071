"""Pairs of shells: significant primitive pairs, their Gaussian products, and which algorithm is accurate for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cuanto.arrays import Array, Flags, Ints, range_members, range_starts
from cuanto.integrals.batches import COULOMB_FACTOR, BraBatch, KetBatch, block_kets
from cuanto.integrals.segments import SegmentClass
from cuanto.kernels.abi import COULOMB_BRA, PAIR_KET, SIZE
from cuanto.kernels.spec import Shells

DIGIT_LOSS = 30.0
"""Cancellation factor above which a pair uses the McMurchie-Davidson scheme."""
FOUR_CENTRE_LOSS = 50.0
"""The same for the product of the factors of the two pairs of a quartet."""


ROUNDING_MARGIN = 0.1
"""Added to the largest exponent of an overlap factor, so that rounding never excludes a significant product."""
RowOf = Callable[[Ints, Ints], Ints]
"""Rows of pairs of basis functions in a result."""


class RowMap:
    """Row of a pair of basis functions in the result: packed lower triangle, or square (lower part)."""

    def __init__(self, nbf: int, packed: bool) -> None:
        self.nbf, self.packed = nbf, packed

    def __call__(self, i: Ints, j: Ints) -> Ints:
        high, low = np.maximum(i, j), np.minimum(i, j)
        return high * (high + 1) // 2 + low if self.packed else high * self.nbf + low


@dataclass(frozen=True, eq=False)
class SegmentPairs:
    """Significant pairs (i, j) of segments of two classes; flags as for `BraBatch`.

    Pair k has the products of the primitives u and v from first[k] to first[k + 1], with the overlap factors K.
    """

    a: SegmentClass
    b: SegmentClass
    i: Ints
    j: Ints
    first: Ints
    u: Ints
    v: Ints
    K: Array
    ill_conditioned: bool = False
    loss: float = 1.0

    @property
    def shells(self) -> Shells:
        """Angular momenta and forms of the two classes."""
        return Shells((self.a.l, self.b.l), (self.a.pure, self.b.pure))

    @property
    def distances(self) -> Array:
        """A - B of each pair."""
        return self.a.centres[self.i] - self.b.centres[self.j]

    def rows(self, row_of: RowOf) -> Ints:
        """[pair, column a, column b, function a, function b] -> row."""
        ao_a = self.a.ao[self.i][:, :, None, None, None] + np.arange(self.a.functions)[:, None]
        ao_b = self.b.ao[self.j][:, None, :, None, None] + np.arange(self.b.functions)
        return np.ascontiguousarray(row_of(ao_a, ao_b).reshape(len(self.i), -1))


def class_pairs(classes: int) -> list[tuple[int, int]]:
    """All pairs (x, y) of classes, x >= y, in descending order: high angular momenta come first, so that the last
    launches are short."""
    return [(x, y) for x in reversed(range(classes)) for y in reversed(range(x + 1))]


def pair_batches(
    a: SegmentClass, b: SegmentClass, same: bool, row_of: RowOf, threshold: float, split: bool = True
) -> list[BraBatch]:
    """Significant pairs of two classes as bras; arguments as for `Candidates.of` and `select_pairs`."""
    chosen = select_pairs(a, b, Candidates.of(a, b, same), threshold, split)
    return [_batch(found, found.rows(row_of)) for found in chosen]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All pairs (i, j) of segments of two classes, and all products of their primitives; independent of positions.

    Product k of primitives u and v belongs to pair `pair[k]` and decays as exp(-decay[k] R^2).
    """

    i: Ints
    j: Ints
    pair: Ints
    u: Ints
    v: Ints
    decay: Array

    @classmethod
    def of(cls, a: SegmentClass, b: SegmentClass, same: bool) -> Candidates:
        """Pairs of two classes (la >= lb), each pair once for the `same` class."""
        i, j = np.tril_indices(a.count) if same else (x.reshape(-1) for x in np.indices((a.count, b.count)))
        pair, within = range_members(a.sizes[i] * b.sizes[j])
        inner = b.sizes[j][pair]
        u, v = a.first[i][pair] + within // inner, b.first[j][pair] + within % inner
        alpha, beta = a.exponents[u], b.exponents[v]
        return cls(i, j, pair, u, v, alpha * beta / (alpha + beta))


def select_pairs(
    a: SegmentClass, b: SegmentClass, candidates: Candidates, threshold: float, split: bool = True
) -> list[SegmentPairs]:
    """The significant ones among all pairs of two classes; `split`: put ill-conditioned pairs in separate lists.

    A primitive pair is neglected when its overlap factor times its largest coefficients is below `threshold`.
    """
    i, j = candidates.i, candidates.j
    x, y, z = (a.centres[:, axis][i] - b.centres[:, axis][j] for axis in range(3))
    R2_ij = x * x + y * y + z * z
    R2 = R2_ij[candidates.pair]
    kept = np.flatnonzero(candidates.decay * R2 < _longest_decay(a, b, float(R2_ij.max(initial=0.0)), threshold))
    pair, u, v, R2 = candidates.pair[kept], candidates.u[kept], candidates.v[kept], R2[kept]
    alpha, beta = a.exponents[u], b.exponents[v]
    p = alpha + beta
    K = np.exp(-alpha * beta / p * R2)
    size = K / p * a.largest[u] * b.largest[v]
    if a.l + b.l:
        # The polynomial part is bounded by the spread of the product Gaussian and by the distance.
        size *= np.maximum(1.0, np.maximum(1.0 / p, R2)) ** (0.5 * (a.l + b.l))
    kept = np.flatnonzero(size > threshold)
    pair, u, v, K = pair[kept], u[kept], v[kept], K[kept]
    ill_conditioned, loss = np.zeros(len(i), dtype=bool), np.ones(len(i))
    if split and b.l:
        R, alpha, beta = np.sqrt(R2[kept]), alpha[kept], beta[kept]
        ill_conditioned[pair[_loses_digits(b.l, alpha, beta, R)]] = True
        loss = _cancellation(b.l, alpha, beta, R, size[kept], pair, len(i))
    found = []
    for flag in (False, True) if ill_conditioned.any() else (False,):
        mine = np.flatnonzero(ill_conditioned[pair] == flag) if ill_conditioned.any() else slice(None)
        counts = np.bincount(pair[mine], minlength=len(i))
        pairs = np.flatnonzero(counts)
        if len(pairs):
            lists = (i[pairs], j[pairs], range_starts(counts[pairs]), u[mine], v[mine], K[mine])
            found.append(SegmentPairs(a, b, *lists, flag, float(loss[pairs].max())))
    return found


def _longest_decay(a: SegmentClass, b: SegmentClass, R2: float, threshold: float) -> float:
    """Exponent of the overlap factor beyond which no product within the squared distance R2 is significant."""
    if threshold <= 0.0:
        return np.inf
    p = float(a.exponents.min() + b.exponents.min())
    size = float(a.largest.max() * b.largest.max()) * max(1.0, 1.0 / p, R2) ** (0.5 * (a.l + b.l)) / p
    return float(np.log(size / threshold)) + ROUNDING_MARGIN


def _loses_digits(lb: int, alpha: Array, beta: Array, R: Array) -> Flags:
    """Primitive pairs whose horizontal recurrence would form small moments about B from large ones about A.

    The ratio of the moments is that of the distances of P from both centres; it is large for a tight b and a diffuse a
    with l_b > 0. The McMurchie-Davidson scheme has no such loss.
    """
    p = alpha + beta
    spread = np.sqrt(0.5 / p)
    ratio: Array = (beta / p * R + spread) / (alpha / p * R + spread)
    return ratio**lb > DIGIT_LOSS


def _cancellation(lb: int, alpha: Array, beta: Array, R: Array, size: Array, s: Ints, count: int) -> Array:
    """Size of the terms (a + r, 0| |AB|^(b - r) of a horizontal recurrence relative to the result, for every pair.

    Moments about A and B scale with the distance of the product Gaussian, or its width; primitives count by their
    `size`.
    """
    p = alpha + beta
    spread = np.sqrt(0.5 / p)
    terms = ((R + beta / p * R + spread) / (alpha / p * R + spread)) ** lb * size
    largest, result = np.zeros(count), np.full(count, np.finfo(float).tiny)
    np.maximum.at(largest, s, terms)
    np.maximum.at(result, s, size)
    return largest / result


def _batch(found: SegmentPairs, rows: Ints) -> BraBatch:
    """The records of pairs."""
    a, b, i, j = found.a, found.b, found.i, found.j
    s = np.repeat(np.arange(len(i)), np.diff(found.first))
    alpha, beta, AB = a.exponents[found.u], b.exponents[found.v], found.distances
    p = alpha + beta
    record = np.empty((COULOMB_BRA, len(s)))  # field by field, which is faster; transposed at the end
    AB_xs = np.take(AB.T, s, axis=1)
    record[0] = p
    np.multiply(-beta / p, AB_xs, out=record[4:7])
    np.multiply(alpha / p, AB_xs, out=record[7:10])
    near_a = alpha >= beta
    start = np.where(near_a, np.take(a.centres.T, i[s], axis=1), np.take(b.centres.T, j[s], axis=1))
    record[1:4], record[11:14] = _two_sum(start, np.where(near_a, record[4:7], record[7:10]))
    record[10] = 0.5 / p
    record[SIZE] = 0.0
    products = a.coefficients[found.u][:, :, None] * b.coefficients[found.v][:, None, :]
    return BraBatch(
        found.shells,
        a.columns * b.columns,
        found.first.astype(np.int32),
        np.ascontiguousarray(record.T),
        products.reshape(len(s), -1) * (COULOMB_FACTOR / p * found.K)[:, None],
        AB,
        rows,
        found.ill_conditioned,
        found.loss,
    )


def pair_kets(bra: BraBatch) -> KetBatch:
    """Pairs of shells as kets, one ket for every contraction column."""
    columns, functions = bra.columns, bra.rows.shape[1] // bra.columns
    owner = np.repeat(np.arange(bra.count), np.diff(bra.first))
    p = bra.record[:, 0]
    record = np.empty((len(p), columns, PAIR_KET))
    record[:, :, 0] = (1.0 / p)[:, None]
    record[:, :, 1:4] = bra.record[:, None, 1:4]
    # The bra's factor is 2 pi^(5/2) / p, the ket's 1 / q^(3/2).
    record[:, :, 4] = bra.coefficient * (p**-0.5 / COULOMB_FACTOR)[:, None]
    record[:, :, 5:11] = bra.record[:, None, 4:10]
    record[:, :, 11:] = bra.record[:, None, 11:]
    kets = owner[:, None] * columns + np.arange(columns)
    cols = bra.rows.reshape(-1, functions).T
    distance = np.repeat(bra.shell, columns, axis=0)
    batch = block_kets(bra.shells, kets.reshape(-1), record.reshape(-1, PAIR_KET), distance, cols)
    return replace(batch, ill_conditioned=bra.ill_conditioned, loss=bra.loss)


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y as a rounded sum and its exact error (Knuth)."""
    total = x + y
    shift = total - x
    return total, (x - (total - shift)) + (y - shift)
