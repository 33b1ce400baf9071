"""Optimisations: minima, transition states, scans, paths; small molecules and cheap methods."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import cuanto
from coordinates import value_of
from cuanto.errors import ConvergenceError, InputError, MissingDependencyError
from cuanto.motion import walker
from cuanto.motion.constraints import read_constraints
from cuanto.motion.criteria import displacement
from cuanto.motion.optimize import Search, Step, optimize
from cuanto.motion.settings import Settings
from cuanto.motion.surface import Surface
from cuanto.motion.vibrations import internal_space
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM

WATER = Molecule.from_string("3\n\nO 0 0 0\nH 0.9 0 0.1\nH -0.3 0.95 0\n")
PEROXIDE = Molecule.from_string("4\n\nO 0 0 0\nO 1.4 0 0\nH -0.3 0.9 0\nH 1.7 0.5 0.7\n")
SADDLE = Molecule.from_string("3\n\nC 0 0 0\nN 0 0 1.19\nH 1.1 0 0.6\n")


def test_water_by_hartree_fock() -> None:
    """W. J. Hehre, R. F. Stewart, J. A. Pople, J. Chem. Phys. 51, 2657 (1969): 0.990 Angstrom, 100.0 degrees."""
    found = cuanto.optimize(WATER, "hf", "sto-3g", convergence="tight")
    distance, angle = read_constraints(WATER, ["distance 1 2", "angle 2 1 3"])[0]
    R_ax = found.molecule.R_ax
    assert found.converged and found.result.converged
    assert value_of(distance, R_ax) * BOHR_IN_ANGSTROM == pytest.approx(0.9894, abs=2e-4)
    assert np.degrees(value_of(angle, R_ax)) == pytest.approx(100.03, abs=0.05)
    assert found.energy == pytest.approx(-74.965901, abs=1e-4)  # published without fitting
    assert np.abs(found.gradient).max() < 1.5e-5
    assert found.steps[-1].energy == pytest.approx(found.energy, abs=1e-12)
    assert [step.number for step in found.steps] == list(range(1, found.iterations + 1))
    assert "converged in" in repr(found)


def test_the_tight_minimum_is_below_the_normal_one() -> None:
    normal, tight = (optimize(PEROXIDE, "pm6", convergence=name) for name in ("normal", "tight"))
    assert 0 <= normal.energy - tight.energy < 2e-6
    assert normal.iterations <= tight.iterations
    assert all(normal.steps[-1].met) and not all(normal.steps[-2].met)


def test_geometries_and_files_of_every_step(tmp_path: Path) -> None:
    seen: list[Step] = []
    trajectory, journal = tmp_path / "water_opt.xyz", tmp_path / "water.journal"
    found = optimize(WATER, "pm6", trajectory=trajectory, journal=journal, on_step=seen.append)
    assert tuple(seen) == found.steps
    assert not journal.exists()
    from ase.io import read

    frames = read(trajectory, ":")
    assert len(frames) == found.iterations
    np.testing.assert_allclose(frames[-1].positions, found.molecule.R_ax * BOHR_IN_ANGSTROM, atol=1e-9)
    forces = -found.gradient * cuanto.units.HARTREE_IN_EV / BOHR_IN_ANGSTROM
    np.testing.assert_allclose(frames[-1].get_forces(), forces, atol=1e-9)
    assert frames[-1].get_potential_energy() == pytest.approx(found.energy * cuanto.units.HARTREE_IN_EV)


def test_inputs_and_other_files_are_not_overwritten(tmp_path: Path) -> None:
    start, notes = tmp_path / "in.xyz", tmp_path / "notes.txt"
    WATER.to_xyz(start)
    notes.write_text("important")
    text = start.read_text()
    for name in ("trajectory", "journal"):
        with pytest.raises(InputError, match="would overwrite the input"):
            optimize(start, "pm6", **{name: start})
    with pytest.raises(InputError, match=r"notes\.txt exists and is not a journal"):
        optimize(start, "pm6", journal=notes)
    with pytest.raises(InputError, match=r"notes\.txt exists and is not a journal"):
        cuanto.frequencies(start, "pm6", journal=notes)
    with pytest.raises(ConvergenceError):
        optimize(start, "hf", "sto-3g", trajectory=notes, max_iterations=2)
    with pytest.raises(InputError, match=r"a name that ends in \.xyz"):
        optimize(start, "pm6", trajectory=tmp_path / "a.dcd")
    assert (start.read_text(), notes.read_text()) == (text, "important")


def test_a_trajectory_is_replaced_by_the_first_geometry(tmp_path: Path) -> None:
    path = tmp_path / "a.xyz"
    for _ in range(2):
        found = optimize(WATER, "pm6", trajectory=path)
        assert path.read_text().count("Properties") == found.iterations


def test_an_interrupted_optimisation_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, trajectory = tmp_path / "a.journal", tmp_path / "a.xyz"
    whole = optimize(PEROXIDE, "pm6")

    def stop(step: Step) -> None:
        if step.number == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize(PEROXIDE, "pm6", journal=journal, trajectory=trajectory, on_step=stop)
    computed = []
    real = Surface.at
    monkeypatch.setattr(Surface, "at", lambda self, *given: computed.append(1) or real(self, *given))
    found = optimize(PEROXIDE, "pm6", journal=journal, trajectory=trajectory)
    assert len(computed) == whole.iterations - 4
    assert found.energy == pytest.approx(whole.energy, abs=1e-10)
    assert trajectory.read_text().count("Properties") == whole.iterations


def test_orbitals_start_the_next_step() -> None:
    alone = cuanto.energy(WATER, "hf", "sto-3g", gradient_tolerance=1e-7).iterations
    assert optimize(WATER, "hf", "sto-3g").result.iterations < alone


def test_a_pre_optimisation_comes_first() -> None:
    found = optimize(WATER, "hf", "sto-3g", pre="pm6")
    stages = [step.stage for step in found.steps]
    assert stages[0] == "pre-optimisation" and stages[-1] == ""
    assert found.iterations == stages.count("")
    assert found.steps[0].energy > -20 and found.energy < -70


def test_constraints_are_kept_and_set() -> None:
    given = {"freeze": ["distance 1 2"], "set": ["angle 1 2 4 110"]}
    found = optimize(PEROXIDE, "pm6", **given)
    kept, angle = read_constraints(PEROXIDE, **given)[0]
    assert found.converged
    assert value_of(kept, found.molecule.R_ax) == pytest.approx(value_of(kept, PEROXIDE.R_ax), abs=1e-6)
    assert np.degrees(value_of(angle, found.molecule.R_ax)) == pytest.approx(110.0, abs=1e-3)


def test_an_atom_is_kept() -> None:
    found = optimize(WATER, "pm6", freeze=["atom 1", "atom 2"])
    np.testing.assert_allclose(found.molecule.R_ax[:2], WATER.R_ax[:2], atol=1e-4)
    assert found.converged and np.abs(found.molecule.R_ax[2] - WATER.R_ax[2]).max() > 1e-3


@pytest.mark.parametrize("coordinates", ["tric", "hdlc"])
@pytest.mark.parametrize("frozen", [(0, 1, 2), (2, 3), (0, 2)])
def test_the_free_atoms_reach_their_minimum(frozen: tuple[int, ...], coordinates: str) -> None:
    """The reference is SciPy's BFGS over the Cartesian coordinates of the atoms that are not frozen."""
    free = [a for a in range(4) if a not in frozen]
    surface, R_ax = Surface(PEROXIDE, "pm6"), PEROXIDE.R_ax.copy()

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        R_ax[free] = x.reshape(-1, 3)
        result = surface.at(R_ax)
        return result.energy, result.gradient[free].reshape(-1)

    reference = minimize(evaluate, R_ax[free].reshape(-1), jac=True, method="BFGS", options={"gtol": 1e-6})
    texts = [f"atom {a + 1}" for a in frozen]
    found = optimize(PEROXIDE, "pm6", freeze=texts, coordinates=coordinates, convergence="tight", max_steps=60)
    assert found.converged
    assert found.energy == pytest.approx(reference.fun, abs=1e-7)
    np.testing.assert_allclose(found.molecule.R_ax[list(frozen)], PEROXIDE.R_ax[list(frozen)], atol=1e-4)
    largest = np.abs(found.gradient[free]).max()
    assert largest < 1.5e-5 and found.steps[-1].measures.gradient_max == pytest.approx(largest, abs=1e-8)


