"""Device, basis sets and memory of a Hartree-Fock or Kohn-Sham calculation, and the terms of its energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cuanto import core_potentials
from cuanto.backends.base import Backend
from cuanto.basis import Basis, auxiliary_basis
from cuanto.basis.advice import sets_for
from cuanto.coulomb.builders import Builders, make_builders
from cuanto.errors import InputError
from cuanto.functionals import XCPotential
from cuanto.grid.settings import GridSettings
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import resolve
from cuanto.integrals.uploaded_pairs import upload_pairs
from cuanto.log import Timings
from cuanto.memory import Budget
from cuanto.methods.model import Model
from cuanto.methods.request import Request
from cuanto.options import OPTIONS, CalculationOptions
from cuanto.scf.state import Orbitals
from cuanto.terms import (
    EXTERNAL_OPERATORS,
    CoreHamiltonian,
    CorePotentials,
    Coulomb,
    Dispersion,
    Exchange,
    ExchangeCorrelation,
    NuclearRepulsion,
    Term,
)
from cuanto.terms.exchange_correlation import grid_bytes
from cuanto.terms.x2c import OneElectronModel

SCF_MATRICES = 24
"""Square matrices over the basis that an SCF keeps for each spin, most of them for DIIS."""
SCF_MEMORY = "matrices of the SCF"
"""Name under which memory is reserved for them."""
SHARES_PAIRS = {"cpu": False, "cuda": True}
"""Whether several kinds of integrals share the pairs of shells; a CPU makes them quickly, and saves the memory."""
PASSES, PASS_BYTES = "passes over the grid", 2 << 30
"""Name under which an eighth of the memory is reserved for the grid before integrals take the rest, and its largest
size. Estimated for 16 waters (def2-SVP, H200) and 1 GiB: a further MiB saves 0.2 ms per iteration in batches of points,
about as much as in recomputed integrals."""


@dataclass(frozen=True, eq=False)
class Context:
    """A request together with its device and basis sets.

    In `options`, `auto` and None are replaced by actual values; except for basis sets they are plain data, so that the
    calculation can be repeated from any guess.
    """

    request: Request
    model: Model
    backend: Backend
    basis: Basis
    options: CalculationOptions
    timings: Timings
    budget: Budget

    @classmethod
    def of(cls, request: Request, share: float = 1.0) -> Context:
        """Find the device and make the basis sets of a request; `share` of the memory that may be used.

        From here on the molecule has no electrons that core potentials replace.
        """
        backend, molecule, given = resolve(request.options.backend), request.molecule, request.options.auxbasis
        timings = Timings(synchronize=backend.synchronize if request.scf.profile else None)
        with timings.measure("basis sets"):
            basis = request.orbital_basis()
            request = _without_cores(request, basis)
            aux = None
            if request.fitting != "none":
                aux = given if isinstance(given, Basis) else auxiliary_basis(basis, molecule, request.fitting, given)
        assert request.model is not None
        grid = request.grid.plain if request.model.has_functional else None
        isolated = {name: OPTIONS[name].default for name in ("point_charges", *EXTERNAL_OPERATORS)}
        resolved: dict[str, Any] = isolated | request.surroundings.keywords
        resolved |= {"fitting": request.fitting, "auxbasis": aux, "grid": grid, "guess": "sad"}
        options = replace(request.options, **resolved)
        budget = Budget(backend, options.max_memory, share=share)
        return cls(request, request.model, backend, basis, options, timings, budget)

    def shared_pairs(self) -> list[BraBatch] | None:
        """Pairs of shells on a device, shared by several kinds of integrals."""
        if self.options.auxbasis is None or not SHARES_PAIRS[self.backend.traits.language]:
            return None
        with self.timings.measure("pairs of shells"):
            return upload_pairs(self.basis, self.backend)


def _without_cores(request: Request, basis: Basis) -> Request:
    """The request for the electrons that are outside of the core potentials of its basis."""
    molecule = request.molecule.with_core_electrons(basis.core_electrons)
    if molecule is request.molecule:
        return request
    return replace(request, molecule=molecule, model=Model.of(request.method, molecule))


def core_hamiltonian(context: Context, pairs: Sequence[BraBatch] | None = None) -> CoreHamiltonian:
    """The one-electron term."""
    request = context.request
    with context.timings.measure("one-electron integrals"):
        common = (request.molecule, context.basis, request.surroundings, context.backend, pairs)
        return CoreHamiltonian(*common, one_electron_model(request))


def one_electron_model(request: Request) -> OneElectronModel:
    """Relativity and nuclear model of a request."""
    options, nuclei = request.options, request.molecule.nuclei
    relativistic = options.relativity != "none"
    if relativistic and nuclei.core_electrons.any():
        raise InputError(
            f"relativity={options.relativity!r} is for all-electron basis sets: core potentials include relativity; "
            f"leave out the option, or use {' or '.join(sets_for(request.molecule.elements, relativistic=True))}"
        )
    return OneElectronModel(options.speed_of_light if relativistic else None, options.nuclear_model == "gaussian")


def builders_for(context: Context, pairs: Sequence[BraBatch] | None = None) -> Builders:
    """Builders of J and K; memory is reserved for the SCF and its grid first."""
    model, request = context.model, context.request
    budget = context.budget
    matrices = 8 * SCF_MATRICES * model.spins * context.basis.nbf**2
    if any(context.basis.core_potentials):
        core_potentials.reserve(context.basis, budget)
    budget.reserve(SCF_MEMORY, min(matrices, budget.available()))
    if model.has_functional:
        # A fit gets half of the memory; stored integrals get what the grid leaves.
        most = budget.available() // (1 if context.options.auxbasis is None else 2)
        budget.reserve("grid", min(grid_bytes(request.molecule, request.grid), most))
        budget.reserve(PASSES, min(PASS_BYTES, budget.available() // 8))
    common = (context.basis, context.backend, context.options, context.timings)
    builders = make_builders(*common, exchange=model.exchange, omega=model.omega, budget=budget, pairs=pairs)
    budget.release(PASSES)  # the grid takes a part of it
    return builders


def make_terms(context: Context, core: CoreHamiltonian, builders: Builders) -> tuple[Term, ...]:
    """The terms of the energy."""
    model, request, options = context.model, context.request, context.options
    functional, separation = model.functional, model.functional.range_separation
    terms: list[Term] = [NuclearRepulsion(request.molecule, request.surroundings), core]
    if any(context.basis.core_potentials):
        with context.timings.measure("core potentials"):
            terms.append(CorePotentials(context.basis, context.backend, context.budget))
    terms.append(Coulomb(builders.coulomb))
    if functional.exact_exchange:
        terms.append(Exchange(builders.exchange, functional.exact_exchange))
    if separation is not None and builders.long_range is not None:
        terms.append(Exchange(builders.long_range, separation.beta, "long-range exchange"))
    if model.has_functional:
        with context.timings.measure("grid"):
            potential = XCPotential(functional, context.backend, model.spins)
            common = (potential, request.molecule, context.basis, _grid_settings(request))
            terms.append(ExchangeCorrelation(*common, budget=context.budget, precision=options.precision))
    if model.dispersion is not None:
        terms.append(Dispersion(request.molecule, functional.name, model.dispersion))
    return tuple(terms)


def _grid_settings(request: Request) -> GridSettings:
    """The requested grid; its points are grouped as in the calculation of the guess, if that is known."""
    grid, guess = request.grid, request.options.guess
    if not isinstance(guess, Orbitals) or guess.partition is None:
        return grid
    if grid.cube_edge is not None or grid.sphere_fraction is not None:
        return grid
    return replace(grid, cube_edge=guess.partition[0], sphere_fraction=guess.partition[1])
