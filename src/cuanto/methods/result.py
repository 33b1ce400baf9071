"""The result of any method; subclasses add what depends on the basis (`gaussian_result`, `semiempirical`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from math import nan
from typing import Any, ClassVar, Self

import numpy as np

from cuanto.arrays import Array, Flags
from cuanto.backends.base import Backend, get_backend
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.methods.error_estimates import total_error
from cuanto.methods.history import Iteration
from cuanto.methods.summary import summary_html, summary_text
from cuanto.options import ScfOptions, changed_options
from cuanto.scf.occupations import occupied
from cuanto.scf.state import State
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
        """Highest energy of an orbital of each spin that is at least half full, Hartree (minus infinity if there is
        none)."""
        return tuple(float(eps_m[full_m].max(initial=-np.inf)) for eps_m, full_m in self._occupied_levels())

    @cached_property
    def lumo(self) -> tuple[float, ...]:
        """Lowest energy of the other orbitals of each spin, Hartree (infinity if there is none)."""
        return tuple(float(eps_m[~full_m].min(initial=np.inf)) for eps_m, full_m in self._occupied_levels())

    @property
    def gap(self) -> float:
        """LUMO minus HOMO, of any spin, Hartree (infinity if one is missing).

        If the spins share orbitals, within a spin: a singly occupied orbital is the HOMO of one and the LUMO of the
        other.
        """
        if len(self.orbital_energies) < len(self.occupations):
            return min(empty - full for empty, full in zip(self.lumo, self.homo, strict=True))
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
        """A QCSchema AtomicResult as a dictionary, of the gradient if it was computed."""
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

    def _occupied_levels(self) -> list[tuple[Array, Flags]]:
        """Orbital energies of each spin (Hartree), and which are occupied."""
        return [(eps_m, full_m) for (eps_m, _), full_m in zip(self.levels(), occupied(self.occupations), strict=True)]

    def _host(self, array: Any, what: str) -> Array:
        if array is None:
            raise self._lacks(what)
        # An unfinished calculation may have orbitals in single precision.
        return np.asarray(self.backend.to_host(array), dtype=np.float64)

    def _lacks(self, what: str) -> InputError:
        return InputError(f"{self.molecule.name or 'this result'}: the file has no {what}; repeat the calculation")
