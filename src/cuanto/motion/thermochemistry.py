"""Thermochemistry of an ideal gas of rigid rotors and harmonic oscillators.

D. A. McQuarrie, Statistical Mechanics (University Science Books, 2000), chapters 5 to 8. Entropies of low modes are
interpolated towards those of free rotors: S. Grimme, Chem. Eur. J. 18, 9955 (2012), doi:10.1002/chem.201200497
("quasi-RRHO").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.units import (
    ATMOSPHERE,
    BOLTZMANN,
    DALTON_IN_ELECTRON_MASSES,
    HARTREE_IN_KJ_PER_MOL,
    HARTREE_IN_WAVENUMBERS,
)

MEAN_MOMENT = 1e-44 / (9.10938291e-31 * 0.52917721092e-10**2)
"""Mean moment of inertia of a molecule, the limit for free rotors (1e-44 kg m^2, Grimme), atomic units."""
CUTOFF = 100.0
"""Wavenumber at which an entropy is half that of an oscillator and half that of a free rotor, cm^-1 (Grimme)."""
ENTROPIES = ("quasi-rrho", "rrho")


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Temperature (K), pressure (atm), and the conventions of thermochemistry.

    `scale`: factor of all wavenumbers. `symmetry_number`: of the rotations; from the point group when None.
    `degeneracy` of the electronic state; the multiplicity when None. `entropy`: `quasi-rrho` (low modes become free
    rotors around `cutoff`, cm^-1) or `rrho` (harmonic oscillators throughout).
    """

    temperature: float = 298.15
    pressure: float = 1.0
    scale: float = 1.0
    symmetry_number: int | None = None
    degeneracy: int | None = None
    entropy: str = "quasi-rrho"
    cutoff: float = CUTOFF

    def __post_init__(self) -> None:
        limits = {"temperature": (1e-3, 1e5), "pressure": (1e-12, 1e9), "scale": (0.1, 10.0), "cutoff": (0.0, 1e4)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value:g}: give a number from {low:g} to {high:g}")
        for name in ("symmetry_number", "degeneracy"):
            value = getattr(self, name)
            if value is not None and (value != int(value) or value < 1):
                raise InputError(f"{name} is {value!r}: give a whole number from 1")
        if self.entropy not in ENTROPIES:
            raise InputError(f"unknown entropy {self.entropy!r}: choose {', '.join(ENTROPIES)}")

    def with_defaults(self, symmetry_number: int, degeneracy: int) -> Conditions:
        """The same conditions, with a symmetry number and a degeneracy filled in where they are None."""
        return replace(
            self,
            symmetry_number=self.symmetry_number or symmetry_number,
            degeneracy=self.degeneracy or degeneracy,
        )


@dataclass(frozen=True, kw_only=True)
class Thermochemistry:
    """Energies of one molecule in Hartree, entropies and heat capacities in Hartree/K.

    `energies`, `entropies` and `heat_capacities` (at constant volume) by motion: translation, rotation, vibration (with
    the zero-point energy), electronic.
    """

    conditions: Conditions
    electronic_energy: float
    zero_point_energy: float
    energies: Mapping[str, float]
    entropies: Mapping[str, float]
    heat_capacities: Mapping[str, float]

    @property
    def energy(self) -> float:
        """Internal energy U at the temperature."""
        return self.electronic_energy + sum(self.energies.values())

    @property
    def enthalpy(self) -> float:
        """H = U + kT."""
        return self.energy + BOLTZMANN * self.conditions.temperature

    @property
    def entropy(self) -> float:
        """S, Hartree/K."""
        return sum(self.entropies.values())

    @property
    def heat_capacity_v(self) -> float:
        """C_V = dU/dT, Hartree/K."""
        return sum(self.heat_capacities.values())

    @property
    def heat_capacity_p(self) -> float:
        """C_p = dH/dT, Hartree/K."""
        return self.heat_capacity_v + BOLTZMANN

    @property
    def entropy_term(self) -> float:
        """TS, Hartree."""
        return self.conditions.temperature * self.entropy

    @property
    def gibbs_energy(self) -> float:
        """G = H - TS."""
        return self.enthalpy - self.entropy_term

    def rows(self) -> list[tuple[str, float, float | None]]:
        """Names, values, and differences from the electronic energy (None for itself), Hartree."""
        E, zero, T = self.electronic_energy, self.zero_point_energy, self.conditions.temperature
        rows: list[tuple[str, float, float | None]] = [
            ("electronic energy", E, None),
            ("zero-point energy", zero, zero),
        ]
        rows += [("energy at 0 K", E + zero, zero), ("internal energy U", self.energy, self.energy - E)]
        rows += [("enthalpy H", self.enthalpy, self.enthalpy - E)]
        rows += [(f"entropy term TS, {name}", T * value, T * value) for name, value in self.entropies.items()]
        rows += [("entropy term TS", self.entropy_term, self.entropy_term)]
        return [*rows, ("Gibbs energy G", self.gibbs_energy, self.gibbs_energy - E)]

    def molar_rows(self) -> list[tuple[str, float]]:
        """Names and values of quantities per mole and kelvin, J/(mol K)."""
        capacities = ("heat capacity C_V", self.heat_capacity_v), ("heat capacity C_p", self.heat_capacity_p)
        unit = 1000.0 * HARTREE_IN_KJ_PER_MOL
        return [(name, unit * value) for name, value in (("entropy S", self.entropy), *capacities)]


