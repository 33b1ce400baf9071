"""Rotations between occupied and virtual orbitals that remove F_ov: the ways to do it.

J. J. P. Stewart, P. Csaszar and P. Pulay, J. Comput. Chem. 3, 227 (1982), doi:10.1002/jcc.540030214 (one pair after
the other); J. D. C. Maia et al., J. Chem. Theory Comput. 8, 3072 (2012), doi:10.1021/ct3004645 (all pairs at once).
The block forms make all pairs at once, X_ia = F_ia/(e_i - e_a), and need only matrix products: C_o + C_v X^T and
C_v - C_o X are orthogonal to each other exactly, so each needs only its own inverse root (1 + X X^T)^(-1/2), and the
one of the virtual orbitals follows from that of the occupied ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[Any, Any]
Split = tuple[int, int]
"""(mid, end): orbitals before `mid` are mixed with those from there to `end`."""


def splits(n_m: NDArray[np.float64]) -> list[Split]:
    """Where rotations change the density: between occupied and empty orbitals, then (where there are singly occupied
    ones) between the closed and the open shell, and so on inwards."""
    edges = [int(edge) + 1 for edge in np.flatnonzero(np.diff(n_m))]
    return list(pairwise([*edges, len(n_m)]))[::-1]


def turn(C_jm: Any, parts: Iterable[tuple[Split, Any, float]], xp: Any) -> Any:
    """Orbitals turned by the angles X_ov (and their norm) of one split after the other, orthonormal."""
    for (mid, end), X_ov, norm in parts:
        rotated = rotate(C_jm[:, :mid], C_jm[:, mid:end], X_ov)
        C_jm = xp.concatenate([*orthonormalise(*rotated, X_ov, norm, xp), C_jm[:, end:]], axis=1)
    return C_jm


def angles(F_ov: Any, gap_ov: Any) -> Any:
    """First-order rotations; `gap_ov` = e_i - e_a is negative."""
    return F_ov / gap_ov


def refined_angles(F_ov: Any, F_oo: Any, F_vv: Any, gap_ov: Any, sweeps: int = 2) -> Any:
    """Rotations that nearly solve F_ov + X F_vv - F_oo X - X F_vo X = 0, the exact decoupling of the blocks."""
    X_ov = F_ov / gap_ov
    for _ in range(sweeps):
        residual = F_ov + X_ov @ F_vv - (F_oo + X_ov @ F_ov.T) @ X_ov
        X_ov = X_ov + residual / gap_ov
    return X_ov


def rotate(C_o: Any, C_v: Any, X_ov: Any) -> Pair:
    """All pairs at once, not orthonormal: errors of second order remain."""
    return C_o + C_v @ X_ov.T, C_v - C_o @ X_ov


def orthonormalise(C_o: Any, C_v: Any, X_ov: Any, norm: float, xp: Any) -> Pair:
    """What `rotate` made, orthonormal and as near to it as possible (Loewdin); `norm` = |X|_F.

    With W = 1 + X X^T: C_o W^(-1/2), and (1 + X^T X)^(-1/2) = 1 - X^T (W + W^(1/2))^(-1) X for the virtual ones.
    """
    W_oo = xp.eye(len(X_ov)) + X_ov @ X_ov.T
    root_oo, inverse_oo = _roots(W_oo, norm * norm, xp)
    correction = xp.linalg.solve(W_oo + root_oo, X_ov)
    return C_o @ inverse_oo, C_v - (C_v @ X_ov.T) @ correction


def _roots(W: Any, largest: float, xp: Any) -> Pair:
    """W^(1/2) and W^(-1/2) by coupled Newton-Schulz steps, for eigenvalues of W from 1 to 1 + `largest`.

    N. J. Higham, Functions of Matrices (SIAM, 2008), eq. (6.35), doi:10.1137/1.9780898717778.
    """
    scale = 1.0 + 0.5 * largest
    error = 0.5 * largest / scale  # of the scaled eigenvalues from 1, below 1
    one = xp.eye(len(W))
    Y, Z = W / scale, one
    while error > 1e-17:
        step = 1.5 * one - 0.5 * (Z @ Y)
        Y, Z = Y @ step, step @ Z
        error = 0.75 * error**2 + 0.25 * error**3
    return Y * scale**0.5, Z / scale**0.5


def jacobi(C_o: Any, C_v: Any, F_ov: Any, eps_o: Any, eps_v: Any) -> Pair:
    """One pair after the other on vectors already rotated, with F_ov and energies as they were; a NumPy reference.

    Elements below a twentieth of the largest are left for the next iteration. The angle is taken from tau = tan(angle),
    which keeps its digits where it is small.
    """
    C_o, C_v = C_o.copy(), C_v.copy()
    tiny = 0.05 * float(np.abs(F_ov).max())
    for i, a in np.argwhere(np.abs(F_ov) >= tiny):
        d = float(eps_o[i] - eps_v[a])
        tau = 2.0 * float(F_ov[i, a]) / (d + np.copysign(np.hypot(2.0 * F_ov[i, a], d), d))
        c = 1.0 / np.hypot(1.0, tau)
        s = c * tau
        C_o[:, i], C_v[:, a] = c * C_o[:, i] + s * C_v[:, a], c * C_v[:, a] - s * C_o[:, i]
    return C_o, C_v
