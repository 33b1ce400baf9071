"""Operations of CuPy that calculations use, on small arrays, in the order of their first use.

CuPy compiles one kernel for every combination of an operation with types, dimensions and contiguity; the operands here
have the combinations that occur. An operation that is missing here only costs a tenth of a second at its first use;
`benchmarks/first_minute.py` lists such operations, with the line that used them. Numbers are not on the right of
operators, and factorisations are those of `CudaLibrary`, because others import SciPy (see `library.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from cuanto.backends.cuda.library import CudaLibrary

Operation = Callable[[Any, Any], Any]


def operands(xp: Any) -> SimpleNamespace:
    """Arrays by name.

    v: vector, w: strided vector; M: matrix, S: part of a matrix, N: matrix of the shape of S; T: stack of matrices,
    P: part of a stack, Q: stack of the shape of P; z: number; i, j: integers (j strided); b: truth values.
    """
    floats = {
        "v": (4,),
        "w": (8,),
        "M": (4, 4),
        "S": (4, 4),
        "N": (4, 3),
        "T": (2, 4, 4),
        "P": (2, 4, 4),
        "Q": (2, 3, 3),
        "one": (1, 4, 4),
        "blocks": (2, 3, 2, 3),
        "rows": (3, 2, 5, 4),
        "z": (),
    }
    made = {name: xp.zeros(shape) for name, shape in floats.items()}  # no kernel: memory is cleared
    made |= {"w": made["w"][::2], "S": made["S"][:, :3], "P": made["P"][:, :3, :3]}
    made |= {"i": xp.zeros(4, dtype=np.int64), "i32": xp.zeros(4, dtype=np.int32), "b": xp.zeros(4, dtype=bool)}
    made["j"] = xp.zeros(8, dtype=np.int32)[::2]
    made |= {"unit": xp.asarray(np.eye(4)), "units": xp.asarray(np.stack([np.eye(3)] * 2))}
    for size in (4, 2_000, 600_000):
        made[f"b{size}"] = xp.asarray(np.ones(size, dtype=bool))
    return SimpleNamespace(**made)


def _assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


def _add(target: Any, value: Any) -> None:
    target += value


def _subtract(target: Any, value: Any) -> None:
    target -= value


FACTORISATIONS: tuple[Operation, ...] = (
    lambda xp, a: CudaLibrary(xp).cholesky(a.unit),
    lambda xp, a: CudaLibrary(xp).inverses(a.units),
)
"""Operations that prepare arrays for cuSOLVER and cuBLAS."""
OPERATIONS: tuple[Operation, ...] = (
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
    lambda xp, a: a.v @ a.v,
    lambda xp, a: a.one.sum(axis=0),
    lambda xp, a: xp.concatenate([a.v, a.v]),
    # factors and their inverses
    lambda xp, a: xp.diagonal(a.M).min(),
    lambda xp, a: xp.eye(4),
    lambda xp, a: xp.tril(a.M),
    lambda xp, a: xp.arange(4),
    lambda xp, a: _add(a.w, 1.0),
    lambda xp, a: a.v - a.v,
    lambda xp, a: a.blocks[a.i[:2], :, a.i[:2]],
    lambda xp, a: a.blocks[1 + 2 * a.i[:1], :, 2 * a.i[:1]],
    lambda xp, a: 2 * a.i,
    lambda xp, a: 1 + a.i,
    lambda xp, a: a.M[a.i],
    lambda xp, a: a.S[a.i],
    lambda xp, a: _assign(a.M, a.i, a.M[:]),
    lambda xp, a: _assign(a.S, ..., a.N),
    lambda xp, a: _assign(a.S, ..., xp.zeros((4, 4))[:, :3]),
    lambda xp, a: _assign(a.P, ..., xp.zeros((2, 4, 4))[:, :3, :3]),
    lambda xp, a: _assign(a.P, ..., a.Q),
    lambda xp, a: xp.ascontiguousarray(a.P),
    # groups of grid points
    lambda xp, a: xp.multiply(a.i, 2),
    lambda xp, a: a.i + a.i,
    lambda xp, a: xp.sort(a.i),
    lambda xp, a: xp.argsort(a.i),
    lambda xp, a: xp.floor_divide(a.i, 3),
    lambda xp, a: xp.remainder(a.i, 3),
    lambda xp, a: a.i != a.i,
    lambda xp, a: xp.not_equal(a.v, 0.0),
    lambda xp, a: xp.flatnonzero(a.b600000),
    lambda xp, a: xp.flatnonzero(a.b2000),
    lambda xp, a: xp.flatnonzero(a.b4),
    lambda xp, a: a.i[a.i],
    lambda xp, a: a.i32[a.i],
    lambda xp, a: a.v[a.i],
    lambda xp, a: _assign(xp.zeros(4, dtype=np.int64), a.i, 1),
    lambda xp, a: a.i - a.i,
    lambda xp, a: xp.subtract(a.i, 1),
    lambda xp, a: xp.sqrt(a.v),
    lambda xp, a: xp.greater(a.v, 1.0),
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
    lambda xp, a: xp.multiply(a.v, 2.0),
    lambda xp, a: xp.multiply(a.S, 2.0),
    lambda xp, a: xp.divide(a.v, 2.0),
    lambda xp, a: 1.0 + a.v,
    lambda xp, a: a.S - a.S,
    lambda xp, a: a.M - a.v,
    lambda xp, a: a.S - a.N,
    lambda xp, a: a.z - a.z,
    lambda xp, a: _subtract(a.S, a.N),
    lambda xp, a: a.S + a.S,
    lambda xp, a: a.S[:3] + a.S[:3].T,
    lambda xp, a: a.S + a.N,
    lambda xp, a: _add(a.S, a.N),
    lambda xp, a: a.T + a.T.transpose(0, 2, 1),
    lambda xp, a: xp.arange(4, dtype=np.int32),
    # direct Fock matrices
    lambda xp, a: a.M.max(axis=0),
    lambda xp, a: a.M.max(axis=1),
    lambda xp, a: a.T.max(axis=(0, 2)),
    lambda xp, a: xp.diagonal(xp.zeros((1, 3, 3, 4)), axis1=1, axis2=2).max(axis=2),
    lambda xp, a: xp.diagonal(xp.zeros((1, 1, 1, 4)), axis1=1, axis2=2).max(axis=2),
    lambda xp, a: xp.diagonal(xp.zeros((2, 3, 3, 8)), axis1=1, axis2=2)[:, ::2].max(axis=2),
    lambda xp, a: xp.diagonal(xp.zeros((1, 1, 1, 8)), axis1=1, axis2=2)[:, ::2].max(axis=2),
    lambda xp, a: a.j * a.i,
    # gradients
    lambda xp, a: a.i[:, None] + a.i,
    lambda xp, a: a.M[a.i[:, None], a.i],
    lambda xp, a: a.rows.sum(axis=2),
    lambda xp, a: a.T @ a.M,
)
