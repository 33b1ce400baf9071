"""Gradients of whole methods are derivatives of our own energy, in random directions; sums, torques and rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from scf_cases import basis
from tolerances import FORCE_DIFFERENCE

TIGHT: dict[str, Any] = {"gradient_tolerance": 1e-9, "energy_tolerance": 1e-12, "backend": "cpu"}
WATER = (["O", "H", "H"], np.array([[0.0, 0.0, 0.2], [0.6, 1.3, -0.9], [0.0, -1.5, -0.8]]))
GHOST = (["O", "H", "H", "@N"], np.concatenate([WATER[1], [[-1.0, 0.5, 3.0]]]))
COARSE = (20, 50)
"""A grid coarse enough for its errors to be visible."""
NO_FORCE = 1e-8
"""Largest sum of forces (Hartree/Bohr), and largest torque without a grid (Hartree)."""


def water(charge: int = 0) -> Molecule:
    return Molecule(*WATER, charge, 1 + abs(charge))


def displaced(mol: Molecule, change_ax: Any) -> Molecule:
    return Molecule(mol.symbols, mol.R_ax + change_ax, mol.charge, mol.multiplicity)


def energy(mol: Molecule, method: str, **options: Any) -> float:
    orbital = basis(options.pop("orbital", "6-31g"), mol)
    return cuanto.energy(mol, method, orbital, **{**TIGHT, **options}).energy


def gradient(mol: Molecule, method: str, **options: Any) -> Any:
    orbital = basis(options.pop("orbital", "6-31g"), mol)
    return cuanto.gradient(mol, method, orbital, **{**TIGHT, **options})


def slope(mol: Molecule, direction_ax: Any, method: str, step: float = 4e-3, **options: Any) -> float:
    """dE/dt along R + t direction, from central differences of two steps, extrapolated."""
    one, two = (
        (
            energy(displaced(mol, h * direction_ax), method, **options)
            - energy(displaced(mol, -h * direction_ax), method, **options)
        )
        / (2 * h)
        for h in (step, 2 * step)
    )
    return (4 * one - two) / 3


@pytest.mark.parametrize(
    ("mol", "method", "options"),
    [
        (water(), "svwn5", {"fitting": "j"}),
        (water(1), "upbe", {"fitting": "j"}),
        (water(), "b3lyp", {"fitting": "none"}),
        (water(), "tpss", {"fitting": "none"}),
        (water(1), "utpssh", {"fitting": "jk"}),
        (water(), "cam-b3lyp", {"fitting": "none"}),
        (water(), "pbe-d3bj", {"fitting": "j"}),
        (water(), "pbe0-d4", {"fitting": "jk"}),
        (water(1), "upbe", {"fitting": "j", "smearing": 0.02}),
        (water(), "pbe", {"fitting": "j", "field": (0.01, -0.02, 0.03)}),
        (water(), "pbe", {"fitting": "j", "grid": {"level": COARSE, "partition": "stratmann"}}),
        (Molecule(*GHOST), "rhf", {"fitting": "jk"}),
        (Molecule(*GHOST), "pbe", {"fitting": "j"}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_derivative_in_a_random_direction(mol: Molecule, method: str, options: dict[str, Any]) -> None:
    options = dict(options)
    if options["fitting"] != "none":
        options["auxbasis"] = "def2-universal-jkfit"
    if method != "rhf":
        options.setdefault("grid", COARSE)
    direction_ax = np.random.default_rng(3).normal(size=mol.R_ax.shape)
    direction_ax /= np.linalg.norm(direction_ax)
    found = gradient(mol, method, **options).gradient
    assert float((found * direction_ax).sum()) == pytest.approx(
        slope(mol, direction_ax, method, **options), abs=FORCE_DIFFERENCE
    )
    if "field" not in options:
        assert np.abs(found.sum(axis=0)).max() < NO_FORCE


@pytest.mark.parametrize(("method", "charge"), [("rhf", 0), ("uhf", 1), ("rohf", 1)])
@pytest.mark.parametrize("fitting", ["none", "jk"])
def test_without_a_grid_there_is_no_torque(method: str, charge: int, fitting: str) -> None:
    mol = water(charge)
    found = gradient(mol, method, fitting=fitting).gradient
    assert np.abs(found.sum(axis=0)).max() < NO_FORCE
    assert np.abs(np.cross(mol.R_ax, found).sum(axis=0)).max() < NO_FORCE


@pytest.mark.parametrize("method", ["svwn5", "pbe", "r2scan", "wb97x"])
def test_the_torque_of_a_grid_is_the_derivative_by_rotation(method: str) -> None:
    """Grids do not rotate with the molecule."""
    mol = water()
    axis_x = np.array([0.3, 0.5, -0.8]) / np.linalg.norm([0.3, 0.5, -0.8])
    options: dict[str, Any] = {"grid": COARSE, "fitting": "none"}
    found = gradient(mol, method, **options).gradient
    torque = float(axis_x @ np.cross(mol.R_ax, found).sum(axis=0))
    assert abs(torque) > 1e-6  # a coarse grid has one
    cross = np.cross(axis_x, np.eye(3)).T  # v -> axis x v

    def energy_of_rotated(angle: float) -> float:
        rotation = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        return energy(displaced(mol, mol.R_ax @ rotation.T - mol.R_ax), method, **options)

    one, two = ((energy_of_rotated(h) - energy_of_rotated(-h)) / (2 * h) for h in (4e-3, 8e-3))
    assert torque == pytest.approx((4 * one - two) / 3, abs=FORCE_DIFFERENCE)
    assert np.abs(found.sum(axis=0)).max() < NO_FORCE


def test_the_response_of_the_grid_can_be_left_out() -> None:
    """Without it, the sum of forces differs from zero by the error of the grid."""
    options: dict[str, Any] = {"fitting": "j", "auxbasis": "def2-universal-jkfit"}
    with_it, without = (
        gradient(water(), "pbe", grid={"level": COARSE, "response": response}, **options).gradient
        for response in (True, False)
    )
    assert 1e-6 < np.abs(with_it - without).max() < 1e-2
    assert np.abs(with_it.sum(axis=0)).max() < NO_FORCE < np.abs(without.sum(axis=0)).max()


@pytest.mark.parametrize(
    ("method", "precision", "error"),
    [("rhf", "mixed", 1e-7), ("b3lyp", "mixed", 1e-7), ("b3lyp", "single", 1e-4)],
)
def test_precision(method: str, precision: str, error: float) -> None:
    """Gradients in mixed precision, as the documentation says."""
    options: dict[str, Any] = {"fitting": "none", "gradient_tolerance": 1e-7}
    if method != "rhf":
        options["grid"] = COARSE
    double, other = (gradient(water(), method, precision=name, **options) for name in ("double", precision))
    assert other.converged
    assert 0.0 < np.abs(other.gradient - double.gradient).max() < error
