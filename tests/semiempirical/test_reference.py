"""All molecules of the reference with all methods: heats of formation, properties, gradients."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.methods import SemiempiricalResult
from cuanto.semiempirical.constants import BOHR, HARTREE, HARTREE_IN_KCAL, RESCALE
from cuanto.units import BOHR_IN_ANGSTROM
from nddo_cases import METHODS, NAMES, TIGHT, molecule, moved, numerical_gradient, reference, run, values

ALLOWED = reference()["meta"]["recommended_tolerances"]
"""Tolerances from `meta` of the reference: kcal/mol, Debye, kcal/mol/Angstrom, eV."""
OURS, MOPAC = ALLOWED["vs_independent"], ALLOWED["vs_mopac"]
MOPAC_SERIES = 1.2e-6
"""Tolerance of heats against MOPAC if both use its truncated series, kcal/mol."""
IN_KCAL = HARTREE_IN_KCAL / BOHR * RESCALE
"""Factor that converts a gradient from Hartree/Bohr to kcal/mol/Angstrom."""
SLOPE, STEP = 8e-10, 5e-3
"""Tolerance of gradients against finite differences, Hartree/Bohr, and the step of these, Bohr."""
DISPLACED = {"energy_tolerance": 1e-11, "gradient_tolerance": 1e-7}
"""Options of the energies in finite differences."""
SMALL_MOLECULES = {
    "HCN": (1, [[-0.95, 0.35, 0.1], [0, 0, 0], [1.13, 0.1, 0.2]]),
    "OSO": (1, [[-1.1, 0.8, 0.1], [0, 0, 0], [1.2, 0.75, 0.2]]),
    "PN": (1, [[0.1, 0.2, 0.3], [0.9, 1.0, 1.3]]),
    "ICl": (1, [[0.1, 0.2, 0.3], [1.4, 1.2, 1.9]]),
    "BrF": (1, [[0.1, 0.2, 0.3], [1.1, 1.2, 1.4]]),
    "NHHHH+": (1, [[0, 0, 0], [0.6, 0.65, 0.55], [-0.6, -0.5, 0.6], [-0.65, 0.6, -0.55], [0.5, -0.6, -0.7]]),
    "HCI": (3, [[-0.95, 0.45, 0.1], [0, 0, 0], [1.9, 0.6, 0.4]]),
    "SO": (3, [[0.1, 0.2, 0.3], [0.9, 1.0, 1.3]]),
    "PF": (3, [[0.1, 0.2, 0.3], [1.0, 1.0, 1.4]]),
    "NCl": (3, [[0.1, 0.2, 0.3], [1.0, 1.0, 1.5]]),
    "NBr": (3, [[0.1, 0.2, 0.3], [1.0, 1.2, 1.6]]),
}
"""Multiplicities and positions (Angstrom, general orientation): every element once restricted, once unrestricted."""
CORRECTED = {
    "CCHH": [[0, 0, 0], [0.72, 0.75, 0.7], [-0.6, -0.65, -0.55], [1.3, 1.4, 1.35]],
    "NHFF": [[0, 0.1, 0.25], [-0.5, -0.78, 0.1], [1.33, 0.25, 0.1], [-0.72, 1.25, 0.05]],
}
"""Molecules where PM6's corrections have a gradient: a stretched triple bond, and a nearly planar nitrogen."""
SHORT_STEP = 1e-3
"""Step in Bohr for corrected energies, which vary too strongly for longer steps."""


