"""How an SCF is run: checked once here, trusted everywhere else."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from cuanto.errors import InputError

DIAGONALISERS = ("auto", "full", "pseudo")
VARIANTS = ("refined", "block", "jacobi", "two-kernel")
ACCELERATORS = ("auto", "diis", "adiis", "descent", "none")
PRECISIONS = ("double", "mixed", "single")
STORAGES = ("auto", "stored", "direct")
STABILITIES = ("none", "check", "follow")


@dataclass(frozen=True, kw_only=True)
class ScfOptions:
    """Settings of the self-consistent field.

    `energy_tolerance`, `gradient_tolerance`, `dipole_tolerance`: all must be met; the gradient is the norm of FDS - SDF
    in an orthonormal basis, and the energy is then right to about its square; of the dipole moment (e Bohr; 1e-5 Debye)
    it is what the steps to come would change, by an estimate.
    `diagonaliser`: `full`, `pseudo` (rotations between occupied and virtual orbitals), or `auto`: whichever is faster;
    `variant` of the rotations: `refined`, `block` (cheaper, less far), `two-kernel`, `jacobi` (older), or `auto`.
    `accelerator`: `diis`, `adiis` (interpolation that lowers the energy), `descent` (direct minimisation until DIIS is
    safe), `none`, or `auto`: DIIS, rescued by ADIIS and, where that does not help, by descent.
    `history`: matrices that ADIIS remembers; DIIS has half as many more.
    `damping`: share of the last Fock matrix that is kept while far from convergence; `level_shift` in Hartree.
    `smearing`: k_B T in Hartree of a Fermi distribution; `occupations`: fixed ones of each spin, by orbital energy.
    `linear_dependence`: smallest eigenvalue kept of the overlap matrix of normalised functions.
    `atomic_charges`, `atomic_spins`: of the atoms whose densities are superposed as a guess, one number per atom; the
    spins (unpaired electrons, sign for direction) may cancel and so break the symmetry of a singlet.
    `guess_mixing`: norm of random rotations between occupied and empty orbitals of the guess, drawn with `seed`: one
    more way to begin, where many solutions exist.
    `stability`: `check` whether the energy is a minimum; `follow` the direction in which it is not, and converge again.
    `screening`: threshold of direct J and K. `storage` of their integrals: `stored` (on the CPU), `direct` (made in
    every iteration), or `auto`: stored where half of `max_memory`, or of the free memory, allows it and there is
    exchange.
    `profile`: wait for the device after each step, so that timings are exact.
    """

    max_iterations: int = 100
    energy_tolerance: float = 1e-9
    gradient_tolerance: float = 1e-5
    dipole_tolerance: float = 4e-6
    diagonaliser: str = "auto"
    variant: str = "auto"
    accelerator: str = "auto"
    history: int = 8
    damping: float = 0.0
    level_shift: float = 0.0
    smearing: float = 0.0
    occupations: Sequence[Sequence[float]] | None = None
    linear_dependence: float = 1e-7
    atomic_charges: Sequence[float] | None = None
    atomic_spins: Sequence[float] | None = None
    guess_mixing: float = 0.0
    seed: int = 0
    stability: str = "none"
    screening: float = 1e-12
    storage: str = "auto"
    profile: bool = False

    def __post_init__(self) -> None:
        _one_of("diagonaliser", self.diagonaliser, DIAGONALISERS)
        _one_of("variant", self.variant, ("auto", *VARIANTS))
        _one_of("accelerator", self.accelerator, ACCELERATORS)
        _one_of("storage", self.storage, STORAGES)
        _one_of("stability", self.stability, STABILITIES)
        _number("max_iterations", self.max_iterations, 1, 1_000_000)
        _number("energy_tolerance", self.energy_tolerance, 1e-14, 1.0)
        _number("gradient_tolerance", self.gradient_tolerance, 1e-12, 1.0)
        _number("dipole_tolerance", self.dipole_tolerance, 1e-12, 1e6)
        _number("guess_mixing", self.guess_mixing, 0.0, 10.0)
        _number("seed", self.seed, 0, 2**63 - 1)
        _number("history", self.history, 2, 12)
        _number("damping", self.damping, 0.0, 0.95)
        _number("level_shift", self.level_shift, 0.0, 100.0)
        _number("smearing", self.smearing, 0.0, 1.0)
        _number("linear_dependence", self.linear_dependence, 1e-14, 0.1)
        _number("screening", self.screening, 1e-20, 1e-4)
        if self.smearing and self.occupations is not None:
            raise InputError("smearing and fixed occupations exclude each other: give one of them")
        if "descent" in (self.accelerator, "descent" if self.stability != "none" else "") and (
            self.smearing or self.occupations is not None
        ):
            raise InputError("stability and descent need aufbau occupations: leave out smearing and occupations")
        if self.diagonaliser == "pseudo" and (self.smearing or self.occupations is not None):
            raise InputError("diagonaliser='pseudo' needs aufbau occupations: leave out smearing and occupations")

    @classmethod
    def of(cls, **given: Any) -> ScfOptions:
        """From keywords; an unknown one is named together with the nearest."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
                raise InputError(f"unknown option {name!r}; {hint}")
        return cls(**given)


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: choose {', '.join(choices)}")


def _number(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{name} must be a number, {value!r} was given")
    if not low <= value <= high:
        raise InputError(f"{name} is {value:g}: give a number from {low:g} to {high:g}")
    if name in ("max_iterations", "history", "seed") and value != int(value):
        raise InputError(f"{name} must be a whole number, {value!r} was given")
