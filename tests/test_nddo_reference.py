"""All molecules of the reference with all methods: heats of formation, properties, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.methods import SemiempiricalResult
from cuanto.semiempirical.constants import BOHR, HARTREE, HARTREE_IN_KCAL, RESCALE
from nddo_cases import METHODS, NAMES, TIGHT, molecule, moved, run, values

HEAT, MOPAC_HEAT, MOPAC_SERIES = 2e-6, 1.5e-3, 1.2e-6
"""kcal/mol: against the independent program, against MOPAC, and against MOPAC with its own series."""
IN_KCAL = HARTREE_IN_KCAL / BOHR * RESCALE
"""A gradient in kcal/mol/Angstrom."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_heats_and_properties(name: str, method: str) -> None:
    known, result = values(name, method), run(molecule(name), method, **TIGHT)
    assert result.converged
    assert abs(result.heat_of_formation - known["heat_of_formation_kcal_mol"]) < HEAT
    assert abs(result.heat_of_formation - values(name, method, "mopac")["heat_of_formation_kcal_mol"]) < MOPAC_HEAT
    assert result.electronic_energy * HARTREE == pytest.approx(known["electronic_energy_eV"], abs=1e-6)
    assert result.energies["core repulsion"] * HARTREE == pytest.approx(known["core_core_energy_eV"], abs=1e-6)
    assert np.abs(result.charges - known["charges"]).max() < 2e-6
    assert np.abs(result.dipole_debye - known["dipole_vector_debye"]).max() < 5e-6
    eps = result.orbital_energies[0] * HARTREE
    assert np.abs(eps - known["alpha_orbital_energies_eV"]).max() < 2e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_heats_with_the_series_of_mopac(name: str, method: str) -> None:
    result = run(molecule(name), method, mopac_compatible=True, **TIGHT)
    assert abs(result.heat_of_formation - values(name, method, "mopac")["heat_of_formation_kcal_mol"]) < MOPAC_SERIES


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["O2", "CH3", "C2H2", "CH3SH", "ICl", "SF6", "NH4+", "glycine", "ribavirin"])
def test_gradients(name: str, method: str) -> None:
    known = np.array(values(name, method)["gradient_kcal_mol_A"]).reshape(-1, 3)
    found = run(molecule(name), method, energy_tolerance=1e-12, gradient_tolerance=1e-8).gradient * IN_KCAL
    assert np.abs(found - known).max() < 2e-5
    assert np.abs(found.sum(axis=0)).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "method"), [("CH3", "AM1"), ("CH3SH", "PM6"), ("ICl", "PM6"), ("C2H2", "PM6"), ("H3PO4", "PM6")]
)
def test_gradients_are_those_of_finite_differences(name: str, method: str) -> None:
    mol = molecule(name)
    tight = {"energy_tolerance": 1e-12, "gradient_tolerance": 1e-9}
    gradient, step = run(mol, method, **tight).gradient, 1e-3
    for a, x in ((0, 0), (1, 2), (mol.natom - 1, 1)):
        energies = []
        for sign in (1, -1):
            R_ax = mol.R_ax.copy()
            R_ax[a, x] += sign * step
            energies.append(run(Molecule(mol.symbols, R_ax, mol.charge, mol.multiplicity), method, **tight).energy)
        assert gradient[a, x] == pytest.approx((energies[0] - energies[1]) / (2 * step), abs=1e-6)


def test_corrections_are_differentiated() -> None:
    """A stretched triple bond, and a nitrogen that is nearly planar."""
    from cuanto.semiempirical.corrections import corrections

    for symbols, R_ax in (
        (["C", "C"], np.array([[0.0, 0.0, 0.0], [0.3, 0.2, 1.21]])),
        (["N", "C", "C", "H"], np.array([[0, 0, 0.05], [1.4, 0, 0], [-0.7, 1.2, 0.1], [-0.5, -0.9, 0]])),
    ):
        energy, gradient = corrections(symbols, R_ax)
        assert energy != 0.0
        for a, x in np.ndindex(gradient.shape):
            shift = np.zeros_like(R_ax)
            shift[a, x] = 1e-5
            slope = (corrections(symbols, R_ax + shift)[0] - corrections(symbols, R_ax - shift)[0]) / 2e-5
            assert gradient[a, x] == pytest.approx(slope, rel=1e-7, abs=1e-7)
    assert corrections(["N", "H", "H", "C"], np.eye(4, 3))[0] == 0.0


@pytest.mark.parametrize(("name", "method"), [("glycine", "MNDO"), ("H3PO4", "PM6"), ("CH3I", "PM6"), ("ICl", "PM6")])
def test_invariance_under_rotation_and_translation(name: str, method: str) -> None:
    tight = {"energy_tolerance": 1e-12, "gradient_tolerance": 1e-8}
    here, there = run(molecule(name), method, **tight), run(moved(molecule(name), 3), method, **tight)
    assert abs(here.energy - there.energy) * HARTREE < 1e-10
    assert np.linalg.norm(here.dipole) == pytest.approx(np.linalg.norm(there.dipole), abs=1e-6)
    assert np.abs(here.bond_orders - there.bond_orders).max() < 1e-6


def test_bond_orders_and_valences() -> None:
    orders = run(molecule("C2H4"), "PM6").bond_orders
    symbols = molecule("C2H4").symbols
    carbons = [a for a, symbol in enumerate(symbols) if symbol == "C"]
    assert orders[carbons[0], carbons[1]] == pytest.approx(2.0, abs=0.06)
    assert orders[carbons[0], carbons[0]] == pytest.approx(4.0, abs=0.1)
    radical = run(molecule("O2"), "PM6")
    assert radical.bond_orders[0, 1] == pytest.approx(2.0, abs=0.01)
    assert radical.s_squared == pytest.approx(2.0, abs=0.01)


def test_the_common_interface() -> None:
    mol = molecule("water_01")
    result = cuanto.energy(mol, "PM6", backend="cpu")
    assert isinstance(result, SemiempiricalResult)
    assert result.heat_of_formation == pytest.approx(values("water_01", "PM6")["heat_of_formation_kcal_mol"], abs=1e-4)
    schema = result.to_qcschema()
    assert schema["success"] and schema["extras"]["cuanto"]["heat_of_formation_kcal_mol"] == result.heat_of_formation
    again = cuanto.energy(mol, "pm6", backend="cpu", guess=result)
    assert again.iterations <= 3 and again.energy == pytest.approx(result.energy, abs=1e-10)
    spins = cuanto.energy(mol, "upm6", backend="cpu")
    assert len(spins.occupations) == 2 and spins.energy == pytest.approx(result.energy, abs=1e-9)
    with pytest.raises(InputError, match="field is not for pm6: leave it out"):
        cuanto.energy(mol, "pm6", field=[0, 0, 0.1])
    with pytest.raises(InputError, match="starts from neutral atoms or from a semiempirical result"):
        cuanto.energy(mol, "pm6", guess="core", backend="cpu")
    with pytest.raises(InputError, match="unknown method 'pm8'"):
        cuanto.energy(mol, "pm8")
