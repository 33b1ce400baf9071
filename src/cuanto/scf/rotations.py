"""Rotations between occupied and virtual orbitals that remove F_ov, for single matrices and stacks.

J. J. P. Stewart, P. Csaszar and P. Pulay, J. Comput. Chem. 3, 227 (1982), doi:10.1002/jcc.540030214 (one pair after
the other); J. D. C. Maia et al., J. Chem. Theory Comput. 8, 3072 (2012), doi:10.1021/ct3004645 (all pairs at once).
The block forms rotate all pairs at once, X_ia = F_ia/(e_i - e_a), and need only matrix products: C_o + C_v X^T and
C_v - C_o X are exactly orthogonal to each other, so that only the Gram matrices 1 + X X^T and 1 + X^T X remain to be
removed: by their inverse roots, which change orbitals least; by Cholesky factors, which cost least; or, for small
rotations, by the first terms of the series of the inverse root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import matmul
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Linalg
from cuanto.backends.linalg import add_to_diagonal, transpose

Product = Callable[[Any, Any], Any]
"""The product of two matrices, or of two stacks of them."""
Split = tuple[int, int]
"""(mid, end): orbitals before `mid` are mixed with those from there to `end`."""
SMALL_NORM = 2e-3
"""Norm of rotations whose fourth power is negligible: (1 + X X^T)^(-1/2) = 1 - X X^T/2."""
TINY_NORM = 3e-4
"""Norm of rotations whose fourth power is below rounding errors of the energy."""


def splits(n_m: Array) -> list[Split]:
    """Pairs of blocks whose rotations change the density: occupied and empty orbitals, then (if there are singly
    occupied ones) the closed and the open shell, and so on inwards."""
    edges = [int(edge) + 1 for edge in np.flatnonzero(np.diff(n_m))]
    return list(pairwise([*edges, len(n_m)]))[::-1]


def rotation_count(n_km: Array) -> int:
    """Number of angles of all `splits` of the orbitals of every spin."""
    return sum(mid * (end - mid) for n_m in n_km for mid, end in splits(n_m))


@dataclass(frozen=True)
class Limits:
    """Limits of safe rotations: largest |F_ov| (Hartree), norm of all angles, largest angle, smallest gap."""

    coupling: float = 0.2
    norm: float = 2.0
    angle: float = 0.3
    gap: float = 0.01

    def allow(self, numbers: Any) -> Any:
        """Whether `numbers` of `measure` are within the limits; NaN never is."""
        coupling, gap, angle, norm = (numbers[..., k] for k in range(4))
        within = (coupling < self.coupling) & (angle < self.angle) & (norm < self.norm)
        return within & (gap > self.gap)


def couple(F: Any, C: Any, mid: int, product: Product = matmul) -> tuple[Any, Any, Any]:
    """F C, its block between the first `mid` orbitals and the others, and the orbital energies."""
    FC = product(F, C)
    return FC, product(transpose(C[..., :mid]), FC[..., mid:]), (C * FC).sum(axis=-2)


def gaps(eps_m: Any, mid: int) -> Any:
    """e_i - e_a, negative unless levels cross."""
    return eps_m[..., :mid, None] - eps_m[..., None, mid:]


def refine(X: Any, C: Any, FC: Any, gap: Any, sweeps: int, product: Product = matmul) -> Any:
    """Angles closer to the exact decoupling F_ov + X F_vv - F_oo X - X F_vo X = 0, whose left side is F between the
    blocks rotated by X before normalisation."""
    mid = X.shape[-2]
    for _ in range(sweeps):
        occupied = C[..., :mid] + product(C[..., mid:], transpose(X))
        residual = product(transpose(occupied), FC[..., mid:] - product(FC[..., :mid], X))
        X = (X + residual / gap).astype(C.dtype, copy=False)
    return X


def measure(F_ov: Any, eps_m: Any, X: Any, xp: Any) -> Any:
    """Largest |F_ov|, smallest gap, largest angle, norm of the angles, [..., 4]: the numbers of `Limits`."""
    mid, both = X.shape[-2], (-2, -1)
    squared = xp.vdot(X, X) if X.ndim == 2 else (X * X).sum(axis=both)
    gap = eps_m[..., mid:].min(axis=-1) - eps_m[..., :mid].max(axis=-1)
    numbers = [abs(F_ov).max(axis=both), gap, abs(X).max(axis=both), xp.sqrt(squared)]
    return xp.stack([number.astype(np.float64) for number in numbers], axis=-1)


def rotate(C: Any, X: Any, xp: Any, product: Product = matmul) -> Any:
    """Rotate all pairs at once; the result is orthonormal to first order only."""
    mid = X.shape[-2]
    rotated = xp.empty_like(C)
    xp.add(C[..., :mid], product(C[..., mid:], transpose(X)), out=rotated[..., :mid])
    xp.subtract(C[..., mid:], product(C[..., :mid], X), out=rotated[..., mid:])
    return rotated


def rotate_nearest(C: Any, X: Any, norm: float, xp: Any, linalg: Linalg) -> Any:
    """Orthonormal orbitals closest to the rotated ones (Loewdin); `norm` = |X|_F. For single matrices.

    With W = 1 + X X^T: C_o W^(-1/2), and (1 + X^T X)^(-1/2) = 1 - X^T (W + W^(1/2))^(-1) X for the virtual ones.
    """
    product, mid = linalg.product, len(X)
    rotated = rotate(C, X, xp, product)
    W_oo = xp.eye(mid) + product(X, X.T)
    root_oo, inverse_oo = _roots(W_oo, norm * norm, xp)
    factor, left, right = linalg.factor(W_oo + root_oo), product(rotated[:, mid:], X.T), X.T.copy()
    factor.divide(left)
    factor.divide(right)
    rotated[:, :mid] = product(rotated[:, :mid], inverse_oo)
    rotated[:, mid:] -= product(left, right.T)
    return rotated


def rotate_by_factors(C: Any, X: Any, xp: Any, linalg: Linalg) -> Any:
    """Orthonormal rotated orbitals by Cholesky factors of their Gram matrices: the fewest operations."""
    mid = X.shape[-2]
    factors, rotated = linalg.rotation_factors(X), rotate(C, X, xp, linalg.product)
    for part, factor in zip((rotated[..., :mid], rotated[..., mid:]), factors, strict=True):
        factor.divide(part)
    return rotated


def rotate_slightly(C: Any, X: Any, xp: Any, product: Product = matmul) -> Any:
    """Rotated orbitals, orthonormal to third order, by products alone: for angles with a norm below `SMALL_NORM`."""
    mid = X.shape[-2]
    C_o, C_v, X_vo = C[..., :mid], C[..., mid:], transpose(X)
    empty, occupied = product(C_o, X), product(C_v, X_vo)
    parts = [C_o + (occupied - 0.5 * product(empty, X_vo)), C_v - (empty + 0.5 * product(occupied, X))]
    return xp.concatenate(parts, axis=-1)


def rotate_spins(C_sjm: Any, n_km: Array, X_ov: Iterable[Array], xp: Any, linalg: Linalg) -> Any:
    """Orbitals of every spin with occupations `n_km`, rotated by host arrays of angles: one for each of its `splits`,
    all of one spin after the other."""
    angles, rotated = iter(X_ov), []
    for C_jm, n_m in zip(C_sjm, n_km, strict=True):
        for _, end in splits(n_m):
            X = next(angles)
            front = rotate_nearest(C_jm[:, :end], xp.asarray(X), float(np.linalg.norm(X)), xp, linalg)
            C_jm = xp.concatenate([front, C_jm[:, end:]], axis=1)
        rotated.append(C_jm)
    return xp.stack(rotated)


def join_blocks(M_smm: Iterable[Array], n_km: Array) -> Array:
    """Elements between the orbitals of all `splits` of every spin as one vector, in the order of `split_angles`."""
    spins = zip(M_smm, n_km, strict=True)
    parts = [M_mm[:mid, mid:end].reshape(-1) for M_mm, n_m in spins for mid, end in splits(n_m)]
    return np.concatenate([np.zeros(0), *parts])


def split_angles(x: Array, n_km: Array) -> list[Array]:
    """The angles of `rotate_spins` from one vector."""
    angles, begin = [], 0
    for mid, end in (split for n_m in n_km for split in splits(n_m)):
        size = mid * (end - mid)
        angles.append(x[begin : begin + size].reshape(mid, -1))
        begin += size
    return angles


def make_orthonormal(C: Any, product: Product = matmul) -> Any:
    """Make nearly orthonormal orbitals of one spin orthonormal in double precision: C (1 + E)^(-1/2), E = C^T C - 1.

    A Newton-Schulz step, with one more order for orbitals in single precision, whose E^2 of about 1e-11 would affect
    the energy of a thousand orbitals. E is so small that products with it may be in the precision of the orbitals.
    """
    kind, C = C.dtype.type, C.astype(np.float64, copy=False)
    E = product(C.T, C)
    add_to_diagonal(E, -1.0)
    E = E.astype(kind, copy=False)
    change = 0.5 * E
    if kind is np.float32:
        change -= 0.375 * product(E, E.T)
    return C - product(C.astype(kind, copy=False), change)


def _roots(W: Any, largest: float, xp: Any) -> tuple[Any, Any]:
    """W^(1/2) and W^(-1/2) by coupled Newton-Schulz steps, for eigenvalues of W from 1 to 1 + `largest`.

    N. J. Higham, Functions of Matrices (SIAM, 2008), eq. (6.35), doi:10.1137/1.9780898717778.
    """
    scale = 1.0 + 0.5 * largest
    error = 0.5 * largest / scale  # largest deviation of scaled eigenvalues from 1
    one = xp.eye(len(W))
    Y, Z, three_halves = (1.0 / scale) * W, one, 1.5 * one
    while error > 1e-17:
        step = three_halves - 0.5 * (Z @ Y)
        Y, Z = Y @ step, step @ Z
        error = 0.75 * error**2 + 0.25 * error**3
    return scale**0.5 * Y, scale**-0.5 * Z


def jacobi(C_jm: Any, F_ov: Any, eps_m: Any) -> Any:
    """Rotate one pair after the other with fixed F_ov and energies, in NumPy.

    Elements below a twentieth of the largest are left for the next iteration. The angle is computed from
    tau = tan(angle), which is accurate for small angles.
    """
    C_jm, mid = C_jm.copy(), len(F_ov)
    tiny = 0.05 * float(np.abs(F_ov).max())
    for i, a in np.argwhere(np.abs(F_ov) >= tiny):
        d = float(eps_m[i] - eps_m[mid + a])
        tau = 2.0 * float(F_ov[i, a]) / (d + np.copysign(np.hypot(2.0 * F_ov[i, a], d), d))
        c = 1.0 / np.hypot(1.0, tau)
        s = c * tau
        C_i, C_a = C_jm[:, i].copy(), C_jm[:, mid + a].copy()
        C_jm[:, i], C_jm[:, mid + a] = c * C_i + s * C_a, c * C_a - s * C_i
    return C_jm
