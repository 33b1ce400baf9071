"""Effective core potentials as basis sets tabulate them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuanto.errors import require
from cuanto.system.elements import ATOMIC_NUMBERS

HIGHEST_POWER = 4
"""Largest power n of a term; those of the Basis Set Exchange have 0, 1, 2 and 4."""


@dataclass(frozen=True, slots=True)
class RadialTerm:
    """One term d r^(n-2) exp(-z r^2) of a radial potential: power n, exponent z, coefficient d."""

    power: int
    exponent: float
    coefficient: float


@dataclass(frozen=True, slots=True)
class CorePotential:
    """Semilocal potential U_L(r) + sum over l < L of |lm> U_l(r) <lm|, which replaces the core electrons of an atom.

    `local` is U_L; `projected[l]` is U_l, the difference from U_L as files give it. `spin_orbit` says that the source
    also has a spin-orbit part, which is left out.
    """

    core_electrons: int
    local: tuple[RadialTerm, ...]
    projected: tuple[tuple[RadialTerm, ...], ...]
    spin_orbit: bool = False

    @classmethod
    def from_parts(
        cls,
        symbol: str,
        core_electrons: int,
        local: Sequence[RadialTerm],
        projected: Mapping[int, Sequence[RadialTerm]],
        spin_orbit: bool = False,
    ) -> "CorePotential":
        """The potential of an element, checked; terms with coefficient zero are left out."""
        protons = ATOMIC_NUMBERS[symbol]
        possible = 0 <= core_electrons < protons
        require(possible, f"{core_electrons} core electrons are impossible for {symbol}: it has {protons} electrons")
        for term in [*local, *(term for terms in projected.values() for term in terms)]:
            require(0 <= term.power <= HIGHEST_POWER, f"power {term.power} of r is not one of 0 to {HIGHEST_POWER}")
            require(term.exponent > 0, "exponents of a core potential must be positive")
        highest = max((l for l, terms in projected.items() if any(t.coefficient for t in terms)), default=-1)
        parts = [tuple(t for t in projected.get(l, ()) if t.coefficient) for l in range(highest + 1)]
        return cls(core_electrons, tuple(t for t in local if t.coefficient), tuple(parts), spin_orbit)
