"""Spin-free X2C as the papers write it: the Dirac equation with its metric, X = B A^-1, R, and R^T L R.

W. Liu and D. Peng, J. Chem. Phys. 131, 031104 (2009), doi:10.1063/1.3159445, eqs. 5-11.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]


def hamiltonian(S: Array, T: Array, V: Array, W: Array, c: float) -> Array:
    """h in the basis of S, T, V, W."""
    n, nothing = len(S), np.zeros_like(S)
    H = np.block([[V, T], [T, W / (4 * c**2) - T]])
    _, Y = scipy.linalg.eigh(H, np.block([[S, nothing], [nothing, T / (2 * c**2)]]))
    X = Y[n:, n:] @ np.linalg.inv(Y[:n, n:])
    L = V + X.T @ T + T @ X + X.T @ (W / (4 * c**2) - T) @ X
    root = scipy.linalg.sqrtm(S).real
    inverse = np.linalg.inv(root)
    metric = inverse @ (S + X.T @ T @ X / (2 * c**2)) @ inverse
    R = inverse @ np.linalg.inv(scipy.linalg.sqrtm(metric).real) @ root
    return np.asarray(R.T @ L @ R)
