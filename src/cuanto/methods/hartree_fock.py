"""Hartree-Fock: which terms and which occupations.

Restricted closed shells (`rhf`), unrestricted (`uhf`), restricted open shells (`rohf`); `hf` is restricted for singlets
and unrestricted otherwise.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf import guess as guesses
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.descent import descend
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.loop import Density, Problem, first_orbitals, iterate
from cuanto.scf.occupations import Aufbau, Fermi, Fixed, Occupations
from cuanto.scf.orthogonal import Frame, make_frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.stability import Mode, leave, lowest_mode
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, Coulomb, Exchange, NuclearRepulsion, Surroundings

METHODS = ("hf", "rhf", "uhf", "rohf")
PSEUDO_ORBITALS = 200
"""With fewer orbitals a full diagonalisation costs nothing that could be noticed."""


@dataclass
class Counter:
    """Iterations of several stages as one sequence."""

    left: int
    done: int = 0

    def __call__(self, states: Iterator[State]) -> Iterator[State]:
        """The states with running numbers."""
        for state in states:
            self.done, self.left = self.done + 1, self.left - 1
            yield replace(state, iteration=self.done)


@dataclass(frozen=True)
class HartreeFock:
    """A molecule in a basis with its J and K builders, ready to be iterated."""

    molecule: Molecule
    basis: Basis
    backend: Backend
    j_builder: JKBuilder
    k_builder: JKBuilder
    method: str = "hf"
    options: ScfOptions = field(default_factory=ScfOptions)
    surroundings: Surroundings = field(default_factory=Surroundings)
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"unknown method {self.method!r}: choose {', '.join(METHODS)}")
        singlet = self.molecule.multiplicity == 1
        if self.method == "rhf" and not singlet:
            raise InputError(f"rhf needs a singlet, the multiplicity is {self.molecule.multiplicity}: use uhf or rohf")
        if self.method == "hf":
            object.__setattr__(self, "method", "rhf" if singlet else "uhf")
        options = self.options
        if self.method == "rohf" and (
            options.smearing or options.diagonaliser == "pseudo" or options.stability != "none"
        ):
            raise InputError(
                "rohf has neither smearing, diagonaliser='pseudo' nor stability: use uhf, or leave them out"
            )

    @property
    def spins(self) -> int:
        """Densities: one of both electrons, or two."""
        return 1 if self.method == "rhf" else 2

    def states(self, guess: str | Orbitals = "sad") -> Iterator[State]:
        """Iterations from a guess: `sad` (superposed atoms), `core`, or orbitals of another calculation."""
        problem, core = self._problem()
        with self.timings.measure("guess"):
            start = self._start(guess, problem.frame, core)
        criteria = Criteria(self.options.energy_tolerance, self.options.gradient_tolerance)
        accelerator = Accelerator(self.options, problem.frame.xp)
        diagonaliser = self._diagonaliser(problem.frame)
        counted = Counter(int(self.options.max_iterations))
        if self.options.accelerator == "descent":
            start = yield from self._descend(problem, start, counted)
        while counted.left > 0:
            state: State | None = None
            for state in counted(iterate(problem, start, accelerator, diagonaliser, criteria, counted.left)):
                if not state.converged:
                    yield state
            if state is None or not state.converged:
                return
            mode = None if self.options.stability == "none" else self._mode(problem, state)
            yield replace(state, curvature=None if mode is None else mode.curvature)
            if mode is None or mode.stable or self.options.stability != "follow":
                return
            away = leave(problem, state, mode, integrals.overlap(self.basis, backend=self.backend))
            start = yield from self._descend(problem, away, counted)
            accelerator.restart()
            diagonaliser.restart()

    def _descend(
        self, problem: Problem, start: Density | tuple[Any, Any], counted: Counter
    ) -> Generator[State, None, tuple[Any, Any]]:
        """Downhill to where DIIS is safe."""
        C_sjm, eps_sm = first_orbitals(problem, start) if isinstance(start, Density) else start
        state: State | None = None
        for state in counted(descend(problem, (C_sjm, eps_sm), counted.left)):
            yield state
        if state is None:
            return C_sjm, eps_sm
        S_pq = integrals.overlap(self.basis, backend=self.backend)
        return problem.frame.coefficients(state.C_spm, S_pq), state.eps_sm

    def _mode(self, problem: Problem, state: State) -> Mode | None:
        with self.timings.measure("stability"):
            return lowest_mode(problem, state)

    def _problem(self) -> tuple[Problem, CoreHamiltonian]:
        with self.timings.measure("one-electron integrals"):
            core = CoreHamiltonian(self.molecule, self.basis, self.surroundings, self.backend)
            S_pq = integrals.overlap(self.basis, backend=self.backend)
        with self.timings.measure("orthogonalisation"):
            frame = make_frame(S_pq, self.options.linear_dependence, self.backend)
        terms = (
            NuclearRepulsion(self.molecule, self.surroundings),
            core,
            Coulomb(self.j_builder),
            Exchange(self.k_builder),
        )
        shared = self.method == "rohf"
        return Problem(terms, frame, self._occupations(frame.size), shared, self.timings), core

    def _occupations(self, orbitals: int) -> Occupations:
        molecule, options = self.molecule, self.options
        electrons = (molecule.nelectron,) if self.spins == 1 else (molecule.n_alpha, molecule.n_beta)
        capacity = 2 if self.spins == 1 else 1
        if options.occupations is not None:
            return Fixed.of(options.occupations, electrons, capacity, orbitals)
        if options.smearing:
            return Fermi(electrons, capacity, orbitals, options.smearing)
        return Aufbau(electrons, capacity, orbitals)

    def _start(self, guess: str | Orbitals, frame: Frame, core: CoreHamiltonian) -> Density | tuple[Any, Any]:
        if isinstance(guess, Orbitals):
            return guesses.projected(guess, self.basis, self.spins, self.backend)
        if guess == "core":
            return guesses.bare_nuclei(core.h_pq, frame, 1 if self.method == "rohf" else self.spins)
        if guess == "sad":
            charges, spins = self.options.atomic_charges, self.options.atomic_spins
            return guesses.superposed_atoms(self.molecule, self.basis, self.spins, self.backend, charges, spins)
        raise InputError(f"unknown guess {guess!r}: choose {', '.join(guesses.GUESSES)}, or orbitals of a result")

    def _diagonaliser(self, frame: Frame) -> Diagonaliser:
        options, xp = self.options, frame.xp
        pseudo = options.diagonaliser == "pseudo" or (
            options.diagonaliser == "auto"
            and frame.size >= PSEUDO_ORBITALS
            and self.method != "rohf"
            and not options.smearing
            and options.occupations is None
        )
        if pseudo:
            return Pseudo(xp, frame.to_host, options.variant, options.level_shift)
        return Full(xp, options.level_shift)
