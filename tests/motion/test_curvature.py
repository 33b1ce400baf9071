"""Directions along which an energy falls, for energies whose minima and saddles are known."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto.arrays import Array
from cuanto.motion.curvature import MAX_DIRECTIONS, falls_along_some_direction


class Quartic:
    """Energy with some curvatures at the origin along random directions, and a quartic term."""

    def __init__(self, curvatures: list[float], seed: int) -> None:
        n = len(curvatures)
        self.Q_xm = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
        self.hessian_xx = self.Q_xm @ np.diag(curvatures) @ self.Q_xm.T
        self.calls = 0

    def gradient(self, R_ax: Array) -> Array:
        self.calls += 1
        r_x = R_ax.reshape(-1)
        return np.asarray(self.hessian_xx @ r_x + 0.1 * r_x**3).reshape(R_ax.shape)


@pytest.mark.parametrize("seed", range(5))
def test_at_a_minimum_the_energy_falls_nowhere(seed: int) -> None:
    energy = Quartic([0.0, 0.0, 0.0, 0.002, 0.03, 0.5], seed)
    first_ax = np.random.default_rng(seed + 10).normal(size=(2, 3))
    assert not falls_along_some_direction(energy.gradient, np.zeros((2, 3)), first_ax)
    assert energy.calls <= 2 * MAX_DIRECTIONS


@pytest.mark.parametrize("seed", range(5))
def test_the_followed_mode_of_a_saddle_takes_two_gradients(seed: int) -> None:
    energy = Quartic([-0.001, 0.0, 0.0, 0.02, 0.3, 0.5], seed)
    assert falls_along_some_direction(energy.gradient, np.zeros((2, 3)), energy.Q_xm[:, 0].reshape(2, 3))
    assert energy.calls == 2


@pytest.mark.parametrize("seed", range(5))
def test_another_direction_is_found_from_a_wrong_one(seed: int) -> None:
    energy = Quartic([-0.05, 0.0, 0.0, 0.02, 0.3, 0.5], seed)
    wrong_x = energy.Q_xm[:, 4] + 0.1 * energy.Q_xm[:, 0]
    assert falls_along_some_direction(energy.gradient, np.zeros((2, 3)), wrong_x.reshape(2, 3))
    assert 2 < energy.calls <= 2 * MAX_DIRECTIONS
