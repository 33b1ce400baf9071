"""Hessians from central differences of analytic gradients; every displaced geometry is one task.

Finished tasks are kept in a journal: after a crash, the same call computes only those that are missing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuanto.api import gradient_along_path
from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.errors import CuantoError, InputError, describe_error
from cuanto.log import logger
from cuanto.methods import GaussianResult, Request, Result
from cuanto.motion.displacements import Displacement, DisplacementPlan, GradientAndDipole
from cuanto.motion.record import calculation_key, open_journal
from cuanto.motion.state_symmetry import state_operations
from cuanto.motion.tasks import evaluate_task, move_basis, plain_arguments, plain_guess, plain_molecule, read_guess
from cuanto.processes import LostWorkerError, ProcessRunner, TaskError
from cuanto.scf.secants import Secants
from cuanto.system import Molecule
from cuanto.system.symmetry import Operation
from cuanto.workers import DaskRunner, Runner, SerialRunner, usable_cores

STEP = 0.005
"""Bohr. The relative error of a wavenumber is about 0.8 step^2: 0.08 cm^-1 for a stretching vibration at 4000 cm^-1."""
TOLERANCES = {"gradient_tolerance": 1e-8, "energy_tolerance": 1e-11}
"""Tolerances of the SCF; an error of 1e-8 in a gradient becomes 1e-6 Hartree/Bohr^2 in a second derivative."""
MIN_ISOTROPIC_POINTS = 302
"""Points per shell of the coarsest grid for which all operations of the molecule are used, not only those that map the
grid onto itself. A grid has a fixed orientation: with 302 points the use of symmetry changes wavenumbers by 0.1 to
0.6 cm^-1 (ammonia, methane; PBE, r2SCAN), with 590 points by less than 0.1.
"""
EXACT = 1e-6
"""Largest error of a matrix element of an operation that maps the axes of the coordinates onto each other."""
MIN_PARALLEL_SECONDS = 20.0
"""Seconds of work in one process below which no others are started."""
MEMORY_SHARE = 0.8
"""Fraction of the free memory for all processes together."""
MAX_SUBMITTED = 64
"""Maximum number of unfinished tasks submitted to a Dask scheduler."""
MAX_TRIES = 2
"""Attempts at a task whose worker was lost."""

IN_SURROUNDINGS = (
    "translations and rotations are projected out, although point charges or a field act on them: "
    "the vibrations are those inside the molecule"
)
MAX_ASYMMETRY = 1e-3
"""Hartree/Bohr^2. Elements that should be equal differ by up to 3e-5 on smooth surfaces, and by 0.2 step^2 for larger
steps."""

Watcher = Callable[[int, int], object]


@dataclass(frozen=True, eq=False, kw_only=True)
class Hessian:
    """Second derivatives of an energy, Hartree/Bohr^2 in `matrix` [3N, 3N], with molecule, method and basis.

    `dipole_derivatives` [3N, 3] about a fixed origin, e. `gradient`: at the reference geometry. `asymmetry`: largest
    difference of two elements of the raw matrix that should be equal. `displacements`: number of gradients computed.
    """

    molecule: Molecule
    method: str
    basis: str | None
    keywords: Mapping[str, Any]
    energy: float
    gradient: Array
    matrix: Array
    dipole_derivatives: Array
    step: float = STEP
    displacements: int = 0
    asymmetry: float = 0.0
    program: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Work:
    """Where displaced geometries are computed, and where finished ones are stored.

    `workers`: processes of one thread each on this machine (0: this process; None: one for each core, but this process
    if there is a GPU or little to do). `scheduler`: address of a Dask scheduler whose workers are used instead.
    `journal`: file of finished tasks. `on_task` is called with the numbers of finished and of all tasks.
    """

    workers: int | None = None
    scheduler: str | None = None
    journal: str | os.PathLike[str] | None = None
    on_task: Watcher | None = None


@dataclass(eq=False)
class HessianCalculation:
    """The Hessian of a molecule: reference, displaced geometries, derivatives.

    `symmetry`: derive gradients of equivalent displacements from each other; None: if the grid of a functional allows
    it (coarse grids share few operations with the molecule). Point charges and fields have no symmetry.
    """

    molecule: Molecule
    method: str
    basis: Any
    options: Mapping[str, Any]
    step: float = STEP
    symmetry: bool | None = None
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        self.options = {**TOLERANCES, **self.options}
        self._request = Request.of(self.molecule, self.method, self.basis, **self.options)
        if self.molecule.nuclei.ghosts.any():
            raise InputError("ghost atoms have no mass, and no vibrations: leave them out")
        if not 1e-4 <= self.step <= 0.1:
            raise InputError(f"step is {self.step:g} Bohr: give a number from 0.0001 to 0.1")
        self._journal = None if self.work.journal is None else open_journal(self.work.journal)
        self._surroundings = bool(self._request.surroundings.keywords)
        given = {name: value for name, value in self.options.items() if name != "guess"}
        self._model = (self.method.lower(), self.basis, given)

    def run(self) -> tuple[Hessian, Result]:
        """Compute everything that the journal does not have: the Hessian, and the result at the reference geometry."""
        known = {} if self._journal is None else {str(line.get("key")): line for line in self._journal.read()}
        reference = self._reference(known)
        operations = self._operations(reference)
        plan = DisplacementPlan(self.molecule.natom, operations, self.step)
        found = self._gradients_and_dipoles(plan, reference, known)
        matrix, dipoles, asymmetry = plan.derivatives(found)
        charge, masses = self.molecule.charge, self._without_isotopes.nuclei.masses
        # The dipole moment of an ion is about the centre of mass, which moves with every atom.
        dipoles = dipoles + charge * np.kron(masses / masses.sum(), np.eye(3)).T
        notes = [] if len(operations) == 1 else [f"{len(operations)} symmetry operations, {len(found)} displacements"]
        notes += [IN_SURROUNDINGS] if self._surroundings else []
        notes += [] if asymmetry < max(MAX_ASYMMETRY, self.step**2) else [_asymmetry_warning(asymmetry)]
        return self._hessian(reference, matrix, dipoles, len(found), asymmetry, notes), reference

    def _hessian(
        self, reference: Result, matrix: Array, dipoles: Array, count: int, asymmetry: float, notes: Sequence[str]
    ) -> Hessian:
        return Hessian(
            molecule=self.molecule,
            method=reference.method,
            basis=reference.basis_name,
            keywords=reference.keywords,
            energy=reference.energy,
            gradient=reference.gradient,
            matrix=matrix,
            dipole_derivatives=dipoles,
            step=self.step,
            displacements=count,
            asymmetry=asymmetry,
            program=reference.program,
            notes=tuple(notes),
        )

    def _reference(self, known: Mapping[str, dict[str, Any]]) -> Result:
        """The result at the reference geometry; with the orbitals of the journal it takes an iteration or two."""
        key = calculation_key(self._without_isotopes, *self._model, "orbitals")
        options = dict(self.options)
        if key in known and not isinstance(self.basis, Basis):
            options["guess"] = read_guess(known[key]["guess"], self.method, self.basis)
        result = gradient_along_path(self.molecule, self.method, self.basis, **options)
        if not result.converged:
            raise CuantoError(f"the SCF did not converge in {result.iterations} iterations")
        if self._journal is not None and key not in known and isinstance(result, GaussianResult):
            self._journal.append({"key": key, "guess": plain_guess(result)}, safely=True)
        return result

    def _operations(self, reference: Result) -> list[Operation]:
        request, found = self._request, state_operations(reference)
        if self._surroundings and self.symmetry:
            raise InputError("symmetry cannot be used with point charges or a field: leave out one of them")
        if self._surroundings or self.symmetry is False:
            return found[:1]
        integrated = request.model is not None and request.model.has_functional
        if integrated and request.grid.numbers(1)[1] < MIN_ISOTROPIC_POINTS and self.symmetry is None:
            return [one for one in found if _is_octahedral(one)]
        return found

    def _gradients_and_dipoles(
        self, plan: DisplacementPlan, reference: Result, known: Mapping[str, dict[str, Any]]
    ) -> dict[int, GradientAndDipole]:
        """Gradient and dipole moment of every displacement, known or computed."""
        if self.molecule.natom == 1 and not self._surroundings:
            return {k: (np.zeros((1, 3)), np.zeros(3)) for k in range(len(plan.displacements))}
        found: dict[int, GradientAndDipole] = {}
        waiting = []
        for k, one in enumerate(plan.displacements):
            line = known.get(self._key(one))
            if line is None:
                waiting.append(k)
            else:
                found[k] = np.array(line["gradient"]), np.array(line["dipole"])
        watch = self.work.on_task or (lambda done, total: None)
        watch(len(found), len(plan.displacements))
        for k, values in self._compute(plan.displacements, waiting, reference):
            if self._journal is not None:
                self._journal.append({"key": self._key(plan.displacements[k]), **values}, safely=True)
            found[k] = np.array(values["gradient"]), np.array(values["dipole"])
            watch(len(found), len(plan.displacements))
        return found

    def _key(self, displacement: Displacement) -> str:
        return calculation_key(self._displace(displacement), *self._model, "displaced")

    def _displace(self, displacement: Displacement) -> Molecule:
        return self._without_isotopes.moved_to(displacement.apply(self.molecule.R_ax, self.step))

    @property
    def _without_isotopes(self) -> Molecule:
        """The molecule with standard masses, on which a Hessian does not depend: equivalent atoms have the same dipole
        derivatives, and a journal is of use for other isotopes."""
        return self.molecule.with_masses(None)

    def _compute(
        self, displacements: Sequence[Displacement], waiting: Sequence[int], reference: Result
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Compute displacements in any order; a lost worker's task is tried again."""
        if not waiting:
            return
        with ExitStack() as stack:
            runner, keywords, ahead = self._runner(stack, len(waiting), reference)
            here = isinstance(runner, SerialRunner)
            guess = reference if here else plain_guess(reference)
            secants = Secants() if here else calculation_key(self.molecule, *self._model, "secants")
            tasks, tries, running = deque(waiting), dict.fromkeys(waiting, 1), 0
            while tasks or running:
                while tasks and running < ahead:
                    k = tasks.popleft()
                    molecule = self._displace(displacements[k])
                    task: dict[str, Any] = {"molecule": molecule if here else plain_molecule(molecule)}
                    task |= {"guess": guess, "secants": secants}
                    runner.submit(str(k), evaluate_task, task | self._arguments(molecule, keywords, here))
                    running += 1
                key, values = runner.next()
                running -= 1
                if isinstance(values, dict):
                    yield int(key), values
                elif isinstance(values, LostWorkerError) and tries[int(key)] < MAX_TRIES:
                    tries[int(key)] += 1
                    tasks.append(int(key))
                else:
                    raise self._failure(displacements[int(key)], values)

    def _arguments(self, molecule: Molecule, keywords: Mapping[str, Any], here: bool) -> dict[str, Any]:
        """Method, basis and keywords of a task; plain data unless it stays in this process (`here`)."""
        basis, given = move_basis(self.basis, molecule), dict(keywords)
        if "auxbasis" in given:
            given["auxbasis"] = move_basis(given["auxbasis"], molecule)
        found = {"method": self.method, "basis": basis, "keywords": given}
        if here:
            return found
        plain: dict[str, Any] = plain_arguments(found)
        return plain

    def _portable(self) -> bool:
        """Whether tasks can be sent to another process."""
        try:
            self._arguments(self.molecule, {k: v for k, v in self.options.items() if k != "guess"}, here=False)
        except TypeError:
            return False
        return True

    def _failure(self, displacement: Displacement, error: BaseException) -> CuantoError:
        if not isinstance(error, Exception) or isinstance(error, (MemoryError, InputError)):
            raise error
        atom = f"{self.molecule.symbols[displacement.atom]}{displacement.atom + 1}"
        text = str(error) if isinstance(error, TaskError) else describe_error(error)
        return CuantoError(f"with atom {atom} displaced: {text}; finished displacements are kept in the journal")

    def _runner(self, stack: ExitStack, tasks: int, reference: Result) -> tuple[Runner, dict[str, Any], int]:
        """The runner of the tasks, their keywords, and the number of tasks submitted ahead."""
        keywords = {name: value for name, value in self.options.items() if name != "guess"}
        work = self.work
        if (work.scheduler is not None or work.workers) and not self._portable():
            raise InputError("some arguments are not plain data, which other processes need: use workers=0")
        if work.scheduler is not None:
            return stack.enter_context(DaskRunner(work.scheduler)), keywords, MAX_SUBMITTED
        workers = work.workers
        if workers is None:
            seconds = reference.timings.total * tasks
            parallel = reference.backend.traits.parallel_calculations and seconds >= MIN_PARALLEL_SECONDS
            workers = min(usable_cores(), tasks) if parallel and self._portable() else 0
        logger.info("%d displacements in %s", tasks, f"{workers} processes" if workers > 1 else "this process")
        if workers == 0:
            return SerialRunner(), keywords, 1
        keywords.setdefault("max_memory", MEMORY_SHARE * reference.backend.memory()[0] / workers)
        return stack.enter_context(ProcessRunner(min(workers, tasks))), keywords, 2 * workers


def _asymmetry_warning(asymmetry: float) -> str:
    return (
        f"WARNING: elements of the Hessian that should be equal differ by {asymmetry:.1e} Hartree/Bohr^2: the gradients"
        " are not those of one smooth surface, as for a degenerate state or an SCF that finds several solutions"
    )


def _is_octahedral(operation: Operation) -> bool:
    """Whether an operation exchanges or reverses the axes of the coordinates, as those of a Lebedev grid do."""
    return bool(np.abs(np.sort(np.abs(operation.R_xy), axis=1) - [0.0, 0.0, 1.0]).max() < EXACT)
