"""Molecular dynamics on the surface of any method, with ASE's integrators (and internally ASE's units).

Constant energy (velocity Verlet), or constant temperature by Langevin's equation or a chain of Nose-Hoover thermostats.
After every step the state of the run is on the disk: the same run continues from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import ConvergenceError, InputError, MissingDependencyError
from cuanto.journal import JsonLines
from cuanto.methods import Result
from cuanto.motion.record import calculation_key, require_own_files
from cuanto.motion.surface import Surface
from cuanto.motion.trajectory import Trajectory, frame_text
from cuanto.options import require_known
from cuanto.system import Molecule

try:
    from ase import Atoms
    from ase import units as ase_units
    from ase.calculators.calculator import Calculator, all_changes
    from ase.md.langevin import Langevin
    from ase.md.nose_hoover_chain import NoseHooverChainNVT
    from ase.md.verlet import VelocityVerlet
except ImportError:
    raise MissingDependencyError("dynamics needs ASE: `pip install 'cuanto[ase]'`") from None

DYNAMICS = "dynamics"
THERMOSTATS = ("none", "langevin", "nose-hoover")
NOT_STARTED = -1
"""Step number of a run that has not started."""
EXTRAPOLATION_STEPS = 5
"""Steps from which start orbitals are extrapolated."""


@dataclass(frozen=True, kw_only=True)
class DynamicsSettings:
    """How atoms move: `timestep` and `time_constant` of a thermostat in fs, `temperature` in K.

    Velocities at the start are drawn for the temperature with random numbers of `seed`. Without a thermostat the
    molecule as a whole neither moves nor rotates, and the other degrees of freedom have exactly this temperature.
    """

    timestep: float = 0.5
    temperature: float = 300.0
    thermostat: str = "none"
    time_constant: float = 50.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.thermostat not in THERMOSTATS:
            raise InputError(f"unknown thermostat {self.thermostat!r}: choose {', '.join(THERMOSTATS)}")
        for name, smallest in (("timestep", 1e-6), ("time_constant", 1e-6), ("temperature", 0.0)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not smallest <= float(value) < 1e6:
                raise InputError(
                    f"{name.replace('_', ' ')} is {value!r:.60}: give a number of at least {smallest:g}, less than 1e6"
                )
        if self.thermostat != "none" and self.temperature == 0.0:
            raise InputError(f"the thermostat {self.thermostat} needs a temperature above zero")


@dataclass(frozen=True)
class Step:
    """One step: time in fs, energies in Hartree, temperature in K.

    `conserved`: the energy that an exact integration would conserve (None for Langevin's equation, which has no such
    quantity).
    `iterations`: those of the SCF.
    """

    number: int
    time: float
    potential: float
    kinetic: float
    temperature: float
    conserved: float | None
    iterations: int


@dataclass(frozen=True, eq=False, repr=False)
class DynamicsResult:
    """A trajectory: its steps, the last geometry and velocities (Bohr/fs)."""

    steps: tuple[Step, ...]
    molecule: Molecule
    velocities: Array

    def __repr__(self) -> str:
        """One line: the steps would fill the screen of a notebook."""
        last = self.steps[-1]
        head = f"{type(self).__name__} {self.molecule.name or 'molecule'}: {last.number} steps"
        return f"<{head} to {last.time:g} fs, {last.temperature:.0f} K, {last.potential:.9f} Hartree>"

    @property
    def drift(self) -> float | None:
        """Slope of the conserved energy, Hartree per atom and ps; None if there is none, or for fewer than three
        steps."""
        if len(self.steps) < 3 or self.steps[0].conserved is None:
            return None
        time = np.array([step.time for step in self.steps]) / 1000.0
        conserved = np.array([step.conserved for step in self.steps])
        return float(np.polyfit(time, conserved - conserved[0], 1)[0]) / self.molecule.natom


class SurfaceCalculator(Calculator):
    """Energies and forces of a surface, for ASE."""

    implemented_properties = ["energy", "free_energy", "forces"]  # noqa: RUF012  # ASE's own way

    def __init__(self, surface: Surface) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.surface = surface

    def calculate(
        self, atoms: Any = None, properties: Any = ("energy",), system_changes: Any = tuple(all_changes)
    ) -> None:
        """Compute energy and forces together."""
        super().calculate(atoms, properties, system_changes)  # type: ignore[no-untyped-call]
        assert self.atoms is not None
        result = self.surface.at(self.atoms.positions / ase_units.Bohr)
        energy = result.energy * ase_units.Hartree
        forces = -result.gradient * (ase_units.Hartree / ase_units.Bohr)
        self.results = {"energy": energy, "free_energy": energy, "forces": forces}


class Dynamics:
    """A run of molecular dynamics that can be continued.

    With a `path`, frames are appended to the trajectory PATH, and the state after every step is kept beside it in
    PATH.state; a run with the same molecule, method, basis, options and settings continues from there.
    """

    def __init__(
        self, surface: Surface, settings: DynamicsSettings, path: str | os.PathLike[str] | None = None
    ) -> None:
        self.surface, self.settings = surface, settings
        self.trajectory = None if path is None else Trajectory(path)
        self._file = None if path is None else JsonLines(Path(f"{path}.state"))
        molecule, self._random = surface.molecule, np.random.default_rng(settings.seed)
        if molecule.nuclei.ghosts.any():
            raise InputError("ghost atoms have no mass and cannot move: leave them out")
        self._atoms: Any = Atoms(molecule.elements, molecule.R_ax * ase_units.Bohr, masses=molecule.nuclei.masses)
        self._atoms.calc = SurfaceCalculator(surface)
        self.number, self._frames = NOT_STARTED, 0
        self._draw_velocities()
        self._integrator = self._make_integrator()
        self._integrator.close()  # the log file that ASE opens; steps are logged here
        self._resume()

    def run(
        self, steps: int, on_step: Callable[[Step, Result], object] | None = None, every: int = 1
    ) -> DynamicsResult:
        """Move the atoms until `steps` steps are done, earlier ones included; write every `every`-th frame."""
        done = []
        for step, result in self._steps(steps, every):
            done.append(step)
            if on_step is not None:
                on_step(step, result)
        return DynamicsResult(tuple(done), self.surface.molecule_at(self._positions()), self._velocities())

    def _steps(self, steps: int, every: int) -> Iterator[tuple[Step, Result]]:
        if self.number == NOT_STARTED:
            self._save()  # a trajectory without a state belongs to something else
            self._atoms.get_forces()
            self.number = 0
            yield self._finish(every)
        while self.number < steps:
            with _naming_time_step(self.number + 1):
                self._integrator.step()
            self.number += 1
            yield self._finish(every)

    def _finish(self, every: int) -> tuple[Step, Result]:
        """Record a step and write it to the disk."""
        result = self.surface.result
        assert result is not None
        step = Step(
            number=self.number,
            time=self.number * self.settings.timestep,
            potential=result.energy,
            kinetic=float(self._atoms.get_kinetic_energy()) / ase_units.Hartree,
            temperature=self._temperature(),
            conserved=self._conserved(result),
            iterations=result.iterations,
        )
        if self.trajectory is not None and self.number % every == 0:
            columns = {"forces": -result.gradient, "velocities": self._velocities()}
            self.trajectory.append(
                frame_text(result.molecule, result.energy, columns, step=step.number, time=step.time)
            )
            self._frames += 1
        self._save()
        return step, result

    def _save(self) -> None:
        """Replace the state on the disk."""
        if self._file is not None:
            self._file.replace({"run": self._key, **self._state()})

    def _conserved(self, result: Result) -> float | None:
        if self.settings.thermostat == "langevin":
            return None
        energy = result.energy + float(self._atoms.get_kinetic_energy()) / ase_units.Hartree
        if self.settings.thermostat == "nose-hoover":
            energy += float(self._integrator._thermostat.get_thermostat_energy()) / ase_units.Hartree
        return energy

    def _positions(self) -> Array:
        return np.asarray(self._atoms.positions / ase_units.Bohr)

    def _velocities(self) -> Array:
        """Velocities in Bohr/fs."""
        return np.asarray(self._atoms.get_velocities() * ase_units.fs / ase_units.Bohr)

    def _draw_velocities(self) -> None:
        atoms, temperature = self._atoms, self.settings.temperature
        mass_a = atoms.get_masses()
        v_ax = self._random.standard_normal((len(atoms), 3)) * np.sqrt(ase_units.kB * temperature / mass_a)[:, None]
        atoms.set_velocities(
            v_ax if self.settings.thermostat != "none" else remove_overall_motion(atoms.positions, v_ax, mass_a)
        )
        if self.settings.thermostat == "none" and temperature and self._freedom:
            atoms.set_velocities(atoms.get_velocities() * np.sqrt(temperature / self._temperature()))

    @cached_property
    def _freedom(self) -> int:
        """Degrees of freedom that have kinetic energy: without a thermostat, translation and rotation have none."""
        count = len(self._atoms)
        if self.settings.thermostat != "none":
            return 3 * count
        R_ax = self.surface.molecule.R_ax
        dimensions = int(np.linalg.matrix_rank(R_ax - R_ax.mean(axis=0), tol=1e-3))  # 1: linear
        return 3 * count - 3 - (min(dimensions, 2) + 1 if dimensions else 0)

    def _temperature(self) -> float:
        """Temperature in K."""
        return float(2.0 * self._atoms.get_kinetic_energy() / (ase_units.kB * max(self._freedom, 1)))

    def _make_integrator(self) -> Any:
        settings, step = self.settings, self.settings.timestep * ase_units.fs
        constant = settings.time_constant * ase_units.fs
        if settings.thermostat == "langevin":
            friction = 1.0 / constant
            return Langevin(
                self._atoms, step, temperature_K=settings.temperature, friction=friction, fixcm=False, rng=self._random
            )
        if settings.thermostat == "nose-hoover":
            return NoseHooverChainNVT(self._atoms, step, temperature_K=settings.temperature, tdamp=constant)
        return VelocityVerlet(self._atoms, timestep=step)

    def _state(self) -> dict[str, Any]:
        """Everything that determines the following steps."""
        found: dict[str, Any] = {
            "step": self.number,
            "frames": self._frames,
            "positions": self._atoms.positions.tolist(),
            "momenta": self._atoms.get_momenta().tolist(),
            "random": self._random.bit_generator.state,
        }
        if self.settings.thermostat == "nose-hoover":
            chain = self._integrator._thermostat
            found["chain"] = [chain._eta.tolist(), chain._p_eta.tolist()]
        return found

    @cached_property
    def _key(self) -> str:
        """Key of this run, as in a journal."""
        surface = self.surface
        model = (surface.method, surface.basis, surface.options)
        return calculation_key(surface.molecule, *model, DYNAMICS, asdict(self.settings))

    def _resume(self) -> None:
        """Continue from the state on the disk, if it is of the same run."""
        if self._file is None or self.trajectory is None:
            return
        state = next(iter(self._file.read()), None)
        if state is None:
            if self.trajectory.path.exists():
                raise InputError(
                    f"{self.trajectory.path} exists and has no state to continue from: remove or rename it"
                )
            return
        if state.get("run") != self._key:
            raise InputError(
                f"{self.trajectory.path} belongs to another run (molecule, method, options, settings or version of "
                "cuanto differ): remove or rename it, or give another name"
            )
        self.number, self._frames = state["step"], state["frames"]
        self.trajectory.keep(self._frames)
        self._atoms.positions = np.array(state["positions"])
        self._atoms.set_momenta(np.array(state["momenta"]))
        self._random.bit_generator.state = state["random"]
        if self.settings.thermostat == "nose-hoover":
            chain = self._integrator._thermostat
            chain._eta, chain._p_eta = (np.array(values) for values in state["chain"])
            self._integrator._q, self._integrator._p = self._atoms.get_positions(), self._atoms.get_momenta()


@contextmanager
def _naming_time_step(number: int) -> Iterator[None]:
    """Add to the error of an SCF that does not converge that atoms may have moved too far."""
    try:
        yield
    except ConvergenceError as error:
        advice = "if the atoms move too far in a step, use a shorter timestep or a lower temperature"
        raise ConvergenceError(f"step {number}: {error}; {advice}") from error


def remove_overall_motion(R_ax: Array, v_ax: Array, mass_a: Array) -> Array:
    """Remove the velocity of the centre of mass and the rotation about it."""
    r_ax = R_ax - mass_a @ R_ax / mass_a.sum()
    v_ax = v_ax - mass_a @ v_ax / mass_a.sum()
    momentum_x = (mass_a[:, None] * np.cross(r_ax, v_ax)).sum(axis=0)
    inertia_xy = np.eye(3) * (mass_a @ (r_ax**2).sum(axis=1)) - (mass_a[:, None] * r_ax).T @ r_ax
    return v_ax - np.cross(np.linalg.pinv(inertia_xy, rcond=1e-9) @ momentum_x, r_ax)


def dynamics(
    molecule: Molecule | str | os.PathLike[str],
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
    steps: int = 100,
    settings: DynamicsSettings | Mapping[str, Any] | None = None,
    trajectory: str | os.PathLike[str] | None = None,
    on_step: Callable[[Step, Result], object] | None = None,
    **options: Any,
) -> DynamicsResult:
    """Move the atoms of a molecule for some steps; other arguments are those of `cuanto.energy`.

    `settings`: time step (fs), temperature (K) and thermostat, also as a dictionary, by default 0.5 fs at constant
    energy. With the path of a `trajectory` (extended XYZ), a run that was interrupted continues. The result has all
    steps, the last geometry and the `drift` of the energy.
    """
    _check_steps(steps)
    checked = _settings(settings, options)
    require_own_files(molecule, basis, trajectory)
    molecule = Molecule.of(molecule, charge, multiplicity)
    surface = Surface(molecule, method, basis, points=EXTRAPOLATION_STEPS, **options)
    return Dynamics(surface, checked, trajectory).run(steps, on_step)


def _check_steps(steps: Any) -> None:
    if isinstance(steps, bool) or not isinstance(steps, Integral) or int(steps) < 0:
        raise InputError(f"steps is {steps!r:.60}: give a whole number of at least 0")


def _settings(given: Any, options: Mapping[str, Any]) -> DynamicsSettings:
    """The settings, also from a dictionary; refuse those that are among the `options` of the calculation."""
    names = [one.name for one in fields(DynamicsSettings)]
    if misplaced := {name: value for name, value in options.items() if name in names}:
        raise InputError(f"{', '.join(misplaced)} belongs to the settings: write settings={misplaced!r:.200}")
    if given is None or isinstance(given, DynamicsSettings):
        return given or DynamicsSettings()
    if not isinstance(given, Mapping):
        raise InputError(
            f"settings must be DynamicsSettings or a dictionary such as {{'temperature': 200.0}}, not {given!r:.60}"
        )
    require_known(given, names, "dynamics: unknown setting")
    return DynamicsSettings(**given)
