"""Molecular dynamics: energy conservation, temperatures, and runs that continue after an interruption."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.errors import ConvergenceError, InputError
from cuanto.motion.dynamics import Dynamics, DynamicsSettings
from cuanto.motion.surface import Surface

WATER = Molecule.from_string("3\nname=water\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")
HEAVY_WATER = WATER.with_masses([None, 2.014, None])
CARBON_DIOXIDE = Molecule.from_string("3\n\nC 0 0 0\nO 0 0 1.16\nO 0 0 -1.16\n")


def surface() -> Surface:
    return Surface(WATER, "pm6", backend="cpu")


def test_energy_is_conserved_to_second_order_in_the_timestep() -> None:
    spread = []
    for timestep, steps in ((0.5, 16), (0.25, 32)):
        settings = DynamicsSettings(timestep=timestep, temperature=500.0)
        result = Dynamics(surface(), settings).run(steps)
        conserved = [step.conserved for step in result.steps]
        assert all(step.conserved == pytest.approx(step.potential + step.kinetic) for step in result.steps)
        spread.append(np.ptp(conserved))
    assert spread[0] < 5e-5
    assert spread[0] / spread[1] == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize(("molecule", "freedom"), [(WATER, 3), (HEAVY_WATER, 3), (CARBON_DIOXIDE, 4)])
def test_first_velocities_have_the_temperature_and_no_overall_motion(molecule: Molecule, freedom: int) -> None:
    run = Dynamics(Surface(molecule, "pm6", backend="cpu"), DynamicsSettings(temperature=400.0))
    step = run.run(0).steps[0]
    assert step.temperature == pytest.approx(400.0)
    assert step.kinetic == pytest.approx(0.5 * freedom * 400.0 * 3.1668e-6, rel=1e-4)
    v_ax, mass_a = run.run(0).velocities, molecule.nuclei.masses
    assert np.allclose(mass_a @ v_ax, 0.0, atol=1e-12)
    assert np.allclose(np.cross(molecule.R_ax, mass_a[:, None] * v_ax).sum(axis=0), 0.0, atol=1e-10)


def test_isotopes_have_their_masses(tmp_path: Path) -> None:
    runs = [cuanto.dynamics(one, "pm6", steps=2, backend="cpu") for one in (WATER, HEAVY_WATER)]
    kinetic = [0.5 * one.molecule.nuclei.masses @ (one.velocities**2).sum(axis=1) for one in runs]
    steps = [one.steps[-1].kinetic for one in runs]
    assert kinetic[1] / kinetic[0] == pytest.approx(steps[1] / steps[0], rel=1e-9)
    path = tmp_path / "md.xyz"
    cuanto.dynamics(HEAVY_WATER, "pm6", steps=0, trajectory=path, backend="cpu")
    assert Molecule.from_xyz(path).nuclei.masses.tolist() == [15.999, 2.014, 1.008]
    with pytest.raises(InputError, match="belongs to another run"):
        cuanto.dynamics(WATER, "pm6", steps=0, trajectory=path, backend="cpu")


def test_drift_is_the_slope_of_the_conserved_energy() -> None:
    result = Dynamics(surface(), DynamicsSettings(temperature=0.0)).run(3)
    slope = np.polyfit([s.time / 1000 for s in result.steps], [s.conserved for s in result.steps], 1)[0]
    assert result.drift == pytest.approx(slope / 3, rel=1e-6)
    assert Dynamics(surface(), DynamicsSettings(thermostat="langevin")).run(3).drift is None


@pytest.mark.parametrize("thermostat", ["none", "langevin", "nose-hoover"])
def test_an_interrupted_run_continues_as_if_nothing_had_happened(tmp_path: Path, thermostat: str) -> None:
    settings = DynamicsSettings(thermostat=thermostat, seed=3)
    whole = Dynamics(surface(), settings).run(6)
    path = tmp_path / "water.xyz"
    Dynamics(surface(), settings, path).run(3)
    with open(path, "a", encoding="utf-8") as file:
        file.write("3\nan unfinished frame\nO 0 ")
    continued = Dynamics(surface(), settings, path)
    assert continued.number == 3
    result = continued.run(6)
    assert [step.number for step in result.steps] == [4, 5, 6]
    assert np.allclose(result.molecule.R_ax, whole.molecule.R_ax, atol=1e-7)
    assert np.allclose(result.velocities, whole.velocities, atol=1e-7)
    assert continued.trajectory is not None
    assert len(list(continued.trajectory.frames())) == 7


def test_a_trajectory_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "water.xyz"
    Dynamics(surface(), DynamicsSettings(), path).run(1)
    with pytest.raises(InputError, match="another run"):
        Dynamics(surface(), DynamicsSettings(seed=1), path)
    Path(f"{path}.state").unlink()
    with pytest.raises(InputError, match="no state"):
        Dynamics(surface(), DynamicsSettings(), path)


def test_a_run_continues_with_another_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "water.xyz"
    Dynamics(surface(), DynamicsSettings(), path).run(1)
    assert Dynamics(Surface(WATER, "pm6", max_memory=1e9), DynamicsSettings(), path).number == 1


def test_other_point_charges_and_basis_files_are_other_runs(tmp_path: Path) -> None:
    def start(charges: np.ndarray, basis: Path) -> Dynamics:
        helium = Molecule(["He"], [[0.0, 0, 0]])
        options = {"point_charges": [charges, positions]}
        return Dynamics(Surface(helium, "hf", str(basis), **options), DynamicsSettings(), tmp_path / "helium.xyz")

    positions = np.arange(6000.0).reshape(2000, 3) + 10.0
    charges = np.full(2000, 1e-4)
    basis = tmp_path / "helium.nw"
    basis.write_text("He S\n  1.0  1.0\n")
    start(charges, basis).run(0)
    start(charges, basis)
    with pytest.raises(InputError, match="another run"):
        start(np.where(np.arange(2000) == 1000, -1e-4, charges), basis)
    basis.write_text("He S\n  1.1  1.0\n")
    with pytest.raises(InputError, match="another run"):
        start(charges, basis)


def test_an_scf_that_fails_after_a_long_step_names_the_timestep() -> None:
    settings = DynamicsSettings(timestep=50.0)
    with pytest.raises(ConvergenceError, match=r"step 1: .*use a shorter timestep or a lower temperature"):
        Dynamics(Surface(WATER, "hf", "sto-3g", max_iterations=12), settings).run(1)


def test_a_state_is_replaced_completely(tmp_path: Path) -> None:
    path = tmp_path / "water.xyz"
    Dynamics(surface(), DynamicsSettings(), path).run(2)
    assert json.loads(Path(f"{path}.state").read_text())["step"] == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["water.xyz", "water.xyz.state"]


@pytest.mark.parametrize(
    "settings",
    [{"thermostat": "ice"}, {"timestep": 0.0}, {"temperature": -1.0}, {"thermostat": "langevin", "temperature": 0.0}],
)
def test_invalid_settings_are_refused(settings: dict[str, float | str]) -> None:
    with pytest.raises(InputError):
        DynamicsSettings(**settings)


def test_the_range_of_a_setting_is_named() -> None:
    with pytest.raises(InputError, match=r"temperature is 1000000000.0: give a number of at least 0, less than 1e6"):
        DynamicsSettings(temperature=1e9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": 100.0}, "temperature belongs to the settings: write settings={'temperature': 100.0}"),
        ({"settings": {"temprature": 100.0}}, "unknown setting 'temprature'; did you mean 'temperature'?"),
        ({"settings": {"temperature": "hot"}}, "temperature is 'hot': give a number"),
        ({"settings": 300}, "settings must be DynamicsSettings or a dictionary such as"),
        ({"steps": -1}, "steps is -1: give a whole number of at least 0"),
        ({"steps": 2.5}, "steps is 2.5: give a whole number"),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        cuanto.dynamics(WATER, "pm6", backend="cpu", **given)


def test_settings_as_a_dictionary() -> None:
    found = cuanto.dynamics(WATER, "pm6", steps=0, settings={"temperature": 100.0}, backend="cpu")
    assert found.steps[0].temperature == pytest.approx(100.0)


def test_ghosts_cannot_move() -> None:
    molecule = Molecule(["O", "H", "H", "Gh-He"], np.concatenate([WATER.R_ax, [[0.0, 0.0, 9.0]]]))
    with pytest.raises(InputError, match="ghost"):
        Dynamics(Surface(molecule, "hf", "sto-3g", backend="cpu"), DynamicsSettings())


def test_the_public_function_runs_a_few_steps() -> None:
    seen: list[int] = []
    result = cuanto.dynamics(WATER, "pm6", steps=2, on_step=lambda step, _: seen.append(step.number), backend="cpu")
    assert "2 steps to 1 fs" in repr(result) and len(repr(result)) < 120
    assert seen == [0, 1, 2]
    assert result.molecule.symbols == WATER.symbols