@cache
def tight(name: str, method: str) -> SemiempiricalResult:
    return run(molecule(name), method, **TIGHT)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_heats_and_properties(name: str, method: str) -> None:
    known, mopac, result = values(name, method), values(name, method, "mopac"), tight(name, method)
    assert result.converged
    assert abs(result.heat_of_formation - known["heat_of_formation_kcal_mol"]) < OURS["heat_kcal_mol"]
    assert abs(result.heat_of_formation - mopac["heat_of_formation_kcal_mol"]) < MOPAC["heat_kcal_mol"]
    assert result.electronic_energy * HARTREE == pytest.approx(known["electronic_energy_eV"], abs=1e-8)
    assert result.energies["core repulsion"] * HARTREE == pytest.approx(known["core_core_energy_eV"], abs=1e-8)
    assert np.abs(result.charges - known["charges"]).max() < 1e-6
    assert np.abs(result.dipole_debye - known["dipole_vector_debye"]).max() < OURS["dipole_debye"]
    assert np.abs(result.dipole_debye - mopac["dipole_vector_debye"]).max() < MOPAC["dipole_debye"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_orbital_energies(name: str, method: str) -> None:
    """The reference has alpha orbital energies; the sum over both spins must be consistent with the energy."""
    known, result = values(name, method), tight(name, method)
    eps_sm = result.orbital_energies * HARTREE
    assert np.abs(eps_sm[0] - known["alpha_orbital_energies_eV"]).max() < OURS["orbital_energy_eV"]
    occupied = float(np.sum(eps_sm * result.occupations))
    double = 2.0 * known["electronic_energy_eV"] - result.energies["core"] * HARTREE
    assert occupied == pytest.approx(double, abs=OURS["orbital_energy_eV"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_heats_with_the_series_of_mopac(name: str, method: str) -> None:
    result = run(molecule(name), method, mopac_compatible=True, **TIGHT)
    assert abs(result.heat_of_formation - values(name, method, "mopac")["heat_of_formation_kcal_mol"]) < MOPAC_SERIES


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, method: str) -> None:
    """MOPAC's own gradient of ribavirin with PM6 is not that of its energies: see `meta` of the reference."""
    found = tight(name, method).gradient * IN_KCAL
    known, mopac = (
        np.reshape(values(name, method, source)["gradient_kcal_mol_A"], (-1, 3)) for source in ("independent", "mopac")
    )
    assert np.abs(found - known).max() < OURS["gradient_kcal_mol_A"]
    assert np.abs(found.sum(axis=0)).max() < 1e-9
    if (name, method) != ("ribavirin", "PM6"):
        assert np.abs(found - mopac).max() < MOPAC["gradient_kcal_mol_A"]


def small(name: str) -> Molecule:
    multiplicity, R_ax = SMALL_MOLECULES[name] if name in SMALL_MOLECULES else (1, CORRECTED[name])
    return Molecule(re.findall("[A-Z][a-z]?", name), np.array(R_ax) / BOHR_IN_ANGSTROM, name.count("+"), multiplicity)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SMALL_MOLECULES)
def test_gradients_equal_those_of_finite_differences(name: str, method: str) -> None:
    """Every component, in Hartree/Bohr."""
    mol = small(name)
    here = run(mol, method, energy_tolerance=1e-12, gradient_tolerance=1e-9)
    assert np.abs(here.gradient).max() > 1e-3 and len(here.density) == (1 if mol.multiplicity == 1 else 2)
    assert np.abs(here.gradient - numerical_gradient(here, STEP, **DISPLACED)).max() < SLOPE


def test_every_element_is_differentiated() -> None:
    for spins in (1, 3):
        found = {
            symbol for name, (mult, _) in SMALL_MOLECULES.items() if mult == spins for symbol in small(name).symbols
        }
        assert found == {symbol for name in NAMES for symbol in molecule(name).symbols}


@pytest.mark.parametrize("name", CORRECTED)
def test_the_gradient_of_a_corrected_energy(name: str) -> None:
    """Every component, in Hartree/Bohr."""
    mol = small(name)
    here = run(mol, "PM6", energy_tolerance=1e-12, gradient_tolerance=1e-9)
    assert "correction" in here.energies and np.abs(here.calculation.corrections[1]).max() > 1e-3
    assert np.abs(here.gradient - numerical_gradient(here, SHORT_STEP, **DISPLACED)).max() < SLOPE


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_invariance_under_rotation_and_translation(name: str, method: str) -> None:
    here, there = tight(name, method), run(moved(molecule(name), 3), method, **TIGHT)
    assert abs(here.energy - there.energy) * HARTREE < 1e-10
    assert np.linalg.norm(here.dipole) == pytest.approx(np.linalg.norm(there.dipole), abs=1e-9)
    assert np.abs(here.bond_orders - there.bond_orders).max() < 1e-9
    sizes = [np.linalg.norm(result.gradient, axis=1) for result in (here, there)]
    assert np.abs(sizes[0] - sizes[1]).max() < 1e-9


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
    with pytest.raises(InputError):
        cuanto.energy(mol, "pm6", field=[0, 0, 0.1])
    with pytest.raises(InputError):
        cuanto.energy(mol, "pm6", guess="core", backend="cpu")
    with pytest.raises(InputError, match="unknown method 'pm8'"):
        cuanto.energy(mol, "pm8")
