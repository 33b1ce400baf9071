"""Forces of three-centre integrals from derivatives of functions: d/dA raises and lowers the power of x - A."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers
from oracles.integrals.hermite import (
    Array,
    HermiteExpansion,
    contract,
    expand_pair,
    expand_single,
    expansion_coefficients,
    hermite_indices,
    primitive_pairs,
    to_components,
)
from oracles.integrals.matrices import BasisLike
from oracles.integrals.two_electron import coulomb


def derivative_coefficients(l_a: int, l_b: int, a_k: Array, b_k: Array, X_AB: float) -> Array:
    """E[i, j, t, k] of d/dA along one axis: 2 a E^(i+1) - i E^(i-1), up to t = i + j + 1."""
    E = expansion_coefficients(l_a + 1, l_b, a_k, b_k, X_AB)
    slope = 2.0 * a_k * E[1:]
    for i in range(1, l_a + 1):
        slope[i] -= i * E[i - 1]
    return slope


def expand_derivative(shell_a: Shell, A: ArrayLike, shell_b: Shell, B: ArrayLike, axis: int) -> HermiteExpansion:
    """Expand d/dA, along an axis, of the products of all functions of two shells."""
    A, B = np.asarray(A, float), np.asarray(B, float)
    a_k, b_k = primitive_pairs(shell_a, shell_b)
    order = shell_a.l + shell_b.l + 1
    E_x = []
    for x in range(3):
        make = derivative_coefficients if x == axis else expansion_coefficients
        result = make(shell_a.l, shell_b.l, a_k, b_k, A[x] - B[x])
        E_x.append(np.pad(result, [(0, 0), (0, 0), (0, order + 1 - result.shape[2]), (0, 0)]))
    i = np.array(cartesian_powers(shell_a.l))[:, None, None, :]
    j = np.array(cartesian_powers(shell_b.l))[None, :, None, :]
    t = np.array(hermite_indices(order))[None, None, :, :]
    E_abtk = np.ones(())
    for x in range(3):
        E_abtk = E_abtk * E_x[x][i[..., x], j[..., x], t[..., x]]
    H_abkt = contract(shell_a, shell_b, to_components(shell_a, shell_b, E_abtk, False)).transpose(0, 1, 3, 2)
    plain = expand_pair(shell_a, A, shell_b, B)
    return replace(plain, order=order, H_fkt=H_abkt.reshape(-1, *H_abkt.shape[2:]))


def three_centre_gradient(basis: BasisLike, aux: BasisLike, Gamma_pqP: Array, omega: float | None = None) -> Array:
    """sum_pqP Gamma_pqP d(pq|P)/dR of a symmetric Gamma; forces on fitting functions by translational invariance."""
    gradient = np.zeros_like(basis.R_ax)
    slices = [slice(int(i), int(j)) for i, j in pairwise([*basis.offsets, basis.nbf])]
    aux_slices = [slice(int(i), int(j)) for i, j in pairwise([*aux.offsets, aux.nbf])]
    fitting = [expand_single(shell, aux.R_ax[shell.atom]) for shell in aux.shells]
    for a, p in zip(basis.shells, slices, strict=True):
        for b, q in zip(basis.shells, slices, strict=True):
            for x in range(3):
                bra = expand_derivative(a, basis.R_ax[a.atom], b, basis.R_ax[b.atom], x)
                for shell, P, ket in zip(aux.shells, aux_slices, fitting, strict=True):
                    Gamma = Gamma_pqP[p, q, P].reshape(-1, shell.nbf)
                    force = 2.0 * float((Gamma * coulomb(bra, ket, omega)).sum())
                    gradient[a.atom, x] += force
                    gradient[shell.atom, x] -= force
    return gradient


def hermite_forces(E_kftc: Array, Gamma_kfP: Array, W_ktP: Array, raised_xt: ArrayLike) -> tuple[Array, Array]:
    """Derivatives with respect to the centre of each pair and to A - B for every fitting function, [pair, axis, P]."""
    h_kctP = np.einsum("kftc,kfP->kctP", E_kftc, Gamma_kfP)
    by_centre = np.stack([np.einsum("ktP,ktP->kP", h_kctP[:, 0], W_ktP[:, list(up)]) for up in raised_xt], axis=1)
    return by_centre, np.einsum("kxtP,ktP->kxP", h_kctP[:, 1:], W_ktP[:, : h_kctP.shape[2]])
