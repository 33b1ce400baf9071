"""Hessians from differences."""

from __future__ import annotations

import numpy as np

from cuanto.motion.differences import hessian_by_differences


def test_a_quadratic_surface_has_its_own_hessian() -> None:
    A = np.random.default_rng(2).normal(size=(6, 6))
    H = A + A.T
    found = hessian_by_differences(np.ones((2, 3)), lambda R_ax: (H @ R_ax.reshape(-1)).reshape(2, 3))
    np.testing.assert_allclose(found, H, atol=1e-10)
