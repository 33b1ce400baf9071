"""Overlap, kinetic, nuclear-attraction and dipole blocks of two shells (HJO 9.3 and 9.9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers
from oracles.integrals.hermite import (
    Array,
    HermiteExpansion,
    contract,
    coulomb_derivatives,
    expand_pair,
    expansion_coefficients,
    hermite_indices,
    primitive_pairs,
    to_components,
)


def overlap(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike) -> Array:
    """<a|b>, shape (functions of a, functions of b)."""
    pair = expand_pair(shell_a, A, shell_b, B)
    # only Lambda_000 has a non-vanishing integral, (pi/zeta)^(3/2)
    return (pair.H_fkt[:, :, 0] @ _charge(pair)).reshape(shell_a.nbf, shell_b.nbf)


def dipole(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """<a|r - origin|b>, shape (3, functions of a, functions of b)."""
    pair = expand_pair(shell_a, A, shell_b, B)
    P_kx = pair.weights_kn @ (pair.centres_nx - np.asarray(origin, float))
    indices = hermite_indices(pair.order)
    charge_k = _charge(pair)
    blocks = []
    for x in range(3):
        # integral of x Lambda_tuv: P_x for (000), 1 for the first derivative along x, 0 otherwise
        moment_f = pair.H_fkt[:, :, 0] @ (charge_k * P_kx[:, x])
        if pair.order > 0:
            first = indices.index(tuple(int(axis == x) for axis in range(3)))
            moment_f = moment_f + pair.H_fkt[:, :, first] @ charge_k
        blocks.append(moment_f.reshape(shell_a.nbf, shell_b.nbf))
    return np.stack(blocks)


def quadrupole(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike) -> Array:
    """<a|r_x r_y|b> for xx, xy, xz, yy, yz, zz, shape (6, functions of a, functions of b)."""
    pair = expand_pair(shell_a, A, shell_b, B)
    P_kx, charge_k = pair.weights_kn @ pair.centres_nx, _charge(pair)
    indices = hermite_indices(pair.order)
    blocks = []
    for x, y in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        # The integral of r_x r_y Lambda_t is the derivative of order t of P_x P_y + delta_xy / 2p with respect to P.
        moment_f = 0.0
        for t, powers in enumerate(indices):
            value_k = np.zeros_like(charge_k)
            if sum(powers) == 0:
                value_k = P_kx[:, x] * P_kx[:, y] + (0.5 / pair.zeta_k if x == y else 0.0)
            elif sum(powers) == 1:
                value_k = (powers[x] * P_kx[:, y]) + (powers[y] * P_kx[:, x])
            elif sum(powers) == 2:
                axes = [axis for axis in range(3) for _ in range(powers[axis])]
                value_k = np.full_like(charge_k, float(axes == [x, y]) * (2.0 if x == y else 1.0))
            moment_f = moment_f + pair.H_fkt[:, :, t] @ (charge_k * value_k)
        blocks.append(np.asarray(moment_f).reshape(shell_a.nbf, shell_b.nbf))
    return np.stack(blocks)


def nuclear(
    shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike, charges: ArrayLike, positions: ArrayLike
) -> Array:
    """sum_C -q_C <a|1/|r - C||b> for any point charges, shape (functions of a, functions of b)."""
    pair = expand_pair(shell_a, A, shell_b, B)
    q_c = np.asarray(charges, float).reshape(-1)
    C_cx = np.asarray(positions, float).reshape(-1, 3)
    # P_k - C as the weighted mean of A - C and B - C: exact when the charge sits on a tight function
    X_xkc = np.einsum("kn,ncx->xkc", pair.weights_kn, pair.centres_nx[:, None, :] - C_cx[None, :, :])
    R = coulomb_derivatives(pair.order, np.broadcast_to(pair.zeta_k[:, None], X_xkc.shape[1:]), X_xkc)
    V_f = np.zeros(len(pair.H_fkt))
    for column, index in enumerate(hermite_indices(pair.order)):
        # (2 pi / zeta) sum_tuv E_tuv R_tuv (HJO 9.9.32)
        V_f += pair.H_fkt[:, :, column] @ (2.0 * np.pi / pair.zeta_k * (R[index] @ -q_c))
    return V_f.reshape(shell_a.nbf, shell_b.nbf)


def kinetic(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike) -> Array:
    """<a|-nabla^2/2|b>, shape (functions of a, functions of b)."""
    A, B = np.asarray(A, float), np.asarray(B, float)
    a_k, b_k = primitive_pairs(shell_a, shell_b)
    along = [_overlap_and_kinetic(shell_a.l, shell_b.l, a_k, b_k, A[x] - B[x]) for x in range(3)]
    i = np.array(cartesian_powers(shell_a.l))[:, None, :]
    j = np.array(cartesian_powers(shell_b.l))[None, :, :]
    S_xabk = [S[i[..., x], j[..., x]] for x, (S, _) in enumerate(along)]
    T_xabk = [T[i[..., x], j[..., x]] for x, (_, T) in enumerate(along)]
    # T = T_x S_y S_z + S_x T_y S_z + S_x S_y T_z (HJO 9.3.37)
    T_abk = T_xabk[0] * S_xabk[1] * S_xabk[2] + S_xabk[0] * T_xabk[1] * S_xabk[2] + S_xabk[0] * S_xabk[1] * T_xabk[2]
    T_abk = to_components(shell_a, shell_b, T_abk, bool(np.all(A == B)))
    result: Array = contract(shell_a, shell_b, T_abk[:, :, None, :]).sum(axis=(2, 3))
    return result


def _overlap_and_kinetic(l_a: int, l_b: int, a_k: Array, b_k: Array, X_AB: float) -> tuple[Array, Array]:
    """One-dimensional overlaps S[i, j, k] and kinetic integrals T[i, j, k]."""
    p_k = a_k + b_k
    S = np.sqrt(np.pi / p_k) * expansion_coefficients(l_a + 2, l_b + 2, a_k, b_k, X_AB)[:, :, 0]
    T = np.empty((l_a + 1, l_b + 1, len(p_k)))
    for i in range(l_a + 1):
        for j in range(l_b + 1):
            on_a = _second_derivative(i, a_k, S[:, j])
            on_b = _second_derivative(j, b_k, S[i, :])
            # equal by Hermiticity; on the more diffuse function the terms cancel less
            T[i, j] = -0.5 * np.where(a_k < b_k, on_a, on_b)
    return S[: l_a + 1, : l_b + 1], T


def _second_derivative(j: int, b_k: Array, S: Array) -> Array:
    """S_j of (d/dx)^2 x^j exp(-b x^2) = (4 b^2 x^(j+2) - 2b(2j+1) x^j + j(j-1) x^(j-2)) exp(-b x^2)."""
    result: Array = 4.0 * b_k**2 * S[j + 2] - 2.0 * b_k * (2 * j + 1) * S[j]
    if j > 1:
        result = result + j * (j - 1) * S[j - 2]
    return result


def _charge(pair: HermiteExpansion) -> Array:
    return np.asarray((np.pi / pair.zeta_k) ** 1.5)
