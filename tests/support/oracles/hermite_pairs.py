"""Selection of pairs of primitives, and their order as bras: oracles of the kernels j_select, j_keys and j_bras."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, frexp, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Side = tuple[Array, Array, Array, int]
"""Exponents, centres, largest coefficients, and angular momentum of primitives."""


def significant_pairs(a: Side, b: Side, same: bool, smallest: float) -> Iterator[tuple[int, int]]:
    """Pairs whose overlap factor, coefficients and bound of the polynomial part together exceed the smallest value."""
    for k, (alpha, A, size_a) in enumerate(zip(*a[:3], strict=True)):
        for l, (beta, B, size_b) in enumerate(zip(*b[:3], strict=True)):
            p, R2 = alpha + beta, float(((A - B) ** 2).sum())
            spread = max(1.0, 1.0 / p, R2) ** ((a[3] + b[3]) / 2)
            if size_a * size_b * spread * exp(-alpha * beta / p * R2) / p > smallest and not (same and l > k):
                yield k, l


def power_of_four(x: float) -> int:
    """The exponent of a number in double precision, without its lowest bit."""
    return (frexp(x)[1] - 1 + 1023) // 2


def bra_keys(bound: Array, along: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Keys of pairs of one class: large bounds first, by powers of four, then along the curve."""
    return [(-power_of_four(size), int(position)) for size, position in zip(bound, along, strict=True)]


def bounds_of_higher_order(bound: Array, root: Array, order: int, higher: int) -> Array:
    """Bounds of derivatives of Gaussians with the exponents root^2."""
    return np.asarray(bound * (1.0 + 2.0 * root * sqrt(order + 1.0)) ** higher)
