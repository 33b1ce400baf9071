"""Results in a Gaussian basis: settings, gradients, error estimates, and properties of the density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cuanto import integrals, properties
from cuanto.arrays import Array
from cuanto.backends.blas import one_thread
from cuanto.backends.tiers import fixed_kernels
from cuanto.basis import Basis
from cuanto.errors import CuantoError, describe_error
from cuanto.log import logger
from cuanto.memory import retry_with_less_memory
from cuanto.methods.error_estimates import estimate_errors
from cuanto.methods.gaussian import Calculation
from cuanto.methods.request import Request
from cuanto.methods.result import Result
from cuanto.options import CalculationOptions, changed_options
from cuanto.scf.state import Orbitals


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
