"""Occupations of orbitals.

Fermi smearing: N. D. Mermin, Phys. Rev. 137, A1441 (1965), doi:10.1103/PhysRev.137.A1441.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cuanto.arrays import Array, Flags
from cuanto.errors import InputError
from cuanto.options import ScfOptions

NEGLIGIBLE_OCCUPATION = 1e-14
"""Occupations below this do not change a density."""
OCCUPIED = 0.5 - 1e-6
"""Share of the electrons of a full orbital with which an orbital is called occupied."""


class Occupations(Protocol):
    """Occupations of orbitals in the order of their energies."""

    @property
    def integer(self) -> bool:
        """Whether the lowest orbitals are full and the others empty, so that energies are not needed."""

    def __call__(self, eps_sm: Array | None) -> tuple[Array, float]:
        """n_sm, and the energy -T S of the entropy."""


@dataclass(frozen=True)
class Aufbau:
    """Electrons of each spin in the lowest orbitals, `capacity` in each."""

    electrons: tuple[int, ...]
    capacity: int
    orbitals: int
    integer: bool = True

    def __call__(self, eps_sm: Array | None) -> tuple[Array, float]:
        """Full and empty orbitals."""
        m = np.arange(self.orbitals)
        full_s = np.array(self.electrons)[:, None] / self.capacity
        return np.where(m < full_s, float(self.capacity), 0.0), 0.0


@dataclass(frozen=True)
class Fermi:
    """Fermi distribution of each spin: n = capacity/(1 + exp((eps - mu)/kT))."""

    electrons: tuple[int, ...]
    capacity: int
    orbitals: int
    temperature: float
    integer: bool = False

    def __call__(self, eps_sm: Array | None) -> tuple[Array, float]:
        """Occupations and -T S, the sum over the spins."""
        assert eps_sm is not None
        f_sm = np.array([self._one_spin(eps_m, n) for eps_m, n in zip(eps_sm, self.electrons, strict=True)])
        # -S/k = sum f ln f + (1 - f) ln (1 - f), zero where f is 0 or 1
        g_sm = np.stack([f_sm, 1.0 - f_sm])
        entropy = float(np.sum(g_sm * np.log(np.where(g_sm > 0.0, g_sm, 1.0))))
        n_sm = np.where(f_sm > NEGLIGIBLE_OCCUPATION, f_sm, 0.0) * self.capacity
        return n_sm, self.capacity * self.temperature * entropy

    def _one_spin(self, eps_m: Array, electrons: int) -> Array:
        """Fillings between 0 and 1, with the chemical potential found by bisection."""
        low, high = float(eps_m.min()) - 50 * self.temperature, float(eps_m.max()) + 50 * self.temperature
        for _ in range(200):
            mu = 0.5 * (low + high)
            f_m = 0.5 * (1.0 - np.tanh(0.5 * (eps_m - mu) / self.temperature))
            if f_m.sum() * self.capacity < electrons:
                low = mu
            else:
                high = mu
        # Scaled, so that the number of electrons is exact.
        return np.asarray(f_m * (electrons / (self.capacity * max(float(f_m.sum()), NEGLIGIBLE_OCCUPATION))))


@dataclass(frozen=True)
class Fixed:
    """Given occupations, in the order of orbital energies."""

    n_sm: Array
    integer: bool = False

    @classmethod
    def of(cls, given: Sequence[Sequence[float]], electrons: tuple[int, ...], capacity: int, orbitals: int) -> Fixed:
        """Check occupations against the number of electrons and pad them with empty orbitals."""
        if len(given) != len(electrons):
            raise InputError(f"occupations of {len(electrons)} spin(s) are needed, {len(given)} were given")
        n_sm = np.zeros((len(electrons), orbitals))
        for s, (row, count) in enumerate(zip(given, electrons, strict=True)):
            n_m = np.array(row, dtype=float)
            if n_m.ndim != 1 or not 0 < len(n_m) <= orbitals or not ((n_m >= 0) & (n_m <= capacity)).all():
                raise InputError(f"occupations must be at most {orbitals} numbers from 0 to {capacity}")
            if abs(n_m.sum() - count) > 1e-8:
                raise InputError(f"occupations add up to {n_m.sum():g}, the molecule has {count} such electrons")
            n_sm[s, : len(n_m)] = n_m
        return cls(n_sm)

    def __call__(self, eps_sm: Array | None) -> tuple[Array, float]:
        """Return the given occupations."""
        return self.n_sm, 0.0


def occupied(n_sm: Array) -> Flags:
    """Which orbitals are called occupied: those that are at least half full.

    A single row of occupations is that of both spins, two electrons in a full orbital.
    """
    return np.asarray(n_sm > OCCUPIED * (2 if len(n_sm) == 1 else 1))


def choose_occupations(options: ScfOptions, electrons: tuple[int, ...], orbitals: int) -> Occupations:
    """The occupations selected by `options`; `electrons` of both spins together, or of each."""
    capacity = 2 if len(electrons) == 1 else 1
    if options.occupations is not None:
        return Fixed.of(options.occupations, electrons, capacity, orbitals)
    if max(electrons) > capacity * orbitals:
        raise InputError(f"{max(electrons)} electrons do not fit into {orbitals} orbitals: use a larger basis")
    if options.smearing:
        return Fermi(electrons, capacity, orbitals, options.smearing)
    return Aufbau(electrons, capacity, orbitals)
