"""Pairs of functions of one symmetry: the rows and columns of the supermatrices, and densities as vectors over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import gamma

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.species import Array, Species
from cuanto.kernels.atomic import FIELDS, GROUP, Task


def large_norms(species: Species, z_p: Array) -> Array:
    """Normalisation of r^(l+1) exp(-z r^2)."""
    power = species.l + 1.5
    return np.asarray(np.sqrt(2.0 * (2.0 * z_p) ** power / gamma(power)))


def small_functions(species: Species, z_p: Array) -> tuple[Array, Array]:
    """Norm and v of the normalised small functions norm r^(lbar+1) (1 - v r^2) exp(-z r^2).

    They are proportional, by restricted kinetic balance, to (d/dr + kappa/r) r^(l+1) exp(-z r^2).
    """
    norm_p = large_norms(species, z_p) / np.sqrt((2 * species.l + 3) * z_p)
    if species.kappa < 0:
        return -2.0 * z_p * norm_p, np.zeros_like(z_p)
    return (2 * species.l + 1) * norm_p, 2.0 * z_p / (2 * species.l + 1)


def _padded(count: int) -> int:
    """The number of pairs, rounded up to whole groups."""
    return -(-count // GROUP) * GROUP


@dataclass(frozen=True, eq=False)
class PairIndices:
    """Positions of the pairs p >= q, q fastest, in a matrix of n or 2n functions."""

    p: NDArray[np.intp]
    q: NDArray[np.intp]
    places: NDArray[np.intp]
    """Positions of LL, SS, LS and its transpose of every pair in a flattened 2n x 2n matrix."""
    weights: Array
    """LL and SS count p, q and q, p; LS and its transpose are two halves, of which p = q has one."""
    origin: NDArray[np.intp]
    """Position in vectors [component, pair] (not padded) of every element of a 2n x 2n matrix."""


@cache
def pair_indices(n: int) -> PairIndices:
    """Positions for n functions, made once for all exponents."""
    p, q = np.tril_indices(n)
    places = np.stack([p, n + p, p, q]) * 2 * n + np.stack([q, n + q, n + q, n + p])
    same = p == q
    twice, once = np.where(same, 1.0, 2.0), np.ones(len(p))
    weights = np.stack([twice, twice, once, np.where(same, 0.0, 1.0)])
    LL, SS, LS, SL = np.arange(4 * len(p)).reshape(4, -1)
    origin = np.zeros((2 * n, 2 * n), dtype=np.intp)
    origin[p, q] = origin[q, p] = LL
    origin[n + p, n + q] = origin[n + q, n + p] = SS
    origin[q, n + p] = origin[n + p, q] = SL
    origin[p, n + q] = origin[n + q, p] = LS  # and where p = q
    for array in (p, q, places, weights, origin):
        array.flags.writeable = False
    return PairIndices(p, q, places, weights, origin)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of one symmetry: `row_record` [pair][field], `column_record` [group][field][lane], with padding."""

    species: Species
    functions: int
    indices: PairIndices
    row_record: Array
    column_record: Array

    @classmethod
    def of(cls, species: Species, z_p: Array) -> Pairs:
        """All pairs of these exponents."""
        found = pair_indices(len(z_p))
        p, q = found.p, found.q
        L_p = large_norms(species, z_p)
        S_p, v_p = small_functions(species, z_p)
        fields = (z_p[p], z_p[q], v_p[p], v_p[q], L_p[p] * L_p[q], S_p[p] * S_p[q], L_p[p] * S_p[q], S_p[p] * L_p[q])
        rows = np.zeros((_padded(len(p)), FIELDS))
        rows[:, :2] = 1.0  # exponents of the padding, whose norms are zero
        rows[: len(p)] = np.stack(fields, axis=1)
        columns = np.ascontiguousarray(rows.reshape(-1, GROUP, FIELDS).transpose(0, 2, 1))
        return cls(species, len(z_p), found, rows, columns)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.indices.p)

    @property
    def width(self) -> int:
        """Number of pairs, rounded up to whole groups."""
        return _padded(self.count)

    def vectors(self, D: Array, components: int) -> Array:
        """[component, pair] from a density matrix, zero in the padding."""
        own = self.indices
        out = np.zeros((components, self.width))
        if components == 1:
            out[0, : self.count] = D[own.p, own.q] * own.weights[0]
        else:
            np.multiply(D.reshape(-1).take(own.places), own.weights, out=out[:, : self.count])
        return out

    def matrix(self, vectors: Array) -> Array:
        """The matrix of P from its vectors [component, pair]."""
        own, vectors, n = self.indices, vectors[:, : self.count], self.functions
        if len(vectors) == 1:
            P = np.zeros((n, n))
            P[own.p, own.q] = P[own.q, own.p] = vectors[0]
            return P
        return np.ascontiguousarray(vectors).reshape(-1).take(own.origin)


@dataclass(frozen=True)
class Places:
    """Pairs of every symmetry side by side, each symmetry padded to whole groups."""

    counts: tuple[int, ...]
    widths: tuple[int, ...]
    first: tuple[int, ...]

    @classmethod
    def of(cls, counts: tuple[int, ...]) -> Places:
        """Places for these numbers of pairs."""
        widths = tuple(map(_padded, counts))
        return cls(counts, widths, tuple(accumulate(widths, initial=0)))

    @property
    def total(self) -> int:
        """Places of all symmetries, with padding."""
        return self.first[-1]

    @property
    def filled(self) -> list[int]:
        """Symmetries that have pairs."""
        return [i for i, count in enumerate(self.counts) if count]

    def span(self, i: int) -> slice:
        """Pairs of a symmetry."""
        return slice(self.first[i], self.first[i] + self.counts[i])

    def task(self, i: int, j: int, begin: int, end: int, matrix: int = 0, items: int = 1) -> Task:
        """Rows of a class."""
        return Task(i, j, begin, end, self.first[i], self.first[j], self.widths[j], matrix, items)
