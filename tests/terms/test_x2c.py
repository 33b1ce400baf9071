"""Scalar relativity against PySCF's sfx2c1e (stored values), in every kind of method, and what it is combined with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.terms import CoreHamiltonian, Surroundings
from cuanto.terms.x2c import OneElectronModel
from records import record
from scf_cases import WATER, basis
from tolerances import CPU_CUDA, FORCE_CPU_CUDA
from x2c_cases import GRADIENT, Row, calculate, energy_tolerance, gradient_difference, key, references

SAMPLE = [pytest.param(row, id=key(row)) for row in references() if row["sample"]]


def water(name: str = "sto-3g", **options: Any) -> Any:
    mol = cuanto.Molecule.from_string(WATER)
    return cuanto.energy(mol, "hf", basis(name, mol), fitting="none", **options)


@pytest.mark.parametrize("row", SAMPLE)
def test_sample(row: Row) -> None:
    found = calculate(row)
    assert found.energy == pytest.approx(row["energy"], abs=energy_tolerance(row))
    assert (gradient_difference(row, found) or 0.0) < GRADIENT


@pytest.mark.gpu
@pytest.mark.parametrize("row", SAMPLE)
def test_sample_on_a_gpu(row: Row) -> None:
    cpu, gpu = (calculate(row, backend) for backend in ("cpu", "cuda"))
    assert gpu.energy == pytest.approx(cpu.energy, abs=max(CPU_CUDA, 1e-12 * abs(cpu.energy)))
    assert gpu.energy == pytest.approx(row["energy"], abs=energy_tolerance(row))
    if row["gradient"] is not None:
        assert np.abs(cpu.gradient - gpu.gradient).max() < FORCE_CPU_CUDA
        assert (gradient_difference(row, gpu) or 0.0) < GRADIENT


def test_the_stored_comparison_is_complete() -> None:
    """Every row was compared, and agrees; every element from H to Rn has one, and every molecule has a gradient."""
    stored: dict[str, Any] = {row["row"]: row for row in record("x2c_cpu")["rows"]}
    assert set(stored) == {key(row) for row in references()}
    assert len({row["geometry"] for row in references() if row["geometry"].endswith(" 0 0 0")}) == 86
    for row in references():
        made = stored[key(row)]
        assert made["converged"] and abs(made["energy_difference"]) < energy_tolerance(row)
        assert (row["gradient"] is None) == (made["gradient_difference"] is None) == (";" not in row["geometry"])
        assert (made["gradient_difference"] or 0.0) < GRADIENT
    molecules = {(row["molecule"], row["nuclear_model"]) for row in references() if row["gradient"] is not None}
    assert len(molecules) >= 13
    assert molecules >= {(name, "gaussian") for name in ("water", "hydrogen bromide", "hydrogen iodide")}


def test_without_relativity_in_the_limit() -> None:
    """A large speed of light; the difference is of the order of 1/c^2."""
    plain = water().energy
    far, near = (water(relativity="x2c", speed_of_light=c).energy - plain for c in (2e3, 4e2))
    assert abs(far) < 2e-4 and near / far == pytest.approx(25.0, rel=1e-2)


def test_guesses() -> None:
    """Atoms with relativity, and the core Hamiltonian."""
    sad, core = (water(relativity="x2c", guess=guess) for guess in ("sad", "core"))
    assert sad.converged and core.converged and sad.energy == pytest.approx(core.energy, abs=1e-8)
    assert len(sad.history) <= len(core.history)


def test_surroundings_are_not_transformed() -> None:
    """Field and point charges add the same matrices with and without relativity."""
    around: dict[str, Any] = {"field": (0.0, 0.01, 0.0), "point_charges": ([0.3], [[0.0, 0.0, 6.0]])}
    shifts = [
        water(relativity=relativity, **around).energy - water(relativity=relativity).energy
        for relativity in ("none", "x2c")
    ]
    assert shifts[0] == pytest.approx(shifts[1], abs=1e-4)


def test_gaussian_nuclei_without_relativity() -> None:
    """Weaker attraction near the nucleus: a little higher."""
    assert 1e-6 < water(nuclear_model="gaussian").energy - water().energy < 1e-4
    assert OneElectronModel(gaussian_nuclei=True).exponents(np.array([8]))[0] == pytest.approx(5.8631436655e8, rel=1e-9)


def test_the_result_says_that_x2c_was_used() -> None:
    found = water(relativity="x2c", nuclear_model="gaussian")
    assert {"relativity": "x2c", "nuclear_model": "gaussian"}.items() <= found.keywords.items()
    assert any("x2c" in note.lower() for note in found.notes)
    assert "relativity" not in water().keywords


def test_a_heavy_element_without_relativity_is_noted() -> None:
    mol = cuanto.Molecule(["I", "H"], [[0, 0, 0], [0, 0, 3.0]])
    common = (mol, basis("x2c-svpall", mol), Surroundings(), get_backend("cpu"), None)
    (note,) = CoreHamiltonian(*common).notes()
    assert note.startswith("WARNING: I without relativity: use relativity='x2c'")
    (note,) = CoreHamiltonian(*common, OneElectronModel(137.0)).notes()
    assert note == "relativity: spin-free X2C in 112 decontracted functions, point nuclei"
    assert not any("without relativity" in note for note in water().notes)


def test_core_potentials_are_refused() -> None:
    """Core potentials include relativity already; ghost atoms have no potential and are accepted."""
    mol = cuanto.Molecule(["I", "H"], [[0, 0, 0], [0, 0, 3.0]])
    with pytest.raises(InputError, match="relativity='x2c' is for all-electron basis sets: core potentials include"):
        cuanto.energy(mol, "hf", basis({"I": "lanl2dz", "H": "sto-3g"}, mol), relativity="x2c", backend="cpu")
    ghost = cuanto.Molecule(["He", "Gh-I"], [[0, 0, 0], [0, 0, 5.0]])
    orbital = basis({"I": "lanl2dz", "He": "sto-3g"}, ghost)
    found = cuanto.energy(ghost, "hf", orbital, relativity="x2c", fitting="none", backend="cpu")
    assert found.converged


def test_other_methods_and_unknown_values_are_refused() -> None:
    mol = cuanto.Molecule.from_string(WATER)
    with pytest.raises(InputError, match="does not apply to pm6"):
        cuanto.energy(mol, "pm6", relativity="x2c")
    with pytest.raises(InputError, match="unknown relativity 'dkh'"):
        cuanto.energy(mol, "hf", "sto-3g", relativity="dkh")
