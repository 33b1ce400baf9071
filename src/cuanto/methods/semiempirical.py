"""MNDO, AM1, PM3, PM6 and RM1: restricted for singlets, unrestricted otherwise (`upm6`: always)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend, get_backend
from cuanto.errors import InputError
from cuanto.integrals.engine import resolve
from cuanto.log import Timings
from cuanto.memory import Budget
from cuanto.methods.error_estimates import estimate_semiempirical_errors
from cuanto.methods.gradient import require_converged
from cuanto.methods.history import run_iterations
from cuanto.methods.model import SEMIEMPIRICAL
from cuanto.methods.request import Request
from cuanto.methods.result import Result
from cuanto.options import ScfOptions
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem, Scf
from cuanto.scf.occupations import choose_occupations
from cuanto.scf.orthogonal import Frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.run import run_scf
from cuanto.scf.stability import MANY_ROTATIONS, stability_note
from cuanto.scf.state import State
from cuanto.semiempirical import broken_symmetry, guess, properties
from cuanto.semiempirical.constants import BOHR, DEBYE, HARTREE_IN_KCAL, RESCALE
from cuanto.semiempirical.corrections import corrections
from cuanto.semiempirical.diagonalisers import SP2, choose_diagonaliser, purification
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout, positions
from cuanto.semiempirical.parameters import parameters
from cuanto.semiempirical.rotation_steps import RotationStep, rotations_suffice
from cuanto.semiempirical.tables import unknown_pairs
from cuanto.semiempirical.terms import Constant, Core, DipoleMoment, Repulsion, orthonormal_frame
from cuanto.system import Molecule
from cuanto.terms.base import Term

MAX_STABILITY_ORBITALS = 2000
"""Orbitals up to which stability is tested by default: the test keeps dozens of vectors of o x v numbers."""


@dataclass(frozen=True, eq=False)
class Semiempirical:
    """A molecule with a semiempirical method, ready for the SCF.

    `mopac_compatible`: overlaps from MOPAC's truncated series. `diagonaliser`: factory of the one to use instead of
    the default.
    """

    molecule: Molecule
    method: str
    backend: Backend
    options: ScfOptions = field(default_factory=ScfOptions)
    max_memory: float | None = None
    mopac_compatible: bool = False
    diagonaliser: Callable[[Frame], Diagonaliser] | None = None
    timings: Timings = field(default_factory=Timings)
    remarks: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.method not in SEMIEMPIRICAL:
            raise InputError(f"unknown method {self.method!r}: choose {', '.join(SEMIEMPIRICAL)}")
        if self.molecule.nuclei.ghosts.any():
            raise InputError(f"{self.method} has no ghost atoms: leave them out, or use a method with a basis")
        if self.options.atomic_charges is not None or self.options.atomic_spins is not None:
            raise InputError(f"{self.method} starts from neutral atoms: leave out atomic_charges and atomic_spins")
        self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)

    @cached_property
    def layout(self) -> Layout:
        """Atomic orbitals; refuses elements without parameters."""
        return Layout(parameters(self.method.removeprefix("u")), self.molecule.symbols)

    @property
    def spins(self) -> int:
        """1 for closed shells, else 2."""
        unpaired = self.layout.valence_multiplicity(self.molecule.multiplicity) > 1
        return 2 if self.method[0] == "u" or unpaired else 1

    @cached_property
    def scf(self) -> ScfOptions:
        """The options, with automatic choices made; `stability` stays "auto" where unstable states are found by a quick
        test, in open shells with few rotations."""
        if self.options.stability != "auto":
            return self.options
        orbitals = self.layout.orbitals
        tested = self.options.aufbau and orbitals <= MAX_STABILITY_ORBITALS
        if not tested or (self.spins == 1 and not self.layout.ambiguous):
            return replace(self.options, stability="none")
        electrons = self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)
        if self.layout.ambiguous or sum(n * (orbitals - n) for n in electrons) >= MANY_ROTATIONS:
            return replace(self.options, stability="follow")
        return self.options

    @cached_property
    def budget(self) -> Budget:
        """Memory that large arrays are reserved from."""
        return Budget(self.backend, self.max_memory)

    @cached_property
    def engine(self) -> PairEngine:
        """Kernels for this geometry."""
        setup = (positions([self.molecule]), self.backend, self.budget)
        engine = PairEngine(self.layout, *setup, self.mopac_compatible)
        with self.timings.measure("kernels"):
            engine.prepare()
        return engine

    @cached_property
    def corrections(self) -> tuple[float, Array]:
        """Corrections of PM6 after the SCF: energy (Hartree) and gradient (Hartree/Bohr)."""
        if self.layout.parameters.method != "pm6":
            return 0.0, np.zeros((self.molecule.natom, 3))
        energy, gradient = corrections(self.molecule.symbols, self.molecule.R_ax * (RESCALE * BOHR))
        return energy / HARTREE_IN_KCAL, gradient * (BOHR / HARTREE_IN_KCAL)

    @cached_property
    def fock(self) -> Fock:
        """Integrals of this geometry."""
        engine = self.engine
        with self.timings.measure("integrals"):
            return Fock(engine)

    def states(self, start: Density | None = None, compare: bool = True) -> Iterator[State]:
        """Iterate from the molecules of a cluster, from neutral atoms, or from another density; if stability is
        followed, `compare` equivalent states of broken symmetry at the end."""
        fock, frame = self.fock, orthonormal_frame(self.layout.orbitals, self.backend)
        terms: list[Term] = [Constant("screened repulsion", float(fock.screened_b[0])), Core(fock), Repulsion(fock)]
        if self.corrections[0]:
            terms.append(Constant("correction", self.corrections[0]))
        electrons = self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)
        filled = electrons if self.spins == 2 else (sum(electrons),)
        options = self.scf
        occupations = choose_occupations(options, filled, self.layout.orbitals)
        problem = Problem(terms, frame, occupations, False, self.timings, suspect=options.stability == "auto")
        given = self.diagonaliser
        diagonaliser = choose_diagonaliser(options, frame) if given is None else given(frame)
        R_ax = positions([self.molecule])[0]
        moment = DipoleMoment(self.layout, R_ax, self.backend)
        criteria = Criteria(options.energy_tolerance, options.gradient_tolerance, options.dipole_tolerance, moment)
        begin = guess.begin(problem, self.layout, R_ax, electrons, self.spins, diagonaliser, start, self.budget)
        done = 0
        known: State | None = None
        if isinstance(diagonaliser, Pseudo) and not isinstance(begin, Density) and rotations_suffice(options, problem):
            steps = RotationStep(problem, diagonaliser, moment, int(options.history))
            # These steps return changes of the dipole moment itself, not of the density.
            scf = Scf(problem, steps, replace(criteria, dipole_change=float))
            last = yield from self._rotate(scf, begin)
            done = last.iteration
            finished = options.stability == "none" if last.converged else done == options.max_iterations
            if finished:
                return
            diagonaliser.restart()
            if last.converged:
                begin, known = (last.C_spm, last.eps_sm), last
            else:
                with self.timings.measure("diagonalisation"), frame.blas_threads:
                    begin = diagonaliser.first(last.F_spq)
        for state in run_scf(problem, begin, options, diagonaliser, criteria, frame.X_pm, known=known, done=done):
            if done and state.iteration == done + 1 and known is None:
                state = replace(state, step="full")
            settled = not (compare and state.converged and options.stability in ("auto", "follow"))
            # The image of a state that was followed to a minimum is tested like it.
            further = options if state.curvature is None else replace(options, stability="follow")
            setup = (self.layout, R_ax, further, diagonaliser, criteria, self.remarks)
            yield from (state,) if settled else broken_symmetry.settle(state, problem, *setup)

    def _rotate(self, scf: Scf, begin: tuple[Any, Any]) -> Generator[State, None, State]:
        """Yield the states of an SCF that only rotates orbitals, and return the last one.

        A converged state is yielded only if its stability is not tested afterwards.
        """
        last: State | None = None
        for last in scf.states(*begin, int(self.scf.max_iterations)):
            if not last.converged or self.scf.stability == "none":
                yield last
        assert last is not None  # there is at least one iteration
        return last

    def run(self, on_iteration: Any = None, start: Density | None = None, compare: bool = True) -> SemiempiricalResult:
        """Run the SCF to its end (see `states`)."""
        self.remarks.clear()
        state, history = run_iterations(self.states(start, compare), on_iteration)
        state = replace(state, energies=self._conventional(state))
        return self.result(state, history=history, notes=self._notes(state))

    def result(self, state: State, **details: Any) -> SemiempiricalResult:
        """The result of a converged or last state."""
        return SemiempiricalResult(
            molecule=self.molecule,
            method=self.method,
            state=state,
            backend=self.backend,
            options=self.options,
            timings=self.timings,
            calculation=self,
            **details,
        )

    def _conventional(self, state: State) -> dict[str, float]:
        """Energies with the whole attraction in the one-electron term, as in other programs (see `Fock`)."""
        energies, repulsion = dict(state.energies), float(self.fock.core_repulsion_b[0])
        attraction = float(self.backend.to_host(self.fock.attraction(state.D_spq[None]))[0])
        energies["two-electron"] += energies.pop("screened repulsion") - repulsion - attraction
        energies["core"] += attraction
        return {"core repulsion": repulsion, **energies}

    def _notes(self, state: State) -> tuple[str, ...]:
        """Notes for the result."""
        notes, parts = list(self.warnings), len(self.engine.slabs)
        if not self.engine.stored:
            notes.append(f"repulsion integrals recomputed in {parts} parts in every iteration")
        notes += self.remarks
        if state.curvature is not None:
            notes.append(stability_note(state.curvature, (), state.curvature_is_bound))
        return tuple(notes + ["overlaps from MOPAC's truncated series"] * self.mopac_compatible)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about missing parameters, and about electrons that the method leaves out."""
        notes, multiplicity = [], self.molecule.multiplicity
        if pairs := unknown_pairs(self.layout):
            names = ", ".join("-".join(pair) for pair in pairs)
            notes.append(f"WARNING: PM6 has no parameters for {names}: core repulsion as in MOPAC without them")
        if (valence := self.layout.valence_multiplicity(multiplicity)) != multiplicity:
            notes.append(f"f electrons belong to the cores: multiplicity {valence} of the valence electrons")
        return tuple(notes)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SemiempiricalResult(Result):
    """Result in orthonormal atomic orbitals s, x, y, z, x2-y2, xz, z2, yz, xy of every atom.

    `energy` is that of valence electrons and cores, including the corrections of PM6. `magnitude`: sum of the sizes of
    its terms, for molecules computed together, which have no `energies`.
    """

    calculation: Semiempirical
    magnitude: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the calculation on the CPU."""
        calculation = replace(self.calculation, backend=get_backend("cpu"))
        return {**super().__getstate__(), "calculation": calculation}

    charge_kind: ClassVar[str] = "Coulson"

    @cached_property
    def spin_populations(self) -> Array:
        """Number of unpaired electrons in the orbitals of every atom."""
        if len(self.density) == 1:
            return np.zeros(self.molecule.natom)
        core = self.calculation.layout.core_charges
        return core - properties.charges(self.calculation.layout, self.density[0] - self.density[1])

    @property
    def electronic_energy(self) -> float:
        """Energy without core repulsion and corrections, Hartree."""
        return self.energies["core"] + self.energies["two-electron"]

    @property
    def heat_of_formation(self) -> float:
        """Heat of formation at 298 K, kcal/mol."""
        layout = self.calculation.layout
        return HARTREE_IN_KCAL * (self.energy - layout.isolated) + layout.heat

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Keywords that reproduce the result."""
        found = super().keywords
        if self.calculation.mopac_compatible:
            found = found | {"mopac_compatible": True}
        return found | ({"diagonaliser": SP2} if self.calculation.diagonaliser is purification else {})

    @cached_property
    def errors(self) -> Mapping[str, float]:
        """Estimated errors of the energy by source, Hartree: rounding and what is left of the orbital gradient.

        Empty if the SCF did not converge.
        """
        if not self.converged:
            return {}
        magnitude = sum(map(abs, self.energies.values())) if self.magnitude is None else self.magnitude
        return estimate_semiempirical_errors(self, magnitude)

    @cached_property
    def charges(self) -> Array:
        """Net charge of every atom."""
        return properties.charges(self.calculation.layout, self.density.sum(axis=0))

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of ions about the centre of mass."""
        R_ax = positions([self.molecule])[0]
        molecule, D_pq = self.molecule, self.density.sum(axis=0)
        return properties.dipole(self.calculation.layout, R_ax, D_pq, molecule.charge, molecule.nuclei.masses)

    @property
    def dipole_debye(self) -> Array:
        """Dipole moment, Debye."""
        return self.dipole * DEBYE

    @cached_property
    def bond_orders(self) -> Array:
        """Wiberg bond orders between atoms; valences on the diagonal."""
        return properties.bond_orders(self.calculation.layout, self.density)

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        if len(self.density) == 1:
            return 0.0
        up, down = self.occupations.sum(axis=1)
        overlap = float(np.sum(self.density[0] * self.density[1]))
        return float(0.25 * (up - down) ** 2 + 0.5 * (up + down) - overlap)

    @cached_property
    def gradient(self) -> Array:
        """Gradient dE/dR_ax, Hartree/Bohr."""
        if self.state.D_spq is None:
            raise self._lacks("density matrix")
        require_converged(self.state, self.options.unconverged_gradient)
        with self.timings.measure("gradient"):
            D_bspq = self.backend.to_device(self.density)[None]
            pairs_ax = self.backend.to_host(self.calculation.engine.gradient(D_bspq))[0]
        return np.asarray((pairs_ax + self.calculation.corrections[1]) * RESCALE)


def semiempirical_energy(request: Request, on_iteration: Any = None) -> SemiempiricalResult:
    """Compute from neutral atoms, the molecules of a cluster, or another result for the same atoms."""
    backend, options = resolve(request.options.backend), request.options
    calculation = Semiempirical(
        request.molecule,
        request.method,
        backend,
        request.scf,
        options.max_memory,
        options.mopac_compatible,
        diagonaliser=request.diagonaliser,
        timings=Timings(synchronize=backend.synchronize if request.scf.profile else None),
    )
    return calculation.run(on_iteration, _start(options.guess, calculation), compare=options.guess == "sad")


def _start(guess: object, calculation: Semiempirical) -> Density | None:
    if guess == "sad":
        return None
    if not isinstance(guess, SemiempiricalResult):
        raise InputError(f"{calculation.method} starts from neutral atoms or a semiempirical result, not {guess!r}")
    shape = (calculation.spins, calculation.layout.orbitals, calculation.layout.orbitals)
    if guess.density.shape != shape:
        raise InputError(f"the density of the guess has the shape {guess.density.shape}, not {shape}")
    return Density(calculation.backend.to_device(guess.density), None)