def test_fragments_at_a_fixed_distance_reach_their_minimum() -> None:
    dimer = "O 0 0 0; H 0 0.76 -0.58; H 0 -0.76 -0.58; O 0 0 2.9; H 0 0 1.95; H 0.9 0 3.2"
    found = optimize(Molecule.of(dimer), "pm6", set=["distance 1 4 3.5"], convergence="tight")
    along_x = found.molecule.R_ax[0] - found.molecule.R_ax[3]
    along_x /= np.linalg.norm(along_x)
    free_ax = found.gradient.copy()
    free_ax[[0, 3]] -= np.outer([0.5, -0.5], (free_ax[0] - free_ax[3]) @ along_x * along_x)
    assert found.converged and np.abs(free_ax).max() < 1.5e-5


def test_constrained_searches_start_from_the_same_model_hessian() -> None:
    """16 steps; with geomeTRIC's transformation of the model to constrained coordinates 29."""
    ethanol = (
        "C 0 0 0; C 1.52 0 0; H -0.4 1 0; H -0.4 -0.5 0.9; H -0.4 -0.5 -0.9; "
        "O 2.1 1.2 0.2; H 1.9 -0.5 -0.9; H 1.9 -0.5 0.9; H 3 1.1 0.3"
    )
    start = optimize(Molecule.of(ethanol), "pm6").molecule
    assert optimize(start, "pm6", scan=["distance 2 6 1.3 1.4 3"]).iterations < 22


