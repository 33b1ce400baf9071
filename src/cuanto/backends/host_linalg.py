"""Dense linear algebra of the CPU: products by tiles in our own threads, factorisations by LAPACK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends import blas
from cuanto.backends.base import Backend, Launch
from cuanto.backends.linalg import (
    MANY_ORBITALS,
    TRIANGLE_BLOCK,
    BlockFactor,
    add_to_diagonal,
    diagonal_blocks,
    transpose,
)
from cuanto.kernels.products import SOLVED_AT_ONCE, product_source, rows_kernel

SMALL_PRODUCT = tuning.number("cpu", "linalg.small_product")
TILES = {
    tuning.size("cpu", "linalg.small_side"): tuning.size("cpu", "linalg.small_tile"),
    2**62: tuning.size("cpu", "linalg.tile"),
}
"""Rows and columns of a tile, by an upper bound on the larger side of the product."""
MIRRORED = 128
"""Rows of a block of a symmetric matrix that is copied to the other half at once: it fits into the cache."""
ROWS_SOLVED = tuning.size("cpu", "linalg.rows_solved")
CHUNKS_SOLVED = 64
"""Number of chunks into which rows are divided for a product with a triangle, if that gives chunks of a suitable size.
"""
ROWS_COMBINED = tuning.size("cpu", "linalg.rows_combined")
STACK_TILE = tuning.size("cpu", "linalg.stack_tile")
MATRICES_PER_ITEM = tuning.size("cpu", "linalg.stacked")
REALS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
"""Types of the elements of matrices, and their names in kernels."""


class HostLinalg:
    """Linear algebra of the CPU."""

    factor_copies, stack_copies = 3, 1

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def threads(self, n: int) -> AbstractContextManager[None]:
        """All threads for large matrices, one for small ones."""
        return blas.threads(self._backend.traits.workers if n >= MANY_ORBITALS else 1)

    def host_threads(self, n: int) -> AbstractContextManager[None]:
        """The same as `threads`."""
        return self.threads(n)

    @property
    def copied_rows(self) -> int:
        """Each thread copies a chunk of rows and writes another of the same size."""
        return 2 * SOLVED_AT_ONCE * self._backend.traits.workers

    def solved_rows(self, n: int, given: int = 0) -> int:
        """Each thread copies and solves a chunk of rows, as in `times_transpose_to`."""
        return self.copied_rows

    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Diagonalise by LAPACK, with BLAS threads for large matrices."""
        with self.threads(A.shape[-1]):
            values, vectors = np.linalg.eigh(A)
        return values, vectors

    def product(self, A: Any, B: Any) -> Any:
        """Multiply by tiles; matrices of a stack in one launch."""
        if not _worth_tiles(A, B):
            return A @ B
        if A.ndim == B.ndim == 2:
            return self.gram(A) if _is_transpose(A, B) else self._tiles([A], [B], lower=False)[0]
        count = max(len(x) for x in (A, B) if x.ndim == 3)
        A_k, B_k = ([x] * count if x.ndim == 2 else x for x in (A, B))
        return self._tiles(A_k, B_k, lower=False)

    def add_products(self, A: Array, B_k: Array, C_k: Array) -> None:
        """Multiply, then add."""
        C_k += self.product(A, B_k)

    def scalar_product(self, A: Array, B: Array) -> Any:
        """Sum of the products of the elements of two arrays, from the scalar products of their rows.

        Summed in one go by BLAS, the terms of the energy of 1500 orbitals give an error of 5e-11 Hartree.
        """
        n = A.shape[-1]
        return (A.reshape(-1, 1, n) @ B.reshape(-1, n, 1)).sum()

    def gram(self, X: Array) -> Array:
        """Compute tiles of the lower half and mirror them."""
        if 1.0 * X.size * len(X) < SMALL_PRODUCT:
            return X @ X.T
        K: Array = self._tiles([X], [X.T], lower=True)[0]
        for begin in range(0, len(K), MIRRORED):
            own = slice(begin, begin + MIRRORED)
            K[:begin, own] = K[own, :begin].T
            K[own, own] = np.tril(K[own, own]) + np.tril(K[own, own], -1).T
        return K

    def gram_of_stack(self, X: Array) -> Array:
        """Compute tiles of the lower half, from a few matrices per item."""
        columns, n, depth = X.shape
        functions = np.arange(n, dtype=np.int32)
        return add_squares(self._backend, np.ascontiguousarray(X), depth, [(0, n, columns, 0)], functions, n)

    def combine_rows(self, rows: Array, weights: Array, ranges: Any = None) -> Array:
        """Combine rows in our threads, each of which takes a range."""
        return self._over_ranges("fit", rows, ranges, np.zeros(rows.shape[1]), "out", density=weights)

    def rows_times(self, rows: Array, vector: Array, ranges: Any = None) -> Array:
        """Multiply in our threads, each of which takes a range of rows."""
        vector = np.ascontiguousarray(vector)
        return self._over_ranges("potential", rows, ranges, np.empty(len(rows)), "", fit=vector)

    def _over_ranges(self, kernel: str, rows: Array, ranges: Any, out: Array, sums: str, **more: Array) -> Array:
        """Run a kernel on ranges [k, 2] of rows, by default all in short ranges."""
        if ranges is None:
            first = np.arange(0, len(rows), ROWS_COMBINED)
            ranges = np.stack([first, np.minimum(first + ROWS_COMBINED, len(rows))], axis=1)
        values = {"rows": rows, "naux": rows.shape[1], "first": ranges, "out": out, **more}
        program = self._backend.compile(rows_kernel(kernel))
        self._backend.launch_all([Launch(program, len(ranges), values, sums=sums)])
        return out

    def inverse_factor(self, A: Array) -> tuple[Array, float]:
        """Factorise and invert in place by LAPACK.

        Inverses by products of halves are faster, but energies of fitted densities lose five digits if the metric is
        nearly singular: 1e-7 Hartree for taxol with def2-universal-jkfit.
        """
        with self.threads(len(A)):
            return A, blas.invert_factor(A)

    def lower_gram(self, A: Any) -> Any:
        """The full product: a triangle alone would not be faster."""
        return self.product(A, transpose(A))

    def divisor(self, L: Any) -> BlockFactor:
        """Use diagonal blocks that fit into the cache."""
        return BlockFactor(L, [np.linalg.inv(block) for block in diagonal_blocks(L, TRIANGLE_BLOCK["cpu"])])

    def factor(self, G: Any) -> BlockFactor:
        """Factorise by LAPACK."""
        return self.divisor(np.linalg.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """Each factor is computed when it is used."""
        return (self.factor(add_to_diagonal(self.lower_gram(A), 1.0)) for A in (X, transpose(X)))

    def times_transpose(self, rows: Array, L: Array, triangle: bool, work: Any = None) -> None:
        """Multiply in our threads, each of which has its own memory."""
        if not rows.flags.c_contiguous:
            rows[...] = rows @ L.T
            return
        self.times_transpose_to(rows, None, None, L, triangle)

    def times_transpose_to(self, rows: Array, one: Any, other: Any, L: Array, triangle: bool) -> None:
        """Multiply in our threads; `one` and `other` None: all rows in place."""
        count, naux = len(rows) if one is None else len(one), rows.shape[1]
        values = {"rows": rows, "naux": naux, "one": one, "other": other, "L": L, "triangle": int(triangle)}
        program = self._backend.compile(rows_kernel("solve"))
        scratch = 8 * 2 * SOLVED_AT_ONCE * naux
        # Independent of the number of threads, because the order of sums in a product depends on its number of rows.
        chunk = min(SOLVED_AT_ONCE, max(ROWS_SOLVED, count // CHUNKS_SOLVED))
        self._backend.launch_all([Launch(program, count, values, scratch, grain=chunk)])

    def _tiles(self, A_k: Sequence[Array], B_k: Sequence[Array], lower: bool) -> Array:
        """A_k B_k of every k; with `lower` only the tiles that reach the lower half, zero elsewhere."""
        (rows, depth), columns = A_k[0].shape, B_k[0].shape[1]
        kind = A_k[0].dtype
        C_k: Array = (np.zeros if lower else np.empty)((len(A_k), rows, columns), dtype=kind)
        tile = next(tile for side, tile in TILES.items() if max(rows, columns) < side) * 8 // kind.itemsize
        high, wide = -(-rows // tile), -(-columns // tile)
        items = high * (high + 1) // 2 if lower else high * wide
        program, launches = self._backend.compile(product_source(REALS[kind])), []
        for A, B, C in zip(A_k, B_k, C_k, strict=True):
            A, lda, transpose_a = _leading(A)
            B, ldb, transpose_b = _leading(B)
            values = {"rows": rows, "columns": columns, "depth": depth, "tile": tile, "lower": int(lower)}
            values |= {"A": A, "lda": lda, "transpose_a": int(transpose_a), "B": B, "ldb": ldb}
            values |= {"transpose_b": int(transpose_b), "C": C, "ldc": columns}
            launches.append(Launch(program, items, values, grain=1))
        self._backend.launch_all(launches)
        return C_k


def _worth_tiles(A: Any, B: Any) -> bool:
    """Whether tiles in our threads are faster than BLAS: for large products in double precision, and for those in
    single precision that are not so large that BLAS is given all threads."""
    plain = all(isinstance(x, np.ndarray) and x.dtype in REALS for x in (A, B)) and A.dtype == B.dtype
    if not plain or 2.0 * A.size * B.shape[-1] < SMALL_PRODUCT:
        return False
    return bool(A.dtype == np.float64 or A.shape[-2] < MANY_ORBITALS)


def _is_transpose(A: Array, B: Array) -> bool:
    """Whether B is a view of A, transposed: half of the product is then enough."""
    return A.ctypes.data == B.ctypes.data and A.shape == B.shape[::-1] and A.strides == B.strides[::-1]


def _leading(A: Array) -> tuple[Array, int, bool]:
    """The matrix for BLAS: with contiguous rows or columns, their leading dimension, and whether it is transposed."""
    for transposed, (far, near) in ((False, A.strides), (True, A.strides[::-1])):
        if near == A.itemsize and far >= A.itemsize * max(1, A.shape[0 if transposed else 1]) and far % A.itemsize == 0:
            return A, far // A.itemsize, transposed
    A = np.ascontiguousarray(A)
    return A, A.shape[1], False


def add_squares(
    backend: Backend, X: Array, depth: int, stacks: Sequence[tuple[int, int, int, int]], place: Any, n: int
) -> Array:
    """sum_i X_i X_i^T of several stacks in one array, each added to some rows and columns of a matrix [n, n].

    A stack: offset in X, rows and number of its matrices [row, depth], and the offset of its row numbers in `place`.
    """
    items = [
        (first, rows, i, min(i + MATRICES_PER_ITEM, count), p, q, at)
        for first, rows, count, at in stacks
        for p in range(0, rows, STACK_TILE)
        for q in range(0, p + 1, STACK_TILE)
        for i in range(0, count, MATRICES_PER_ITEM)
    ]
    K = np.zeros((n, n))
    values = {"item": np.array(items, dtype=np.int64), "place": place, "tile": STACK_TILE}
    values |= {"X": X, "naux": depth, "n_all": n, "K": K}
    program = backend.compile(rows_kernel("squares"))
    backend.launch_all([Launch(program, len(items), values, grain=1, sums="K", sums_size=STACK_TILE**2)])
    return K
