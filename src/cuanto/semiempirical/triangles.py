"""Columns made orthonormal by Cholesky's factors of their Gram matrices, in matrix products.

Libraries solve with triangles far below the rate of their products (cuBLAS at half of it, for thousands of columns);
SciPy's also brings a BLAS with threads of its own, which get in the way of NumPy's for longer than it saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

BLOCK = {True: 64, False: 512}
"""Columns of a diagonal block on a host and on a GPU."""


@dataclass(frozen=True)
class Factor:
    """A lower triangle L, and inverses of its diagonal blocks."""

    L: Any
    inverses: list[Any]

    def divide(self, B: Any) -> None:
        """Replace B by B L^-T: what columns that are done leave of the others, then their own block."""
        self._divide(B, 0, len(self.L))

    def _divide(self, B: Any, begin: int, end: int) -> None:
        size = len(self.inverses[0])
        if end - begin <= size:
            B[:, begin:end] = B[:, begin:end] @ self.inverses[begin // size].T
            return
        middle = begin + -(-(end - begin) // (2 * size)) * size
        self._divide(B, begin, middle)
        B[:, middle:end] -= B[:, begin:middle] @ self.L[middle:end, begin:middle].T
        self._divide(B, middle, end)


def factor(G: Any, xp: Any) -> Factor:
    """Cholesky's factor of a matrix whose upper triangle is not looked at."""
    return with_inverses(xp.linalg.cholesky(G), xp)


def with_inverses(L: Any, xp: Any) -> Factor:
    """A lower triangle, ready to divide by."""
    size = BLOCK[xp is np]
    parts = [slice(begin, begin + size) for begin in range(0, len(L), size)]
    if xp is np:
        return Factor(L, [np.linalg.inv(L[own, own]) for own in parts])
    solve = import_module(f"{xp.__name__}x.scipy.linalg").solve_triangular
    one = xp.eye(min(size, len(L)), dtype=L.dtype)
    blocks = [L[own, own] for own in parts]
    return Factor(L, [solve(own, one[: len(own), : len(own)], lower=True, check_finite=False) for own in blocks])


def gram(A: Any, xp: Any) -> Any:
    """A A^T, of which the lower triangle at least is there."""
    if xp is np:
        return A @ A.T
    G = xp.empty((len(A), len(A)), dtype=A.dtype)
    return import_module(f"{xp.__name__}.cublas").syrk("N", A, out=G, lower=True)


def factors_beside(X: Any, xp: Any) -> Iterator[Factor]:
    """Factors of 1 + X X^T and 1 + X^T X. A GPU begins with both at once, and goes on with other work until they are
    taken: a factor is a long chain of small kernels."""
    if xp is np:
        return (_factor_of_one_and(A, xp) for A in (X, X.T))
    now, found = xp.cuda.get_current_stream(), []
    given = now.record()
    for A, stream in zip((X, X.T), _streams(xp, xp.cuda.Device().id), strict=True):
        stream.wait_event(given)
        with stream:
            found.append((_factor_of_one_and(A, xp), stream.record(), A))  # memory of A is not given out meanwhile

    def taken() -> Iterator[Factor]:
        for made, done, _ in found:
            now.wait_event(done)
            yield made

    return taken()


def _factor_of_one_and(A: Any, xp: Any) -> Factor:
    """The factor of 1 + A A^T."""
    G = gram(A, xp)
    G.reshape(-1)[:: len(G) + 1] += 1.0
    return factor(G, xp)


@cache
def _streams(xp: Any, device: int) -> list[Any]:
    """Two of a device, which are served first; kept, since memory that was given out on a stream returns to it."""
    return [xp.cuda.Stream(non_blocking=True, priority=-1) for _ in range(2)]