@pytest.mark.parametrize(
    "freeze",
    [
        ["atom 1", "atom 2", "distance 1 2"],
        ["distance 1 2", "distance 1 3", "distance 2 3", "angle 3 1 2"],
    ],
)
def test_redundant_constraints(freeze: list[str]) -> None:
    found = optimize(PEROXIDE, "pm6", freeze=freeze, convergence="tight")
    assert found.converged and found.energy < found.steps[0].energy
    for one in read_constraints(PEROXIDE, ["distance 1 2"])[0]:
        assert value_of(one, found.molecule.R_ax) == pytest.approx(value_of(one, PEROXIDE.R_ax), abs=1e-4)


@pytest.mark.parametrize("coordinates", ["tric", "hdlc"])
def test_a_molecule_moves_and_rotates_in_its_surroundings(coordinates: str) -> None:
    """SciPy's BFGS over Cartesian coordinates ends at -98.602904."""
    molecule, given = Molecule.of("F 0 0 0; H 0 0 0.93"), {"point_charges": [[0.5], [[0, 4.0, 3.0]]]}
    found = optimize(molecule, "hf", "sto-3g", coordinates=coordinates, convergence="tight", **given)
    assert found.converged and np.abs(found.gradient).max() < 1.5e-5
    assert found.energy == pytest.approx(-98.602904, abs=1e-6)
    with pytest.raises(InputError, match="dlc coordinates cannot move or rotate the whole molecule"):
        optimize(molecule, "hf", "sto-3g", coordinates="dlc", **given)


def test_a_scan_has_all_its_points() -> None:
    found = optimize(PEROXIDE, "pm6", scan=["dihedral 3 1 2 4 90 180 3"])
    assert [point.converged for point in found.points] == [True] * 3
    for point, angle in zip(found.points, (90, 135, 180), strict=True):
        assert abs(np.degrees(value_of(point.constraints[0], point.molecule.R_ax))) == pytest.approx(angle, abs=1e-2)
    assert found.energy == found.points[-1].energy


@pytest.mark.parametrize(("ending", "beginning"), [("json", "{"), ("html", "<!"), ("xyz", "3\n")])
def test_optimisations_are_saved_by_the_name_of_the_file(ending: str, beginning: str, tmp_path: Path) -> None:
    optimize(WATER, "pm6").save(tmp_path / f"w.{ending}")
    assert (tmp_path / f"w.{ending}").read_text().startswith(beginning)


