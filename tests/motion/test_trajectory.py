"""Frames of a trajectory are complete or absent, and ASE reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ase.io import read

from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.motion.trajectory import Trajectory, frame_text
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_EV

WATER = Molecule.from_string("3\nname=water\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")


def test_ase_reads_energies_and_forces(tmp_path: Path) -> None:
    forces = np.arange(9.0).reshape(3, 3)
    trajectory = Trajectory(tmp_path / "w.xyz")
    for step in range(2):
        trajectory.append(frame_text(WATER, -76.0 - step, {"forces": forces}, step=step, note="two words"))
    first, last = read(trajectory.path, ":", format="extxyz")
    assert first.get_potential_energy() == pytest.approx(-76.0 * HARTREE_IN_EV, rel=1e-15)
    assert last.info["step"] == 1
    assert np.allclose(last.get_forces(), forces * HARTREE_IN_EV / BOHR_IN_ANGSTROM)
    assert np.allclose(last.positions, WATER.R_ax * BOHR_IN_ANGSTROM, atol=1e-11)


@pytest.mark.parametrize("cut", [1, 30, 60, 150])
def test_a_frame_that_was_cut_off_is_removed(tmp_path: Path, cut: int) -> None:
    trajectory, frame = Trajectory(tmp_path / "w.xyz"), frame_text(WATER, -76.0, {})
    trajectory.append(frame)
    trajectory.append(frame[:cut])
    assert list(trajectory.frames()) == [frame]
    trajectory.keep(5)
    assert trajectory.path.read_text() == frame
    trajectory.keep(0)
    assert trajectory.path.read_text() == ""


def test_a_folder_in_place_of_the_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Trajectory(tmp_path).append("")
