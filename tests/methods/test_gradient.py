"""Gradients of whole methods: against PySCF, against finite differences, and cases that are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.errors import ConvergenceError, InputError
from paths import DATA
from scf_cases import basis, molecule

TIGHT = {"gradient_tolerance": 1e-9, "energy_tolerance": 1e-12}
WATER = "3\n\nO 0 0 0.1\nH 0.3 0.7 -0.5\nH 0 -0.8 -0.4\n"
STEP = 2e-3
"""Step of the fourth-order finite differences, Bohr."""


def rows(fitting: str, method: str) -> list[Any]:
    found = json.loads((DATA / "gradients.json").read_text())
    mine = [row for row in found if row["fitting"].startswith(fitting) and row["method"] == method]
    return [pytest.param(row, id=f"{row['molecule']}-{row.get('functional', 'hf')}") for row in mine]


def differences(molecule: Molecule, atom: int, axis: int, **options: Any) -> float:
    """dE/dR by fourth-order central differences."""
    energies = []
    for k in (-2, -1, 1, 2):
        R_ax = molecule.R_ax.copy()
        R_ax[atom, axis] += k * STEP
        moved = Molecule(molecule.symbols, R_ax, molecule.charge, molecule.multiplicity)
        energies.append(cuanto.energy(moved, backend="cpu", **TIGHT, **options).energy)
    return float(np.dot([1, -8, 8, -1], energies)) / (12 * STEP)


@pytest.mark.parametrize("row", rows("RI", "RHF"))
def test_fitted_hartree_fock_against_pyscf(row: dict[str, Any]) -> None:
    mol = molecule(row["molecule"])
    options = {"auxbasis": basis(row["auxbasis"], mol), "fitting": "jk", "backend": "cpu", **TIGHT}
    found = cuanto.gradient(mol, "hf", basis(row["basis"], mol), **options)
    assert found.energy == pytest.approx(row["energy"], abs=1e-8)
    assert np.abs(found.gradient - row["gradient"]).max() < 2e-8  # the convergence error of PySCF's SCF
    assert np.abs(found.gradient.sum(axis=0)).max() < 1e-10


@pytest.mark.parametrize(
    ("method", "charge", "multiplicity", "more"),
    [
        ("rhf", 0, 1, {}),
        ("uhf", 1, 2, {}),
        ("rohf", 1, 2, {}),
        ("uhf", 1, 2, {"smearing": 0.02}),
        ("rhf", 0, 1, {"field": (0.01, -0.02, 0.03)}),
        ("rhf", 0, 1, {"point_charges": ([0.5, -0.3], [[3.0, 1.0, 0.0], [-2.0, -3.0, 1.0]])}),
    ],
    ids=["rhf", "uhf", "rohf", "smearing", "field", "charges"],
)
def test_fitted_hartree_fock_against_differences(
    method: str, charge: int, multiplicity: int, more: dict[str, Any]
) -> None:
    water = Molecule.from_string(WATER)
    water = Molecule(water.symbols, water.R_ax, charge, multiplicity)
    options = {"method": method, "basis": "6-31g", "auxbasis": "def2-universal-jkfit", "fitting": "jk", **more}
    found = cuanto.gradient(water, backend="cpu", **TIGHT, **options)
    for atom, axis in ((0, 1), (1, 0)):
        assert found.gradient[atom, axis] == pytest.approx(differences(water, atom, axis, **options), abs=2e-8)
    total = found.gradient.sum(axis=0) + found.charges_gradient.sum(axis=0)
    assert np.abs(total).max() < 1e-9 or "field" in more


@pytest.mark.parametrize("row", rows("none", "RHF"))
def test_direct_hartree_fock_against_pyscf(row: dict[str, Any]) -> None:
    mol = molecule(row["molecule"])
    found = cuanto.gradient(mol, "hf", basis(row["basis"], mol), fitting="none", backend="cpu", **TIGHT)
    assert found.energy == pytest.approx(row["energy"], abs=1e-8)
    assert np.abs(found.gradient - row["gradient"]).max() < 2e-9
    assert np.abs(found.gradient.sum(axis=0)).max() < 2e-9  # not exactly zero, because quartets are neglected


@pytest.mark.parametrize("method", ["uhf", "rohf"])
def test_direct_hartree_fock_against_differences(method: str) -> None:
    water = Molecule.from_string(WATER)
    cation = Molecule(water.symbols, water.R_ax, 1, 2)
    options = {"method": method, "basis": "6-31g", "fitting": "none"}
    found = cuanto.gradient(cation, backend="cpu", **TIGHT, **options)
    for atom, axis in ((0, 1), (1, 0)):
        assert found.gradient[atom, axis] == pytest.approx(differences(cation, atom, axis, **options), abs=2e-8)


def test_forces_on_point_charges() -> None:
    water, charges = Molecule.from_string(WATER), [0.5, -0.3]
    positions = np.array([[3.0, 1.0, 0.0], [-2.0, -3.0, 1.0]])
    options: dict[str, Any] = {"basis": "6-31g", "auxbasis": "def2-universal-jkfit", "backend": "cpu", **TIGHT}
    found = cuanto.gradient(water, "hf", point_charges=(charges, positions), **options)
    energies = []
    for k in (-2, -1, 1, 2):
        moved = positions + k * STEP * np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
        energies.append(cuanto.energy(water, "hf", point_charges=(charges, moved), **options).energy)
    assert found.charges_gradient[0, 1] == pytest.approx(np.dot([1, -8, 8, -1], energies) / (12 * STEP), abs=1e-8)


def test_the_gradient_of_a_finished_result() -> None:
    """The gradient is computed on first use, without another SCF."""
    water = Molecule.from_string(WATER)
    options: dict[str, Any] = {"backend": "cpu", "gradient_tolerance": 1e-7}
    result = cuanto.energy(water, "hf", "6-31g", **options)
    with_energy = cuanto.gradient(water, "hf", "6-31g", **options)
    assert np.abs(result.gradient - with_energy.gradient).max() < 1e-12
    assert result.charges_gradient.shape == (0, 3)


@pytest.mark.parametrize("method", ["hf", "pm6"])
def test_a_gradient_without_convergence_needs_an_option(method: str) -> None:
    water = Molecule.from_string(WATER)
    options: dict[str, Any] = {"backend": "cpu", "max_iterations": 2} | ({} if method == "pm6" else {"basis": "6-31g"})
    with pytest.raises(ConvergenceError, match="unconverged_gradient"):
        cuanto.gradient(water, method, **options)
    found = cuanto.gradient(water, method, unconverged_gradient=True, **options)
    assert not found.converged and found.keywords["unconverged_gradient"]
    assert found.gradient.shape == (3, 3) and np.isfinite(found.gradient).all()


@pytest.mark.parametrize(
    ("method", "charge", "multiplicity", "spherical"),
    [("rhf", 0, 1, True), ("uhf", 1, 2, False), ("rohf", 1, 2, True)],
    ids=["rhf", "uhf-cartesian", "rohf"],
)
def test_linearly_dependent_functions_that_are_left_out(
    method: str, charge: int, multiplicity: int, spherical: bool
) -> None:
    """The space of the orbitals moves with the atoms."""
    water = Molecule.from_string(WATER)
    water = Molecule(water.symbols, water.R_ax, charge, multiplicity)
    settings: dict[str, Any] = {"method": method, "fitting": "none", "linear_dependence": 0.1, "backend": "cpu"}

    def energy(step: float) -> float:
        R_ax = water.R_ax.copy()
        R_ax[1, 0] += step
        moved = Molecule(water.symbols, R_ax, charge, multiplicity)
        return cuanto.energy(moved, basis=basis("6-31g*", moved, spherical), **TIGHT, **settings).energy

    found = cuanto.gradient(water, basis=basis("6-31g*", water, spherical), **TIGHT, **settings)
    assert any("linearly dependent" in note for note in found.notes)
    slope = np.dot([1, -8, 8, -1], [energy(k * STEP) for k in (-2, -1, 1, 2)]) / (12 * STEP)
    assert found.gradient[1, 0] == pytest.approx(slope, abs=2e-8)
    assert np.abs(found.gradient.sum(axis=0)).max() < 1e-8


def test_raised_eigenvalues_of_a_metric_are_refused() -> None:
    """Every fitting function twice."""
    water = Molecule.from_string(WATER)
    aux = cuanto.Basis("def2-universal-jkfit", water)
    twice = cuanto.Basis.from_shells([*aux.shells, *aux.shells], aux.R_ax)
    with pytest.raises(InputError, match=r"linearly dependent .* use fitting='none'"):
        cuanto.gradient(water, "hf", "6-31g", auxbasis=twice, backend="cpu")


@pytest.mark.parametrize("row", [row for row in rows("none", "RKS") if row.id.startswith("water")])
def test_kohn_sham_against_pyscf(row: dict[str, Any]) -> None:
    """The gradient includes the response of the grid."""
    mol = molecule(row["molecule"])
    options = {"fitting": "none", "grid": (99, 590), "backend": "cpu", "gradient_tolerance": 1e-8}
    found = cuanto.gradient(mol, row["functional"].lower(), basis(row["basis"], mol), **options)
    assert found.energy == pytest.approx(row["energy"], abs=1e-6)
    assert np.abs(found.gradient - row["gradient_with_grid_response"]).max() < 1e-6
    assert np.abs(found.gradient.sum(axis=0)).max() < 1e-9


@pytest.mark.parametrize(("method", "charge", "multiplicity"), [("wb97x", 0, 1), ("ur2scan", 1, 2)])
def test_kohn_sham_against_differences(method: str, charge: int, multiplicity: int) -> None:
    """Range separation, where the long-range metric leaves out functions; kinetic energy densities of two spins."""
    water = Molecule.from_string(WATER)
    water = Molecule(water.symbols, water.R_ax, charge, multiplicity)
    options: dict[str, Any] = {"method": method, "basis": "def2-svp", "grid": (40, 194)}
    found = cuanto.gradient(water, backend="cpu", **TIGHT, **options)
    assert found.gradient[1, 0] == pytest.approx(differences(water, 1, 0, **options), abs=1e-7)
    assert np.abs(found.gradient.sum(axis=0)).max() < 1e-8
