"""Extrapolated orbitals are exact for polynomials, orthonormal enough to start from, and save iterations."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.motion.extrapolation import Extrapolation, extrapolation_weights
from cuanto.motion.surface import Surface
from cuanto.scf import orthogonal
from cuanto.units import BOHR_IN_ANGSTROM

WATER = Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")
STRETCH = np.array([[0.0, 0.0, 0.0], [0.0, 0.02, -0.02], [0.0, 0.0, 0.01]])


@pytest.mark.parametrize("points", [1, 2, 3, 5])
def test_weights_continue_polynomials(points: int) -> None:
    weights, t = extrapolation_weights(points), -np.arange(1.0, points + 1)
    for degree in range(points):
        assert weights @ t**degree == pytest.approx(0.0**degree, abs=1e-12)


@pytest.mark.parametrize(("method", "multiplicity", "charge"), [("hf", 1, 0), ("uhf", 2, 1), ("rohf", 2, 1)])
def test_extrapolated_starts_need_fewer_iterations(method: str, multiplicity: int, charge: int) -> None:
    molecule = Molecule(WATER.symbols, WATER.R_ax, charge, multiplicity)
    counts = {}
    for points in (1, 4):
        surface = Surface(molecule, method, "sto-3g", points=points, backend="cpu")
        results = [surface.at(molecule.R_ax + k * STRETCH) for k in range(6)]
        counts[points] = sum(result.iterations for result in results[4:])
    alone = cuanto.gradient(results[-1].molecule, method, "sto-3g", backend="cpu")
    assert results[-1].energy == pytest.approx(alone.energy, abs=1e-9)
    assert counts[4] < counts[1]


def test_other_occupations_start_the_history_again() -> None:
    extrapolation = Extrapolation(3)
    for charge in (0, 2):
        molecule = Molecule(WATER.symbols, WATER.R_ax, charge)
        result = cuanto.energy(molecule, "hf", "sto-3g", backend="cpu")
        extrapolation.add(result)
        predicted = extrapolation.predict(result.basis)
        assert predicted is not None
        occupied = result.occupations > 0
        assert np.allclose(predicted.C_spm[0][:, occupied[0]], result.coefficients[0][:, occupied[0]], atol=1e-10)


@pytest.mark.parametrize("largest", [0, 100])
def test_orbitals_of_a_device(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extrapolated where the linear algebra runs: on the device itself, or on the host for few functions."""
    monkeypatch.setattr(orthogonal, "HOST_FUNCTIONS", largest)
    predicted = []
    for backend in ("cpu", "simt"):
        extrapolation = Extrapolation(2)
        for stretch in (0.7, 0.71):
            molecule = Molecule(["H", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, stretch / BOHR_IN_ANGSTROM]])
            result = cuanto.energy(molecule, "hf", "6-31g", backend=backend, gradient_tolerance=1e-9)
            extrapolation.add(result)
        found = extrapolation.predict(result.basis)
        assert found is not None
        predicted.append(found.C_spm[0][:, 0] * np.sign(found.C_spm[0][0, 0]))
    np.testing.assert_allclose(predicted[0], predicted[1], atol=1e-7)
