"""Symmetry reduces the number of displacements without changing derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto.arrays import Array
from cuanto.motion.displacements import DisplacementPlan, independent_directions
from cuanto.system.symmetry import LOOSE_TOLERANCE, find_operations, identity
from vibration_cases import rotated

STEP = 1e-3


def slopes(kinds: list[str], R_ax: Array) -> tuple[Array, Array]:
    """Gradient of a pair potential, and a dipole moment."""
    charge = 1 + 2.5 * np.array([sorted(set(kinds)).index(kind) for kind in kinds])
    r_abx = R_ax[:, None] - R_ax[None]
    distance = np.linalg.norm(r_abx, axis=2) + np.eye(len(R_ax))
    force = (np.sin(distance) - charge[:, None] * charge / distance**2) / distance * (1 - np.eye(len(R_ax)))
    dipole = ((charge**1.5)[:, None, None] * r_abx / distance[..., None] ** 2).sum(axis=(0, 1))
    return (force[..., None] * r_abx).sum(axis=1), dipole


def derivatives(kinds: list[str], R_ax: Array, tolerance: float | None) -> tuple[int, Array, Array]:
    operations = find_operations(kinds, R_ax, LOOSE_TOLERANCE if tolerance is None else tolerance)
    plan = DisplacementPlan(len(R_ax), operations if tolerance is None else operations[:1], STEP)
    found = {k: slopes(kinds, one.apply(R_ax, STEP)) for k, one in enumerate(plan.displacements)}
    return len(found), *plan.derivatives(found)[:2]


@pytest.mark.parametrize(
    ("name", "needed"), [("H2O", 7), ("NH3", 6), ("CH4", 4), ("CO2", 3), ("C2H4", 6), ("H2O2", 12), ("C6H6", 6)]
)
def test_equivalent_displacements_are_left_out(name: str, needed: int) -> None:
    kinds, R_ax = rotated(name)
    few, H_pq, P_px = derivatives(kinds, R_ax, None)
    many, all_pq, all_px = derivatives(kinds, R_ax, LOOSE_TOLERANCE)
    assert few <= needed and many == 6 * len(R_ax)
    scale = np.abs(all_pq).max()
    assert np.abs(H_pq - all_pq).max() < 2e-3 * scale  # the geometries are symmetric to 1e-3 Bohr only
    assert np.abs(P_px - all_px).max() < 2e-3 * np.abs(all_px).max()


def test_directions_of_a_site() -> None:
    assert len(independent_directions([np.eye(3)])) == 3
    mirror = np.diag([1.0, 1.0, -1.0])
    found = independent_directions([np.eye(3), mirror])
    assert len(found) == 2
    images = np.array([R_xy @ one for one in found for R_xy in (np.eye(3), mirror)])
    assert np.linalg.matrix_rank(images) == 3
    assert len(independent_directions([np.eye(3), -np.eye(3)])) == 3


def test_a_quadratic_surface_has_its_own_hessian() -> None:
    A = np.random.default_rng(2).normal(size=(6, 6))
    H = A + A.T
    plan = DisplacementPlan(2, [identity(2)], 0.005)
    found = plan.hessian(np.ones((2, 3)), lambda R_ax: (H @ R_ax.reshape(-1)).reshape(2, 3))
    np.testing.assert_allclose(found, H, atol=1e-10)
