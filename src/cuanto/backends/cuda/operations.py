"""Operations of CuPy that calculations use, on small arrays, in the order of their first use.

CuPy compiles one kernel for every combination of an operation with types, dimensions and contiguity; the operands here
have the combinations that occur. An operation that is missing costs a tenth of a second at its first use, nothing
else: `benchmarks/first_minute.py` lists those, with the line that used them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

Operation = Callable[[Any, Any], Any]


def operands(xp: Any) -> SimpleNamespace:
    """Arrays by name: v vector, w part of one, M matrix, S part of one, N matrix of the shape of S, T stack of
    matrices, P part of one, Q stack of the shape of P, z number; i j b integers and truth values."""
    made: dict[str, Any] = {
        "v": xp.ones(4),
        "w": xp.ones(8)[::2],
        "M": xp.ones((4, 4)),
        "S": xp.ones((4, 4))[:, :3],
        "N": xp.ones((4, 3)),
        "T": xp.ones((2, 4, 4)),
        "P": xp.ones((2, 4, 4))[:, :3, :3],
        "Q": xp.ones((2, 3, 3)),
        "blocks": xp.ones((2, 3, 2, 3)),
        "rows": xp.ones((3, 2, 5, 4)),
        "z": xp.ones(()),
        "i": xp.zeros(4, dtype=np.int64),
        "i32": xp.zeros(4, dtype=np.int32),
        "j": xp.zeros(8, dtype=np.int32)[::2],
        "b": xp.zeros(4, dtype=bool),
    }
    made["unit"] = xp.asarray(np.eye(4))
    made["units"] = xp.asarray(np.stack([np.eye(3)] * 2))
    for size in (2_000, 600_000):
        made[f"b{size}"] = xp.zeros(size, dtype=bool)
    return SimpleNamespace(**made)


def libraries(xp: Any) -> list[Callable[[], Any]]:
    """Calls that load cuBLAS and cuSOLVER."""

    def eigenvalues() -> None:
        xp.linalg.eigh(xp.asarray(np.eye(2)))

    def product() -> None:
        A = xp.asarray(np.eye(2))
        A @ A

    return [product, eigenvalues]


def _assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


def _add(target: Any, value: Any) -> None:
    target += value


def _subtract(target: Any, value: Any) -> None:
    target -= value


OPERATIONS: tuple[Operation, ...] = (
    lambda xp, a: xp.linalg.cholesky(a.unit),
    lambda xp, a: xp.linalg.inv(a.units),
    # one-electron integrals and metric
    lambda xp, a: a.M + a.M.T,
    lambda xp, a: -a.v,
    lambda xp, a: _assign(a.v, a.i, a.v[:]),
    lambda xp, a: a.v + a.v,
    lambda xp, a: xp.ascontiguousarray(a.S),
    lambda xp, a: xp.sqrt(xp.diagonal(a.M)),
    lambda xp, a: 1.0 / a.v,
    lambda xp, a: a.M * a.v,
    lambda xp, a: a.v * a.v,
    lambda xp, a: abs(a.v),
    lambda xp, a: xp.sqrt(a.z),
    lambda xp, a: 2.0 * a.z,
    lambda xp, a: _assign(a.v, ..., xp.ones(4)),
    # factors and their inverses
    lambda xp, a: xp.diagonal(a.M).min(),
    lambda xp, a: xp.eye(4),
    lambda xp, a: xp.tril(a.M),
    lambda xp, a: xp.arange(4),
    lambda xp, a: a.blocks[a.i[:2], :, a.i[:2]],
    lambda xp, a: a.blocks[2 * a.i[:1] + 1, :, 2 * a.i[:1]],
    lambda xp, a: 2 * a.i,
    lambda xp, a: a.i + 1,
    lambda xp, a: a.M[a.i],
    lambda xp, a: _assign(a.M, a.i, a.M[:]),
    lambda xp, a: _assign(a.S, ..., a.N),
    lambda xp, a: _assign(a.S, ..., xp.ones((4, 4))[:, :3]),
    lambda xp, a: _assign(a.P, ..., xp.ones((2, 4, 4))[:, :3, :3]),
    lambda xp, a: _assign(a.P, ..., a.Q),
    lambda xp, a: xp.ascontiguousarray(a.P),
    lambda xp, a: _assign(a.z, ..., xp.ones(())),
    # groups of grid points
    lambda xp, a: a.i * 2,
    lambda xp, a: a.i + a.i,
    lambda xp, a: _assign(a.i, ..., xp.zeros(4, dtype=np.int64)),
    lambda xp, a: a.i // 3,
    lambda xp, a: a.i % 3,
    lambda xp, a: a.i != a.i,
    lambda xp, a: xp.flatnonzero(a.b600000),
    lambda xp, a: xp.flatnonzero(a.b2000),
    lambda xp, a: xp.flatnonzero(a.b),
    lambda xp, a: a.i[a.i],
    lambda xp, a: a.i32[a.i],
    lambda xp, a: a.v[a.i],
    lambda xp, a: _assign(a.i, 0, 0),
    lambda xp, a: _assign(a.i, a.i, a.i[:1]),
    lambda xp, a: a.i - a.i,
    lambda xp, a: a.i - 1,
    lambda xp, a: a.v - a.v,
    lambda xp, a: xp.sqrt(a.v),
    lambda xp, a: a.v > 1.0,
    lambda xp, a: a.b.astype(np.int64),
    lambda xp, a: xp.minimum(a.i, a.i),
    lambda xp, a: a.i < a.i,
    lambda xp, a: xp.searchsorted(a.i, a.i),
    # the SCF
    lambda xp, a: a.v[:, None] * a.v,
    lambda xp, a: a.M / a.v,
    lambda xp, a: a.v / a.v,
    lambda xp, a: a.M.sum(axis=1),
    lambda xp, a: 2.0 * a.v,
    lambda xp, a: 2.0 * a.S,
    lambda xp, a: a.v * 2.0,
    lambda xp, a: a.S * 2.0,
    lambda xp, a: a.v / 2.0,
    lambda xp, a: 1.0 + a.v,
    lambda xp, a: a.S - a.S,
    lambda xp, a: a.M - a.v,
    lambda xp, a: a.S - a.N,
    lambda xp, a: a.z - a.z,
    lambda xp, a: _subtract(a.S, a.N),
    lambda xp, a: a.S + a.S,
    lambda xp, a: a.S + a.N,
    lambda xp, a: _add(a.S, a.N),
    lambda xp, a: a.T + a.T.transpose(0, 2, 1),
    lambda xp, a: _add(a.w, 1.0),
    lambda xp, a: xp.arange(4, dtype=np.int32),
    # direct Fock matrices
    lambda xp, a: a.M.max(axis=0),
    lambda xp, a: a.M.max(axis=1),
    lambda xp, a: a.T.max(axis=(0, 2)),
    lambda xp, a: a.j * a.i,
    # gradients
    lambda xp, a: a.i[:, None] + a.i,
    lambda xp, a: a.M[a.i[:, None], a.i],
    lambda xp, a: a.rows.sum(axis=2),
    lambda xp, a: a.T @ a.M,
)
