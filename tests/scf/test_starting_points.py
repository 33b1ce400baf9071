"""Molecules for which several starting points of the SCF are tried, and these starting points."""

from __future__ import annotations

import pytest

from cuanto import Molecule
from cuanto.scf.starting_points import centres_of_starting_points, starting_points
from scf_cases import WATER


def linear(*symbols: str, multiplicity: int | None = None) -> Molecule:
    """Atoms on the z axis, 3 Bohr apart."""
    return Molecule(symbols, [[0.0, 0.0, 3.0 * k] for k in range(len(symbols))], multiplicity=multiplicity)


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        (("Fe", "O"), [0]),
        (("O", "Cu"), [1]),  # the d shell of Cu2+ is open
        (("Ti", "O", "Ti"), [0, 2]),
        (("Ce", "F"), [0]),
        (("Zn", "O"), []),  # the d shell is full up to Zn2+
        (("Ga", "H"), []),
        (("B", "B"), [0]),  # clusters of atoms with few p electrons: the first atom
        (("Si", "C"), [0]),
        (("B", "N"), []),  # N has three p electrons
        (("C", "H"), []),
        (("Be", "Be"), []),
        (("Fe",), []),  # a single atom
        (("X-Fe", "O", "O"), []),  # a ghost
    ],
)
def test_centres(symbols: tuple[str, ...], expected: list[int]) -> None:
    assert centres_of_starting_points(linear(*symbols)) == expected


def test_organic_molecules_have_no_centres() -> None:
    assert centres_of_starting_points(Molecule.from_string(WATER)) == []
    assert centres_of_starting_points(linear("C", "C", "H", "H", multiplicity=3)) == []


def test_one_centre() -> None:
    points = list(starting_points(linear("Fe", "O", multiplicity=5)))
    assert [point.label for point in points] == ["superposed atoms", "ions M+ L-", "local spins"]
    assert points[0].charges is None and points[0].spins is None
    assert points[1].charges == (1.0, -1.0) and points[1].spins == (4.0, 0.0)
    assert points[2].charges is None and points[2].spins == (6.0, -2.0)


def test_the_nearest_atom_takes_the_electrons() -> None:
    points = list(starting_points(linear("O", "C", "Fe", multiplicity=3)))
    assert points[1].charges == (0.0, -1.0, 1.0)


def test_spins_of_several_centres_alternate() -> None:
    points = list(starting_points(linear("Cr", "Cr", multiplicity=1)))
    assert len(points) == 2 and points[1].spins == (6.0, -6.0)
    bridged = list(starting_points(linear("Mn", "O", "Mn", multiplicity=1)))
    assert bridged[2].spins is not None and bridged[2].spins[0] > 0 > bridged[2].spins[2]
    assert bridged[1].charges == (1.0, -2.0, 1.0)
