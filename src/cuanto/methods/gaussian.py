"""Hartree-Fock and Kohn-Sham calculations: search for the lowest state, initial guess, SCF, notes and gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cuanto.arrays import Array
from cuanto.grid.settings import GridSettings
from cuanto.log import Timings
from cuanto.methods.ahead import compile_energy, compile_gradient
from cuanto.methods.context import (
    SCF_MEMORY,
    Context,
    builders_for,
    core_hamiltonian,
    make_terms,
    one_electron_model,
)
from cuanto.methods.gradient import energy_gradient, require_gradient
from cuanto.methods.model import METHODS
from cuanto.methods.notes import core_notes, purpose_notes
from cuanto.methods.occupation_notes import occupation_notes
from cuanto.methods.request import Request
from cuanto.options import ScfOptions
from cuanto.scf import guess as guesses
from cuanto.scf.configurations import capacity, configuration
from cuanto.scf.convergence import Criteria, DipoleChange
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.loop import Density, Problem
from cuanto.scf.occupations import choose_occupations
from cuanto.scf.orthogonal import Frame, make_frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.run import run_scf
from cuanto.scf.screening import Screened, screen
from cuanto.scf.stability import CLEARLY_UNSTABLE, stability_note
from cuanto.scf.starting_points import centres_of_starting_points, starting_points
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, CorePotentials, ExchangeCorrelation, Term

PSEUDO_ORBITALS = 100
"""With fewer orbitals a full diagonalisation is as fast as rotations (114 orbitals: 0.9 and 0.5 ms on one core)."""
FIRST_STEP = 0.4
"""Fraction of the first change of the Fock matrix that is applied with functionals: in the first step too much charge
flows between atoms, more than in Hartree-Fock. This is roughly the fraction of a potential change that remains after
screening; 0.35 to 0.5 work equally well (waters, glycine)."""
SEARCH_GRID = GridSettings(level=(30, 110), pruning="nwchem")
"""Grid of the search for the lowest state: its energies only have to tell the states apart."""
OPEN_MOMENTUM = 2
"""Lowest angular momentum of an open shell for which the state of an atom is followed to a minimum by default."""
SINGLE_NOISE = 3e-8
"""Largest variation of energies in single precision between iterations, Hartree per electron."""
NOISY_GRADIENT, NOISY_DIPOLE = 1e-4, 1e-4
"""Smallest tolerances of gradient and dipole moment that single precision can reach."""


@dataclass(frozen=True, eq=False)
class Calculation:
    """Terms and occupations of a molecule in a basis, ready for the SCF; `remarks` are notes of its search."""

    context: Context
    core: CoreHamiltonian
    terms: tuple[Term, ...]
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, request: Request, share: float = 1.0) -> Calculation:
        """Prepare the terms of a request, within a `share` of the memory that it may use."""
        if request.options.guess == "sad":
            guesses.begin(one_electron_model(request))
        context = Context.of(request, share)
        compile_energy(context)
        pairs = context.shared_pairs()
        core = core_hamiltonian(context, pairs)
        builders = builders_for(context, pairs)
        del pairs  # frees memory of the device
        return cls(context, core, make_terms(context, core, builders))

    def begin_gradient(self) -> None:
        """Start compiling the kernels of the gradient, which will be needed after the SCF."""
        compile_gradient(self.context)

    def gradient(self, state: State) -> tuple[Array, Array]:
        """dE/dR of a state: of the atoms, and of the point charges, Hartree/Bohr."""
        context = self.context
        require_gradient(state, context.request.scf.unconverged_gradient)
        context.budget.release(SCF_MEMORY)  # the matrices of the state have been freed
        common = (context.basis, context.budget, state, self.core.S_pq)
        return energy_gradient(self.terms, *common, len(context.request.surroundings.charges), context.timings)

    @property
    def partition(self) -> tuple[float, float] | None:
        """How the points of the grid are grouped: `cube_edge` and `sphere_fraction`; None without a grid."""
        found = (term.grid for term in self.terms if isinstance(term, ExchangeCorrelation))
        return next(((grid.cube_edge, grid.sphere_fraction) for grid in found), None)

    @property
    def options(self) -> ScfOptions:
        """Options of the SCF, with tolerances that single precision can reach."""
        requested, context = self.context.request.scf, self.context
        follows = requested.stability == "auto" and requested.aufbau and not context.model.shared
        if follows and _is_open_atom(context.request.molecule):
            requested = replace(requested, stability="follow")
        if context.options.precision != "single" or not context.model.has_functional:
            return requested
        return replace(
            requested,
            energy_tolerance=max(requested.energy_tolerance, SINGLE_NOISE * context.request.molecule.nelectron),
            gradient_tolerance=max(requested.gradient_tolerance, NOISY_GRADIENT),
            dipole_tolerance=max(requested.dipole_tolerance, NOISY_DIPOLE),
        )

    def states(self, guess: str | Orbitals = "sad") -> Iterator[State]:
        """Iterate from a guess: `sad` (superposed atoms), `core`, or orbitals of another calculation."""
        # Errors of restricted open shells depend on the orbitals in other ways than through the density.
        secants = guess.secants if isinstance(guess, Orbitals) and not self.context.model.shared else None
        options, problem, context = self.options, self.problem(symmetric=secants is not None), self.context
        known: State | None = None
        if guess == "sad" and self.searches:
            with context.timings.measure("search"):
                found = self._search(problem)
                start: Density | tuple[Any, Any] = found.orbitals(problem, self.core.S_pq)
            known = None if context.model.has_functional else found.arrived
            options = after_search(options)
        else:
            with context.timings.measure("guess"):
                start = self._start(guess, problem)
        tolerances = (options.energy_tolerance, options.gradient_tolerance, options.dipole_tolerance)
        criteria = Criteria(*tolerances, DipoleChange(context.basis, context.backend))
        arguments = (options, diagonaliser(options, problem.frame), criteria, self.core.S_pq, secants)
        yield from run_scf(problem, start, *arguments, known)

    @property
    def searches(self) -> bool:
        """Whether the lowest state is searched for among several starting points if there is no other guess."""
        return self.context.model.spins == 2 and self.may_search

    @property
    def may_search(self) -> bool:
        """Whether the molecule may have many states, and the input does not say which one is wanted."""
        request, options = self.context.request, self.options
        given = options.atomic_charges is not None or options.atomic_spins is not None or options.guess_mixing
        if options.search == "none" or not request.single_point or given or not options.aufbau:
            return False
        return bool(centres_of_starting_points(request.molecule))

    def _search(self, problem: Problem) -> Screened:
        """The lowest starting point, with a coarse grid."""
        context, terms = self.context, list(self.terms)
        for n, term in enumerate(terms):
            if isinstance(term, ExchangeCorrelation):
                terms[n] = term.on_grid(SEARCH_GRID)
        coarse = replace(problem, terms=terms, timings=Timings())
        starts = (
            (point.label, self._superposed(point.charges, point.spins))
            for point in starting_points(context.request.molecule)
        )
        found = screen(coarse, starts, context.basis, self.core.S_pq, context.model.has_functional)
        self.remarks.append(found.note)
        return found

    def problem(self, symmetric: bool = False) -> Problem:
        """The SCF problem: terms, orthonormal basis (a `symmetric` one if possible) and occupations."""
        context, model, molecule = self.context, self.context.model, self.context.request.molecule
        with context.timings.measure("orthogonalisation"):
            frame = make_frame(self.core.S_pq, self.options.linear_dependence, context.backend, symmetric)
        electrons = (molecule.nelectron,) if model.spins == 1 else (molecule.n_alpha, molecule.n_beta)
        occupied = choose_occupations(self.options, electrons, frame.size)
        suspect = model.spins == 1 and self.may_search
        return Problem(list(self.terms), frame, occupied, model.shared, context.timings, suspect)

    def known_errors(self, state: State) -> dict[str, float]:
        """Errors of the energy that only the calculation knows: those of single precision, which it computes."""
        if self.context.options.precision != "single":
            return {}
        error = self._precision_error(state)
        return {} if error is None else {"precision": error}

    def notes(self, state: State, errors: Mapping[str, float]) -> tuple[str, ...]:
        """Notes for the result with its known `errors`."""
        request, basis = self.context.request, self.context.basis
        given = None if request.options.auxbasis is None else self.context.options.auxbasis
        notes = [*core_notes(request.molecule, basis), *purpose_notes(basis, given, request.fitting)]
        notes += dict.fromkeys(note for term in self.terms for note in term.notes())
        notes += self.remarks
        if (share := self.context.budget.share) < 1.0:
            notes.append(f"memory: planned for {share:.0%} of what was free, because plans for more ran out of it")
        notes += self.context.budget.warnings()
        if state.curvature is not None:
            notes.append(stability_note(state.curvature, self.terms, state.curvature_is_bound))
            follows = self.options.stability != "check" and state.curvature < CLEARLY_UNSTABLE
            if follows and state.iteration >= self.options.max_iterations:
                notes.append("WARNING: iterations ran out on the way to a lower state: raise max_iterations")
        host = self.context.backend.to_host
        matrices = (host(state.D_spq), host(self.core.S_pq), host(state.eps_sm))
        notes += occupation_notes(self.context.basis, state, *matrices)
        if (error := errors.get("precision")) is not None:
            limit = self.options.energy_tolerance
            notes.append(f"single precision: energy error {error:+.1e} Hartree; converged to {limit:.0e}")
        if dropped := self.context.basis.nbf - int(state.n_sm.shape[1]):
            limit = self.options.linear_dependence
            notes.append(f"{dropped} linearly dependent combinations left out: overlap eigenvalues below {limit:g}")
        return (*notes, *self.context.request.ineffective_options)

    def _precision_error(self, state: State) -> float | None:
        """Energy of a state minus that of its density in double precision; None if no term is in single precision.

        This is the error to first order, since the energy is stationary with respect to the density.
        """
        doubles = {term.name: term.in_double() for term in self.terms}
        errors = [
            state.energies[name] - float(double.fock(state.D_spq, None)[0])
            for name, double in doubles.items()
            if double is not None
        ]
        return sum(errors) if errors else None

    def _start(self, guess: str | Orbitals, problem: Problem) -> Density | tuple[Any, Any]:
        basis, backend, model = self.context.basis, self.context.backend, self.context.model
        if isinstance(guess, Orbitals):
            guesses.require_same_atoms(guess.basis, basis)
            orbitals = None
            if model.shared:
                orbitals = guesses.same_shells(guess, basis, problem, self.core.S_pq)
            elif guess.secants:
                orbitals = guesses.same_functions(guess, basis, problem, self.core.S_pq)
            return orbitals or guesses.project_density(guess, basis, model.spins, backend)
        if guess == "core":
            h_pq = sum((t.V_pq for t in self.terms if isinstance(t, CorePotentials)), self.core.h_pq)
            return guesses.bare_nuclei(h_pq, problem.frame, 1 if model.shared else model.spins)
        start = self._superposed(self.options.atomic_charges, self.options.atomic_spins)
        return start if model.name in METHODS else replace(start, first_step=FIRST_STEP)

    def _superposed(self, charges: Sequence[float] | None, spins: Sequence[float] | None) -> Density:
        """Superposed atoms with these charges and unpaired electrons."""
        context, request = self.context, self.context.request
        common = (request.molecule, context.basis, context.model.spins, context.backend, charges, spins)
        return guesses.superposed_atoms(*common, one_electron_model(request))


def _is_open_atom(molecule: Molecule) -> bool:
    """Whether it is a single atom with an open d or f shell, which has many determinants of similar energy."""
    if molecule.natom > 1 or molecule.nelectron < 1 or molecule.nuclei.ghosts.any():
        return False
    shells = configuration(int(molecule.numbers[0]), molecule.charge)
    return any(l >= OPEN_MOMENTUM and 0 < n < capacity(l) for (_, l), n in shells.items())


def after_search(options: ScfOptions) -> ScfOptions:
    """Options of the SCF that converges the lowest starting point: DIIS must not climb back to a saddle point, and a
    state that was reached by descent is not examined unless that is asked for."""
    accelerator = "descent" if options.accelerator == "auto" else options.accelerator
    stability = "none" if options.stability == "auto" else options.stability
    return replace(options, accelerator=accelerator, stability=stability)


def diagonaliser(options: ScfOptions, frame: Frame) -> Diagonaliser:
    """The diagonaliser that `options` choose."""
    large = options.diagonaliser == "auto" and frame.size >= PSEUDO_ORBITALS and options.aufbau
    if large or options.diagonaliser == "pseudo":
        variant = "refined" if options.variant == "auto" else options.variant
        return Pseudo(frame, variant, options.level_shift)
    return Full(frame, options.level_shift, bool(options.smearing))
