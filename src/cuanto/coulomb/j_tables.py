"""Tables that the kernels of the J engine read, copied to every device once."""

from __future__ import annotations

from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.integrals.engine import copy_once
from cuanto.kernels.hermite_build import tuple_table
from cuanto.kernels.recurrences.components import polynomials
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

Kind = tuple[tuple[int, bool], ...]
"""The shells (angular momentum, solid harmonics?) that share a primitive."""


def tuples_on(backend: Backend) -> Any:
    """`tuple_table` on the device."""
    return copy_once(backend, "tuples", tuple_table)


def self_repulsion_on(backend: Backend, order: int) -> Any:
    """`self_repulsion_factor` on the device."""
    return copy_once(backend, order, partial(self_repulsion_factor, order))


def polynomials_on(backend: Backend, kind: Kind) -> tuple[Any, ...]:
    """`polynomials` on the device."""
    return tuple(copy_once(backend, (kind, i), partial(_part, kind, i)) for i in range(3))


def _part(kind: Kind, i: int) -> Any:
    return polynomials(kind)[i]


@cache
def self_repulsion_factor(order: int) -> Array:
    """W with (h|h) = theta |W^T g|^2 for a Hermite density h of exponent p, where g_t = p^(|t|/2) h_t.

    theta = 2 pi^5/2 / (p^2 (2p)^1/2); W is a lower triangle.

    At P = Q only even tuples have R_u = (-p)^(|u|/2) (u_x - 1)!! (u_y - 1)!! (u_z - 1)!! / (|u| + 1).
    """
    t = np.array(hermite_tuples(order))
    odd = np.array([prod(range(x - 1, 0, -2)) if x % 2 == 0 else 0.0 for x in range(2 * order + 1)])
    u = t[:, None, :] + t[None, :, :]
    total = u.sum(axis=2)
    sign = 1.0 - 2.0 * ((t.sum(axis=1) + total // 2) % 2)
    M = sign * odd[u].prod(axis=2) / (total + 1)
    # The matrix is positive definite; the shift keeps it so despite rounding, and increases the bound.
    size = np.sqrt(np.diag(M))
    W: Array = size[:, None] * np.linalg.cholesky(M / np.outer(size, size) + 1e-12 * np.eye(len(M)))
    return W
