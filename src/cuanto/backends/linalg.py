"""Triangular solves and inverses by matrix products, for the linear algebra of CPU and GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuanto import tuning

TRIANGLE_BLOCK = tuning.sizes("linalg.triangle_block")
"""Size of the diagonal blocks of `BlockFactor`, by language of kernels."""
MANY_ORBITALS = tuning.size("cpu", "linalg.many_orbitals")


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


def diagonal_blocks(L: Any, size: int) -> list[Any]:
    """Diagonal blocks of a triangle, or of a stack of them."""
    parts = [slice(begin, begin + size) for begin in range(0, L.shape[-1], size)]
    return [L[..., own, own] for own in parts]


def add_to_diagonal(A: Any, value: Any) -> Any:
    """Add a number to the diagonals of contiguous square matrices, in place."""
    A.reshape(*A.shape[:-2], -1)[..., :: A.shape[-1] + 1] += value
    return A


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
