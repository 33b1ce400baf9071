"""Products of Gaussian shells as sums of Hermite Gaussians, and the Coulomb potential of Hermite Gaussians.

A Hermite Gaussian is Lambda_tuv = (d/dP_x)^t (d/dP_y)^u (d/dP_z)^v exp(-zeta |r - P|^2). Every integral is
linear in the coefficients E of Lambda_tuv in a product of two shells (HJO 9.5); Coulomb integrals are linear
in the derivatives R_tuv of the Boys function as well (HJO 9.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from oracles.integrals.boys import boys

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HermiteExpansion:
    """Functions f = sum_k sum_t H_fkt Lambda_t(zeta_k, P_k), with t short for (t, u, v), t + u + v <= order.

    The centres are kept as P_k = sum_n weights_kn centres_nx, so that distances between two expansions can be
    formed from differences of nuclear positions: a tight function is exactly at distance zero of its atom.
    """

    order: int
    zeta_k: Array
    weights_kn: Array
    centres_nx: Array
    H_fkt: Array


@cache
def hermite_indices(order: int) -> tuple[tuple[int, int, int], ...]:
    """All (t, u, v) with t + u + v <= order."""
    return tuple((t, u, v) for t in range(order + 1) for u in range(order + 1 - t) for v in range(order + 1 - t - u))


def expansion_coefficients(l_a: int, l_b: int, a_k: Array, b_k: Array, X_AB: float) -> Array:
    """E[i, j, t, k]: expansion along one axis of x_A^i x_B^j exp(-a x_A^2 - b x_B^2), with X_AB = A - B."""
    p_k = a_k + b_k
    X_PA_k = -b_k / p_k * X_AB
    X_PB_k = a_k / p_k * X_AB
    E = np.zeros((l_a + 1, l_b + 1, l_a + l_b + 1, len(p_k)))
    E[0, 0, 0] = np.exp(-a_k * b_k / p_k * X_AB**2)  # HJO 9.2
    for i in range(l_a + 1):
        if i > 0:
            _raise(E[i - 1, 0], X_PA_k, p_k, out=E[i, 0])
        for j in range(1, l_b + 1):
            _raise(E[i, j - 1], X_PB_k, p_k, out=E[i, j])
    return E


def _raise(E: Array, X_k: Array, p_k: Array, out: Array) -> None:
    """One more power of x: E_t' = E_{t-1} / 2p + X E_t + (t+1) E_{t+1} (HJO 9.5.6 and 9.5.7)."""
    t_max = len(E) - 1
    for t in range(t_max + 1):
        out[t] = X_k * E[t]
        if t > 0:
            out[t] += E[t - 1] / (2.0 * p_k)
        if t < t_max:
            out[t] += (t + 1) * E[t + 1]


def expand_pair(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike) -> HermiteExpansion:
    """Products of all functions of two shells; f runs over (a, b) with b fastest, k over primitive pairs."""
    A, B = np.asarray(A, float), np.asarray(B, float)
    a_k, b_k = primitive_pairs(shell_a, shell_b)
    E_x, E_y, E_z = (expansion_coefficients(shell_a.l, shell_b.l, a_k, b_k, A[x] - B[x]) for x in range(3))
    i = np.array(cartesian_powers(shell_a.l))[:, None, None, :]
    j = np.array(cartesian_powers(shell_b.l))[None, :, None, :]
    order = shell_a.l + shell_b.l
    t = np.array(hermite_indices(order))[None, None, :, :]
    # E_tuv = E_t E_u E_v (HJO 9.5), for all cartesian components at once: (a, b, t, k)
    E_abtk = (
        E_x[i[..., 0], j[..., 0], t[..., 0]]
        * E_y[i[..., 1], j[..., 1], t[..., 1]]
        * E_z[i[..., 2], j[..., 2], t[..., 2]]
    )
    coincident = bool(np.all(A == B))
    E_abtk = to_components(shell_a, shell_b, E_abtk, coincident)
    H_abkt = contract(shell_a, shell_b, E_abtk).transpose(0, 1, 3, 2)
    return HermiteExpansion(
        order=order,
        zeta_k=a_k + b_k,
        weights_kn=np.stack([a_k, b_k], axis=1) / (a_k + b_k)[:, None],
        centres_nx=np.array([A, B]),
        H_fkt=H_abkt.reshape(-1, *H_abkt.shape[2:]),
    )


