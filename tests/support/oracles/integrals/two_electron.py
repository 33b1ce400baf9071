"""Coulomb blocks (P|Q), (ab|P) and (ab|cd): the interaction of two Hermite expansions (HJO 9.9.33).

With `omega` the operator is erf(omega r)/r: F_m(T) becomes theta^(2m+1) F_m(theta^2 T) with theta^2 = omega^2 /
(omega^2 + alpha), alpha = pq / (p + q) (Gill and Adamson, Chem. Phys. Lett. 261, 105 (1996),
doi:10.1016/0009-2614(96)00931-1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cuanto.basis.shell import Shell
from oracles.integrals.hermite import (
    Array,
    HermiteExpansion,
    coulomb_derivatives,
    expand_pair,
    expand_single,
    hermite_indices,
)


def eri_2c(shell_P: Shell, P: ArrayLike, shell_Q: Shell, Q: ArrayLike, omega: float | None = None) -> Array:
    """(P|Q), shape (functions of P, functions of Q)."""
    return coulomb(expand_single(shell_P, P), expand_single(shell_Q, Q), omega)


def eri_3c(
    shell_a: Shell,
    A: ArrayLike,
    shell_b: Shell,
    B: ArrayLike,
    shell_P: Shell,
    P: ArrayLike,
    omega: float | None = None,
) -> Array:
    """(ab|P), shape (functions of a, of b, of P)."""
    block = coulomb(expand_pair(shell_a, A, shell_b, B), expand_single(shell_P, P), omega)
    return block.reshape(shell_a.nbf, shell_b.nbf, shell_P.nbf)


def eri_4c(
    shell_a: Shell,
    A: ArrayLike,
    shell_b: Shell,
    B: ArrayLike,
    shell_c: Shell,
    C: ArrayLike,
    shell_d: Shell,
    D: ArrayLike,
    omega: float | None = None,
) -> Array:
    """(ab|cd), shape (functions of a, of b, of c, of d)."""
    block = coulomb(expand_pair(shell_a, A, shell_b, B), expand_pair(shell_c, C, shell_d, D), omega)
    return block.reshape(shell_a.nbf, shell_b.nbf, shell_c.nbf, shell_d.nbf)


def coulomb(bra: HermiteExpansion, ket: HermiteExpansion, omega: float | None = None) -> Array:
    """(f|g) for all functions f of the bra and g of the ket."""
    p_kl, q_kl = bra.zeta_k[:, None], ket.zeta_k[None, :]
    alpha_kl = p_kl * q_kl / (p_kl + q_kl)
    prefactor_kl = 2.0 * np.pi**2.5 / (p_kl * q_kl * np.sqrt(p_kl + q_kl))
    if omega is not None:
        theta_kl = omega / np.sqrt(omega**2 + alpha_kl)
        alpha_kl, prefactor_kl = theta_kl**2 * alpha_kl, theta_kl * prefactor_kl
    # P_k - Q_l as the weighted mean of differences between nuclei, which is free of cancellation
    between_mnx = bra.centres_nx[:, None, :] - ket.centres_nx[None, :, :]
    X_xkl = np.einsum("km,ln,mnx->xkl", bra.weights_kn, ket.weights_kn, between_mnx)
    R = coulomb_derivatives(bra.order + ket.order, alpha_kl, X_xkl)
    bra_indices = hermite_indices(bra.order)
    potential_tkg = np.zeros((len(bra_indices), len(bra.zeta_k), len(ket.H_fkt)))
    for column, (t, u, v) in enumerate(hermite_indices(ket.order)):
        # potential of the ket functions at each Lambda of the bra; derivatives at Q and at P differ in sign
        sign = (-1) ** (t + u + v)
        R_tkl = np.stack([R[i + t, j + u, k + v] for i, j, k in bra_indices])
        potential_tkg += (sign * prefactor_kl * R_tkl) @ ket.H_fkt[:, :, column].T
    result: Array = np.einsum("fkt,tkg->fg", bra.H_fkt, potential_tkg, optimize=True)
    return result