def test_a_transition_state_and_its_path() -> None:
    found = optimize(SADDLE, "pm6", ts=True, irc=True, convergence="loose")
    energies = [point.energy for point in found.points]
    top = int(np.argmax(energies))
    assert found.converged and 0 < top < len(energies) - 1
    assert found.points[top].coordinate == pytest.approx(0.0, abs=1e-12)
    distances = [
        np.linalg.norm(end.molecule.R_ax[2] - end.molecule.R_ax[:2], axis=1)
        for end in found.points[:: len(energies) - 1]
    ]
    nearest = sorted(int(np.argmin(one)) for one in distances)
    assert nearest == [0, 1]  # HCN on one side, HNC on the other


def test_a_reaction_path_has_the_masses_of_isotopes() -> None:
    """Its steps are along the gradient in the coordinates that these masses weight, and so are its arc lengths."""
    top = optimize(SADDLE, "pm6", ts=True, convergence="tight").molecule.with_masses([None, None, 20.0])
    found = optimize(top, "pm6", irc=True, convergence="loose", max_steps=6)
    overlaps = []
    for masses in (top.nuclei.masses, top.with_masses(None).nuclei.masses):
        root_a, cosines = np.sqrt(masses)[:, None], []
        for one, other in pairwise(found.points):
            R_ax, S_ax = one.molecule.R_ax, other.molecule.R_ax
            B_qm = internal_space(masses, 0.5 * (R_ax + S_ax))
            move_m = B_qm.T @ (root_a * (S_ax - R_ax)).reshape(-1)
            slope_m = B_qm.T @ ((one.gradient + other.gradient) / root_a).reshape(-1)
            cosines.append(abs(move_m @ slope_m) / np.linalg.norm(move_m) / np.linalg.norm(slope_m))
        overlaps.append(np.median(cosines))
    assert overlaps[0] > 0.995 and overlaps[1] < 0.985
    one, other = found.points[:2]
    length = np.linalg.norm(np.sqrt(top.nuclei.masses)[:, None] * displacement(other.molecule.R_ax, one.molecule.R_ax))
    assert other.coordinate - one.coordinate == pytest.approx(length, rel=1e-6)


def test_a_minimum_is_no_transition_state() -> None:
    found = optimize(optimize(WATER, "pm6", convergence="tight").molecule, "pm6", ts=True)
    assert all(found.steps[-1].met) and not found.converged


def test_a_wrong_hessian_makes_no_transition_state_of_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    minimum = optimize(WATER, "pm6", convergence="tight").molecule
    monkeypatch.setattr(Search, "_hessian", lambda self, molecule, source: -0.1 * np.eye(9))
    found = optimize(minimum, "pm6", ts=True, max_steps=3)
    assert all(found.steps[-1].met) and not found.converged


def test_atoms_and_fragments() -> None:
    helium = Molecule(["He"], [[0, 0, 0]])
    assert optimize(helium, "hf", "sto-3g").converged
    assert not optimize(helium, "hf", "sto-3g", point_charges=[[1.0], [[0, 0, 3.0]]]).converged
    dimer = Molecule.from_string(
        "6\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\nO 2.9 0 0\nH 3.2 0.75 0.5\nH 3.2 -0.75 0.5\n"
    )
    found = optimize(dimer, "pm6")
    assert found.converged and found.energy < found.steps[0].energy


def test_too_few_steps_are_no_convergence() -> None:
    found = optimize(WATER, "pm6", max_steps=2)
    assert not found.converged and found.iterations == 2
    assert "NOT converged in 2 steps" in repr(found)


def test_refusals() -> None:
    with pytest.raises(InputError, match="ghost atoms"):
        optimize(Molecule(["O", "H", "H", "Gh-O"], [[0, 0, 0], [1.8, 0, 0], [-0.5, 1.7, 0], [0, 0, 4]]), "hf", "sto-3g")
    with pytest.raises(InputError, match="the basis sto-3g was made for one geometry"):
        optimize(WATER, "hf", cuanto.Basis("sto-3g", WATER))
    with pytest.raises(InputError, match="unknown option 'colour'"):
        optimize(WATER, "pm6", colour="blue")
    with pytest.raises(ConvergenceError, match="not converge"):
        optimize(WATER, "hf", "sto-3g", max_iterations=2)
    by = r"with ts \(--ts on the command line\)"
    with pytest.raises(InputError, match=rf"no reaction path starts here: the largest force is .* {by} as well"):
        optimize(WATER, "pm6", irc=True)
    with pytest.raises(InputError, match=f"starts here: no imaginary mode detected; find the transition state, {by}"):
        optimize(optimize(WATER, "pm6").molecule, "pm6", irc=True)


