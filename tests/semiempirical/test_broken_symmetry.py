"""Equivalent states of broken symmetry: images of a state, and the choice of one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import cuanto
from cuanto.methods import SemiempiricalResult
from cuanto.semiempirical.broken_symmetry import equal_atoms_differ, images, orbital_rotation, rotate_orbitals
from cuanto.semiempirical.constants import HARTREE_IN_KCAL
from cuanto.semiempirical.layout import positions
from cuanto.system import Molecule
from cuanto.system.symmetry import find_operations
from nddo_cases import TIGHT, elements, layout_of, molecule, moved, run, values

Array = NDArray[np.float64]

HEAT = elements()["meta"]["recommended_tolerances"]["vs_independent"]["heat_kcal_mol"]
TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])


def harmonics(r_gx: Array) -> Array:
    """The nine orbitals of an atom at points, without their radial parts."""
    x, y, z = r_gx.T
    d = [(x * x - y * y) / 2, x * z, (2 * z * z - x * x - y * y) / np.sqrt(12), y * z, x * y]
    return np.stack([np.ones_like(x), x, y, z, *d], axis=1)


def energy_of(result: SemiempiricalResult, D_spq: Array) -> float:
    """Energy of any density, without constants."""
    fock, D_bspq = result.calculation.fock, D_spq[None]
    return float(fock.two_electron(D_bspq)[0][0] + (D_bspq * fock.H_bpq).sum())


def all_images(result: SemiempiricalResult) -> list[SemiempiricalResult]:
    """SCFs that start from every image of a state; from a given density, equivalent states are not compared."""
    layout, found = result.calculation.layout, []
    for image in images(layout, positions([result.molecule])[0], result.density):
        D_spq = rotate_orbitals(layout, image.operation, result.density)
        D_spq = rotate_orbitals(layout, image.operation, D_spq.transpose(0, 2, 1))
        guess = replace(result, state=replace(result.state, D_spq=D_spq))
        found.append(run(result.molecule, result.method, guess=guess, **TIGHT))
    return found


@pytest.mark.parametrize("hand", [1.0, -1.0])
def test_orbitals_are_rotated_like_functions(hand: float) -> None:
    """The rotated function has at R r the value of the function at r."""
    rng = np.random.default_rng(2)
    R_xy, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R_xy *= hand
    r_gx = rng.normal(size=(20, 3))
    U_pq = orbital_rotation(R_xy)
    assert np.allclose(U_pq @ U_pq.T, np.eye(9), atol=1e-14)
    assert np.allclose(harmonics(r_gx @ R_xy.T) @ U_pq, harmonics(r_gx), atol=1e-13)


def test_images_of_any_density_have_its_energy() -> None:
    """An exact tetrahedron and a random density, which is not stationary."""
    mol = moved(Molecule(["Ti", "Cl", "Cl", "Cl", "Cl"], 2.4 * TETRAHEDRON), 1)
    result = run(mol, "pm6")
    layout = result.calculation.layout
    D_spq = np.random.default_rng(3).normal(size=result.density.shape)
    D_spq = D_spq + D_spq.transpose(0, 2, 1)
    energy, operations = energy_of(result, D_spq), find_operations(mol.symbols, mol.R_ax)
    assert len(operations) == 24
    for operation in operations:
        half = rotate_orbitals(layout, operation, D_spq)
        assert energy_of(result, rotate_orbitals(layout, operation, half.transpose(0, 2, 1))) == pytest.approx(
            energy, rel=1e-12
        )


def test_the_lowest_state_is_taken_if_it_is_clearly_lower() -> None:
    """In each of three states of Fe(CO)5 another equatorial ligand differs from the others."""
    mol, mopac = molecule("Fe(CO)5"), values("Fe(CO)5", "PM6", "mopac")
    result = run(mol, "pm6")
    heats = sorted(one.heat_of_formation for one in all_images(result))
    assert np.allclose(np.array(heats) - heats[0], [0.0, 4.3e-6, 1.84e-5], atol=1e-7)
    assert result.heat_of_formation == pytest.approx(heats[0], abs=1e-8)
    assert result.heat_of_formation == pytest.approx(values("Fe(CO)5", "PM6")["heat_of_formation_kcal_mol"], abs=HEAT)
    assert np.abs(result.dipole_debye - mopac["dipole_vector_debye"]).max() < 2e-4
    assert result.converged and result.state.curvature is not None and result.state.curvature > 0
    assert result.history[-1].iteration == result.iterations
    (note,) = (note for note in result.notes if "broken symmetry" in note)
    assert note.startswith("broken symmetry: 3 equivalent states") and note.endswith("the lowest taken")


@pytest.mark.parametrize("name", ["Fe(CO)5", "Fe(CN)6_4-"])
def test_the_choice_depends_neither_on_orientation_nor_on_tolerances(name: str) -> None:
    """Without it the four states of Fe(CN)6 4- are all found, with energies that differ by 3e-5 kcal/mol."""
    mol, known = molecule(name), values(name, "PM6")["heat_of_formation_kcal_mol"]
    found = [run(moved(mol, seed), "pm6") for seed in range(4)]
    found += [run(mol, "pm6", **TIGHT), run(mol, "pm6", diagonaliser="pseudo")]
    found += cuanto.energies([mol, mol], "pm6", backend="cpu", workers=0)
    energies = np.array([one.energy for one in found]) * HARTREE_IN_KCAL
    assert np.ptp(energies) < 2e-7
    assert abs(found[0].heat_of_formation - known) < HEAT
    assert all(any("broken symmetry" in note for note in one.notes) for one in found[:6])


def test_a_given_state_is_kept() -> None:
    result = run(molecule("Fe(CO)5"), "pm6")
    highest = max(all_images(result), key=lambda one: one.energy)
    again = run(result.molecule, "pm6", guess=highest)
    assert again.energy == pytest.approx(highest.energy, abs=1e-10)
    assert not any("broken symmetry" in note for note in again.notes)


def test_without_iterations_for_another_state_the_first_is_kept() -> None:
    mol = molecule("Fe(CO)5")
    found = run(mol, "pm6", **TIGHT).calculation.run(compare=False)
    for limit in (found.iterations, found.iterations + 1):
        result = run(mol, "pm6", max_iterations=limit, **TIGHT)
        assert result.converged and result.iterations == limit
        assert result.energy == pytest.approx(found.energy, abs=1e-10)
        assert any("the one found first is kept" in note for note in result.notes)


def test_differences_between_equal_atoms_are_noticed() -> None:
    """Random charges and bond orders: those averaged over all operations do not differ, any others do."""
    mol = molecule("Fe(CO)5")
    layout, R_ax = layout_of(mol, "pm6")[0], positions([mol])[0]
    rng, found = np.random.default_rng(4), find_operations(mol.symbols, mol.R_ax)
    charge_a, bonds_ab = rng.normal(size=mol.natom), rng.normal(size=(mol.natom, mol.natom))
    mean_a = np.mean([charge_a[one.image_a] for one in found], axis=0)
    mean_ab = np.mean([bonds_ab[np.ix_(one.image_a, one.image_a)] for one in found], axis=0)
    assert not equal_atoms_differ(layout, R_ax, mean_a, mean_ab)
    for a in range(1, mol.natom):
        changed_a, changed_ab = mean_a.copy(), mean_ab.copy()
        changed_a[a] += 0.01
        changed_ab[a, 0] += 0.01
        assert equal_atoms_differ(layout, R_ax, changed_a, mean_ab)
        assert equal_atoms_differ(layout, R_ax, mean_a, changed_ab)


@pytest.mark.parametrize(("name", "method"), [("TiCl4", "PM6"), ("FeF3_sextet", "PM6"), ("NiF2_triplet", "PM6")])
def test_symmetric_states_have_no_images(name: str, method: str) -> None:
    result = run(molecule(name), method)
    assert len(images(result.calculation.layout, positions([result.molecule])[0], result.density)) == 1
    assert not any("broken symmetry" in note for note in result.notes)
