"""Properties of a density: dipole and quadrupole moment, atomic populations, total spin.

R. S. Mulliken, J. Chem. Phys. 23, 1833 (1955), doi:10.1063/1.1740588; P.-O. Loewdin, J. Chem. Phys. 18, 365 (1950),
doi:10.1063/1.1747632; A. D. Buckingham, Q. Rev. Chem. Soc. 13, 183 (1959), doi:10.1039/QR9591300183; A. Szabo and
N. S. Ostlund, Modern Quantum Chemistry (Dover, 1996).
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from cuanto import integrals
from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis, unit_norm_factors
from cuanto.system import Molecule
from cuanto.system.masses import dipole_origin


def dipole(molecule: Molecule, basis: Basis, D_spq: Any, backend: Backend) -> Array:
    """mu_x = sum_a Z_a R_ax - sum_pq D_pq <p|x|q> in e Bohr; for ions, about the centre of mass."""
    r_xpq = integrals.dipole(basis, backend=backend)
    electrons_x = backend.to_host((r_xpq * D_spq.sum(axis=0)).sum(axis=(1, 2)))
    origin_x = dipole_origin(molecule.nuclei.masses, molecule.R_ax, molecule.charge)
    return np.asarray(molecule.nuclei.charges @ molecule.R_ax - electrons_x - molecule.charge * origin_x)


def second_moments(molecule: Molecule, basis: Basis, D_spq: Any, backend: Backend) -> Array:
    """M_xy = sum_a Z_a R_ax R_ay - sum_pq D_pq <p|r_x r_y|q> in e Bohr^2, about the centre of mass."""
    r2_npq, D_pq = integrals.quadrupole(basis, backend=backend), D_spq.sum(axis=0)
    M_xy = np.zeros((3, 3))
    for n, (x, y) in enumerate(combinations_with_replacement(range(3), 2)):
        M_xy[x, y] = M_xy[y, x] = -float(backend.to_host((r2_npq[n] * D_pq).sum()))
    del r2_npq
    Z_a, R_ax = molecule.nuclei.charges, molecule.R_ax
    M_xy += (Z_a[:, None] * R_ax).T @ R_ax
    origin_x = dipole_origin(molecule.nuclei.masses, R_ax, 1)
    mu_x = dipole(molecule, basis, D_spq, backend)
    mu_x += molecule.charge * origin_x  # about the coordinate origin
    shift_xy = np.outer(mu_x, origin_x)
    return M_xy - shift_xy - shift_xy.T + molecule.charge * np.outer(origin_x, origin_x)


def quadrupole(moments_xy: Array) -> Array:
    """The traceless quadrupole moment (3 M - tr M) / 2 from second moments (Buckingham, eq. 2)."""
    return np.asarray(1.5 * moments_xy - 0.5 * np.trace(moments_xy) * np.eye(3))


def _sum_by_atom(basis: Basis, numbers_p: Array) -> Array:
    return np.asarray(np.bincount(basis.function_atoms, weights=numbers_p, minlength=len(basis.R_ax)), dtype=float)


def mulliken(basis: Basis, D_pq: Any, S_pq: Any) -> Array:
    """Number of electrons on each atom: sum of (DS)_pp over its functions."""
    return _sum_by_atom(basis, np.asarray((np.asarray(D_pq) * np.asarray(S_pq)).sum(axis=1)))


def loewdin(basis: Basis, D_pq: Any, S_pq: Any) -> Array:
    """Number of electrons on each atom: sum of (S^1/2 D S^1/2)_pp over its functions, which are normalised."""
    factor_p = unit_norm_factors(basis)
    S_pq, D_pq = S_pq * np.outer(factor_p, factor_p), D_pq / np.outer(factor_p, factor_p)
    s_m, U_pm = np.linalg.eigh(S_pq)
    root_pq = (U_pm * np.sqrt(np.maximum(s_m, 0.0))) @ U_pm.T
    return _sum_by_atom(basis, np.einsum("pq,qr,rp->p", root_pq, D_pq, root_pq, optimize=True))


def s_squared(D_spq: Any, S_pq: Any) -> float:
    """<S^2> = M (M + 1) + n_beta - tr(D_alpha S D_beta S) (Szabo, eq. 2.271); zero if D is the sum of both spins.

    With fractional occupations this is not an average over determinants, but <S^2> of their mean density.
    """
    if len(D_spq) == 1:
        return 0.0
    alpha, beta = (np.asarray(D_pq) @ S_pq for D_pq in D_spq)
    n_alpha, n_beta = float(np.trace(alpha)), float(np.trace(beta))
    spin = 0.5 * (n_alpha - n_beta)
    return spin * (spin + 1.0) + n_beta - float(np.sum(alpha * beta.T))
