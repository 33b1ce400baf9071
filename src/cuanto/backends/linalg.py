"""Dense linear algebra of the devices: by threads of the host, and by the products of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends import blas
from cuanto.backends.base import Backend, Launch
from cuanto.kernels.products import SOLVED_AT_ONCE, product_source, rows_kernel

Array = NDArray[np.float64]

SMALL = tuning.number("cpu", "linalg.small_product")
TILE = tuning.size("cpu", "linalg.tile")
ROWS_SOLVED = tuning.size("cpu", "linalg.rows_solved")
FACTOR_BLOCK = tuning.size("cpu", "linalg.factor_block")
MANY_ORBITALS = tuning.size("cpu", "linalg.many_orbitals")
GRAM_ROWS = tuning.size("cuda", "linalg.gram_rows")
PANEL = tuning.size("cuda", "linalg.panel_columns")
ROWS_AT_ONCE = tuning.size("cuda", "linalg.rows_at_once")
COPIED_ROWS = tuning.size("cuda", "linalg.copied_rows")
ROWS_COMBINED = tuning.size("cpu", "linalg.rows_combined")
SUMMED_AT_ONCE = tuning.size("cuda", "linalg.rows_summed")
STACK_TILE = tuning.size("cpu", "linalg.stack_tile")
STACKED = tuning.size("cpu", "linalg.stacked")
TRIANGLE_BLOCK = tuning.sizes("linalg.triangle_block")


@dataclass(frozen=True)
class BlockFactor:
    """A lower triangle L, or a stack of them, and inverses of its diagonal blocks, to divide by in matrix products.

    Libraries solve with triangles far below the rate of their products (cuBLAS at half of it, for thousands of
    columns); SciPy's also brings a BLAS with threads of its own, which get in the way of NumPy's for longer than it
    saves.
    """

    L: Any
    inverses: list[Any]

    def divide(self, B: Any) -> None:
        """Replace B by B L^-T: what columns that are done leave of the others, then their own block."""
        self._divide(B, 0, self.L.shape[-1])

    def _divide(self, B: Any, begin: int, end: int) -> None:
        size = self.inverses[0].shape[-1]
        if end - begin <= size:
            B[..., begin:end] = B[..., begin:end] @ transpose(self.inverses[begin // size])
            return
        middle = begin + -(-(end - begin) // (2 * size)) * size
        self._divide(B, begin, middle)
        B[..., middle:end] -= B[..., begin:middle] @ transpose(self.L[..., middle:end, begin:middle])
        self._divide(B, middle, end)


def transpose(A: Any) -> Any:
    """Transposes of a stack of matrices."""
    return A.swapaxes(-1, -2)


def _diagonal_blocks(L: Any, size: int) -> list[Any]:
    parts = [slice(begin, begin + size) for begin in range(0, L.shape[-1], size)]
    return [L[..., own, own] for own in parts]


def _add_one(G: Any) -> Any:
    """Add 1 to the diagonals of contiguous square matrices, in place."""
    G.reshape(*G.shape[:-2], -1)[..., :: G.shape[-1] + 1] += 1.0
    return G


class HostLinalg:
    """Products by tiles in our own threads, factorisations by LAPACK."""

    factor_copies, stack_copies = 3, 1

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def threads(self, n: int) -> AbstractContextManager[None]:
        """The library's own threads for large matrices."""
        return blas.threads(self._backend.traits.workers if n >= MANY_ORBITALS else 1)

    @property
    def copied_rows(self) -> int:
        """A thread copies rows, and makes as many."""
        return 2 * SOLVED_AT_ONCE * self._backend.traits.workers

    def eigh(self, A: Array) -> tuple[Array, Array]:
        """LAPACK's, with the library's threads for large matrices."""
        with self.threads(A.shape[-1]):
            values, vectors = np.linalg.eigh(A)
        return values, vectors

    def product(self, A: Array, B: Array) -> Array:
        """By tiles."""
        if A.ndim != 2 or B.ndim != 2 or 2.0 * A.size * B.shape[1] < SMALL:
            return A @ B
        return self._tiles(A, B, lower=False)

    def gram(self, X: Array) -> Array:
        """Tiles of the lower half, and their mirror images."""
        if 1.0 * X.size * len(X) < SMALL:
            return X @ X.T
        K = self._tiles(X, X.T, lower=True)
        return np.tril(K) + np.tril(K, -1).T

    def gram_of_stack(self, X: Array) -> Array:
        """Tiles of the lower half, from a few matrices at once."""
        columns, n, depth = X.shape
        functions = np.arange(n, dtype=np.int32)
        return add_squares(self._backend, np.ascontiguousarray(X), depth, [(0, n, columns, 0)], functions, n)

    def combine_rows(self, rows: Array, weights: Array, ranges: Any = None) -> Array:
        """A range of rows in a thread."""
        out = np.zeros(rows.shape[1])
        ranges = _short_ranges(len(rows)) if ranges is None else ranges
        values = {"rows": rows, "naux": len(out), "first": ranges, "density": weights, "out": out}
        self._backend.launch_all([Launch(self._backend.compile(rows_kernel("fit")), len(ranges), values, sums="out")])
        return out

    def rows_times(self, rows: Array, vector: Array, ranges: Any = None) -> Array:
        """A range of rows in a thread."""
        out = np.empty(len(rows))
        ranges = _short_ranges(len(rows)) if ranges is None else ranges
        vector = np.ascontiguousarray(vector)
        values = {"rows": rows, "naux": rows.shape[1], "first": ranges, "fit": vector, "out": out}
        self._backend.launch_all([Launch(self._backend.compile(rows_kernel("potential")), len(ranges), values)])
        return out

    def inverse_factor(self, A: Array) -> tuple[Array, float]:
        """In place: halves by products in our threads, small blocks by LAPACK."""
        n = len(A)
        if n <= FACTOR_BLOCK:
            return _small_inverse_factor(A)
        middle = -(-n // 2)
        first, smallest = self.inverse_factor(A[:middle, :middle])
        if smallest < 0:
            return A, -1.0
        below = self.product(A[middle:, :middle], first.T)  # L_21 = A_21 L_11^-T
        A[middle:, middle:] -= self.gram(below)
        second, other = self.inverse_factor(A[middle:, middle:])
        if other < 0:
            return A, -1.0
        A[middle:, :middle] = self.product(second, self.product(below, first))
        A[middle:, :middle] *= -1.0
        A[:middle, middle:] = 0.0
        return A, min(smallest, other)

    def lower_gram(self, A: Any) -> Any:
        """All of it."""
        return A @ transpose(A)

    def divisor(self, L: Any) -> BlockFactor:
        """With blocks that stay in the cache."""
        return BlockFactor(L, [np.linalg.inv(block) for block in _diagonal_blocks(L, TRIANGLE_BLOCK["cpu"])])

    def factor(self, G: Any) -> BlockFactor:
        """LAPACK's."""
        return self.divisor(np.linalg.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """One when it is taken."""
        return (self.factor(_add_one(self.lower_gram(A))) for A in (X, transpose(X)))

    def times_transpose(self, rows: Array, L: Array, triangle: bool) -> None:
        """Rows in our threads."""
        if not rows.flags.c_contiguous:
            rows[...] = rows @ L.T
            return
        self.times_transpose_to(rows, None, None, L, triangle)

    def times_transpose_to(self, rows: Array, one: Any, other: Any, L: Array, triangle: bool) -> None:
        """The same of some rows (None: all), written to these and to the `other` ones."""
        count, naux = len(rows) if one is None else len(one), rows.shape[1]
        values = {"rows": rows, "naux": naux, "one": one, "other": other, "L": L, "triangle": int(triangle)}
        program = self._backend.compile(rows_kernel("solve"))
        scratch = 8 * 2 * SOLVED_AT_ONCE * naux
        chunk = min(SOLVED_AT_ONCE, max(ROWS_SOLVED, count // (4 * self._backend.traits.workers)))
        self._backend.launch_all([Launch(program, count, values, scratch, grain=chunk)])

    def _tiles(self, A: Array, B: Array, lower: bool) -> Array:
        A, lda, transpose_a = _leading(A)
        B, ldb, transpose_b = _leading(B)
        rows, depth, columns = A.shape[0], A.shape[1], B.shape[1]
        C = np.zeros((rows, columns)) if lower else np.empty((rows, columns))
        high, wide = -(-rows // TILE), -(-columns // TILE)
        values = {"rows": rows, "columns": columns, "depth": depth, "tile": TILE, "lower": int(lower)}
        values |= {"A": A, "lda": lda, "transpose_a": int(transpose_a), "B": B, "ldb": ldb}
        values |= {"transpose_b": int(transpose_b), "C": C, "ldc": columns}
        items = high * (high + 1) // 2 if lower else high * wide
        self._backend.launch_all([Launch(self._backend.compile(product_source()), items, values, grain=1)])
        return C


def _small_inverse_factor(A: Array) -> tuple[Array, float]:
    from scipy.linalg.lapack import dpotrf, dtrtri

    factor, failed = dpotrf(A, lower=1, clean=1)
    if failed:
        return A, -1.0
    A[...] = dtrtri(factor, lower=1)[0]
    return A, float(np.diagonal(factor).min()) ** 2


def _leading(A: Array) -> tuple[Array, int, bool]:
    """The matrix as a library of linear algebra takes it: rows or columns that lie together, and their distance."""
    A = np.asarray(A, dtype=np.float64)
    for transposed, (far, near) in ((False, A.strides), (True, A.strides[::-1])):
        if near == A.itemsize and far >= A.itemsize * max(1, A.shape[0 if transposed else 1]) and far % A.itemsize == 0:
            return A, far // A.itemsize, transposed
    A = np.ascontiguousarray(A)
    return A, A.shape[1], False


def add_squares(
    backend: Backend, X: Array, depth: int, stacks: Sequence[tuple[int, int, int, int]], place: Any, n: int
) -> Array:
    """sum_i X_i X_i^T of several stacks in one array, each added to some rows and columns of a matrix [n, n].

    A stack: where it begins in X, rows and number of its matrices [row, depth], and where `place` has the rows' places.
    """
    items = [
        (first, rows, i, min(i + STACKED, count), p, q, at)
        for first, rows, count, at in stacks
        for p in range(0, rows, STACK_TILE)
        for q in range(0, p + 1, STACK_TILE)
        for i in range(0, count, STACKED)
    ]
    K = np.zeros((n, n))
    values = {"item": np.array(items, dtype=np.int64), "place": place, "tile": STACK_TILE}
    values |= {"X": X, "naux": depth, "n_all": n, "K": K}
    program = backend.compile(rows_kernel("squares"))
    backend.launch_all([Launch(program, len(items), values, grain=1, sums="K", sums_size=STACK_TILE**2)])
    return K


def _short_ranges(rows: int) -> NDArray[np.int64]:
    """All rows in ranges [k, 2] of a few."""
    first = np.arange(0, rows, ROWS_COMBINED)
    return np.stack([first, np.minimum(first + ROWS_COMBINED, rows)], axis=1)


class Library(Protocol):
    """What a device has beside its array module."""

    def lower_gram(self, A: Any) -> Any:
        """A A^T of a matrix, its lower triangle only."""

    def inverse(self, L: Any) -> Any:
        """Inverse of a lower triangle whose upper one is not looked at."""

    def side_by_side(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[Any]:
        """Results of a call of each array, all begun now; who takes one makes the device wait for it."""


class DeviceLinalg:
    """Large products of the array library: its triangular ones are slower (4.0 against 3.4 ms for 20,000 rows of
    octadecane's metric, H200)."""

    factor_copies, stack_copies, copied_rows = 7, 2, 3 * COPIED_ROWS

    def __init__(self, xp: Any, library: Library) -> None:
        self._xp, self._library = xp, library

    def threads(self, n: int) -> AbstractContextManager[None]:
        """The host has nothing to do."""
        return nullcontext()

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """The array library's."""
        values, vectors = self._xp.linalg.eigh(A)
        return values, vectors

    def product(self, A: Any, B: Any) -> Any:
        """The array library's."""
        return A @ B

    def gram(self, X: Any) -> Any:
        """Of large matrices the lower half by panels of rows, and its mirror image."""
        n = len(X)
        if n < 4 * GRAM_ROWS:
            return X @ X.T
        K = self._xp.empty((n, n))
        for begin in range(0, n, GRAM_ROWS):
            end = min(n, begin + GRAM_ROWS)
            K[begin:end, :end] = X[begin:end] @ X[:end].T
            K[:begin, begin:end] = K[begin:end, :begin].T
        return K

    def gram_of_stack(self, X: Any) -> Any:
        """One product, of a copy unless the matrices' rows are the outer axis in memory."""
        return self.gram(X.transpose(1, 0, 2).reshape(X.shape[1], -1))

    def combine_rows(self, rows: Any, weights: Any, ranges: Any = None) -> Any:
        """All rows, in portions."""
        out = self._xp.zeros(rows.shape[1])
        for start in range(0, len(rows), SUMMED_AT_ONCE):
            some = slice(start, start + SUMMED_AT_ONCE)
            out += weights[some] @ rows[some]
        return out

    def rows_times(self, rows: Any, vector: Any, ranges: Any = None) -> Any:
        """All rows, in portions."""
        out = self._xp.empty(len(rows))
        for start in range(0, len(rows), SUMMED_AT_ONCE):
            some = slice(start, start + SUMMED_AT_ONCE)
            out[some] = rows[some] @ vector
        return out

    def inverse_factor(self, A: Any) -> tuple[Any, float]:
        """By products, which are faster than LAPACK's routines."""
        L = self._xp.linalg.cholesky(A)
        smallest = float(self._xp.diagonal(L).min())  # nan where there is no factor
        if not smallest > 0.0:
            return None, -1.0
        return self._xp.ascontiguousarray(inverse_triangle(L, self._xp)), smallest**2

    def lower_gram(self, A: Any) -> Any:
        """The library's of a single matrix, which takes half the operations."""
        return self._library.lower_gram(A) if A.ndim == 2 else A @ transpose(A)

    def divisor(self, L: Any) -> BlockFactor:
        """With large blocks: few calls."""
        inverse = self._library.inverse if L.ndim == 2 else self._xp.linalg.inv
        return BlockFactor(L, [inverse(block) for block in _diagonal_blocks(L, TRIANGLE_BLOCK["cuda"])])

    def factor(self, G: Any) -> BlockFactor:
        """Not a number where there is none."""
        return self.divisor(self._xp.linalg.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """Both at once, beside other work: a factor is a long chain of small kernels."""
        return self._library.side_by_side(lambda A: self.factor(_add_one(self.lower_gram(A))), (X, transpose(X)))

    def times_transpose(self, rows: Any, L: Any, triangle: bool) -> None:
        """By panels of columns, the last ones first: a column needs none behind it."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            if not triangle or len(L) < 4 * PANEL:
                some[...] = some @ L.T
                continue
            for end in range(len(L), 0, -PANEL):
                begin = max(0, end - PANEL)
                some[:, begin:end] = some[:, :end] @ L[begin:end, :end].T

    def times_transpose_to(self, rows: Any, one: Any, other: Any, L: Any, triangle: bool) -> None:
        """In portions that are copied."""
        for start in range(0, len(one), COPIED_ROWS):
            some = slice(start, start + COPIED_ROWS)
            part = rows[one[some]]
            self.times_transpose(part, L, triangle)
            rows[one[some]] = part
            rows[other[some]] = part


def inverse_triangle(L: Any, xp: Any, block: int = 96) -> Any:
    """Inverse of a lower triangle: blocks on the diagonal first, then [[A, 0], [C, D]] by products, level by level."""
    n = len(L)
    count = 1 << max(0, -(-n // block) - 1).bit_length()
    block = -(-n // count)  # as little padding as possible
    size = count * block
    padded = xp.eye(size)
    padded[:n, :n] = xp.tril(L)
    diagonal = xp.arange(count)
    blocks = padded.reshape(count, block, count, block)[diagonal, :, diagonal]
    inverse = xp.linalg.inv(blocks)  # [block, row, column]
    while len(inverse) > 1:
        width = inverse.shape[1]
        pairs = xp.arange(len(inverse) // 2)
        C = padded.reshape(2 * len(pairs), width, 2 * len(pairs), width)[2 * pairs + 1, :, 2 * pairs]
        upper, lower = inverse[0::2], inverse[1::2]
        joined = xp.zeros((len(pairs), 2 * width, 2 * width))
        joined[:, :width, :width], joined[:, width:, width:] = upper, lower
        joined[:, width:, :width] = -(lower @ (C @ upper))
        inverse = joined
    return inverse[0, :n, :n]