def thermochemistry(
    energy: float, wavenumbers: Array, mass: float, moments: Array, conditions: Conditions
) -> Thermochemistry:
    """Thermochemistry from an electronic energy, real wavenumbers (cm^-1), the mass (atomic mass units) and the
    moments of inertia that are not zero (atomic mass units Bohr^2): three, two of a linear molecule, none of an atom.
    """
    assert conditions.symmetry_number is not None and conditions.degeneracy is not None
    kT = BOLTZMANN * conditions.temperature
    e_m = conditions.scale * wavenumbers / HARTREE_IN_WAVENUMBERS
    x_m = np.minimum(e_m / kT, 350.0)
    thermal_m = e_m / np.expm1(x_m)
    zero_point = 0.5 * float(e_m.sum())
    return Thermochemistry(
        conditions=conditions,
        electronic_energy=energy,
        zero_point_energy=zero_point,
        energies={
            "translation": 1.5 * kT,
            "rotation": 0.5 * len(moments) * kT,
            "vibration": zero_point + float(thermal_m.sum()),
            "electronic": 0.0,
        },
        entropies={
            "translation": BOLTZMANN * _translation(mass, kT, conditions.pressure),
            "rotation": BOLTZMANN * _rotation(moments, kT, conditions.symmetry_number),
            "vibration": BOLTZMANN * float(_vibration(e_m, thermal_m, kT, conditions).sum()),
            "electronic": BOLTZMANN * math.log(conditions.degeneracy),
        },
        heat_capacities={
            "translation": 1.5 * BOLTZMANN,
            "rotation": 0.5 * len(moments) * BOLTZMANN,
            "vibration": BOLTZMANN * float(((0.5 * x_m / np.sinh(0.5 * x_m)) ** 2).sum()),
            "electronic": 0.0,
        },
    )


def _translation(mass: float, kT: float, pressure: float) -> float:
    """S/k = ln[(m kT / 2 pi hbar^2)^3/2 kT / p] + 5/2 (Sackur and Tetrode)."""
    m = mass * DALTON_IN_ELECTRON_MASSES
    return 1.5 * math.log(m * kT / (2 * math.pi)) + math.log(kT / (pressure * ATMOSPHERE)) + 2.5


def _rotation(moments: Array, kT: float, symmetry_number: int) -> float:
    """S/k = ln q + n/2, q = 2 I kT / (sigma hbar^2) of a linear molecule, sqrt(pi) prod (2 I kT)^1/2 / sigma else."""
    if len(moments) == 0:
        return 0.0
    q = math.prod(math.sqrt(2 * float(I) * DALTON_IN_ELECTRON_MASSES * kT) for I in moments)
    if len(moments) == 3:
        q *= math.sqrt(math.pi)
    return math.log(q / symmetry_number) + 0.5 * len(moments)


def _vibration(e_m: Array, thermal_m: Array, kT: float, conditions: Conditions) -> Array:
    """S/k of every mode."""
    x_m = np.minimum(e_m / kT, 700.0)
    oscillator_m = thermal_m / kT - np.log(-np.expm1(-x_m))
    if conditions.entropy == "rrho" or len(e_m) == 0:
        return np.asarray(oscillator_m)
    moment_m = 1 / (2 * e_m)  # h / (8 pi^2 nu), Grimme's eq. 4
    moment_m = moment_m * MEAN_MOMENT / (moment_m + MEAN_MOMENT)
    rotor_m = 0.5 + 0.5 * np.log(2 * math.pi * moment_m * kT)  # 8 pi^3 mu' kT / h^2, eq. 6
    weight_m = 1 / (1 + (conditions.cutoff / (e_m * HARTREE_IN_WAVENUMBERS)) ** 4)  # eq. 8
    return np.asarray(weight_m * oscillator_m + (1 - weight_m) * rotor_m)
