"""Kohn-Sham: Hartree-Fock with a functional of the density in place of all or a part of the exchange.

A functional by its name is restricted for singlets and unrestricted otherwise; with `u` before the name (`upbe`) it is
always unrestricted. An ending such as `-d3bj` adds dispersion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cuanto.coulomb.base import DirectBuilder, JKBuilder
from cuanto.coulomb.direct import DirectJK
from cuanto.errors import InputError
from cuanto.functionals import Functional, get_functional, split_dispersion
from cuanto.grid import GridSettings
from cuanto.memory import Budget
from cuanto.methods.hartree_fock import HartreeFock
from cuanto.options import ScfOptions
from cuanto.scf.loop import Density, Problem
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, Coulomb, Dispersion, Exchange, ExchangeCorrelation, Term

HARTREE_FOCK = dict.fromkeys(("hf", "uhf"), Functional("hf", (), 1.0))
"""No functional at all: there are dispersion corrections for Hartree-Fock, too."""
FIRST_STEP = 0.4
"""Share of the Fock matrix's first change: about what screening leaves of a change of the potential. 0.35 to 0.5 are
alike (waters, glycine)."""
NOISE = 3e-8
"""Hartree per electron by which energies in single precision vary from one pass to the next, at most."""
NOISY_GRADIENT, NOISY_DIPOLE = 1e-4, 1e-4
"""To which gradient and dipole moment converge in single precision."""


@dataclass(frozen=True)
class Model:
    """What the name of a method means; `spins`: 1 restricted, 2 unrestricted."""

    functional: Functional
    spins: int
    dispersion: str | None = None

    @classmethod
    def of(cls, method: str, molecule: Molecule) -> Model:
        """By name."""
        name, dispersion = split_dispersion(method)
        spins = 1 if molecule.multiplicity == 1 else 2
        if dispersion is not None and name.lower() in HARTREE_FOCK:
            return cls(HARTREE_FOCK[name.lower()], 2 if name.lower() == "uhf" else spins, dispersion)
        try:
            return cls(get_functional(name), spins, dispersion)
        except InputError:
            # No `r` for restricted: RPBE, for one, is another functional.
            if not name.lower().startswith("u"):
                raise
        return cls(get_functional(name[1:]), 2, dispersion)

    @property
    def exchange(self) -> bool:
        """Is there exact exchange?"""
        return bool(self.functional.exact_exchange or self.functional.range_separation)


@dataclass(frozen=True)
class KohnSham(HartreeFock):
    """A molecule in a basis with a functional; `attenuated`: builder of the exchange of erf(omega r)/r."""

    model: Model | None = None
    grid: GridSettings = field(default_factory=GridSettings)
    precision: str = "double"
    budget: Budget | None = None
    attenuated: JKBuilder | None = None
    _made: list[Term] = field(default_factory=list)
    _last: list[State] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.model is not None
        if self.precision == "single" and self.model.functional.parts:
            object.__setattr__(self, "options", _attainable(self.options, self.molecule.nelectron))

    def states(self, guess: str | Orbitals = "sad") -> Iterator[State]:
        """Iterations from a guess, as for Hartree-Fock."""
        for state in super().states(guess):
            self._last[:] = [state]
            yield state

    def _start(self, guess: str | Orbitals, problem: Problem, core: CoreHamiltonian) -> Density | tuple[Any, Any]:
        start = super()._start(guess, problem, core)
        # Charge that flows between atoms in the first step flows too far, further than in Hartree-Fock.
        return replace(start, first_step=FIRST_STEP) if guess == "sad" and isinstance(start, Density) else start

    @property
    def spins(self) -> int:
        """Densities: one of both electrons, or two."""
        assert self.model is not None
        return self.model.spins

    def _interaction(self) -> list[Term]:
        assert self.model is not None
        functional = self.model.functional
        terms: list[Term] = [Coulomb(self.j_builder)]
        if functional.exact_exchange:
            terms.append(Exchange(self.k_builder, functional.exact_exchange))
        if functional.range_separation is not None and self.attenuated is not None:
            terms.append(Exchange(self.attenuated, functional.range_separation.beta, "long-range exchange"))
        if functional.parts:
            with self.timings.measure("grid"):
                limits: dict[str, Any] = {"budget": self.budget, "precision": self.precision}
                common = (functional, self.molecule, self.basis, self.backend, self.spins)
                terms.append(ExchangeCorrelation(*common, self.grid, **limits))
        self._made[:] = terms
        if self.model.dispersion is not None:
            terms.append(Dispersion(self.molecule, functional.name, self.model.dispersion))
        return terms

    def remarks(self) -> list[str]:
        """What a reader of the result should know of the grid, and of single precision."""
        found = []
        for xc in self._made:
            if not isinstance(xc, ExchangeCorrelation):
                continue
            found.append(f"grid: {len(xc.grid.w_g)} points, density integrates to {float(xc.electrons):.6f} electrons")
            if (warning := xc.warning(self.molecule.nelectron)) is not None:
                found.append(f"WARNING: {warning}")
            if self.precision == "single" and self._last:
                error, limit = self._precision_error(self._last[0]), self.options.energy_tolerance
                found.append(
                    f"single precision: energy {error:+.1e} Hartree from double; converged to {limit:.0e} only"
                )
        return found

    def _precision_error(self, state: State) -> float:
        """Energy of a state less that of its density by the same terms in double precision.

        That is the error to first order: the density is where the energy hardly changes with it.
        """
        error = 0.0
        for term in self._made:
            if (double := self._in_double(term)) is not None:
                error += state.energies[term.name] - float(double.fock(state.D_spq, None)[0])
        return error

    def _in_double(self, term: Term) -> Term | None:
        """The same term in double precision; None where it is so already."""
        if isinstance(term, ExchangeCorrelation):
            given = (term.functional, self.molecule, self.basis, self.backend, self.spins, self.grid)
            return ExchangeCorrelation(*given, budget=self.budget, grid=term.grid)
        if not isinstance(term, (Coulomb, Exchange)) or not isinstance(term.builder, DirectBuilder):
            return None
        single = term.builder.direct
        more: dict[str, Any] = {"threshold": single.threshold, "omega": single.omega}
        builder = DirectBuilder(DirectJK(self.basis, backend=self.backend, **more))
        return Coulomb(builder) if isinstance(term, Coulomb) else Exchange(builder, term.fraction, term.name)


def _attainable(options: ScfOptions, electrons: int) -> ScfOptions:
    """Tolerances that single precision can meet."""
    return replace(
        options,
        energy_tolerance=max(options.energy_tolerance, NOISE * electrons),
        gradient_tolerance=max(options.gradient_tolerance, NOISY_GRADIENT),
        dipole_tolerance=max(options.dipole_tolerance, NOISY_DIPOLE),
    )
