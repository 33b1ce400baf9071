"""Harmonic vibrations: normal modes, wavenumbers and infrared intensities from a Hessian.

E. B. Wilson, J. C. Decius, P. C. Cross, Molecular Vibrations (McGraw-Hill, 1955). Translations and rotations are
projected out, so that a molecule has exactly 3N - 6 vibrations, a linear one 3N - 5, at any geometry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.files import save_as
from cuanto.methods import Result
from cuanto.motion.hessian import Hessian
from cuanto.motion.thermochemistry import Conditions, Thermochemistry, thermochemistry
from cuanto.options import require_known
from cuanto.system import Molecule
from cuanto.system.masses import isotope_mass
from cuanto.system.symmetry import is_linear, symmetry_of
from cuanto.units import DALTON_IN_ELECTRON_MASSES, HARTREE_IN_WAVENUMBERS, INTENSITY_IN_KM_PER_MOL
from cuanto.wording import count

STATIONARY_GRADIENT = 4.5e-4
"""Largest component of the gradient of a stationary point, Hartree/Bohr, as in optimisations."""
IN_WAVENUMBERS = HARTREE_IN_WAVENUMBERS / DALTON_IN_ELECTRON_MASSES**0.5
"""cm^-1 of the square root of a second derivative of 1 Hartree/(Bohr^2 atomic mass unit)."""

Isotopes = Mapping[int | str, str | float]
"""Isotopes by the number of an atom (from 1) or by an element: {2: "D"}, {"H": "D", 1: "13C"}."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Vibrations:
    """Normal modes of a molecule by increasing wavenumber; imaginary ones are negative.

    `wavenumbers` in cm^-1 without the scale factor, `intensities` in km/mol, `modes` [mode, atom, axis] as normalised
    Cartesian displacements, `reduced_masses` in atomic mass units, `force_constants` in Hartree/Bohr^2.
    `result`: at the reference geometry; None if the Hessian comes from a file.
    """

    second_derivatives: Hessian
    masses: Array
    wavenumbers: Array
    intensities: Array
    modes: Array
    reduced_masses: Array
    conditions: Conditions = field(default_factory=Conditions)
    result: Result | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: arrays would fill the screen of a notebook."""
        name = self.molecule.name or "molecule"
        span = f"{self.wavenumbers[0]:.1f} to {self.wavenumbers[-1]:.1f} cm^-1" if len(self.wavenumbers) else "none"
        verdict = "" if self.stationary else ", NOT at a stationary point"
        return f"<Vibrations {name} {self.level_of_theory}: {len(self.wavenumbers)} modes, {span}{verdict}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .json (QCSchema, for `cuanto frequencies` and `cuanto report`), .molden (modes), .html (a report) or
        .xyz, by the name of the file."""
        texts = import_module("cuanto.interfaces.vibrations")  # imported when needed: interfaces import results
        makers = {
            ".json": lambda: str(texts.schema_text(self)),
            ".molden": lambda: str(texts.modes_molden(self)),
            ".html": lambda: str(import_module("cuanto.report").report_html(self)),
            ".xyz": self.molecule.to_xyz,
        }
        save_as(path, makers)

    @property
    def molecule(self) -> Molecule:
        """The molecule at the reference geometry."""
        return self.second_derivatives.molecule

    @property
    def energy(self) -> float:
        """Electronic energy, Hartree."""
        return self.second_derivatives.energy

    @property
    def hessian(self) -> Array:
        """Second derivatives of the energy [3N, 3N], Hartree/Bohr^2."""
        return self.second_derivatives.matrix

    @property
    def force_constants(self) -> Array:
        """Second derivative of the energy along each mode, Hartree/Bohr^2."""
        nu_m = self.wavenumbers / IN_WAVENUMBERS
        return np.asarray(np.sign(nu_m) * nu_m**2 * self.reduced_masses)

    @property
    def scaled_wavenumbers(self) -> Array:
        """Wavenumbers times the scale factor of the `conditions`, cm^-1."""
        return np.asarray(self.conditions.scale * self.wavenumbers)

    @property
    def level_of_theory(self) -> str:
        """Method and basis."""
        about = self.second_derivatives
        return about.method if about.basis is None else f"{about.method}/{about.basis}"

    @property
    def imaginary(self) -> Array:
        """Wavenumbers of imaginary modes, negative."""
        return self.wavenumbers[self.wavenumbers < 0]

    @property
    def stationary(self) -> bool:
        """Whether the largest component of the gradient at the reference geometry is at most `STATIONARY_GRADIENT`."""
        return float(np.abs(self.second_derivatives.gradient).max()) <= STATIONARY_GRADIENT

    @property
    def linear(self) -> bool:
        """Whether the molecule is linear."""
        return is_linear(self.molecule.R_ax)

    @cached_property
    def symmetry(self) -> tuple[str, int]:
        """Point group, isotopes considered, and symmetry number."""
        kinds = list(zip(self.molecule.symbols, self.masses.tolist(), strict=True))
        return symmetry_of(kinds, self.molecule.R_ax)

    @cached_property
    def thermochemistry(self) -> Thermochemistry:
        """Thermochemistry at the conditions that were given."""
        return self.thermochemistry_at(self.conditions)

    def thermochemistry_at(self, conditions: Conditions | None = None, **given: Any) -> Thermochemistry:
        """Thermochemistry at other conditions: `Conditions`, or its fields such as `temperature=400.0`."""
        require_known(given, [one.name for one in fields(Conditions)], "thermochemistry_at: unknown condition")
        if conditions is not None and (given or not isinstance(conditions, Conditions)):
            given_as = "Conditions, or values by name such as temperature=400"
            raise InputError(f"thermochemistry_at({conditions!r:.60}): give {given_as}")
        chosen = Conditions(**given) if conditions is None else conditions
        moments, _ = moments_of_inertia(self.masses, self.molecule.R_ax)
        rotations = _rotations(self.molecule.R_ax)
        return thermochemistry(
            self.energy,
            self.wavenumbers[self.wavenumbers > 0],
            self.masses.sum(),
            moments[len(moments) - rotations :],
            chosen.with_defaults(self.symmetry[1], self.molecule.multiplicity),
        )

    def with_isotopes(self, isotopes: Isotopes) -> Vibrations:
        """The same Hessian with other masses."""
        return analyse(self.second_derivatives, isotopes, self.conditions, self.result)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema AtomicResult with the driver `hessian` as a dictionary."""
        schema: dict[str, Any] = import_module("cuanto.interfaces.vibrations").to_qcschema(self)
        return schema


def analyse(
    hessian: Hessian,
    isotopes: Isotopes | None = None,
    conditions: Conditions | None = None,
    result: Result | None = None,
) -> Vibrations:
    """Normal modes of a Hessian with the masses of `isotopes` (those of the molecule where none are given)."""
    masses = atomic_masses(hessian.molecule, isotopes or {})
    B_qm = internal_space(masses, hessian.molecule.R_ax)
    root_q = np.repeat(np.sqrt(masses), 3)
    F_qq = hessian.matrix / np.outer(root_q, root_q)
    values, vectors = np.linalg.eigh(B_qm.T @ F_qq @ B_qm)
    l_mq = (B_qm @ vectors).T / root_q  # dR/dQ, 1/sqrt(atomic mass units)
    norms = (l_mq**2).sum(axis=1)
    slopes_mx = l_mq @ hessian.dipole_derivatives
    return Vibrations(
        second_derivatives=hessian,
        masses=masses,
        wavenumbers=np.sign(values) * np.sqrt(np.abs(values)) * IN_WAVENUMBERS,
        intensities=INTENSITY_IN_KM_PER_MOL * (slopes_mx**2).sum(axis=1),
        modes=(l_mq / np.sqrt(norms)[:, None]).reshape(len(values), len(masses), 3),
        reduced_masses=1 / norms,
        conditions=conditions or Conditions(),
        result=result,
        notes=(*hessian.notes, *_warnings(hessian, values)),
    )


def _warnings(hessian: Hessian, values: Array) -> list[str]:
    """Warnings about imaginary modes and geometries that are not stationary."""
    found, largest = [], float(np.abs(hessian.gradient).max())
    if largest > STATIONARY_GRADIENT:
        found.append(
            f"WARNING: the geometry is not a stationary point, its largest gradient is {largest:.1e} Hartree/Bohr "
            f"(limit {STATIONARY_GRADIENT:g}): wavenumbers and thermochemistry have no meaning before an optimisation"
        )
    negative = np.sqrt(-values[values < 0]) * IN_WAVENUMBERS
    if len(negative):
        shown = ", ".join(f"{-one:.1f}" for one in negative[:6])
        what, it = count(len(negative), "imaginary mode"), "it" if len(negative) == 1 else "them"
        found.append(
            f"WARNING: {what} ({shown} cm^-1): not a minimum; thermochemistry leaves {it} out; follow_imaginary=True "
            f"displaces the atoms along {it} and optimises again"
        )
    return found


def atomic_masses(molecule: Molecule, isotopes: Isotopes) -> Array:
    """Masses of all atoms, atomic mass units."""
    masses = molecule.nuclei.masses.astype(float)
    for key, isotope in isotopes.items():
        text = str(key).strip()
        if text.isdecimal():
            if not 1 <= int(text) <= molecule.natom:
                raise InputError(f"isotopes: there is no atom {text}; the atoms are 1 to {molecule.natom}")
            chosen = [int(text) - 1]
        else:
            chosen = [a for a, element in enumerate(molecule.elements) if element == text.capitalize()]
            if not chosen:
                known = ", ".join(molecule.composition)
                raise InputError(f"isotopes: the molecule has no {text!r}; give an atom's number or one of {known}")
        for a in chosen:
            masses[a] = isotope_mass(molecule.elements[a], isotope)
    return masses


def moments_of_inertia(masses: Array, R_ax: Array) -> tuple[Array, Array]:
    """Principal moments of inertia (atomic mass units Bohr^2), ascending, and the positions about the centre of mass
    in the principal axes."""
    r_ax = R_ax - masses @ R_ax / masses.sum()
    squares = (masses[:, None, None] * r_ax[:, :, None] * r_ax[:, None, :]).sum(axis=0)
    moments, axes_xy = np.linalg.eigh(np.trace(squares) * np.eye(3) - squares)
    return np.maximum(moments, 0.0), r_ax @ axes_xy


def _rotations(R_ax: Array) -> int:
    """Number of rotations: none of an atom, two of a linear molecule, three of others."""
    if len(R_ax) == 1:
        return 0
    return 2 if is_linear(R_ax) else 3


def internal_space(masses: Array, R_ax: Array) -> Array:
    """Orthonormal mass-weighted displacements [3N, modes] without translations and rotations."""
    r_ax, root_a = R_ax - masses @ R_ax / masses.sum(), np.sqrt(masses)
    translations = [np.outer(root_a, axis_x).reshape(-1) for axis_x in np.eye(3)]
    rotations = [(root_a[:, None] * np.cross(axis_x, r_ax)).reshape(-1) for axis_x in np.eye(3)]
    free = 3 + _rotations(R_ax)
    scale = max(float(np.linalg.norm(one)) for one in rotations) or 1.0
    T_kq = np.array(translations) / np.sqrt(masses.sum())
    R_kq = np.array(rotations) / scale
    R_kq = R_kq - R_kq @ T_kq.T @ T_kq
    axes = np.linalg.svd(R_kq)[2][: free - 3]
    outside = np.concatenate([T_kq, axes])
    return np.asarray(np.linalg.svd(outside)[2][free:].T)
