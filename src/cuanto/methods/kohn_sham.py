"""Kohn-Sham: Hartree-Fock with a functional of the density in place of all or a part of the exchange.

A functional by its name is restricted for singlets and unrestricted otherwise; with `u` before the name (`upbe`) it is
always unrestricted. An ending such as `-d3bj` adds dispersion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuanto.coulomb.base import JKBuilder
from cuanto.errors import InputError
from cuanto.functionals import Functional, get_functional, split_dispersion
from cuanto.grid import GridSettings
from cuanto.methods.hartree_fock import HartreeFock
from cuanto.system import Molecule
from cuanto.terms import Coulomb, Dispersion, Exchange, ExchangeCorrelation, Term


@dataclass(frozen=True)
class Model:
    """What the name of a method means; `spins`: 1 restricted, 2 unrestricted."""

    functional: Functional
    spins: int
    dispersion: str | None = None

    @classmethod
    def of(cls, method: str, molecule: Molecule) -> Model:
        """By name."""
        name, dispersion = split_dispersion(method)
        spins = 1 if molecule.multiplicity == 1 else 2
        try:
            return cls(get_functional(name), spins, dispersion)
        except InputError:
            # No `r` for restricted: RPBE, for one, is another functional.
            if not name.lower().startswith("u"):
                raise
        return cls(get_functional(name[1:]), 2, dispersion)

    @property
    def exchange(self) -> bool:
        """Is there exact exchange?"""
        return bool(self.functional.exact_exchange or self.functional.range_separation)


@dataclass(frozen=True)
class KohnSham(HartreeFock):
    """A molecule in a basis with a functional; `attenuated`: builder of the exchange of erf(omega r)/r."""

    model: Model | None = None
    grid: GridSettings = field(default_factory=GridSettings)
    precision: str = "double"
    max_memory: float | None = None
    attenuated: JKBuilder | None = None
    _made: list[ExchangeCorrelation] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.model is not None

    @property
    def spins(self) -> int:
        """Densities: one of both electrons, or two."""
        assert self.model is not None
        return self.model.spins

    def _interaction(self) -> list[Term]:
        assert self.model is not None
        functional = self.model.functional
        terms: list[Term] = [Coulomb(self.j_builder)]
        if functional.exact_exchange:
            terms.append(Exchange(self.k_builder, functional.exact_exchange))
        if functional.range_separation is not None and self.attenuated is not None:
            terms.append(Exchange(self.attenuated, functional.range_separation.beta, "long-range exchange"))
        with self.timings.measure("grid"):
            limits: dict[str, Any] = {"max_memory": self.max_memory, "precision": self.precision}
            common = (functional, self.molecule, self.basis, self.backend, self.spins)
            xc = ExchangeCorrelation(*common, self.grid, **limits)
        terms.append(xc)
        self._made[:] = [xc]
        if self.model.dispersion is not None:
            terms.append(Dispersion(self.molecule, functional.name, self.model.dispersion))
        return terms

    def remarks(self) -> list[str]:
        """What a reader of the result should know of the grid."""
        found = []
        for xc in self._made:
            found.append(f"grid: {len(xc.grid.w_g)} points, density integrates to {float(xc.electrons):.6f} electrons")
            if (warning := xc.warning(self.molecule.nelectron)) is not None:
                found.append(f"WARNING: {warning}")
        return found