def expand_single(shell: Shell, A: ArrayLike) -> HermiteExpansion:
    """The functions of one shell: a pair whose partner is the constant 1, an s primitive of exponent zero."""
    # shell_matrix(0, ...) carries 1/sqrt(4 pi), which the coefficient removes
    one = Shell(shell.atom, 0, np.zeros(1), np.full((1, 1), np.sqrt(4.0 * np.pi)), shell.pure)
    return expand_pair(shell, A, one, A)


def primitive_pairs(shell_a: Shell, shell_b: Shell) -> tuple[Array, Array]:
    """Exponents a_k and b_k of all primitive pairs k, b fastest."""
    a_k = np.repeat(shell_a.exponents, len(shell_b.exponents))
    b_k = np.tile(shell_b.exponents, len(shell_a.exponents))
    return a_k, b_k


def to_components(shell_a: Shell, shell_b: Shell, values_ab: Array, coincident: bool) -> Array:
    """Cartesian components on the first two axes -> those of the shells (spherical or scaled cartesian).

    On one centre many spherical combinations vanish by symmetry (a pure d function has no r^2 part), and what
    is left of their sums is rounding error. Multiplied with potentials that may be larger than the surviving
    ones by (distance / extent)^l it would spoil the block, so it is replaced by the zero it stands for.
    """
    C_a = shell_matrix(shell_a.l, shell_a.pure)
    C_b = shell_matrix(shell_b.l, shell_b.pure)
    result: Array = np.einsum("ma,nb,ab...->mn...", C_a, C_b, values_ab, optimize=True)
    if coincident:
        size = np.einsum("ma,nb,ab...->mn...", abs(C_a), abs(C_b), abs(values_ab), optimize=True)
        result[abs(result) < 1e-13 * size] = 0.0
    return result


def contract(shell_a: Shell, shell_b: Shell, values_abtk: Array) -> Array:
    """Attach the coefficients of every column: components (a, b, t, k) -> functions (a, b, t, k)."""
    c_a, c_b = shell_a.coefficients, shell_b.coefficients
    c_ak = np.repeat(c_a.T, c_b.shape[0], axis=1)
    c_bk = np.tile(c_b.T, (1, c_a.shape[0]))
    result: Array = np.einsum("ck,dk,mntk->cmdntk", c_ak, c_bk, values_abtk)
    n_c, n_m, n_d, n_n = result.shape[:4]
    return result.reshape(n_c * n_m, n_d * n_n, *result.shape[4:])


def coulomb_derivatives(order: int, alpha: Array, X_x: Array) -> dict[tuple[int, int, int], Array]:
    """R_tuv(alpha, X), t + u + v <= order: derivatives of F_0(alpha X^2) with respect to X (axis first).

    R^n_000 = (-2 alpha)^n F_n and R^n_{t+1,u,v} = t R^{n+1}_{t-1,u,v} + X R^{n+1}_{tuv} (HJO 9.9.14, 9.9.18),
    level by level from n = order down to 0, so that only two levels are in memory.
    """
    F_n = boys(order, alpha * (X_x**2).sum(axis=0))
    above: dict[tuple[int, int, int], Array] = {}
    for n in range(order, -1, -1):
        level = {(0, 0, 0): (-2.0 * alpha) ** n * F_n[n]}
        for index in hermite_indices(order - n)[1:]:
            x = next(axis for axis in range(3) if index[axis] > 0)
            once = _lower(index, x)
            level[index] = X_x[x] * above[once]
            if index[x] > 1:
                level[index] += (index[x] - 1) * above[_lower(once, x)]
        above = level
    return above


def _lower(index: tuple[int, int, int], x: int) -> tuple[int, int, int]:
    t, u, v = index
    return (t - (x == 0), u - (x == 1), v - (x == 2))
