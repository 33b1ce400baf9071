"""Hartree-Fock: which terms and which occupations.

Restricted closed shells (`rhf`), unrestricted (`uhf`), restricted open shells (`rohf`); `hf` is restricted for singlets
and unrestricted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf import guess as guesses
from cuanto.scf.convergence import Criteria, Displacement
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.loop import Density, Problem
from cuanto.scf.occupations import Occupations, choose_occupations
from cuanto.scf.orthogonal import Frame, make_frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.search import search
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, Coulomb, Exchange, NuclearRepulsion, Surroundings, Term

METHODS = ("hf", "rhf", "uhf", "rohf")
PSEUDO_ORBITALS = 100
"""With fewer orbitals a full diagonalisation takes no longer than the rotations (114: 0.9 and 0.5 ms on one core)."""


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
    core: CoreHamiltonian | None = None
    """If it is there already."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"unknown method {self.method!r}: choose {', '.join(METHODS)}")
        singlet = self.molecule.multiplicity == 1
        if self.method == "rhf" and not singlet:
            raise InputError(f"rhf needs a singlet, the multiplicity is {self.molecule.multiplicity}: use uhf or rohf")
        if self.method == "hf":
            object.__setattr__(self, "method", "rhf" if singlet else "uhf")
        if self.method == "rohf" and self.options.smearing:
            # Its orbital energies depend on the convention for the coupled matrix: no Fermi level would mean anything.
            raise InputError("rohf has no orbital energies that could be smeared: use uhf, or leave out smearing")

    @property
    def spins(self) -> int:
        """Densities: one of both electrons, or two."""
        return 1 if self.method == "rhf" else 2

    def states(self, guess: str | Orbitals = "sad") -> Iterator[State]:
        """Iterations from a guess: `sad` (superposed atoms), `core`, or orbitals of another calculation."""
        problem, core = self._problem()
        with self.timings.measure("guess"):
            start = self._start(guess, problem, core)
        criteria = Criteria(
            self.options.energy_tolerance,
            self.options.gradient_tolerance,
            self.options.dipole_tolerance,
            Displacement(self.basis, self.backend),
        )
        yield from search(problem, start, self.options, self._diagonaliser(problem.frame), criteria, core.S_pq)

    def _problem(self) -> tuple[Problem, CoreHamiltonian]:
        with self.timings.measure("one-electron integrals"):
            core = self.core or CoreHamiltonian(self.molecule, self.basis, self.surroundings, self.backend)
        with self.timings.measure("orthogonalisation"):
            frame = make_frame(core.S_pq, self.options.linear_dependence, self.backend)
        terms: list[Term] = [NuclearRepulsion(self.molecule, self.surroundings), core, *self._interaction()]
        shared = self.method == "rohf"
        return Problem(terms, frame, self._occupations(frame.size), shared, self.timings), core

    def _interaction(self) -> list[Term]:
        """Of the electrons with each other."""
        return [Coulomb(self.j_builder), Exchange(self.k_builder)]

    def _occupations(self, orbitals: int) -> Occupations:
        molecule = self.molecule
        electrons = (molecule.nelectron,) if self.spins == 1 else (molecule.n_alpha, molecule.n_beta)
        return choose_occupations(self.options, electrons, 2 // self.spins, orbitals)

    def _start(self, guess: str | Orbitals, problem: Problem, core: CoreHamiltonian) -> Density | tuple[Any, Any]:
        frame = problem.frame
        if isinstance(guess, Orbitals):
            kept = guesses.same_shells(guess, self.basis, problem, core.S_pq) if problem.shared else None
            return kept or guesses.projected(guess, self.basis, self.spins, self.backend)
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
            and not options.smearing
            and options.occupations is None
        )
        if pseudo:
            variant = "refined" if options.variant == "auto" else options.variant
            return Pseudo(frame, variant, options.level_shift)
        return Full(xp, options.level_shift)
