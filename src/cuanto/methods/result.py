"""Results: one class for every method, and a subclass for those with a Gaussian basis."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from math import nan
from typing import Any, ClassVar, Self

import numpy as np

from cuanto import integrals, properties
from cuanto.arrays import Array
from cuanto.backends.base import Backend, get_backend
from cuanto.backends.blas import one_thread
from cuanto.backends.tiers import fixed_kernels
from cuanto.basis import Basis
from cuanto.errors import CuantoError, InputError, describe_error
from cuanto.log import Timings, logger
from cuanto.memory import retry_with_less_memory
from cuanto.methods.error_estimates import estimate_errors, total_error
from cuanto.methods.history import Iteration
from cuanto.methods.summary import summary_html, summary_text
from cuanto.options import CalculationOptions, ScfOptions, changed_options
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.units import DIPOLE_IN_DEBYE


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """Result of any method: the last state and its properties. Arrays are on the host, in atomic units.

    `energies` by term add up to `energy`. `history` has every iteration. `notes` describe choices made during the
    calculation. A result read from a file has only what the file has; other properties raise an `InputError`.

    With a basis set it is a `GaussianResult`, which has `mulliken_charges`, `loewdin_charges`, `hirshfeld_charges`,
    `cm5_charges`, `bond_orders` and `quadrupole`; otherwise a `SemiempiricalResult` with a `heat_of_formation`.
    """

    molecule: Molecule
    method: str
    state: State
    backend: Backend
    options: ScfOptions
    timings: Timings
    history: tuple[Iteration, ...] = ()
    notes: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything, on the host, so that a machine without the device can read it."""
        host = {f.name: self._portable(getattr(self.state, f.name)) for f in fields(State)}
        return {**vars(self), "backend_name": self.backend_name, "backend": None, "state": State(**host)}

    def __setstate__(self, values: dict[str, Any]) -> None:
        vars(self).update(values | {"backend": get_backend("cpu")})

    def __copy__(self) -> Self:
        """A copy that shares its arrays, which are on the same device."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def _portable(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return dict(value)
        return value if value is None or isinstance(value, int | float | str) else self.backend.to_host(value)

    def __str__(self) -> str:
        """A table of the most important values."""
        return summary_text(self)

    def _repr_html_(self) -> str:
        """The table in notebooks."""
        return summary_html(self)

    def __repr__(self) -> str:
        """One line: arrays would fill the screen of a notebook."""
        verdict = "converged" if self.converged else "NOT converged"
        head = f"{type(self).__name__} {self.molecule.name or 'molecule'} {self.level_of_theory}"
        return f"<{head}: {self.energy:.9f} Hartree, {verdict} in {self.iterations} iterations>"

    @property
    def energy(self) -> float:
        """Total energy, Hartree; with smearing the free energy, which is variational."""
        return self.state.energy

    @property
    def energies(self) -> Mapping[str, float]:
        """Energies by term, Hartree."""
        return self.state.energies

    @property
    def converged(self) -> bool:
        """Whether energy, gradient and dipole are within their tolerances and occupations are aufbau."""
        return self.state.converged

    @property
    def iterations(self) -> int:
        """Number of Fock matrices built from orbitals."""
        return self.state.iteration

    @cached_property
    def orbital_energies(self) -> Array:
        """Orbital energies eps_sm, one row for each set of orbitals, Hartree."""
        return self._host(self.state.eps_sm, "orbital energies")

    @cached_property
    def coefficients(self) -> Array:
        """Orbital coefficients C_spm."""
        return self._host(self.state.C_spm, "orbitals")

    @property
    def occupations(self) -> Array:
        """Occupations n_sm; two rows for restricted open shells, which have one set of orbitals."""
        return self._host(self.state.n_sm, "occupations")

    @cached_property
    def density(self) -> Array:
        """Density matrices D_spq."""
        return self._host(self.state.D_spq, "density matrix")

    @cached_property
    def homo(self) -> tuple[float, ...]:
        """Highest occupied orbital energy of each spin, Hartree (minus infinity if there is none)."""
        return tuple(float(eps_m[n_m > 0].max(initial=-np.inf)) for eps_m, n_m in self.levels())

    @cached_property
    def lumo(self) -> tuple[float, ...]:
        """Lowest empty orbital energy of each spin, Hartree (infinity if there is none)."""
        return tuple(float(eps_m[n_m == 0].min(initial=np.inf)) for eps_m, n_m in self.levels())

    @property
    def gap(self) -> float:
        """Lowest empty minus highest occupied orbital energy, of any spin, Hartree (infinity if one is missing)."""
        return min(self.lumo) - max(self.homo)

    @property
    def ideal_s_squared(self) -> float:
        """<S^2> of a pure state of this multiplicity."""
        spin = 0.5 * (self.molecule.multiplicity - 1)
        return spin * (spin + 1)

    charge_kind: ClassVar[str] = "atomic"
    """Definition of `charges` and `spin_populations`, in words."""
    bond_kind: ClassVar[str] = "Wiberg"
    """Definition of `bond_orders`, in words."""

    @cached_property
    def spin_populations(self) -> Array:
        """Number of unpaired electrons on every atom; zero for closed shells."""
        raise self._lacks("spin populations")

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of an ion about the centre of mass."""
        raise self._lacks("dipole moment")

    @property
    def dipole_debye(self) -> Array:
        """Dipole moment, Debye."""
        return self.dipole * DIPOLE_IN_DEBYE

    @cached_property
    def charges(self) -> Array:
        """Net charge of every atom, e; by Mulliken if there is a basis."""
        raise self._lacks("atomic charges")

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        raise self._lacks("<S^2>")

    @cached_property
    def gradient(self) -> Array:
        """Gradient dE/dR_ax, Hartree/Bohr."""
        raise self._lacks("gradient")

    @cached_property
    def errors(self) -> Mapping[str, float]:
        """Estimated errors of the energy by source, Hartree; empty if there are no estimates."""
        return {}

    @property
    def error(self) -> float:
        """Estimated size of all errors of the energy together, Hartree; not a number if there are no estimates."""
        return total_error(self.errors) if self.errors else nan

    @cached_property
    def basis_name(self) -> str | None:
        """Name of the orbital basis; None for methods without a choice of basis."""
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
        """Where it was computed: cpu or cuda; empty if unknown."""
        return self.backend.name

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Keywords that, with the same molecule, method and basis, reproduce the result with `cuanto.energy`."""
        return changed_options(self.options)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema AtomicResult as a dictionary."""
        # Imported when needed, because interfaces import results.
        schema: dict[str, Any] = import_module("cuanto.interfaces.qcschema").to_qcschema(self)
        return schema

    def to_xyz(self, path: str | os.PathLike[str] | None = None) -> str:
        """Text of an XYZ file of the molecule, written to `path` if one is given."""
        return self.molecule.to_xyz(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as .json (QCSchema, for `cuanto.read`), .molden, .html (a report) or .xyz, by its name."""
        modules = {
            ".json": ("cuanto.interfaces.qcschema", "write_qcschema"),
            ".molden": ("cuanto.interfaces.molden", "write_molden"),
            ".html": ("cuanto.report", "write_report"),
        }
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending == ".xyz":
            self.to_xyz(path)
            return
        if ending not in modules or (ending == ".molden" and self.basis_name is None):
            possible = [name for name in (*modules, ".xyz") if name != ".molden" or self.basis_name is not None]
            raise InputError(f"cannot save a result as {os.fspath(path)!r}: use a name ending in {', '.join(possible)}")
        module, function = modules[ending]
        getattr(import_module(module), function)(path, self)

    def levels(self) -> list[tuple[Array, Array]]:
        """Orbital energies (Hartree) and occupations of each spin."""
        shared = len(self.orbital_energies) < len(self.occupations)
        return [(self.orbital_energies[0 if shared else s], n_m) for s, n_m in enumerate(self.occupations)]

    def _host(self, array: Any, what: str) -> Array:
        if array is None:
            raise self._lacks(what)
        # An unfinished calculation may have orbitals in single precision.
        return np.asarray(self.backend.to_host(array), dtype=np.float64)

    def _lacks(self, what: str) -> InputError:
        return InputError(f"{self.molecule.name or 'this result'}: the file has no {what}; repeat the calculation")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GaussianResult(Result):
    """Result of Hartree-Fock or Kohn-Sham, with orbitals in a Gaussian basis.

    `gradients`: of atoms and point charges, if they were computed with the energy. `S_pq`: the overlap on the backend.
    `partition`: how the grid was divided. `known_errors`: errors by source that were computed with the energy.
    """

    basis: Basis
    settings: CalculationOptions = field(default_factory=lambda: CalculationOptions(fitting="none"))
    gradients: tuple[Array, Array] | None = None
    S_pq: Any = None
    partition: tuple[float, float] | None = None
    known_errors: Mapping[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the settings name no device."""
        return {**super().__getstate__(), "settings": replace(self.settings, backend="auto")}

    @property
    def fitting(self) -> str:
        """Matrices that were fitted: none, j or jk."""
        return self.settings.fitting

    @property
    def auxbasis(self) -> Basis | None:
        """The fitting basis."""
        found: Basis | None = self.settings.auxbasis
        return found

    @property
    def precision(self) -> str:
        """Precision of direct J and K and of the integration on a grid."""
        return self.settings.precision

    @property
    def grid(self) -> str | tuple[int, int] | dict[str, Any] | None:
        """Integration grid; None without a functional."""
        found: str | tuple[int, int] | dict[str, Any] | None = self.settings.grid
        return found

    @cached_property
    def basis_name(self) -> str | None:
        """Name of the orbital basis."""
        return self.basis.name

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Keywords that reproduce the result."""
        name = {} if self.auxbasis is None else {"auxbasis": self.auxbasis.name}
        return changed_options(self.settings) | name | super().keywords

    @property
    def orbitals(self) -> Orbitals:
        """Orbitals as a guess for another calculation."""
        return Orbitals(self.basis, self.coefficients, self.occupations, partition=self.partition)

    @cached_property
    def gradient(self) -> Array:
        """Gradient dE/dR_ax, Hartree/Bohr; computed on first access, without another SCF."""
        return self._gradients[0]

    @cached_property
    def charges_gradient(self) -> Array:
        """Derivative of the energy with respect to the positions of point charges, Hartree/Bohr."""
        return self._gradients[1]

    @cached_property
    def _gradients(self) -> tuple[Array, Array]:
        if self.gradients is not None:
            return self.gradients
        if self.state.F_spq is None:
            raise self._lacks("Fock matrix")
        from cuanto.methods.gaussian import Calculation  # imported here, because requests import results
        from cuanto.methods.request import Request

        keywords: dict[str, Any] = changed_options(self.settings) | changed_options(self.options)
        keywords |= {"auxbasis": self.auxbasis, "fitting": self.fitting, "backend": self.backend}
        keywords |= {"max_memory": self.settings.max_memory}
        request = Request.of(self.molecule, self.method, self.basis, **keywords)
        with one_thread, fixed_kernels():
            return retry_with_less_memory(
                lambda share: Calculation.of(request, share).gradient(self.state), self.backend
            )

    @cached_property
    def errors(self) -> Mapping[str, float]:
        """Estimated errors of the energy by source, Hartree; computed on first access.

        Empty if the SCF did not converge, if there is too little memory for them, and for results from files that have
        none.
        """
        if not self.converged or self.state.F_spq is None:
            return {}
        try:
            with one_thread, self.timings.measure("error estimates"):
                return retry_with_less_memory(lambda share: estimate_errors(self, share), self.backend)
        except (CuantoError, MemoryError) as error:  # estimates are not worth losing an energy for
            logger.warning("the errors of the energy cannot be estimated: %s", describe_error(error))
            return {}

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of an ion about the centre of mass."""
        if self.state.D_spq is None:
            raise self._lacks("density matrix")
        return properties.dipole(self.molecule, self.basis, self.state.D_spq, self.backend)

    @cached_property
    def second_moments(self) -> Array:
        """Second moments of the charges, sum q r_x r_y, about the centre of mass, e Bohr^2."""
        if self.state.D_spq is None:
            raise self._lacks("density matrix")
        return properties.second_moments(self.molecule, self.basis, self.state.D_spq, self.backend)

    @property
    def quadrupole(self) -> Array:
        """Traceless quadrupole moment, sum q (3 r_x r_y - r^2) / 2, about the centre of mass, e Bohr^2."""
        return properties.quadrupole(self.second_moments)

    @cached_property
    def charges(self) -> Array:
        """Mulliken charge of every atom, e."""
        return self.mulliken_charges

    charge_kind: ClassVar[str] = "Mulliken"
    bond_kind: ClassVar[str] = "Mayer"

    @cached_property
    def spin_populations(self) -> Array:
        """Mulliken spin population of every atom: alpha minus beta electrons."""
        if len(self.density) == 1:
            return np.zeros(self.molecule.natom)
        return properties.mulliken(self.basis, self.density[0] - self.density[1], self.overlap)

    @cached_property
    def mulliken_charges(self) -> Array:
        """Mulliken charge of every atom, e."""
        return self.molecule.nuclei.charges - properties.mulliken(self.basis, self.density.sum(axis=0), self.overlap)

    @cached_property
    def loewdin_charges(self) -> Array:
        """Loewdin charge of every atom, e."""
        return self.molecule.nuclei.charges - properties.loewdin(self.basis, self.density.sum(axis=0), self.overlap)

    @cached_property
    def hirshfeld_charges(self) -> Array:
        """Hirshfeld charge of every atom, e; integrated on a grid when it is asked for."""
        if self.state.D_spq is None:
            raise self._lacks("density matrix")
        electrons = properties.hirshfeld(self.molecule, self.basis, self.state.D_spq, self.backend)
        return self.molecule.nuclei.charges - electrons

    @cached_property
    def cm5_charges(self) -> Array:
        """CM5 charge of every atom, e: Hirshfeld charges, corrected so that they reproduce dipole moments."""
        return properties.cm5(self.molecule, self.hirshfeld_charges)

    @cached_property
    def bond_orders(self) -> Array:
        """Mayer bond orders between atoms; valences on the diagonal."""
        return properties.mayer(self.basis, self.density, self.overlap)

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        return properties.s_squared(self.density, self.overlap)

    @cached_property
    def overlap(self) -> Array:
        """S_pq of the basis functions."""
        S_pq = integrals.overlap(self.basis, backend=self.backend) if self.S_pq is None else self.S_pq
        return np.asarray(self.backend.to_host(S_pq))