def test_settings_as_a_dictionary() -> None:
    by_keywords = optimize(WATER, "pm6", max_steps=2)
    for settings in ({"max_steps": 2}, Settings(max_steps=2)):
        found = optimize(WATER, "pm6", settings=settings)
        assert len(found.steps) == 2 and found.settings == by_keywords.settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": {"max_step": 2}}, "unknown setting 'max_step'; did you mean 'max_steps'?"),
        ({"settings": {"ts": 1}}, "ts must be true or false"),
        ({"settings": 2}, "settings must be Settings or a dictionary such as {'max_steps': 50}, not 2"),
        ({"settings": {}, "ts": True}, "ts belongs to the settings: write it there, or leave out settings"),
        ({"maxsteps": 2}, "unknown option 'maxsteps'; did you mean 'max_steps'?"),
        ({"max_iteration": 2}, "unknown option 'max_iteration'; did you mean 'max_iterations'?"),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        optimize(WATER, "pm6", **given)


def test_without_geometric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geometric.engine", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'cuanto\[motion\]'"):
        optimize(WATER, "pm6")


def test_geometric_prints_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handler = logging.StreamHandler()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        optimize(WATER, "pm6")
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
    shown = capfd.readouterr()
    assert "Hessian Eigenvalues" not in shown.out + shown.err
    assert list(tmp_path.iterdir()) == []
    assert logging.getLogger("geometric").propagate


def test_errors_of_an_energy_are_not_those_of_geometric(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(Surface, "at", broken)
    with pytest.raises(RuntimeError, match="the device is gone"):
        optimize(WATER, "pm6")
    assert walker.COORDINATES.keys() == {"tric", "dlc", "hdlc"}


KILLS = """
import os, random, signal, sys, time
import geometric.optimize
from cuanto.motion.optimize import optimize
from cuanto.motion.record import Recorder
from cuanto.system import Molecule
molecule = Molecule.from_string(sys.argv[1])
journal, trajectory, chance = sys.argv[2], sys.argv[3], random.Random(7)
known = 0
for kill in range(10):
    child = os.fork()
    if child == 0:
        optimize(molecule, "pm6", convergence="tight", journal=journal, trajectory=trajectory)
        os._exit(0)
    end = time.monotonic() + 30
    grown = known + chance.randint(0, 1)
    def lines():
        return open(journal, "rb").read().count(b"\\n") if os.path.exists(journal) else 0
    while lines() < grown and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert lines() >= known, "a step was lost"
    known = lines()
found = optimize(molecule, "pm6", convergence="tight", journal=journal, trajectory=trajectory)
assert found.converged and not os.path.exists(journal)
print(repr(found.energy), found.iterations)
"""


def test_a_killed_optimisation_loses_only_its_last_step(tmp_path: Path) -> None:
    """kill -9 at ten random moments of an optimisation: journals only grow, and the end is the same."""
    text = "4\n\nO 0 0 0\nO 1.6 0 0\nH -0.3 0.9 0\nH 1.9 0.5 0.9\n"
    given = [text, str(tmp_path / "a.journal"), str(tmp_path / "a.xyz")]
    done = subprocess.run([sys.executable, "-c", KILLS, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    energy, steps = done.stdout.split()
    whole = optimize(Molecule.from_string(text), "pm6", convergence="tight")
    assert float(energy) == pytest.approx(whole.energy, abs=1e-9)
    assert int(steps) == whole.iterations
    assert (tmp_path / "a.xyz").read_text().count("Properties") == whole.iterations


def test_constraints_far_from_the_start_do_not_hang() -> None:
    """geomeTRIC's exact enforcement of these angles did not end."""
    dimer = "O 0 0 0; H 0 0.76 -0.58; H 0 -0.76 -0.58; O 0 0 2.9; H 0 0 1.95; H 0.9 0 3.2"
    found = optimize(Molecule.of(dimer), "pm6", set=["angle 1 5 2 40", "angle 4 3 6 40"], max_steps=20)
    assert found.iterations == 20
