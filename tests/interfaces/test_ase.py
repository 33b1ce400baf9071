"""The ASE calculator: forces that belong to the energies, and embedding in point charges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ase import Atoms
from ase.calculators.calculator import CalculatorSetupError
from ase.calculators.qmmm import EIQMMM, Embedding, LJInteractions
from ase.calculators.tip3p import TIP3P, epsilon0, sigma0

import cuanto
from cuanto.interfaces.ase import Cuanto
from cuanto.units import HARTREE_IN_EV

WATER = np.array([[0.0, 0.0, 0.1], [0.0, 0.75, -0.5], [0.0, -0.75, -0.5]])


def differences(atoms: Any, atom: int, axis: int, step: float = 1e-3) -> float:
    """Force by fourth-order differences of the energy."""
    energies = []
    for k in (-2, -1, 1, 2):
        moved = atoms.copy()
        moved.calc = atoms.calc
        moved.positions[atom, axis] += k * step
        energies.append(moved.get_potential_energy())
    return -float(np.dot([1, -8, 8, -1], energies)) / (12 * step)


def test_forces_after_an_energy_equal_those_of_a_tight_scf() -> None:
    both, forces = (Atoms("OH2", WATER, calculator=Cuanto("hf", basis="sto-3g", backend="cpu")) for _ in range(2))
    both.get_potential_energy()
    assert np.allclose(both.get_forces(), forces.get_forces(), atol=1e-5)


@pytest.mark.parametrize("forces", [False, True])
def test_the_state_does_not_depend_on_the_order_of_calls(forces: bool) -> None:
    """B2 has lower states, which a single point would look for."""
    atoms = Atoms("B2", [(0, 0, 0), (0, 0, 1.59)], magmoms=[1, 1])
    atoms.calc = Cuanto("uhf", basis="sto-3g", backend="cpu")
    if forces:
        atoms.get_forces()
    energy = atoms.get_potential_energy()
    molecule = cuanto.Molecule.from_ase(atoms)
    plain = cuanto.energy(molecule, "uhf", "sto-3g", backend="cpu", search="none")
    assert energy / HARTREE_IN_EV == pytest.approx(plain.energy, abs=1e-7)
    assert cuanto.energy(molecule, "uhf", "sto-3g", backend="cpu").energy < plain.energy - 1e-3


def test_point_charges_pull_the_molecule_and_are_pulled() -> None:
    calculator = Cuanto("hf", basis="sto-3g", backend="cpu", gradient_tolerance=1e-9)
    atoms = Atoms("OH2", WATER, calculator=calculator)
    alone = atoms.get_potential_energy()
    charges = calculator.embed([0.4, -0.4])
    positions = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 3.5]])
    charges.set_positions(positions)
    assert atoms.get_potential_energy() != pytest.approx(alone, abs=1e-3)
    forces, on_charges = atoms.get_forces(), charges.get_forces(calculator)
    assert np.allclose(forces.sum(axis=0) + on_charges.sum(axis=0), 0.0, atol=1e-6)
    assert forces[0, 2] == pytest.approx(differences(atoms, 0, 2), abs=1e-5)
    energies = []
    for k in (-1, 1):
        charges.set_positions(positions + k * 1e-3 * np.eye(3)[2] * np.array([[1.0], [0.0]]))
        energies.append(atoms.get_potential_energy())
    assert on_charges[0, 2] == pytest.approx((energies[0] - energies[1]) / 2e-3, abs=1e-5)


def test_embedding_in_classical_water_conserves_momentum() -> None:
    atoms = Atoms("OH2OH2", np.concatenate([WATER, WATER + np.array([0.0, 0.0, 3.2])]))
    interaction = LJInteractions({("O", "O"): (epsilon0, sigma0)})
    quantum = Cuanto("hf", basis="sto-3g", backend="cpu", gradient_tolerance=1e-9)
    atoms.calc = EIQMMM([0, 1, 2], quantum, TIP3P(), interaction, embedding=Embedding())
    forces = atoms.get_forces()
    assert np.allclose(forces.sum(axis=0), 0.0, atol=1e-6)
    for atom, axis in ((0, 2), (3, 2), (4, 1)):
        assert forces[atom, axis] == pytest.approx(differences(atoms, atom, axis), abs=2e-5)
    atoms.calc.close()  # closes its log file


def test_forces_on_charges_need_a_calculation() -> None:
    calculator = Cuanto("hf", basis="sto-3g", backend="cpu")
    with pytest.raises(CalculatorSetupError):
        calculator.embed([1.0]).get_forces(calculator)
    with pytest.raises(CalculatorSetupError, match="rc2"):
        calculator.embed([1.0], rc2=3.0)


def test_the_basis_is_the_second_argument() -> None:
    """As in `cuanto.energy`."""
    both = [Cuanto("hf", "sto-3g", backend="cpu"), Cuanto("hf", basis="sto-3g", backend="cpu")]
    assert both[0].parameters == both[1].parameters and Cuanto("pm6").parameters.get("basis") is None
    energies = [Atoms("OH2", WATER, calculator=one).get_potential_energy() for one in both]
    assert energies[0] == energies[1]
