"""Isotopes of a molecule: every reader finds their masses, and everything made from the molecule keeps them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import qcelemental
from ase.build import molecule as ase_molecule

import cuanto
from cuanto.backends import get_backend
from cuanto.errors import InputError
from cuanto.interfaces.qcschema import molecule_schema
from cuanto.methods.semiempirical_batch import semiempirical_energies
from cuanto.motion.record import calculation_key
from cuanto.motion.tasks import plain_molecule, read_molecule
from cuanto.motion.trajectory import frame_text
from cuanto.system import Molecule
from cuanto.system.fragments import Fragment

HEAVY = [16.0, 2.014, 1.008]
WATER = Molecule(["O", "H", "H"], [[0, 0, 0.2], [0, 1.5, -0.9], [0.1, -1.5, -0.9]], masses=HEAVY)


def schema(**more: Any) -> dict[str, Any]:
    geometry = WATER.R_ax.reshape(-1).tolist()
    return {
        "schema_name": "qcschema_molecule",
        "schema_version": 2,
        "symbols": ["O", "H", "H"],
        "geometry": geometry,
    } | (more)


def of_schema(**more: Any) -> Molecule:
    return Molecule.from_text(json.dumps(schema(**more)))


def test_mass_numbers_against_qcelemental() -> None:
    expected = qcelemental.models.Molecule(**schema(mass_numbers=[16, 2, 1]))
    found = of_schema(mass_numbers=[16, 2, 1]).nuclei.masses
    assert found == pytest.approx(expected.masses, abs=1e-10)
    assert found.tolist() == pytest.approx([15.99491461957, 2.01410177812, 1.00782503223], abs=1e-10)
    assert of_schema(mass_numbers=[-1, 2, -1]).nuclei.masses.tolist() == [15.999, found[1], 1.008]
    both = qcelemental.models.Molecule(**schema(masses=HEAVY)).dict(encoding="json")
    assert of_schema(masses=both["masses"], mass_numbers=[-1, 2, 1]).nuclei.masses.tolist() == HEAVY


def test_isotopes_of_a_smiles() -> None:
    pytest.importorskip("rdkit")
    found = Molecule.of("smiles:[2H]O")
    assert sorted(found.nuclei.masses.tolist()) == pytest.approx([1.008, 2.01410177812, 15.999])
    assert Molecule.of("smiles:O").masses is None
    with pytest.raises(InputError, match="unknown isotope '9'"):
        Molecule.of("smiles:[9H]O")


def test_masses_of_atoms_of_ase(tmp_path: Path) -> None:
    atoms = ase_molecule("H2O")
    assert Molecule.of(atoms).masses is None
    atoms.set_masses(HEAVY)
    assert Molecule.of(atoms).nuclei.masses.tolist() == HEAVY
    atoms.write(tmp_path / "ase.xyz", format="extxyz")
    assert Molecule.of(tmp_path / "ase.xyz").nuclei.masses.tolist() == HEAVY


def test_masses_are_a_column_of_extended_xyz() -> None:
    assert np.array_equal(Molecule.of(WATER.to_xyz()).nuclei.masses, HEAVY)
    frame = frame_text(WATER, 0.0, {"forces": np.zeros((3, 3))}, step=1)
    assert np.array_equal(Molecule.of(frame).nuclei.masses, HEAVY)
    head = "3\nProperties=species:S:1:pos:R:3:q:R:2:masses:R:1\n"
    atoms = "X 5 5 5 0 0 0\nH 0 0 0 1 1 2.014\nH 0 0 0.74 1 1 {}\n"
    assert Molecule.of(head + atoms.format("3.016")).nuclei.masses.tolist() == [2.014, 3.016]
    for wrong, message in (
        ("", "line 5: mass '' is not a number"),
        ("D", "mass 'D'"),
        ("0", "a mass of .0.0. for atom 2"),
    ):
        with pytest.raises(InputError, match=message):
            Molecule.of(head + atoms.format(wrong))
    assert "masses" not in Molecule.of(head.replace("masses", "m") + atoms.format("3.016")).to_xyz()


def test_everything_made_from_a_molecule_keeps_its_isotopes() -> None:
    cores = WATER.with_core_electrons([2, 0, 0])
    made = {
        "moved": WATER.moved_to(WATER.R_ax + 1.0),
        "replaced": replace(WATER, charge=1, multiplicity=None),
        "pickled": pickle.loads(pickle.dumps(WATER)),
        "copied": copy.deepcopy(WATER),
        "core potentials": cores,
        "core potentials, moved": cores.moved_to(WATER.R_ax),
        "written": Molecule.from_text(json.dumps(molecule_schema(WATER))),
        "task": read_molecule(json.loads(json.dumps(plain_molecule(WATER)))),
    }
    for name, one in made.items():
        assert one.nuclei.masses.tolist() == HEAVY and np.array_equal(one.masses, HEAVY), name
    assert WATER.with_masses(None).masses is None and WATER.with_masses(None).nuclei.masses[1] == 1.008
    assert cores.with_masses([None, 3.016, None]).nuclei.masses.tolist() == [15.999, 3.016, 1.008]
    assert cores.with_masses(None).nuclei.core_electrons.tolist() == [2, 0, 0]
    assert "masses" not in molecule_schema(WATER.with_masses([15.999, 1.008, 1.008]))
    part = Fragment.of(WATER, 1, [0, 1], -1, None)
    assert part.alone.nuclei.masses.tolist() == HEAVY[:2] and part.ghosts.nuclei.masses.tolist() == [*HEAVY[:2], 0.0]
    qcelemental.models.Molecule(**molecule_schema(WATER))


def test_the_key_of_a_calculation_depends_on_isotopes() -> None:
    standard, other = WATER.with_masses(None), WATER.with_masses([None, 2.014, 2.014])
    keys = {calculation_key(one, "pm6", None, {}) for one in (WATER, standard, other)}
    assert len(keys) == 3 and calculation_key(standard.with_masses(HEAVY), "pm6", None, {}) in keys


@pytest.mark.parametrize("model", [("pm6",), ("hf", "sto-3g")], ids=["pm6", "hf"])
def test_the_dipole_of_an_ion_is_about_its_centre_of_mass(model: tuple[str, ...]) -> None:
    heavy = Molecule(["O", "H"], [[0, 0, 0], [0, 0, 1.8]], -1, masses=[None, 2.014])
    light = heavy.with_masses(None)
    moments = [cuanto.energy(one, *model, backend="cpu").dipole for one in (heavy, light)]
    centres = [one.nuclei.masses @ one.R_ax / one.nuclei.masses.sum() for one in (heavy, light)]
    assert moments[0] - moments[1] == pytest.approx(centres[0] - centres[1], abs=1e-9)
    if model == ("pm6",):
        together = semiempirical_energies([heavy, light], "pm6", get_backend("cpu"))
        assert np.allclose([one.dipole for one in together], moments, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"masses": [16.0]}, "masses must be 3 numbers"),
        ({"masses": [16.0, "D", 1.0]}, "masses must be 3 numbers"),
        ({"masses": [16.0, 0.0, 1.0]}, r"a mass of '0.0' for atom 2 \(H\) is impossible"),
        ({"mass_numbers": [16, 2]}, "mass_numbers must be 3 whole numbers"),
        ({"mass_numbers": [16, 2, 1.5]}, "mass_numbers must be a whole number, not '1.5'"),
        ({"mass_numbers": [16, 2, 9]}, "atom 3: unknown isotope '9': the mass numbers of H are 1, 2, 3"),
        ({"mass_numbers": [16, 2, 1], "masses": HEAVY[::-1]}, "atom 1: the mass 1.008 and the mass number 16"),
    ],
)
def test_wrong_isotopes_in_qcschema(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        of_schema(**given)


@pytest.mark.parametrize(
    "wrong", [[1.0], "D", [[1.0]] * 3, ["D"] * 3, [float("nan")] * 3, [10**400] * 3, [True] * 3, {}]
)
def test_wrong_masses(wrong: Any) -> None:
    with pytest.raises(InputError, match="mass"):
        WATER.with_masses(wrong)


def test_ghosts_have_no_mass() -> None:
    found = of_schema(masses=HEAVY, mass_numbers=[16, 2, 1], real=[True, True, False])
    assert found.nuclei.masses.tolist() == [16.0, 2.014, 0.0]
    assert of_schema(mass_numbers=[-1, -1, 7], real=[True, True, False]).masses is None


def test_a_charge_needs_the_isotopes_again() -> None:
    with pytest.raises(InputError, match=r"charge=1, masses=old\.masses\)"):
        Molecule.of(WATER, charge=1)
