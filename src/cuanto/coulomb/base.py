"""The interface of builders of Coulomb and exchange matrices, and the options of direct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cuanto.arrays import Array
from cuanto.coulomb.forces import Sources
from cuanto.errors import InputError
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.engine import check_algorithm
from cuanto.options import PRECISIONS, STORAGES


class JKBuilder(Protocol):
    """Computes J_spq and K_spq of densities D_spq; None for matrices that are not wanted.

    `C_spi`, if known: D_spq = sum_i C_spi C_sqi, occupied orbitals times the square roots of their occupations, with
    columns of zeros where a spin has fewer orbitals. Builders that fit the exchange use it, direct ones do not.
    """

    def __call__(self, D_spq: Any, C_spi: Any | None, want_j: bool, want_k: bool) -> tuple[Any, Any]:
        """J_spq and K_spq, or None, on the device of the builder."""

    def coulomb(self, D_spq: Any) -> Any:
        """J of the sum of densities, [1, p, q]."""
        return self(D_spq.sum(axis=0, keepdims=True) if len(D_spq) > 1 else D_spq, None, True, False)[0]

    def coulomb_sources(self, D_pq: Any) -> Sources | None:
        """The charge density whose potential is J; None for an attenuated operator."""

    def coulomb_gradient(self, D_pq: Any) -> Array:
        """d/dR of 1/2 sum_pq D_pq J_pq at a fixed density matrix, [atom, axis]."""

    def exchange_gradient(self, D_spq: Any, C_spi: Any | None) -> Array:
        """d/dR of -1/2 sum_s sum_pq D_spq K_spq[D_s] at fixed density matrices, [atom, axis]; half of that if one
        matrix holds both spins."""

    def notes(self) -> Sequence[str]:
        """Remarks on the integrals for the result."""
        return ()

    def in_double(self) -> JKBuilder | None:
        """The same builder in double precision; None if it already is."""
        return None


@dataclass(frozen=True, kw_only=True)
class DirectOptions:
    """How direct J and K are evaluated.

    `threshold`: largest neglected contribution of a quartet (in the J engine: of everything neglected for a primitive
    pair).
    `precision`: `double`; `mixed` (small contributions in single precision, sums in double); `single`.
    `algorithm` of the quartets: `auto`, `hgp` or `md`.
    `one_pass`: J from the quartets of K as well, instead of the J engine; for comparison.
    `omega` (1/Bohr): that of the attenuated operator erf(omega r)/r, which then replaces 1/r.
    `storage`: `direct`; `stored` (the CPU stores the integrals of all quartets, and J uses them as well, except in
    single precision); `auto`: stored if they fit into half of the available memory.
    """

    threshold: float = 1e-12
    precision: str = "double"
    algorithm: str = "auto"
    one_pass: bool = False
    omega: float | None = None
    storage: str = "direct"

    def __post_init__(self) -> None:
        for name, known in (("precision", PRECISIONS), ("storage", STORAGES)):
            if getattr(self, name) not in known:
                raise InputError(f"unknown {name} {getattr(self, name)!r}: choose {', '.join(known)}")
        check_algorithm(self.algorithm)
        if not 0.0 < self.threshold < 1.0:
            raise InputError(f"threshold is {self.threshold}; give a positive number such as 1e-12")
        smearing(self.omega)  # raises an error for an invalid omega
