"""One-electron integrals by Gauss-Hermite quadrature, which is exact for products of Gaussians.

It shares no code with the kernels: `cuanto integrals --backend reference` uses it to check them. For small molecules.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite import hermgauss

from cuanto.arrays import Array
from cuanto.basis import Basis, Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix


def overlap_kinetic_dipole(basis: Basis) -> tuple[Array, Array, Array]:
    """S_pq, T_pq and r_xpq."""
    out = np.zeros((5, basis.nbf, basis.nbf))
    placed = [
        (shell, basis.R_ax[shell.atom], slice(first, first + shell.nbf))
        for shell, first in zip(basis.shells, basis.offsets, strict=True)
    ]
    for a, A, rows in placed:
        for b, B, columns in placed:
            out[:, rows, columns] = _block(a, A, b, B)
    return out[0], out[1], out[2:]


def _block(a: Shell, A: Array, b: Shell, B: Array) -> Array:
    """Overlap, kinetic energy and dipole moment [operator, p, q] of two shells."""
    s, t, r = _one_axis(a, A, b, B)
    i, j = (np.array(cartesian_powers(shell.l)) for shell in (a, b))
    S, T, R = (
        [values[x][i[:, None, x], j[None, :, x]] for x in range(3)] for values in (s, t, r)
    )  # of every axis, [component of a, component of b, primitive of a, primitive of b]
    products = [
        S[0] * S[1] * S[2],
        T[0] * S[1] * S[2] + S[0] * T[1] * S[2] + S[0] * S[1] * T[2],
        *(R[x] * S[(x + 1) % 3] * S[(x + 2) % 3] for x in range(3)),
    ]
    C_a, C_b = (shell_matrix(shell.l, shell.pure) for shell in (a, b))
    block = np.einsum(
        "mi,nj,oijkl,kc,ld->ocmdn", C_a, C_b, np.array(products), a.coefficients, b.coefficients, optimize=True
    )
    return np.asarray(block.reshape(5, a.nbf, b.nbf))


def _one_axis(a: Shell, A: Array, b: Shell, B: Array) -> Array:
    """Overlap, kinetic energy and position along each axis: [operator, axis, power of a, power of b, primitives]."""
    alpha, beta = a.exponents[:, None], b.exponents[None, :]
    p = alpha + beta
    node, weight = hermgauss((a.l + b.l) // 2 + 2)  # exact up to the degree l_a + l_b + 2
    AB = (A - B)[:, None, None]
    P = (alpha * A[:, None, None] + beta * B[:, None, None]) / p
    w_xkln = (np.exp(-alpha * beta / p * AB**2) / np.sqrt(p))[..., None] * weight
    r_xkln = P[..., None] + node / np.sqrt(p)[..., None]
    i, j, beta = np.arange(a.l + 1), np.arange(b.l + 1), beta[..., None, None]
    y = (r_xkln - B[:, None, None, None])[..., None]
    bra = (r_xkln - A[:, None, None, None])[..., None] ** i
    # The second derivative of y^j exp(-beta y^2), divided by the exponential.
    second = (4 * beta**2 * y**2 - 2 * beta * (2 * j + 1)) * y**j + j * (j - 1) * y ** np.maximum(j - 2, 0)
    ket = np.array([y**j, -0.5 * second, r_xkln[..., None] * y**j])
    return np.asarray(np.einsum("xkln,xklni,oxklnj->oxijkl", w_xkln, bra, ket, optimize=True))
