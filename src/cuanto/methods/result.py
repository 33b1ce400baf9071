"""What a calculation gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import integrals, properties
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.units import DIPOLE_IN_DEBYE

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """A calculation: its last state and what follows from it. Arrays are on the host, in atomic units.

    `energies` by term add up to `energy`. `notes` say what was chosen or left out on the way.
    """

    molecule: Molecule
    basis: Basis
    method: str
    state: State
    backend: Backend
    options: ScfOptions
    timings: Timings
    fitting: str = "none"
    auxbasis: Basis | None = None
    notes: tuple[str, ...] = ()

    @property
    def energy(self) -> float:
        """Total energy; with smearing the free energy, which is the one that is smallest."""
        return self.state.energy

    @property
    def energies(self) -> Mapping[str, float]:
        """By term."""
        return self.state.energies

    @property
    def converged(self) -> bool:
        """Energy and gradient are within their tolerances, and no empty orbital lies below an occupied one."""
        return self.state.converged

    @property
    def iterations(self) -> int:
        """Fock matrices built from orbitals."""
        return self.state.iteration

    @cached_property
    def orbital_energies(self) -> Array:
        """eps_sm, one row for each set of orbitals."""
        return self._host(self.state.eps_sm)

    @cached_property
    def coefficients(self) -> Array:
        """C_spm."""
        return self._host(self.state.C_spm)

    @property
    def occupations(self) -> Array:
        """n_sm; two rows for restricted open shells, which have one set of orbitals."""
        return self.state.n_sm

    @cached_property
    def density(self) -> Array:
        """D_spq."""
        return self._host(self.state.D_spq)

    @property
    def orbitals(self) -> Orbitals:
        """What another calculation can start from."""
        return Orbitals(self.basis, self.coefficients, self.occupations)

    @cached_property
    def homo(self) -> tuple[float, ...]:
        """Highest occupied orbital energy of each spin (not a number where there is none)."""
        return tuple(float(eps_m[n_m > 0].max(initial=-np.inf)) for eps_m, n_m in self._levels())

    @cached_property
    def lumo(self) -> tuple[float, ...]:
        """Lowest empty orbital energy of each spin (infinite where there is none)."""
        return tuple(float(eps_m[n_m == 0].min(initial=np.inf)) for eps_m, n_m in self._levels())

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr."""
        return properties.dipole(self.molecule, self.basis, self.state.D_spq, self.backend)

    @property
    def dipole_debye(self) -> Array:
        """Dipole moment, Debye."""
        return self.dipole * DIPOLE_IN_DEBYE

    @cached_property
    def mulliken_charges(self) -> Array:
        """Mulliken's charge of every atom."""
        return self.molecule.numbers - properties.mulliken(self.basis, self.density.sum(axis=0), self._overlap)

    @cached_property
    def loewdin_charges(self) -> Array:
        """Loewdin's charge of every atom."""
        return self.molecule.numbers - properties.loewdin(self.basis, self.density.sum(axis=0), self._overlap)

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        return properties.s_squared(self.density, self._overlap)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema AtomicResult as a dictionary."""
        # By name: interfaces know results, results know no interface.
        schema: dict[str, Any] = import_module("cuanto.interfaces.qcschema").to_qcschema(self)
        return schema

    @cached_property
    def _overlap(self) -> Array:
        return self._host(integrals.overlap(self.basis, backend=self.backend))

    def _levels(self) -> list[tuple[Array, Array]]:
        shared = len(self.orbital_energies) < len(self.occupations)
        return [(self.orbital_energies[0 if shared else s], n_m) for s, n_m in enumerate(self.occupations)]

    def _host(self, array: Any) -> Array:
        return np.asarray(array if isinstance(array, np.ndarray) else self.backend.to_host(array))
