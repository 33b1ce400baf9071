"""Dense linear algebra of the SCF: eigenvectors, and columns made orthonormal by Cholesky factors.

Libraries solve with triangles far below the rate of their products (cuBLAS at half of it, for thousands of columns);
SciPy's also brings a BLAS with threads of its own, which get in the way of NumPy's for longer than it saves. So Gram
matrices, factors and divisions by them are matrix products here, of single matrices or stacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

BLOCK = {True: 64, False: 512}
"""Columns of a diagonal block on a host and on a GPU."""


def transpose(A: Any) -> Any:
    """Transposes of a stack of matrices."""
    return A.swapaxes(-1, -2)


def stack(matrices: Sequence[Any], xp: Any) -> Any:
    """A stack of matrices; of a single one, without a copy."""
    return matrices[0][None] if len(matrices) == 1 else xp.stack(matrices)


def add_to_diagonal(A: Any, value: Any) -> None:
    """Add a number to the diagonals of contiguous square matrices, in place."""
    A.reshape(*A.shape[:-2], -1)[..., :: A.shape[-1] + 1] += value


def eigenvectors(F_sjk: Any, xp: Any) -> tuple[Any, Any]:
    """Orbitals and energies of every spin, one after the other: GPU libraries do batches by slow Jacobi sweeps."""
    solved = [xp.linalg.eigh(F_jk) for F_jk in F_sjk]
    return xp.stack([C_jm for _, C_jm in solved]), xp.stack([eps_m for eps_m, _ in solved])


def diagonalise_blocks(F_jk: Any, C_jm: Any, edges: Sequence[int], xp: Any) -> tuple[Any, list[Any]]:
    """Orbitals that diagonalise F among those of each block, which leaves the density as it is where blocks have equal
    occupations; and the energies of each."""
    orbitals, energies, FC_jm = [], [], F_jk @ C_jm
    for begin, end in pairwise(edges):
        own = C_jm[:, begin:end]
        eps_m, U_mm = xp.linalg.eigh(own.T @ FC_jm[:, begin:end])
        orbitals.append(own @ U_mm)
        energies.append(eps_m)
    return xp.concatenate(orbitals, axis=1), energies


@dataclass(frozen=True)
class Factor:
    """A lower triangle L, and inverses of its diagonal blocks."""

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


def factor(G: Any, xp: Any) -> Factor:
    """Cholesky factor of a matrix whose upper triangle is not looked at."""
    return with_inverses(xp.linalg.cholesky(G), xp)


def with_inverses(L: Any, xp: Any) -> Factor:
    """A lower triangle, ready to divide by."""
    size = BLOCK[xp is np]
    parts = [slice(begin, begin + size) for begin in range(0, L.shape[-1], size)]
    blocks = [L[..., own, own] for own in parts]
    if xp is np or L.ndim > 2:
        return Factor(L, [xp.linalg.inv(own) for own in blocks])
    solve = import_module(f"{xp.__name__}x.scipy.linalg").solve_triangular
    one = xp.eye(min(size, len(L)), dtype=L.dtype)
    return Factor(L, [solve(own, one[: len(own), : len(own)], lower=True, check_finite=False) for own in blocks])


def gram(A: Any, xp: Any) -> Any:
    """A A^T, of which the lower triangle at least is there."""
    if xp is np or A.ndim > 2:
        return A @ transpose(A)
    G = xp.empty((len(A), len(A)), dtype=A.dtype)
    return import_module(f"{xp.__name__}.cublas").syrk("N", A, out=G, lower=True)


def factors_beside(X: Any, xp: Any) -> Iterator[Factor]:
    """Factors of 1 + X X^T and 1 + X^T X. A GPU begins with both at once, and goes on with other work until they are
    taken: a factor is a long chain of small kernels."""
    if xp is np:
        return (_factor_of_one_and(A, xp) for A in (X, transpose(X)))
    now, found = xp.cuda.get_current_stream(), []
    given = now.record()
    for A, stream in zip((X, transpose(X)), _streams(xp, xp.cuda.Device().id), strict=True):
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
    add_to_diagonal(G, 1.0)
    return factor(G, xp)


@cache
def _streams(xp: Any, device: int) -> list[Any]:
    """Two of a device, which are served first; kept, since memory that was given out on a stream returns to it."""
    return [xp.cuda.Stream(non_blocking=True, priority=-1) for _ in range(2)]
