"""Oracle of the kernels of the grid: plain NumPy, written from the papers.

Cells: A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033; R. E. Stratmann, G. E. Scuseria, M. J. Frisch,
Chem. Phys. Lett. 257, 213 (1996), doi:10.1016/0009-2614(96)00600-8.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.grid.rules import bragg_slater_radii

Array = NDArray[np.float64]


def cell_shares(r_gx: Array, atom_g: NDArray[np.int32], R_ax: Array, numbers: Array, partition: str) -> Array:
    """Share of each point that belongs to its own atom."""
    r_ag = np.array([np.sqrt(((r_gx - R) ** 2).sum(axis=1)) for R in R_ax])
    radii = bragg_slater_radii()[np.asarray(numbers, dtype=int)]
    P_ag = np.ones_like(r_ag)
    for i in range(len(R_ax)):
        for j in range(len(R_ax)):
            if i == j:
                continue
            mu = (r_ag[i] - r_ag[j]) / np.sqrt(((R_ax[i] - R_ax[j]) ** 2).sum())
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
    m = mu / 0.64
    m = np.where(abs(m.real) < 1, m, np.sign(m.real))
    g = (35 * m - 35 * m**3 + 21 * m**5 - 5 * m**7) / 16  # eq. 14
    return np.asarray(0.5 * (1 - g))


def weighted_share_gradient(
    f_g: Array, r_gx: Array, atom_g: NDArray[np.int32], R_ax: Array, numbers: Array, partition: str
) -> Array:
    """sum_g f_g d ln(share of its atom)/dR_ax of points that move with their atoms, by complex steps of every atom."""
    gradient, step = np.zeros(R_ax.shape), 1e-30
    for a, x in np.ndindex(R_ax.shape):
        R, r = R_ax.astype(complex), r_gx.astype(complex)
        R[a, x] += 1j * step
        r[atom_g == a, x] += 1j * step
        share = cell_shares(r, atom_g, R, numbers, partition)
        gradient[a, x] = f_g @ (share.imag / share.real) / step
    return gradient


def second_derivatives_at(basis: Basis, r_gx: Array) -> Array:
    """Second derivatives of functions: [xx, xy, xz, yy, yz, zz][point, function], by complex steps of gradients."""
    step, found = 1e-30, []
    for x, y in combinations_with_replacement(range(3), 2):
        moved = r_gx.astype(complex)
        moved[:, x] += 1j * step
        found.append(functions_at(basis, moved)[1 + y].imag / step)
    return np.array(found)


def energy_forces(chi: Array, second: Array, D_spq: Array, v_scg: Array) -> Array:
    """Effect of moving functions on the energy: -dE/d(position of function p) at each point, [axis, point, function].

    `v_scg`: potentials of a quadrature, weights included (`functionals.evaluate.XCPotential`).
    """
    pairs = {pair: k for k, pair in enumerate(combinations_with_replacement(range(3), 2))}
    forces = np.zeros((3, *chi.shape[1:]))
    for D_pq, v_cg in zip(D_spq, v_scg, strict=True):
        v = np.zeros((5, chi.shape[1]))
        v[: len(v_cg)] = v_cg
        X, Y = chi[0] @ D_pq, [chi[c] @ D_pq for c in (1, 2, 3)]
        by_value = 4 * v[0][:, None] * X + 2 * sum(v[1 + c][:, None] * Y[c] for c in range(3))
        for x in range(3):
            forces[x] += chi[1 + x] * by_value
            for c in range(3):
                by_slope = 2 * v[1 + c][:, None] * X + 4 * v[4][:, None] * Y[c]
                forces[x] += second[pairs[min(x, c), max(x, c)]] * by_slope
    return forces


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
