"""Effective core potentials as basis sets tabulate them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RadialTerm:
    """One term d r^(n-2) exp(-z r^2) of a radial potential: power n, exponent z, coefficient d."""

    power: int
    exponent: float
    coefficient: float


@dataclass(frozen=True, slots=True)
class CorePotential:
    """Semilocal potential U_L(r) + sum over l < L of |lm> U_l(r) <lm|, which replaces the core electrons of an atom.

    `local` is U_L; `projected[l]` is U_l, the difference from U_L as files give it.
    """

    core_electrons: int
    local: tuple[RadialTerm, ...]
    projected: tuple[tuple[RadialTerm, ...], ...]
