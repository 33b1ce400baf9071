"""Optimisation of geometries: minima, transition states, scans and reaction paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.blas import one_thread
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import InputError
from cuanto.files import save_as
from cuanto.log import Timings, logger
from cuanto.methods import Result
from cuanto.motion.constraints import Constraint
from cuanto.motion.criteria import PRESETS, Criteria, Measures, displacement, require_stationary
from cuanto.motion.curvature import falls_along_some_direction
from cuanto.motion.displacements import DisplacementPlan
from cuanto.motion.record import Recorder, calculation_key, require_own_files, result_at
from cuanto.motion.settings import NAMES, Settings
from cuanto.motion.surface import Surface
from cuanto.motion.trajectory import Trajectory, frame_text
from cuanto.motion.walker import Plan, Point, Walker
from cuanto.options import OPTIONS, require_known
from cuanto.system import Molecule
from cuanto.system.symmetry import identity

OPTIMISATION = "optimisation"
SHIFT = 0.005
"""Displacement of the atoms for a numerical Hessian, Bohr: the error is below 1e-4 of the force constants."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One geometry of an optimisation with its energy and gradient (Hartree, Bohr).

    `change`: energy change since the last accepted geometry, NaN for the first. `measures` are compared with the
    criteria of convergence, and `met` says which of them are met. A step that led upwards may be rejected: `accepted`.
    `stage` names the part of the whole: a pre-optimisation, a point of a scan, a direction of a path; else it is empty.
    """

    number: int
    molecule: Molecule
    energy: float
    change: float
    gradient: Array
    measures: Measures
    met: tuple[bool, bool, bool, bool]
    accepted: bool = True
    stage: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class PathPoint:
    """An optimised point of a scan, or a point of a reaction path; energy and gradient in Hartree and Bohr.

    `coordinate`: on a path the mass-weighted arc length from the transition state, Bohr sqrt(u); in a scan its number.
    """

    molecule: Molecule
    energy: float
    gradient: Array
    converged: bool
    coordinate: float
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OptimizationResult:
    """The end of an optimisation.

    `molecule`, `energy` and `result` are those of the last geometry; for a reaction path or a scan those of its last
    point, and `points` has all of them. `steps`: every computed geometry, in order; `initial`: the given molecule;
    `settings`: those of the optimisation.
    """

    initial: Molecule
    result: Result
    converged: bool
    steps: tuple[Step, ...]
    settings: Settings
    points: tuple[PathPoint, ...] = ()
    timings: Timings = field(default_factory=Timings)

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "NOT converged"
        head = f"OptimizationResult {self.molecule.name or 'molecule'} {self.result.level_of_theory}"
        return f"<{head}: {self.energy:.9f} Hartree, {verdict} in {self.iterations} steps>"

    @property
    def molecule(self) -> Molecule:
        """The optimised molecule."""
        return self.result.molecule

    @property
    def energy(self) -> float:
        """Energy of the optimised molecule, Hartree."""
        return self.result.energy

    @property
    def gradient(self) -> Array:
        """Gradient in the last geometry, Hartree/Bohr."""
        return self.result.gradient

    @property
    def iterations(self) -> int:
        """Number of geometries whose gradient was computed, without a pre-optimisation."""
        return sum(step.stage != PRE_OPTIMISATION for step in self.steps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .json (QCSchema), .html (a report) or .xyz (the molecule, or all points of a scan or path), by the name
        of the file."""
        texts = {
            ".json": lambda: str(import_module("cuanto.interfaces.optimization").optimization_text(self)),
            ".html": lambda: str(import_module("cuanto.report").report_html(self)),
            ".xyz": lambda: structure_text(self),
        }
        save_as(path, texts)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema OptimizationResult as a dictionary."""
        # Imported when needed, because interfaces import results.
        schema: dict[str, Any] = import_module("cuanto.interfaces.optimization").to_qcschema(self)
        return schema


PRE_OPTIMISATION = "pre-optimisation"
OnStep = Callable[[Step], object]


def optimize(
    molecule: Molecule | str | os.PathLike[str],
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    trajectory: str | os.PathLike[str] | None = None,
    journal: str | os.PathLike[str] | None = None,
    on_step: OnStep | None = None,
    **keywords: Any,
) -> OptimizationResult:
    """Optimise the geometry of a molecule; needs geomeTRIC (`pip install 'cuanto[motion]'`).

    `molecule`, `charge` and `multiplicity` as in `cuanto.energy`.
    `keywords`: fields of `cuanto.motion.settings.Settings` (convergence, freeze, set, scan, ts, irc, pre, hessian,
    coordinates, max_steps, trust) and options of `cuanto.energy`. `settings`: those fields together, also as a
    dictionary. `trajectory`: an extended XYZ file that grows by one frame per step. `journal`: a file from which the
    same call continues after an interruption. `on_step` is called with every step.
    """
    require_known(keywords, (*NAMES, *OPTIONS), "optimize: unknown option")
    own = {name: keywords.pop(name) for name in list(keywords) if name in NAMES}
    checked = _settings(settings, own)
    require_own_files(molecule, basis, trajectory, journal)
    search = Search(Molecule.of(molecule, charge, multiplicity), method, basis, checked, keywords)
    search.record_in(journal, trajectory)
    return search.run(on_step or (lambda step: None))


def _settings(given: Any, keywords: Mapping[str, Any]) -> Settings:
    """The settings from keywords, or as they are given, also as a dictionary."""
    if given is None:
        return Settings.of(**keywords)
    if keywords:
        raise InputError(f"{', '.join(keywords)} belongs to the settings: write it there, or leave out settings")
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"settings must be Settings or a dictionary such as {{'max_steps': 50}}, not {given!r:.60}")
    require_known(given, NAMES, "optimize: unknown setting")
    return Settings.of(**given)


class Search:
    """An optimisation with all its parts; `run` performs it."""

    def __init__(
        self,
        molecule: Molecule,
        method: str,
        basis: BasisChoice | Basis | None,
        settings: Settings,
        options: dict[str, Any],
    ) -> None:
        if isinstance(basis, Basis):
            raise InputError(
                f"the basis {basis.name} was made for one geometry: give its name, so that it moves with the atoms"
            )
        self.surface = Surface(molecule, method, basis, **options)
        if molecule.nuclei.ghosts.any():
            raise InputError("ghost atoms cannot be optimised: leave them out")
        if self.surface.surroundings.keywords and settings.coordinates == "dlc":
            raise InputError(
                "dlc coordinates cannot move or rotate the whole molecule among point charges or in a field: "
                "use tric or hdlc"
            )
        self.molecule, self.settings = molecule, settings
        self.constraints = settings.constraints(molecule)
        self._steps: list[Step] = []
        self._recorder = Recorder(None, "")
        self._trajectory: Trajectory | None = None
        self._watch: OnStep = lambda step: None

    @property
    def key(self) -> str:
        """Key of this optimisation in a journal."""
        s = self.surface
        return calculation_key(self.molecule, s.method, s.basis, s.options, OPTIMISATION, self.settings.plain())

    def record_in(self, journal: str | os.PathLike[str] | None, trajectory: str | os.PathLike[str] | None) -> int:
        """Keep evaluations and geometries in files; returns the number of evaluations already in the journal."""
        self._recorder = Recorder(journal, self.key if journal is not None else "")
        self._trajectory = None if trajectory is None else Trajectory(trajectory)
        return self._recorder.known

    def run(self, watch: OnStep) -> OptimizationResult:
        """Optimise; the journal is removed at the end."""
        self._watch, begin, settings = watch, time.perf_counter(), self.settings
        start = self.molecule
        if settings.pre is not None:
            start = self._optimise(start, self._cheap_surface(settings.pre), (), "minimum", PRE_OPTIMISATION)[0]
        points: list[PathPoint] = []
        if settings.scan:
            end, points = self._scan(start)
            converged = all(point.converged for point in points)
        elif settings.ts or not settings.irc:
            kind = "ts" if settings.ts else "minimum"
            end, converged = self._optimise(start, self.surface, self.constraints[0], kind)
        else:
            end, converged = start, True
        if settings.irc:
            if not settings.ts:
                require_stationary(self._recorder.evaluate(self.surface, end.R_ax)[1])
            points, converged = self._path(end) if converged else ([], False)
            end = points[-1].molecule if points else end
        result = result_at(self.surface, end.R_ax)
        self._recorder.finish()
        return OptimizationResult(
            initial=self.molecule,
            result=result,
            converged=converged,
            steps=tuple(self._steps),
            settings=settings,
            points=tuple(points),
            timings=Timings({OPTIMISATION: time.perf_counter() - begin}),
        )

    def _cheap_surface(self, method: str) -> Surface:
        """The surface of a semiempirical method, with the options that it shares."""
        kept = {name: value for name, value in self.surface.options.items() if name in ("backend", "max_memory")}
        return Surface(self.molecule, method, None, **kept)

    def _optimise(
        self,
        start: Molecule,
        surface: Surface,
        constraints: Sequence[Constraint],
        kind: str,
        stage: str = "",
    ) -> tuple[Molecule, bool]:
        """Search for a stationary point; returns whether it was reached."""
        settings = self.settings
        criteria = PRESETS["normal"] if stage == PRE_OPTIMISATION else settings.criteria
        if start.natom == 1:
            return start, self._single_atom(surface, stage, criteria)
        hessian = None if stage == PRE_OPTIMISATION else self._hessian(start, settings.first_hessian(kind))
        plan = Plan(
            kind=kind,
            coordinates=settings.coordinates,
            constraints=constraints,
            hessian_xx=hessian,
            trust=settings.trust,
            surroundings=bool(surface.surroundings.keywords),
        )
        end, before = start, float("nan")
        with Walker(start, self._evaluator(surface), plan, criteria) as walker, one_thread:
            for number, point in enumerate(walker.walk(), start=1):
                step = self._step(number, point, before, stage, criteria)
                if point.accepted:
                    end, before = step.molecule, point.energy
                    if _is_converged(point, step, criteria):
                        return end, kind != "ts" or self._is_saddle(surface, point, walker.softest_ax())
                if number >= settings.max_steps:
                    break
        return end, False

    def _is_saddle(self, surface: Surface, point: Point, softest_ax: Array) -> bool:
        """Whether a stationary point is no minimum: geomeTRIC's Hessian, which it updates, may be wrong about it."""

        def gradient(R_ax: Array) -> Array:
            return self._recorder.evaluate(surface, R_ax)[1]

        return point.descents > 0 and falls_along_some_direction(gradient, point.R_ax, softest_ax)

    def _single_atom(self, surface: Surface, stage: str, criteria: Criteria) -> bool:
        """Evaluate a molecule of one atom, which geomeTRIC cannot move; True if its gradient meets the criteria."""
        energy, gradient_ax = self._recorder.evaluate(surface, self.molecule.R_ax)
        point = Point(self.molecule.R_ax, energy, gradient_ax, gradient_ax, np.zeros_like(gradient_ax))
        return all(self._step(1, point, float("nan"), stage, criteria).met)

    def _scan(self, start: Molecule) -> tuple[Molecule, list[PathPoint]]:
        """Optimise every point of a scan, each starting from the previous one."""
        points: list[PathPoint] = []
        for number, constraints in enumerate(self.constraints, start=1):
            scanned = ", ".join(f"{one} {one.shown}" for one in constraints[-len(self.settings.scan) :])
            stage = f"point {number} of {len(self.constraints)}: {scanned}"
            start, converged = self._optimise(start, self.surface, constraints, "minimum", stage)
            last = [step for step in self._steps if step.stage == stage and step.accepted][-1]
            points.append(
                PathPoint(
                    molecule=start,
                    energy=last.energy,
                    gradient=last.gradient,
                    converged=converged,
                    coordinate=float(number),
                    constraints=tuple(constraints),
                )
            )
        return start, points

    def _path(self, top: Molecule) -> tuple[list[PathPoint], bool]:
        """Follow the reaction path from a transition state in both directions."""
        settings, criteria = self.settings, self.settings.criteria
        hessian = self._hessian(top, settings.first_hessian("irc"))
        plan = Plan(
            kind="irc",
            coordinates=settings.coordinates,
            hessian_xx=hessian,
            trust=settings.trust,
            surroundings=bool(self.surface.surroundings.keywords),
            masses=self.molecule.masses,
        )
        sides: dict[int, list[Point]] = {0: [], 1: [], -1: []}
        before, converged = float("nan"), True
        with Walker(top, self._evaluator(self.surface), plan, criteria) as walker, one_thread:
            for number, point in enumerate(walker.path(), start=1):
                stage = {0: "transition state", 1: "path, forwards", -1: "path, backwards"}[point.direction]
                if point.direction and not sides[point.direction] and sides[0]:
                    before = sides[0][0].energy
                self._step(number, point, before, stage, criteria)
                if point.accepted:
                    before = point.energy
                    sides[point.direction].append(point)
                if number >= 2 * settings.max_steps:
                    converged = False
                    break
        order = [*sides[-1][::-1], *sides[0], *sides[1]]
        return self._path_points(order, len(sides[-1]), converged), converged

    def _path_points(self, order: Sequence[Point], top: int, converged: bool) -> list[PathPoint]:
        masses = np.sqrt(self.molecule.nuclei.masses)[:, None]
        lengths = [float(np.linalg.norm(masses * displacement(b.R_ax, a.R_ax))) for a, b in pairwise(order)]
        arc = np.concatenate([[0.0], np.cumsum(lengths)])
        return [
            PathPoint(
                molecule=self.surface.molecule_at(point.R_ax),
                energy=point.energy,
                gradient=point.gradient_ax,
                converged=converged,
                coordinate=float(s - arc[top]),
            )
            for point, s in zip(order, arc, strict=True)
        ]

    def _hessian(self, molecule: Molecule, source: str) -> Array | None:
        """The initial Hessian; None: geomeTRIC's model."""
        if source == "model":
            return None
        plan = DisplacementPlan(molecule.natom, [identity(molecule.natom)], SHIFT)
        if source != "numerical":
            logger.info("Hessian by %s", source)
            cheap = self._cheap_surface(source)
            return plan.hessian(molecule.R_ax, lambda R_ax: cheap.at(R_ax).gradient)
        evaluate = self._evaluator(self.surface)
        return plan.hessian(molecule.R_ax, lambda R_ax: evaluate(R_ax)[1])

    def _evaluator(self, surface: Surface) -> Callable[[Array], tuple[float, Array]]:
        return lambda R_ax: self._recorder.evaluate(surface, R_ax)

    def _step(self, number: int, point: Point, before: float, stage: str, criteria: Criteria) -> Step:
        """Keep and report a step."""
        measures = Measures.of(point.free_gradient_ax, point.move_ax)
        step = Step(
            number=number,
            molecule=self.surface.molecule_at(point.R_ax),
            energy=point.energy,
            change=point.energy - before,
            gradient=point.gradient_ax,
            measures=measures,
            met=criteria.met(measures),
            accepted=point.accepted,
            stage=stage,
        )
        self._steps.append(step)
        if self._trajectory is not None and stage != PRE_OPTIMISATION:
            if all(one is step or one.stage == PRE_OPTIMISATION for one in self._steps):
                self._trajectory.keep(0)  # written again, from the journal if there is one
            more = {"stage": stage} if stage else {}
            columns = {"forces": -point.gradient_ax}
            self._trajectory.append(frame_text(step.molecule, step.energy, columns, step=number, **more))
        self._watch(step)
        return step


def _is_converged(point: Point, step: Step, criteria: Criteria) -> bool:
    """Whether all criteria are met without the step having been shortened, or the surface is flat."""
    small = abs(point.expected) <= criteria.energy and not point.limited
    return point.satisfied and (criteria.flat(step.measures) or (all(step.met) and small))


def structure_text(result: OptimizationResult) -> str:
    """Extended XYZ: the optimised molecule, or all points of a scan or path."""
    if not result.points:
        verdict = {"converged": "T" if result.converged else "F", "level": result.result.level_of_theory}
        return frame_text(result.molecule, result.energy, {"forces": -result.gradient}, **verdict)
    text = ""
    for point in result.points:
        scanned = {
            str(constraint).replace(" ", "_"): constraint.value / constraint.unit
            for constraint in point.constraints
            if constraint.value is not None
        }
        info: dict[str, Any] = {"coordinate": point.coordinate, "converged": "T" if point.converged else "F", **scanned}
        text += frame_text(point.molecule, point.energy, {"forces": -point.gradient}, **info)
    return text
