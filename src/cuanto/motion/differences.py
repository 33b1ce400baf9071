"""A Hessian from central differences of gradients, the initial one of a search for a transition state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuanto.arrays import Array

DISPLACEMENT = 0.005
"""Bohr: the error of the difference is below 1e-4 of the force constants."""


def hessian_by_differences(R_ax: Array, gradient: Callable[[Array], Array], shift: float = DISPLACEMENT) -> Array:
    """d2E/dR2 in Hartree/Bohr^2, with rows and columns x, y, z of the first atom, then of the second, and so on."""
    rows = []
    for k in range(R_ax.size):
        moved = np.zeros(R_ax.size)
        moved[k] = shift
        there, back = (gradient(R_ax + sign * moved.reshape(R_ax.shape)) for sign in (1.0, -1.0))
        rows.append((there - back).reshape(-1) / (2.0 * shift))
    H_xx = np.array(rows)
    symmetric: Array = (H_xx + H_xx.T) / 2.0
    return symmetric
