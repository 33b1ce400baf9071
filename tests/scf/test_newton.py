"""Newton steps: from any orbitals to a minimum, without a rise of the energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.scf import accelerator
from cuanto.scf.hessian import FLAT_CURVATURE
from cuanto.scf.newton import _step
from cuanto.scf.state import State
from scf_cases import options_for_counting, record, run_record

DIRECT: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
WATER = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"


def test_steps_are_downhill_and_within_the_radius() -> None:
    values, slopes = np.array([-0.1, 1e-7, 0.2, 1.0]), np.array([1e-3, 1e-3, -0.2, 0.5])
    y, raised = _step(values, slopes, 10.0, FLAT_CURVATURE)
    assert raised == 0.0 and np.allclose(y, [-0.01, 0.0, 1.0, -0.5])
    y, raised = _step(values, slopes, 0.1, FLAT_CURVATURE)
    assert raised > 0.0 and np.linalg.norm(y) == pytest.approx(0.1) and y @ slopes < 0.0
    y, _ = _step(np.array([-1e-4, 0.5]), np.array([1e-6, 0.1]), 1.0, 5e-4)
    assert np.allclose(y, [0.0, -0.2])  # a negative curvature within the error counts as zero


@pytest.mark.parametrize("method", ["rhf", "uhf", "rohf", "pbe"])
def test_newton_steps_reach_the_energy_of_diis(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accelerator gives up at once, so that only Newton steps are taken."""
    mol = cuanto.Molecule.from_string(WATER, charge=int(method != "rhf"))
    given: dict[str, Any] = {**DIRECT, "dipole_tolerance": 1e-6}
    plain = cuanto.energy(mol, method, "sto-3g", **given)
    monkeypatch.setattr(accelerator, "GIVE_UP_ITERATIONS", 0)
    states: list[State] = []
    found = cuanto.energy(mol, method, "sto-3g", **given, on_iteration=states.append)
    newton = [state for state in states if state.step == "newton"]
    assert found.converged and newton and found.energy == pytest.approx(plain.energy, abs=1e-8)
    assert np.abs(found.dipole - plain.dipole).max() < 1e-4
    assert np.abs(found.orbital_energies - plain.orbital_energies).max() < 1e-4
    accepted = np.minimum.accumulate([state.energy for state in newton])
    assert newton[-1].energy <= accepted[-1] + 1e-9
    assert found.state.curvature is not None and found.state.curvature > 0.0


def test_few_newton_steps_in_a_flat_valley() -> None:
    """CuO in STO-3G after DIIS has converged: the valley (curvature 1e-5) is curved, and a step along it raises a tiny
    gradient. Such steps were rejected, and rounding decided whether 54 or 85 short ones followed."""
    given, states = record("cuo_uhf", molecule="CuO", basis="sto-3g", cartesian=False, label=None), list[State]()
    found = run_record(given, **{**options_for_counting(given), "on_iteration": states.append})
    assert found.converged and abs(found.energy - given["energy"]) < 1e-8
    assert 2 <= sum(state.step == "newton" for state in states) <= 10
