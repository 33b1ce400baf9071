"""Atomic charges from the density: R. S. Mulliken, J. Chem. Phys. 23, 1833 (1955), doi:10.1063/1.1740588, and
P.-O. Loewdin, J. Chem. Phys. 18, 365 (1950), doi:10.1063/1.1747632."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.basis.ordering import unit_norm_factors

Array = NDArray[np.float64]


def atom_of_function(basis: Basis) -> NDArray[np.int64]:
    """The atom of every function."""
    return np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])


def _by_atom(basis: Basis, numbers_p: Array) -> Array:
    return np.asarray(np.bincount(atom_of_function(basis), weights=numbers_p, minlength=len(basis.R_ax)), dtype=float)


def mulliken(basis: Basis, D_pq: Any, S_pq: Any) -> Array:
    """Electrons of every atom: sum of (DS)_pp."""
    return _by_atom(basis, np.asarray((np.asarray(D_pq) * np.asarray(S_pq)).sum(axis=1)))


def loewdin(basis: Basis, D_pq: Any, S_pq: Any) -> Array:
    """Electrons of every atom: sum of (S^1/2 D S^1/2)_pp, with every function normalised to one."""
    factor_p = unit_norm_factors(basis)
    S_pq, D_pq = S_pq * np.outer(factor_p, factor_p), D_pq / np.outer(factor_p, factor_p)
    s_m, U_pm = np.linalg.eigh(S_pq)
    root_pq = (U_pm * np.sqrt(np.maximum(s_m, 0.0))) @ U_pm.T
    return _by_atom(basis, np.einsum("pq,qr,rp->p", root_pq, D_pq, root_pq, optimize=True))
