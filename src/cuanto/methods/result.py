"""What a calculation gives back: one type for every method, and what a basis of Gaussians adds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import integrals, properties
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.options import CalculationOptions, ScfOptions, changed
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.units import DIPOLE_IN_DEBYE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Iteration:
    """One line of the way to the result: Hartree, and which step led there."""

    iteration: int
    energy: float
    energy_change: float
    gradient: float
    step: str

    @classmethod
    def of(cls, state: State) -> Iteration:
        """What is kept of a state."""
        return cls(state.iteration, state.energy, state.energy_change, state.gradient, state.step)


def run_iterations(
    states: Iterator[State], on_iteration: Callable[[State], object] | None
) -> tuple[State, tuple[Iteration, ...]]:
    """Run an SCF to its end: the last state, and a record of every iteration."""
    state, history = None, []
    for state in states:
        history.append(Iteration.of(state))
        if on_iteration is not None:
            on_iteration(state)
    assert state is not None  # at least one iteration is made
    return state, tuple(history)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """A calculation by any method: its last state and what follows from it. Arrays are on the host, in atomic units.

    `energies` by term add up to `energy`. `history` has every iteration. `notes` say what was chosen or left out on the
    way. A result that was read from a file has what the file has; asking for more is an `InputError` that says so.
    """

    molecule: Molecule
    method: str
    state: State
    backend: Backend
    options: ScfOptions
    timings: Timings
    history: tuple[Iteration, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: arrays would fill the screen of a notebook."""
        verdict = "converged" if self.converged else "NOT converged"
        head = f"{type(self).__name__} {self.molecule.name or 'molecule'} {self.level_of_theory}"
        return f"<{head}: {self.energy:.9f} Hartree, {verdict} in {self.iterations} iterations>"

    @property
    def energy(self) -> float:
        """Total energy, Hartree; with smearing the free energy, which is the one that is smallest."""
        return self.state.energy

    @property
    def energies(self) -> Mapping[str, float]:
        """By term, Hartree."""
        return self.state.energies

    @property
    def converged(self) -> bool:
        """Energy, gradient and dipole are within their tolerances, and no empty orbital lies below an occupied one."""
        return self.state.converged

    @property
    def iterations(self) -> int:
        """Fock matrices built from orbitals."""
        return self.state.iteration

    @cached_property
    def orbital_energies(self) -> Array:
        """eps_sm, one row for each set of orbitals, Hartree."""
        return self._host(self.state.eps_sm, "orbital energies")

    @cached_property
    def coefficients(self) -> Array:
        """C_spm."""
        return self._host(self.state.C_spm, "orbitals")

    @property
    def occupations(self) -> Array:
        """n_sm; two rows for restricted open shells, which have one set of orbitals."""
        return self._host(self.state.n_sm, "occupations")

    @cached_property
    def density(self) -> Array:
        """D_spq."""
        return self._host(self.state.D_spq, "density matrix")

    @cached_property
    def homo(self) -> tuple[float, ...]:
        """Highest occupied orbital energy of each spin, Hartree (minus infinity where there is none)."""
        return tuple(float(eps_m[n_m > 0].max(initial=-np.inf)) for eps_m, n_m in self.levels())

    @cached_property
    def lumo(self) -> tuple[float, ...]:
        """Lowest empty orbital energy of each spin, Hartree (infinite where there is none)."""
        return tuple(float(eps_m[n_m == 0].min(initial=np.inf)) for eps_m, n_m in self.levels())

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of an ion about the centre of mass."""
        raise self._lacks("dipole moment")

    @property
    def dipole_debye(self) -> Array:
        """The same in Debye."""
        return self.dipole * DIPOLE_IN_DEBYE

    @cached_property
    def charges(self) -> Array:
        """Net charge of every atom, e; Mulliken's where there are overlaps."""
        raise self._lacks("atomic charges")

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        raise self._lacks("<S^2>")

    @cached_property
    def gradient(self) -> Array:
        """dE/dR_ax, Hartree/Bohr; of semiempirical methods."""
        raise InputError(f"{self.method} has no gradients yet; mndo, am1, pm3 and pm6 have")

    @cached_property
    def basis_name(self) -> str | None:
        """Name of the orbital basis; None for methods that have none to choose."""
        return None

    @property
    def level_of_theory(self) -> str:
        """Method and basis, such as b3lyp/def2-svp."""
        return self.method if self.basis_name is None else f"{self.method}/{self.basis_name}"

    @cached_property
    def program(self) -> str:
        """Name and version of the program that computed it."""
        return f"cuanto {import_module('cuanto').__version__}"

    @cached_property
    def backend_name(self) -> str:
        """Where it was computed: cpu or cuda; empty where a file does not say."""
        return self.backend.name

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """What, beside molecule, method, basis and backend, gives the same result again with `cuanto.energy`."""
        return changed(self.options)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema AtomicResult as a dictionary."""
        # By name: interfaces know results, results know no interface.
        schema: dict[str, Any] = import_module("cuanto.interfaces.qcschema").to_qcschema(self)
        return schema

    def levels(self) -> list[tuple[Array, Array]]:
        """Orbital energies (Hartree) and occupations of each spin."""
        shared = len(self.orbital_energies) < len(self.occupations)
        return [(self.orbital_energies[0 if shared else s], n_m) for s, n_m in enumerate(self.occupations)]

    def _host(self, array: Any, what: str) -> Array:
        if array is None:
            raise self._lacks(what)
        # A calculation that was stopped early may have orbitals in single precision.
        return np.asarray(self.backend.to_host(array), dtype=np.float64)

    def _lacks(self, what: str) -> InputError:
        return InputError(f"{self.molecule.name or 'this result'}: the file has no {what}; compute it again")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GaussianResult(Result):
    """A Hartree-Fock or Kohn-Sham calculation: orbitals are combinations of the functions of `basis`."""

    basis: Basis
    settings: CalculationOptions = field(default_factory=lambda: CalculationOptions(fitting="none"))

    @property
    def fitting(self) -> str:
        """What was fitted: none, j or jk."""
        return self.settings.fitting

    @property
    def auxbasis(self) -> Basis | None:
        """The fitting basis."""
        found: Basis | None = self.settings.auxbasis
        return found

    @property
    def precision(self) -> str:
        """Of direct J and K, and of the integration on a grid."""
        return self.settings.precision

    @property
    def grid(self) -> str | tuple[int, int] | dict[str, Any] | None:
        """None where nothing is integrated numerically."""
        found: str | tuple[int, int] | dict[str, Any] | None = self.settings.grid
        return found

    @cached_property
    def basis_name(self) -> str | None:
        """Name of the orbital basis."""
        return self.basis.name

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """What gives the same result again."""
        name = {} if self.auxbasis is None else {"auxbasis": self.auxbasis.name}
        return changed(self.settings) | name | super().keywords

    @property
    def orbitals(self) -> Orbitals:
        """What another calculation can start from."""
        return Orbitals(self.basis, self.coefficients, self.occupations)

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of an ion about the centre of mass."""
        if self.state.D_spq is None:
            raise self._lacks("density matrix")
        return properties.dipole(self.molecule, self.basis, self.state.D_spq, self.backend)

    @cached_property
    def charges(self) -> Array:
        """Mulliken's charge of every atom, e."""
        return self.mulliken_charges

    @cached_property
    def mulliken_charges(self) -> Array:
        """Mulliken's charge of every atom, e."""
        return self.molecule.nuclei.charges - properties.mulliken(self.basis, self.density.sum(axis=0), self._overlap)

    @cached_property
    def loewdin_charges(self) -> Array:
        """Loewdin's charge of every atom, e."""
        return self.molecule.nuclei.charges - properties.loewdin(self.basis, self.density.sum(axis=0), self._overlap)

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        return properties.s_squared(self.density, self._overlap)

    @cached_property
    def _overlap(self) -> Array:
        return np.asarray(self.backend.to_host(integrals.overlap(self.basis, backend=self.backend)))
