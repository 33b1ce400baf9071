"""Hints: wrong multiplicities, unbound anions, and comment lines that are not read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.cli.main import run
from cuanto.errors import InputWarning
from cuanto.methods.hints import ground_multiplicity, short_bond
from cuanto.units import BOHR_IN_ANGSTROM
from paths import DATA

FAST: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
O2 = "2\n\nO 0 0 0\nO 0 0 1.2\n"


def notes(molecule: Molecule, *method: str, **options: Any) -> list[str]:
    found = cuanto.energy(molecule, *method, backend="cpu", **options)
    return [note for note in found.notes if note.startswith("hint")]


def test_singlet_oxygen() -> None:
    (note,) = notes(Molecule.from_string(O2), "pm6")
    assert "has multiplicity 3, not 1: give multiplicity 3 unless this state is meant" in note
    assert notes(Molecule.from_string(O2, multiplicity=3), "pm6") == []


def test_an_atom_with_the_wrong_multiplicity() -> None:
    (note,) = notes(Molecule(["O"], [[0, 0, 0]]), "hf", "sto-3g", fitting="none")
    assert note.startswith("hint: the ground state of O has multiplicity 3, not 1")


@pytest.mark.parametrize(
    ("symbol", "charge", "multiplicity"),
    [("H", 0, 2), ("C", 0, 3), ("N", 0, 4), ("Ne", 0, 1), ("Cr", 0, 7), ("Fe", 0, 5), ("Fe", 2, 5), ("O", -1, 2)],
)
def test_ground_states_of_atoms(symbol: str, charge: int, multiplicity: int) -> None:
    assert ground_multiplicity(Molecule([symbol], [[0, 0, 0]], charge)) == multiplicity


def test_other_molecules_have_no_hint() -> None:
    water = Molecule.from_string("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
    assert ground_multiplicity(water) is None and notes(water, "pm6") == []


@pytest.mark.parametrize(
    ("symbols", "R_ax"),
    [
        (["O", "H", "H"], [[0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]),
        (["H", "H"], [[0, 0, 0], [0, 0, 0.74]]),
        (["C", *"HHHH"], [[0, 0, 0], *(0.63 * np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]))]),
    ],
)
def test_angstrom_in_place_of_bohr(symbols: list[str], R_ax: Any) -> None:
    (note,) = notes(Molecule(symbols, R_ax), "pm6")
    assert note.startswith("hint: atoms 1 (") and "apart, much less than in a bond: coordinates are in Bohr" in note
    assert notes(Molecule(symbols, np.array(R_ax) / BOHR_IN_ANGSTROM), "pm6") == []


def test_reasonable_bonds_have_no_hint() -> None:
    molecules = [Molecule.from_xyz(path) for path in sorted((DATA / "geometries").glob("*.xyz"))]
    bonds = {"HH": 0.74, "NN": 1.098, "CO": 1.128, "CC": 1.20, "HF": 0.917, "FF": 1.41}  # compressed below
    molecules += [Molecule(list(pair), [[0, 0, 0], [0, 0, 0.7 * r / BOHR_IN_ANGSTROM]], 0) for pair, r in bonds.items()]
    molecules += [Molecule(["V", "V"], [[0, 0, 0], [0, 0, 1.77 / BOHR_IN_ANGSTROM]])]
    molecules += [Molecule(["H", "Gh-O"], [[0, 0, 0], [0, 0, 0.8]])]
    assert len(molecules) > 50 and all(short_bond(molecule) is None for molecule in molecules)


def test_an_anion_that_is_not_bound() -> None:
    anion = Molecule.from_string(O2, charge=-1)
    (note,) = notes(anion, "hf", "sto-3g", fitting="none")
    assert "orbital of this anion is unbound (+0." in note and "add diffuse functions (def2-svpd, aug-cc-pvdz)" in note
    water = Molecule.from_string("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n", charge=-1)
    (note,) = notes(water, "am1")  # which has no basis to choose
    assert "check the charge, or use a functional with a basis with diffuse functions (-m b3lyp" in note
    assert "add diffuse" not in note


@pytest.mark.parametrize(
    ("comment", "meant"),
    [
        ("Charge: -1 mult 2", "charge=-1 mult=2"),
        ("charge 1", "charge=1"),
        ("Multiplicity: 3", "mult=3"),
        ("-1 2", "charge=-1 mult=2"),
    ],
)
def test_a_comment_that_is_not_read(comment: str, meant: str) -> None:
    """A warning in Python; none if charge or multiplicity are given otherwise."""
    text = O2.replace("\n\n", f"\n{comment}\n", 1)
    expected = f"hint: the input, line 2: {comment!r} is not read; write {meant} if it is meant"
    with pytest.warns(InputWarning, match=re.escape(expected)):
        Molecule.from_text(text)
    Molecule.from_text(text, multiplicity=3)


@pytest.mark.parametrize(
    ("comment", "given", "meant"),
    [
        ("charge=1 spin=4", "spin=4", "multiplicity=4 if it is meant (the multiplicity is 2S + 1)"),
        ("charge=0 spin_multiplicity=3", "spin_multiplicity=3", "multiplicity=3 if it is meant"),
        ("energy=-1.0 q=-1", "q=-1", "charge=-1 if it is meant"),
        ('total_charge="2" spin=3', 'total_charge="2" spin=3', "charge=2 multiplicity=3 if it is meant"),
    ],
)
def test_keys_of_other_programs(comment: str, given: str, meant: str) -> None:
    text = O2.replace("\n\n", f"\n{comment}\n", 1)
    with pytest.warns(InputWarning, match=re.escape(f"line 2: {given!r} is not read; write {meant}")):
        Molecule.from_text(text)


def test_the_command_line_prints_the_hint_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "oxygen.xyz"
    path.write_text(O2.replace("\n\n", "\nCharge: -1 mult 2\n", 1))
    for more, lines in ((), 2), (("--multiplicity", "3"), 0):  # and a hint about the multiplicity of the ground state
        with pytest.raises(SystemExit) as leaving:
            run(["energy", str(path), "-m", "pm6", "-q", *more])
        error = capsys.readouterr().err
        assert not leaving.value.code and error.count("\n") == lines
        assert lines == 0 or "'Charge: -1 mult 2' is not read; write charge=-1 mult=2 if it is meant" in error


@pytest.mark.parametrize(
    "comment",
    [
        "charge=-1 mult=2",
        "a molecule",
        "Charge: 0 mult 1",
        "discharge 4",
        "energy -1.0",
        "q=0 spin=1",
        "charge=1 q=1",
        "mult=3 spin=1",
    ],
)
def test_other_comments(comment: str) -> None:
    Molecule.from_string(O2.replace("\n\n", f"\n{comment}\n", 1))  # a warning would be an error
