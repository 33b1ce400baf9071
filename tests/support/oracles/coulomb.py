"""Coulomb and exchange matrices and forces: from the tensor of all integrals, and J from Hermite densities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike

from cuanto.basis.shell import Shell
from oracles.integrals.hermite import Array, HermiteExpansion, coulomb_derivatives, expand_pair, hermite_indices
from oracles.integrals.matrices import BasisLike, eri_4c_tensor
from oracles.integrals.two_electron import eri_4c


def coulomb_matrix(basis: BasisLike, D_pq: Array, omega: float | None = None) -> Array:
    """J_pq = sum_rt (pq|rt) D_rt"""
    J_pq: Array = np.einsum("pqrt,rt->pq", eri_4c_tensor(basis, omega), D_pq)
    return J_pq


def exchange_matrix(basis: BasisLike, D_pq: Array, omega: float | None = None) -> Array:
    """K_pr = sum_qt (pq|rt) D_qt"""
    K_pr: Array = np.einsum("pqrt,qt->pr", eri_4c_tensor(basis, omega), D_pq)
    return K_pr


def exchange_forces(basis: BasisLike, D_spq: Array, omega: float | None = None, step: float = 2e-3) -> Array:
    """d/dR of -1/2 sum_s sum_pqrt D_spr D_sqt (pq|rt) by differences of fourth order."""

    def energy(R_ax: Array) -> float:
        moved = SimpleNamespace(shells=basis.shells, offsets=basis.offsets, nbf=basis.nbf, R_ax=R_ax)
        return -0.5 * float(np.einsum("pqrt,spr,sqt->", eri_4c_tensor(moved, omega), D_spq, D_spq, optimize=True))

    return differences(energy, basis.R_ax, step)


def quartet_derivatives(shells: Sequence[Shell], R_nx: ArrayLike, Gamma: Array, step: float = 2e-3) -> Array:
    """d/dR of sum_abcd Gamma_abcd (ab|cd) with respect to four centres, by differences of fourth order."""

    def energy(R: Array) -> float:
        placed = [x for pair in zip(shells, R, strict=True) for x in pair]
        return float((eri_4c(*placed) * Gamma).sum())

    return differences(energy, np.array(R_nx, dtype=float), step)


def differences(function: Callable[[Array], float], R_ax: Array, step: float) -> Array:
    """Derivatives with respect to all coordinates, from four points each."""
    found = np.zeros_like(R_ax)
    for index in product(*map(range, R_ax.shape)):
        for steps, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved = R_ax.copy()
            moved[index] += steps * step
            found[index] += weight / (12.0 * step) * function(moved)
    return found


def hermite_coulomb_matrix(basis: BasisLike, D_pq: Array) -> Array:
    """J without integrals: density -> Hermite densities of all primitive pairs -> their potentials -> J."""
    ends = [*basis.offsets, basis.nbf]
    aos = [slice(int(first), int(last)) for first, last in pairwise(ends)]
    R = [basis.R_ax[shell.atom] for shell in basis.shells]
    pairs = [
        (aos[i], aos[j], expand_pair(a, R[i], b, R[j]))
        for i, a in enumerate(basis.shells)
        for j, b in enumerate(basis.shells)
    ]
    # H_kt = sum_f H_fkt D_f: the density of primitive pair k
    densities = [(pair, np.einsum("fkt,f->kt", pair.H_fkt, D_pq[p, q].reshape(-1))) for p, q, pair in pairs]
    J_pq = np.zeros((basis.nbf, basis.nbf))
    for p, q, bra in pairs:
        V_kt = sum((hermite_potential(bra, ket, H_kt) for ket, H_kt in densities), np.zeros(1))
        J_pq[p, q] = np.einsum("fkt,kt->f", bra.H_fkt, V_kt).reshape(J_pq[p, q].shape)
    return J_pq


def hermite_potential(bra: HermiteExpansion, ket: HermiteExpansion, H_lt: Array) -> Array:
    """V_kt: potential of the Hermite density H_lt of the ket in every Hermite Gaussian of the bra (HJO 9.9.32)."""
    p_kl, q_kl = bra.zeta_k[:, None], ket.zeta_k[None, :]
    P_kx, Q_lx = bra.weights_kn @ bra.centres_nx, ket.weights_kn @ ket.centres_nx
    X_xkl = P_kx.T[:, :, None] - Q_lx.T[:, None, :]
    R = coulomb_derivatives(bra.order + ket.order, p_kl * q_kl / (p_kl + q_kl), X_xkl)
    theta_kl = 2.0 * np.pi**2.5 / (p_kl * q_kl * np.sqrt(p_kl + q_kl))
    V_kt = np.zeros((len(bra.zeta_k), len(hermite_indices(bra.order))))
    for column, (t, u, v) in enumerate(hermite_indices(bra.order)):
        for s, (i, j, k) in enumerate(hermite_indices(ket.order)):
            # derivatives at Q and at P differ in sign
            V_kt[:, column] += (-1) ** (i + j + k) * (theta_kl * R[t + i, u + j, v + k]) @ H_lt[:, s]
    return V_kt
