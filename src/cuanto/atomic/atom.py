"""Input and result of a calculation of an atom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.configuration import Occupation
from cuanto.atomic.nucleus import Nucleus
from cuanto.atomic.species import SPECIES, Species
from cuanto.errors import InputError, require

SPEED_OF_LIGHT = 137.03599976
"""In atomic units; the default of D. Hennessey's thesis (Alberta 2018), whose results it reproduces."""
LARGEST_SPEED = 3e5
"""Largest speed of light of a relativistic calculation: above it, rounding errors exceed the thresholds of the SCF."""
MIN_EXPONENT, MAX_EXPONENT = 1e-10, 1e20
"""Beyond these limits, intermediate values of g functions overflow or underflow."""


@dataclass(frozen=True, eq=False)
class AtomBasis:
    """Gaussian exponents of every symmetry (read-only arrays, in the order of SPECIES); all of them positive."""

    exponents: tuple[Array, ...]

    def __post_init__(self) -> None:
        given = tuple(np.array(z, dtype=float).reshape(-1) for z in self.exponents)
        possible = f"1 to {len(SPECIES)} are possible"
        require(1 <= len(given) <= len(SPECIES), f"exponents of {len(given)} symmetries were given: {possible}")
        limits = f"between {MIN_EXPONENT:g} and {MAX_EXPONENT:g}"
        for z, species in zip(given, SPECIES, strict=False):
            in_range = ((z >= MIN_EXPONENT) & (z <= MAX_EXPONENT)).all()
            require(in_range, f"the exponents of {species.label} must be positive numbers {limits}")
            require(len(np.unique(z)) == len(z), f"two exponents of {species.label} are equal: give different ones")
            z.setflags(write=False)
        object.__setattr__(self, "exponents", given)

    @classmethod
    def by_momentum(cls, exponents: Sequence[Sequence[float] | Array]) -> AtomBasis:
        """The same exponents for both species of every l: s, p, d, ..."""
        return cls(tuple(np.asarray(z) for l, z in enumerate(exponents) for _ in range(1 if l == 0 else 2)))

    @property
    def nsym(self) -> int:
        """Number of symmetries."""
        return len(self.exponents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Functions of every symmetry."""
        return tuple(len(z) for z in self.exponents)

    def same_as(self, other: AtomBasis) -> bool:
        """Whether all exponents are equal to the last digit."""
        return self.sizes == other.sizes and all(
            np.array_equal(mine, yours) for mine, yours in zip(self.exponents, other.exponents, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Atom:
    """A nucleus, exponents, and occupations."""

    nucleus: Nucleus
    basis: AtomBasis
    occupation: Occupation

    def __post_init__(self) -> None:
        given = f"exponents of {self.basis.nsym} symmetries and occupations of {self.occupation.nsym}"
        require(self.basis.nsym == self.occupation.nsym, f"{given}: give the same number of both")
        for i, (species, size) in enumerate(zip(SPECIES, self.basis.sizes, strict=False)):
            shells = self.occupation.shells(i)
            require(
                shells <= size, f"{shells} occupied shells {species.label} and {size} functions: give more functions"
            )

    @property
    def electrons(self) -> float:
        """Number of electrons."""
        return self.occupation.electrons

    @property
    def charge(self) -> float:
        """Charge of the atom or ion."""
        return self.nucleus.charge - self.electrons


@dataclass(frozen=True, kw_only=True)
class ScfSettings:
    """How the equations are solved; the thresholds apply to changes of density matrix elements, one for each block.

    `accelerator`: `diis`, or `damping`: F = (1 - damping) F + damping F_before. `diagonaliser`: `full`, or `pseudo`:
    spinors are rotated if the rotations are small.
    """

    c: float = SPEED_OF_LIGHT
    relativistic: bool = True
    max_iterations: int = 50
    accelerator: Literal["diis", "damping"] = "diis"
    damping: float = 0.3
    history: int = 8
    level_shift: float = 0.0
    diagonaliser: Literal["full", "pseudo"] = "full"
    threshold_LL: float = 1e-5
    threshold_SL: float = 1e-7
    threshold_SS: float = 1e-9

    def __post_init__(self) -> None:
        require(isfinite(self.c) and self.c > 0, f"speed of light {self.c}: give a positive number")
        if self.relativistic and self.c > LARGEST_SPEED:
            raise InputError(
                f"speed of light {self.c:g}: above {LARGEST_SPEED:g} the SCF does not converge; without relativity "
                "(--nonrelativistic, relativistic=False) it is infinite"
            )
        for name, choices in (("accelerator", ("diis", "damping")), ("diagonaliser", ("full", "pseudo"))):
            value = getattr(self, name)
            require(value in choices, f"unknown {name} {value!r}: choose {' or '.join(choices)}")
        require(0 <= self.damping < 1, f"damping {self.damping}: give a number from 0 to below 1")
        positive = self.max_iterations >= 1 and self.history >= 1
        require(positive, "the numbers of iterations and of stored Fock matrices must be positive")
        shift = self.level_shift
        require(isfinite(shift) and shift >= 0, f"level shift {shift}: give a non-negative number")
        for name in ("LL", "SL", "SS"):
            require(getattr(self, f"threshold_{name}") > 0, f"threshold_{name}: give a positive number")


@dataclass(frozen=True, eq=False)
class Spinor:
    """One shell: `P_p`, `Q_p` are coefficients of the normalised large and small functions of its symmetry."""

    n: int
    species: Species
    occupation: float
    closed: bool
    energy: float
    r: float
    r_inverse: float
    r_squared: float
    P_p: Array
    Q_p: Array

    @property
    def label(self) -> str:
        """1s, 2p-, 2p+, ..."""
        letter = self.species.label[0].lower()
        return f"{self.n}{letter}" + ("" if letter == "s" else self.species.label[1])


@dataclass(frozen=True)
class AtomIteration:
    """Report of one iteration: largest changes of the density by block, and the largest element of the DIIS error."""

    iteration: int
    energy: float
    energy_change: float
    change_LL: float
    change_SL: float
    change_SS: float
    error: float


@dataclass(frozen=True, eq=False)
class AtomResult:
    """Result of a calculation; `converged` must be checked.

    `parts` (Hartree): one_electron, two_electron, kinetic, rest_mass (0 without relativity), nuclear_attraction,
    electron_repulsion. `virial` is -(V_ne + V_ee)/T, for a point nucleus 1 at the basis limit (2 without relativity).
    `coefficients`: occupied spinors of every symmetry, [large; small] x shells, to start another calculation.
    """

    atom: Atom
    settings: ScfSettings
    energy: float
    converged: bool
    iterations: int
    parts: Mapping[str, float]
    spinors: tuple[Spinor, ...]
    coefficients: tuple[Array, ...]
    history: tuple[AtomIteration, ...]
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def virial(self) -> float:
        """-V/T."""
        return -(self.parts["nuclear_attraction"] + self.parts["electron_repulsion"]) / self.parts["kinetic"]
