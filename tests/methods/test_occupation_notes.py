"""Notes about fractional occupations, empty orbitals below occupied ones, and open shells of atoms."""

from __future__ import annotations

import numpy as np

import cuanto
from cuanto.methods.occupation_notes import fractional_note, inversion_note


def test_fractional_occupations_are_listed() -> None:
    assert fractional_note(np.array([[2.0, 2.0, 0.0]])) is None
    assert fractional_note(np.array([[2.0, 1.4, 0.6]])) == "fractional occupations: 1.40 0.60"
    assert fractional_note(np.array([[1.0, 0.5, 0.5], [1.0, 0.0, 0.0]])) == "fractional occupations: 0.50 0.50 alpha"
    assert str(fractional_note(np.full((1, 20), 0.3))).endswith("...")


def test_an_empty_orbital_below_an_occupied_one() -> None:
    eps, n = np.array([[-1.0, -0.2, -0.3, 0.1], [-1.0, -0.4, -0.3, 0.1]]), np.array([[1.0, 1, 0, 0]] * 2)
    note = inversion_note(eps, n)
    assert note is not None and note.startswith("an empty alpha orbital lies 0.1000 Hartree below")
    assert inversion_note(eps[1:].repeat(2, axis=0), n) is None
    assert inversion_note(eps[:1], n) is None  # restricted open shells, whose orbitals both spins share
    assert inversion_note(eps, np.array([[1.0, 0.5, 0.5, 0.0]] * 2)) is None


def test_open_shells_of_atoms() -> None:
    boron = cuanto.Molecule.from_string("1\n\nB 0 0 0\n", multiplicity=2)
    found = cuanto.energy(boron, "uhf", "6-31g", fitting="none", backend="cpu")
    (note,) = [note for note in found.notes if "symmetry-broken" in note]
    assert "p alpha 1.00 0.00 0.00" in note
    nitrogen = cuanto.Molecule.from_string("1\n\nN 0 0 0\n", multiplicity=4)
    round_ = cuanto.energy(nitrogen, "uhf", "6-31g", fitting="none", backend="cpu")
    assert not [note for note in round_.notes if "symmetry-broken" in note]
    warm = cuanto.energy(boron, "uhf", "6-31g", fitting="none", backend="cpu", smearing=0.02)
    assert [note for note in warm.notes if note.startswith("fractional occupations: 0.33 0.33 0.33 alpha")]
