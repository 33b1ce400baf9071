"""Dense linear algebra of a GPU: products of the array module, factorisations by the device's libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from cuanto import tuning
from cuanto.backends import blas
from cuanto.backends.linalg import (
    MANY_ORBITALS,
    TRIANGLE_BLOCK,
    BlockFactor,
    add_to_diagonal,
    diagonal_blocks,
    inverse_triangle,
    transpose,
)
from cuanto.workers import usable_cores

GRAM_ROWS = tuning.size("cuda", "linalg.gram_rows")
PANEL = tuning.size("cuda", "linalg.panel_columns")
ROWS_AT_ONCE = tuning.size("cuda", "linalg.rows_at_once")
COPIED_ROWS = tuning.size("cuda", "linalg.copied_rows")
SUMMED_AT_ONCE = tuning.size("cuda", "linalg.rows_summed")


class Library(Protocol):
    """Functions of a device's libraries that its array module lacks or whose first use is slow there."""

    def cholesky(self, A: Any) -> Any:
        """Lower Cholesky factor of a matrix, the upper triangle undefined, or factors of a stack with zeros there."""

    def inverses(self, A: Any) -> Any:
        """Inverses of a stack of matrices."""

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, or of a stack of them."""

    def add_products(self, A: Any, B_k: Any, C_k: Any) -> None:
        """Add A B_k to every matrix of the stack C, whose rows may be parts of longer ones."""

    def lower_gram(self, A: Any) -> Any:
        """A A^T of a matrix, its lower triangle only."""

    def inverse(self, L: Any) -> Any:
        """Inverse of a lower triangle; the upper one is not read."""

    def concurrently(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[Any]:
        """Start a call for each array concurrently; using a result makes the device wait for it."""


class DeviceLinalg:
    """Linear algebra of a GPU by full products: triangular ones are slower (4.0 against 3.4 ms for 20,000 rows of
    octadecane's metric, H200)."""

    factor_copies, stack_copies, copied_rows = 7, 2, 3 * COPIED_ROWS

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

    def add_products(self, A: Any, B_k: Any, C_k: Any) -> None:
        """Add in the library's product, without workspace."""
        self._library.add_products(A, B_k, C_k)

    def scalar_product(self, A: Any, B: Any) -> Any:
        """Sum of the products of the elements of two arrays, as a scalar product of the library."""
        return A.reshape(-1) @ B.reshape(-1)

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
        return BlockFactor(L, [inverse(block) for block in diagonal_blocks(L, TRIANGLE_BLOCK["cuda"])])

    def factor(self, G: Any) -> BlockFactor:
        """Factorise by the device's library; NaN if the matrix is not positive definite."""
        return self.divisor(self._library.cholesky(G))

    def rotation_factors(self, X: Any) -> Iterator[BlockFactor]:
        """Compute both concurrently, because each factor is a long chain of small kernels."""
        return self._library.concurrently(
            lambda A: self.factor(add_to_diagonal(self.lower_gram(A), 1.0)), (X, transpose(X))
        )

    def solved_rows(self, n: int, given: int = 0) -> int:
        """Products, and copies of rows that are not contiguous."""
        copies = (min(given, ROWS_AT_ONCE) or ROWS_AT_ONCE) if n >= 4 * PANEL else 0
        return copies if given else copies + ROWS_AT_ONCE

    def times_transpose(self, rows: Any, L: Any, triangle: bool, work: Any = None) -> None:
        """Multiply by panels of columns, the last ones first, since a column depends only on those before it."""
        n, panel = len(L), PANEL if triangle and len(L) >= 4 * PANEL else len(L)
        work = self._xp.empty((min(len(rows), ROWS_AT_ONCE), n)) if work is None else work
        work, at_once = work.reshape(-1), max(1, min(ROWS_AT_ONCE, work.size // n))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            for end in range(n, 0, -panel):
                begin = max(0, end - panel)
                product = work[: len(some) * (end - begin)].reshape(len(some), -1)
                used = end if triangle else n
                some[:, begin:end] = self._xp.matmul(some[:, :used], L[begin:end, :used].T, out=product)

    def times_transpose_to(self, rows: Any, one: Any, other: Any, L: Any, triangle: bool) -> None:
        """Multiply portions of copied rows."""
        for start in range(0, len(one), COPIED_ROWS):
            some = slice(start, start + COPIED_ROWS)
            part = rows[one[some]]
            self.times_transpose(part, L, triangle)
            rows[one[some]] = part
            rows[other[some]] = part
