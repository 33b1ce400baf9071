"""The electrostatic potential against integrals of one point charge at a time, and its limits."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto import Molecule, integrals
from cuanto.backends.base import get_backend
from cuanto.methods import GaussianResult
from cuanto.properties import potential
from cuanto.properties.potential import potential_at, potential_on_grid
from cuanto.properties.volume import Box

WATER = "3\n\nO 0.3 0 0.117\nH 0 0.757 -0.469\nH 0.1 -0.757 -0.469\n"


@pytest.fixture(scope="module")
def water() -> GaussianResult:
    found = cuanto.energy(Molecule.from_string(WATER), "hf", "def2-svp", backend="cpu")
    assert isinstance(found, GaussianResult)
    return found


def expected(found: GaussianResult, r_x: np.ndarray) -> float:
    """sum_a Z_a / |r - R_a| + tr(D V) with the attraction V by a unit charge at r."""
    V_pq = integrals.nuclear(found.basis, charges=[1.0], positions=[r_x], backend="cpu")
    nuclei = found.molecule.nuclei.charges / np.linalg.norm(found.molecule.R_ax - r_x, axis=1)
    return float(nuclei.sum() + (V_pq * found.density.sum(axis=0)).sum())


@pytest.mark.parametrize("device", ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_points_against_integrals(water: GaussianResult, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near and far from the nuclei, in several portions."""
    monkeypatch.setattr(potential, "POINTS_AT_ONCE", 7)
    backend = get_backend(device)
    near = np.random.default_rng(1).normal(size=(14, 3)) * 3
    r_gx = np.concatenate([near, water.molecule.R_ax + 1e-3, [[60.0, 0.0, 0.0]]])
    D_pq = backend.to_device(water.density.sum(axis=0))
    found = potential_at(water.molecule, water.basis, D_pq, r_gx, backend)
    np.testing.assert_allclose(found, [expected(water, r_x) for r_x in r_gx], rtol=1e-12, atol=1e-10)


def test_far_away_it_is_that_of_the_moments(water: GaussianResult) -> None:
    """V = mu . r / r^3 + r . Q r / r^5 + ..., about the centre of mass."""
    mass_a = water.molecule.nuclei.masses
    origin_x = mass_a @ water.molecule.R_ax / mass_a.sum()
    for unit in np.eye(3):
        r_x = 200.0 * unit
        V = potential_at(water.molecule, water.basis, water.density.sum(axis=0), (origin_x + r_x)[None], water.backend)
        moments = water.dipole @ unit / 200**2 + unit @ water.quadrupole @ unit / 200**3
        assert V[0] == pytest.approx(moments, abs=5e-9)


def test_a_box_has_the_order_of_its_axes(water: GaussianResult) -> None:
    box = Box.around(water.molecule.R_ax, 2.5, 2.0)
    D_pq = water.density.sum(axis=0)
    values = potential_on_grid(water.molecule, water.basis, D_pq, box, water.backend)
    place = (1, 2, 0)
    r_x = np.array([axis[i] for axis, i in zip(box.axes, place, strict=True)])
    assert values.shape == box.shape and values[place] == pytest.approx(expected(water, r_x), abs=1e-10)
