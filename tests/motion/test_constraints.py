"""Constraints as text."""

from __future__ import annotations

from math import radians

import numpy as np
import pytest

from coordinates import value_of
from cuanto.errors import InputError
from cuanto.motion.constraints import Constraint, read_constraints
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM

PEROXIDE = Molecule.from_string("4\n\nO 0 0 0\nO 1.4 0 0\nH 0 0.9 0\nH 1.4 0 0.9\n")


def test_values_are_converted() -> None:
    ((kept, distance, angle),) = read_constraints(PEROXIDE, ["distance 1 2"], ["distance 1 3 = 1.0", "angle 1 2 4 100"])
    assert kept == Constraint("distance", (0, 1)) and kept.value is None
    assert distance.value == pytest.approx(1.0 / BOHR_IN_ANGSTROM)
    assert angle.value == pytest.approx(radians(100.0))
    assert (str(angle), angle.shown) == ("angle 1 2 4", "100 degrees")


def test_scans_form_a_grid() -> None:
    points = read_constraints(PEROXIDE, scan=["dihedral 3 1 2 4 0 180 3", ("distance", 1, 2, 1.4, 1.5, 2)])
    assert len(points) == 6
    assert [round(one.value / one.unit, 6) for one in points[3] if one.value is not None] == [90.0, 1.5]


def test_values_of_a_geometry() -> None:
    R_ax = PEROXIDE.R_ax
    assert value_of(Constraint("distance", (0, 1)), R_ax) * BOHR_IN_ANGSTROM == pytest.approx(1.4)
    assert value_of(Constraint("angle", (0, 1, 3)), R_ax) == pytest.approx(np.pi / 2)
    assert abs(value_of(Constraint("dihedral", (2, 0, 1, 3)), R_ax)) == pytest.approx(np.pi / 2)


@pytest.mark.parametrize(
    ("what", "text", "message"),
    [
        ("freeze", "bond 1 2", "begin with atom, distance, angle, dihedral"),
        ("set", "atom 1", "begin with distance, angle, dihedral"),
        ("freeze", "", "begin with"),
        ("freeze", "distance 1", "write distance A B,"),
        ("set", "distance 1 2", "write distance A B VALUE"),
        ("scan", "angle 1 2 3 90 120", "write angle A B C FIRST LAST POINTS"),
        ("freeze", "distance 1 5", "there is no atom 5; atoms are numbered from 1 to 4"),
        ("freeze", "distance 0 1", "there is no atom 0"),
        ("freeze", "distance 2 2", "named twice"),
        ("set", "distance 1 2 far", "VALUE must be numbers"),
        ("set", "distance 1 2 0.1", "not a valid distance between two atoms"),
        ("set", "angle 1 2 4 180", "less than 180"),
        ("set", "dihedral 3 1 2 4 1000", "between -360 and 360"),
        ("scan", "distance 1 2 1 2 1", "2 to 10000 points"),
        ("scan", "distance 1 2 1 2 2.5", "2 to 10000 points"),
    ],
)
def test_refusals(what: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_constraints(PEROXIDE, **{what: [text]})


def test_one_coordinate_has_one_constraint() -> None:
    with pytest.raises(InputError, match="constrained twice"):
        read_constraints(PEROXIDE, ["distance 1 2"], ["distance 2 1 1.5"])


def test_a_coordinate_of_frozen_atoms_cannot_be_set() -> None:
    with pytest.raises(InputError, match="distance 1 2 cannot be set or scanned: all its atoms are frozen"):
        read_constraints(PEROXIDE, ["atom 1", "atom 2"], ["distance 1 2 1.5"])
