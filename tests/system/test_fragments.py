"""Fragments of a molecule in every form that people write, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.system.fragments import Division, format_atoms

WATERS = Molecule(["O", "H", "H"] * 2, [[0, 0, 0], [0, 2, 0], [2, 0, 0], [6, 0, 0], [6, 2, 0], [8, 0, 0]])


@pytest.mark.parametrize(
    ("given", "atoms"),
    [
        ("3,3", [(1, 2, 3), (4, 5, 6)]),
        (" 3 3 ", [(1, 2, 3), (4, 5, 6)]),
        ([3, 3], [(1, 2, 3), (4, 5, 6)]),
        ("1-3;4-6", [(1, 2, 3), (4, 5, 6)]),
        ("1 2 6; 3,4, 5;", [(1, 2, 6), (3, 4, 5)]),
        ([[6, 1], (2, 3, 4, 5)], [(1, 6), (2, 3, 4, 5)]),
        ("1,2,3", [(1,), (2, 3), (4, 5, 6)]),
    ],
)
def test_forms(given: Any, atoms: list[tuple[int, ...]]) -> None:
    found = Division.of(fragments=given, charges=[1, -1, 0][: len(atoms)], multiplicities=None)
    assert Division.of(**found.plain()) == found
    parts = found.divide(WATERS)
    assert [one.atoms for one in parts] == atoms
    for one in parts:
        assert one.ghosts.elements == WATERS.elements and (one.ghosts.R_ax == WATERS.R_ax).all()
        assert [a + 1 for a, ghost in enumerate(one.ghosts.nuclei.ghosts) if not ghost] == list(one.atoms)
        assert one.alone.nelectron == one.ghosts.nelectron


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fragments": "6"}, "needs two or more fragments, such as '3,3' .* not '6'$"),
        ({"fragments": ""}, "give fragments such as"),
        ({"fragments": "a,b"}, "give fragments such as"),
        ({"fragments": "1-3,4-6"}, "give fragments such as"),
        ({"fragments": "1-3;6-4"}, "'6-4' is not an atom or a range"),
        ({"fragments": 3}, "needs two or more"),
        ({"fragments": [0, 6]}, "needs fragments such as"),
        ({"fragments": [3, [4, 5, 6]]}, "needs fragments such as"),
        ({"fragments": [["1"], ["2"]]}, "needs fragments such as"),
        ({}, "counterpoise needs its fragments"),
        ({"fragment": "3,3"}, "did you mean 'fragments'"),
        ({"fragments": "3,3", "charges": "0;0"}, "must be whole numbers, one for each, such as 0,1"),
        ({"fragments": "3,3", "charges": [0.5, -0.5]}, "charges of fragments must be whole numbers"),
        ({"fragments": "3,3", "multiplicities": []}, "multiplicities of fragments must be whole numbers"),
        ({"fragments": "3,4"}, "fragments of 3, 4 atoms are 7 atoms, the molecule has 6"),
        ({"fragments": "1-3;4-7"}, "fragment 2 has atom 7: the molecule has atoms 1 to 6"),
        ({"fragments": "1-3;3-6"}, "atom 3 is in fragments 1 and 2"),
        ({"fragments": "1,2;5,6"}, "atoms 3-4 are in no fragment"),
        ({"fragments": "3,3", "charges": [0, 0, 0]}, "3 charges of fragments were given for 2 fragments"),
        ({"fragments": "3,3", "charges": "+1,0"}, r"charges \+1, 0 of the fragments do not add up to .*, 0"),
        ({"fragments": "3,3", "multiplicities": "1,2"}, "fragment 2: multiplicity 2 is impossible with 10 electrons"),
        ({"fragments": "3,3", "charges": "10,-10"}, r"fragment 1: charge \+10 is impossible"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Division.of(**given).divide(WATERS)


def test_a_charged_complex_needs_the_charges_of_its_fragments() -> None:
    ion = Molecule(WATERS.symbols, WATERS.R_ax, charge=1)
    with pytest.raises(InputError, match=r"a complex of charge \+1 needs the charges of its fragments"):
        Division("3,3").divide(ion)
    assert [one.alone.multiplicity for one in Division("3,3", "1,0").divide(ion)] == [2, 1]


def test_atoms_in_messages() -> None:
    assert format_atoms([5, 1, 2, 3, 8, 9]) == "1-3, 5, 8-9"
