"""The slow, obvious twin of the grid's kernels, written from the papers: the oracle of the tests.

Cells: A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033; R. E. Stratmann, G. E. Scuseria, M. J. Frisch,
Chem. Phys. Lett. 257, 213 (1996), doi:10.1016/0009-2614(96)00600-8.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.grid.rules import bragg_slater_radii

Array = NDArray[np.float64]


def cell_shares(r_gx: Array, atom_g: NDArray[np.int32], R_ax: Array, numbers: Array, partition: str) -> Array:
    """Share of each point that belongs to its own atom."""
    r_ag = np.array([np.linalg.norm(r_gx - R, axis=1) for R in R_ax])
    radii = bragg_slater_radii()[np.asarray(numbers, dtype=int)]
    P_ag = np.ones_like(r_ag)
    for i in range(len(R_ax)):
        for j in range(len(R_ax)):
            if i == j:
                continue
            mu = (r_ag[i] - r_ag[j]) / np.linalg.norm(R_ax[i] - R_ax[j])
            if partition == "stratmann":
                P_ag[i] *= _stratmann(mu)
            else:
                ratio = {"becke": np.sqrt(radii[i] / radii[j]), "becke-bragg": radii[i] / radii[j]}.get(partition, 1.0)
                P_ag[i] *= _becke(mu, float(ratio))
    return np.asarray(P_ag[atom_g, np.arange(len(r_gx))] / P_ag.sum(axis=0))


def _becke(mu: Array, ratio: float) -> Array:
    u = (ratio - 1) / (ratio + 1)  # eq. A6
    a = np.clip(u / (u**2 - 1), -0.5, 0.5)  # eqs. A5, A3
    nu = mu + a * (1 - mu**2)  # eq. A2
    for _ in range(3):  # eqs. 19, 20
        nu = 1.5 * nu - 0.5 * nu**3
    return np.asarray(0.5 * (1 - nu))


def _stratmann(mu: Array) -> Array:
    m = np.clip(mu / 0.64, -1, 1)
    g = (35 * m - 35 * m**3 + 21 * m**5 - 5 * m**7) / 16  # eq. 14
    return np.asarray(0.5 * (1 - g))


def functions_at(basis: Basis, r_gx: Array) -> Array:
    """All functions and their gradients at points: [value, x, y, z][point, function]."""
    blocks = []
    for shell in basis.shells:
        d_gx = r_gx - basis.R_ax[shell.atom]
        e_gk = np.exp(-np.outer((d_gx**2).sum(axis=1), shell.exponents))
        R_gq = e_gk @ shell.coefficients
        T_gq = e_gk @ (-2 * shell.exponents[:, None] * shell.coefficients)
        S_gm, slope_xgm = _polynomials(shell.l, shell.pure, d_gx)
        values = [np.einsum("gq,gm->gqm", R_gq, S_gm)]
        for x in range(3):
            slope = np.einsum("gq,gm->gqm", R_gq, slope_xgm[x])
            values.append(slope + np.einsum("gq,g,gm->gqm", T_gq, d_gx[:, x], S_gm))
        blocks.append(np.array(values).reshape(4, len(r_gx), -1))
    return np.concatenate(blocks, axis=2)


def _polynomials(l: int, pure: bool, d_gx: Array) -> tuple[Array, Array]:
    """The angular parts of a shell and their gradients, from monomials."""
    powers = np.array(cartesian_powers(l))
    x_gcx = d_gx[:, None, :] ** powers
    slopes = []
    for x in range(3):
        lowered = x_gcx.copy()
        lowered[:, :, x] = powers[:, x] * d_gx[:, None, x] ** np.maximum(powers[:, x] - 1, 0)
        slopes.append(lowered.prod(axis=2) @ shell_matrix(l, pure).T)
    return np.asarray(x_gcx.prod(axis=2) @ shell_matrix(l, pure).T), np.array(slopes)
