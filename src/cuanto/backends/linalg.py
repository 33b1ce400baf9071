"""Dense linear algebra: on the host by our own threads and LAPACK, on a GPU by matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends import blas
from cuanto.backends.base import Backend, Launch
from cuanto.kernels.products import SOLVED_AT_ONCE, product_source, rows_kernel
from cuanto.workers import usable_cores

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
MANY_ORBITALS = tuning.size("cpu", "linalg.many_orbitals")
GRAM_ROWS = tuning.size("cuda", "linalg.gram_rows")
PANEL = tuning.size("cuda", "linalg.panel_columns")
ROWS_AT_ONCE = tuning.size("cuda", "linalg.rows_at_once")
COPIED_ROWS = tuning.size("cuda", "linalg.copied_rows")
ROWS_COMBINED = tuning.size("cpu", "linalg.rows_combined")
SUMMED_AT_ONCE = tuning.size("cuda", "linalg.rows_summed")
STACK_TILE = tuning.size("cpu", "linalg.stack_tile")
MATRICES_PER_ITEM = tuning.size("cpu", "linalg.stacked")
TRIANGLE_BLOCK = tuning.sizes("linalg.triangle_block")
REALS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
"""Types of the elements of matrices, and their names in kernels."""


@dataclass(frozen=True)
class BlockFactor:
    """A lower triangle L, or a stack of them, with the inverses of its diagonal blocks: solves by matrix products.

    Library solves with triangles are far slower than products (cuBLAS: half the rate for thousands of columns), and
    SciPy's bring a second BLAS whose threads disturb NumPy's.
    """

    L: Any
    inverses: list[Any]

    def divide(self, B: Any) -> None:
        """Replace B by B L^-T: subtract finished columns from the others, then solve each diagonal block."""
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


def add_to_diagonal(A: Any, value: Any) -> Any:
    """Add a number to the diagonals of contiguous square matrices, in place."""
    A.reshape(*A.shape[:-2], -1)[..., :: A.shape[-1] + 1] += value
    return A


class HostLinalg:
    """Linear algebra of the CPU: products by tiles in our own threads, factorisations by LAPACK."""

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

    @property
    def solved_rows(self) -> int:
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
        return BlockFactor(L, [np.linalg.inv(block) for block in _diagonal_blocks(L, TRIANGLE_BLOCK["cpu"])])

    def factor(self, G: Any) -> BlockFactor:
        """Factorise by LAPACK."""
        return self.divisor(np.linalg.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """Each factor is computed when it is used."""
        return (self.factor(add_to_diagonal(self.lower_gram(A), 1.0)) for A in (X, transpose(X)))

    def times_transpose(self, rows: Array, L: Array, triangle: bool) -> None:
        """Multiply in our threads; the rows must be contiguous."""
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


class Library(Protocol):
    """Functions of a device's libraries that its array module lacks or whose first use is slow there."""

    def cholesky(self, A: Any) -> Any:
        """Lower Cholesky factor of a matrix, the upper triangle undefined, or factors of a stack with zeros there."""

    def inverses(self, A: Any) -> Any:
        """Inverses of a stack of matrices."""

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, or of a stack of them."""

    def lower_gram(self, A: Any) -> Any:
        """A A^T of a matrix, its lower triangle only."""

    def inverse(self, L: Any) -> Any:
        """Inverse of a lower triangle; the upper one is not read."""

    def concurrently(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[Any]:
        """Start a call for each array concurrently; using a result makes the device wait for it."""


class DeviceLinalg:
    """Linear algebra of a GPU by full products: triangular ones are slower (4.0 against 3.4 ms for 20,000 rows of
    octadecane's metric, H200)."""

    factor_copies, stack_copies, copied_rows, solved_rows = 7, 2, 3 * COPIED_ROWS, 2 * ROWS_AT_ONCE

    def __init__(self, xp: Any, library: Library) -> None:
        self._xp, self._library = xp, library

    def threads(self, n: int) -> AbstractContextManager[None]:
        """No effect: the host is idle."""
        return nullcontext()

    def host_threads(self, n: int) -> AbstractContextManager[None]:
        """All cores for large matrices."""
        return blas.threads(usable_cores() if n >= MANY_ORBITALS else 1)

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Diagonalise by the device's library."""
        return self._library.eigh(A)

    def product(self, A: Any, B: Any) -> Any:
        """Multiply by the array library."""
        return A @ B

    def gram(self, X: Any) -> Any:
        """Compute a large matrix by panels of rows of its lower half and mirror it."""
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
        """Compute a single product, of a copy of X unless the row index is the outer axis in memory."""
        return self.gram(X.transpose(1, 0, 2).reshape(X.shape[1], -1))

    def combine_rows(self, rows: Any, weights: Any, ranges: Any = None) -> Any:
        """Combine all rows, in portions."""
        out = self._xp.zeros(rows.shape[1])
        for start in range(0, len(rows), SUMMED_AT_ONCE):
            some = slice(start, start + SUMMED_AT_ONCE)
            out += weights[some] @ rows[some]
        return out

    def rows_times(self, rows: Any, vector: Any, ranges: Any = None) -> Any:
        """Multiply all rows, in portions."""
        out = self._xp.empty(len(rows))
        for start in range(0, len(rows), SUMMED_AT_ONCE):
            some = slice(start, start + SUMMED_AT_ONCE)
            out[some] = rows[some] @ vector
        return out

    def inverse_factor(self, A: Any) -> tuple[Any, float]:
        """Invert by products, which are faster than the library's triangular inverse, and refine the result once.

        Without the refinement L^-1 L = 1 + 1e-8 for a nearly singular metric (taxol, def2-universal-jkfit), and the
        energy of a fitted density depends on rounding errors of the metric: it varied by 2e-7 Hartree.
        """
        L = self._library.cholesky(A)
        smallest = float(self._xp.diagonal(L).min())  # NaN if there is no factor
        if not smallest > 0.0:
            return None, -1.0
        L = self._xp.tril(L)
        inverse = self._xp.ascontiguousarray(inverse_triangle(L, self._xp, self._library.inverses))
        inverse -= add_to_diagonal(inverse @ L, -1.0) @ inverse
        return inverse, smallest**2

    def lower_gram(self, A: Any) -> Any:
        """Use the library's symmetric product for a single matrix: half the operations."""
        return self._library.lower_gram(A) if A.ndim == 2 else A @ transpose(A)

    def divisor(self, L: Any) -> BlockFactor:
        """Use large diagonal blocks, so that there are few calls."""
        inverse = self._library.inverse if L.ndim == 2 else self._library.inverses
        return BlockFactor(L, [inverse(block) for block in _diagonal_blocks(L, TRIANGLE_BLOCK["cuda"])])

    def factor(self, G: Any) -> BlockFactor:
        """Factorise by the device's library; NaN if the matrix is not positive definite."""
        return self.divisor(self._library.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """Compute both concurrently, because each factor is a long chain of small kernels."""
        return self._library.concurrently(
            lambda A: self.factor(add_to_diagonal(self.lower_gram(A), 1.0)), (X, transpose(X))
        )

    def times_transpose(self, rows: Any, L: Any, triangle: bool) -> None:
        """Multiply by panels of columns, the last ones first, since a column depends only on those before it."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            if not triangle or len(L) < 4 * PANEL:
                some[...] = some @ L.T
                continue
            for end in range(len(L), 0, -PANEL):
                begin = max(0, end - PANEL)
                some[:, begin:end] = some[:, :end] @ L[begin:end, :end].T

    def times_transpose_to(self, rows: Any, one: Any, other: Any, L: Any, triangle: bool) -> None:
        """Multiply portions of copied rows."""
        for start in range(0, len(one), COPIED_ROWS):
            some = slice(start, start + COPIED_ROWS)
            part = rows[one[some]]
            self.times_transpose(part, L, triangle)
            rows[one[some]] = part
            rows[other[some]] = part


def inverse_triangle(L: Any, xp: Any, inverses: Callable[[Any], Any], block: int = 96) -> Any:
    """Inverse of a lower triangle: blocks on the diagonal first, then [[A, 0], [C, D]] by products, level by level.

    `inverses`: function that inverts a stack of matrices.
    """
    n = len(L)
    count = 1 << max(0, -(-n // block) - 1).bit_length()
    block = -(-n // count)  # as little padding as possible
    size = count * block
    padded = xp.eye(size)
    padded[:n, :n] = xp.tril(L)
    diagonal = xp.arange(count)
    blocks = padded.reshape(count, block, count, block)[diagonal, :, diagonal]
    inverse = inverses(blocks)  # [block, row, column]
    while len(inverse) > 1:
        width = inverse.shape[1]
        pairs = xp.arange(len(inverse) // 2)
        C = padded.reshape(2 * len(pairs), width, 2 * len(pairs), width)[1 + 2 * pairs, :, 2 * pairs]
        upper, lower = inverse[0::2], inverse[1::2]
        joined = xp.zeros((len(pairs), 2 * width, 2 * width))
        joined[:, :width, :width], joined[:, width:, width:] = upper, lower
        joined[:, width:, :width] = -(lower @ (C @ upper))
        inverse = joined
    return inverse[0, :n, :n]
