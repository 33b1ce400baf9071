"""Parameters of a method, read from `cuanto/data/semiempirical`, and quantities derived from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.semiempirical import derived
from cuanto.semiempirical.constants import HARTREE
from cuanto.semiempirical.shells import Shells

METHODS = ("mndo", "am1", "pm3", "pm6", "rm1")

Gaussian = tuple[float, float, float]
"""K, L and M of a term in the core repulsion."""


@dataclass(frozen=True)
class Element:
    """Parameters of an element, in atomic units unless stated otherwise.

    `alpha` and `gaussians` (K, L, M) are in powers of Angstrom. `isolated`: energy of the separate atom. `heat`: its
    heat of formation, kcal/mol. `radius`: Angstrom, where the method has one.
    """

    symbol: str
    number: int
    core_charge: int
    shells: Shells
    U: tuple[float, ...]
    beta: tuple[float, ...]
    alpha: float
    gaussians: tuple[Gaussian, ...]
    isolated: float
    heat: float
    radius: float | None = None

    @property
    def kind(self) -> tuple[int, ...]:
        """Principal quantum numbers of the shells, for which kernels are specialised."""
        return self.shells.n

    @property
    def orbitals(self) -> int:
        """Number of orbitals."""
        return len(self.shells.n) ** 2

    @property
    def zeta(self) -> tuple[float, ...]:
        """Exponents of the shells."""
        return self.shells.zeta

    @property
    def D(self) -> Mapping[str, float]:
        """Charge separations by pair of shells."""
        return self.shells.D

    @property
    def rho(self) -> Mapping[str, float]:
        """Additive terms by pair of shells."""
        return self.shells.rho

    @property
    def p_attracted(self) -> bool:
        """Whether other cores attract the p orbitals: MOPAC leaves this out for helium."""
        return self.symbol != "He"

    def per_orbital(self, values: tuple[float, ...]) -> Array:
        """One number per shell, repeated for its orbitals."""
        return np.repeat(values, [1, 3, 5][: len(values)])


class Elements(Mapping[str, Element]):
    """Elements of a method by symbol; derived quantities are computed when an element is first used."""

    def __init__(self, given: Mapping[str, Mapping[str, Any]]) -> None:
        self._given = given
        self._known: dict[str, Element] = {}

    def __getitem__(self, symbol: str) -> Element:
        if symbol not in self._known:
            self._known[symbol] = _element(symbol, self._given[symbol])
        return self._known[symbol]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._given


@dataclass(frozen=True)
class Parameters:
    """Parameters of a method.

    `pairs`: alpha and x of a pair of elements, under both orders of the symbols; a third number, 1, if the term is
    multiplied by R. `by_partner`: Gaussians of the first element that replace its own in a pair with the second.
    """

    method: str
    elements: Mapping[str, Element]
    pairs: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    by_partner: Mapping[tuple[str, str], tuple[Gaussian, ...]] = field(default_factory=dict)

    def element(self, symbol: str) -> Element:
        """Return an element; if it has no parameters, the error names the methods that have it."""
        if symbol not in self.elements:
            others = ", ".join(method for method in METHODS if symbol in parameters(method).elements)
            known = f"{others} {'has' if others in METHODS else 'have'} them" if others else "no other method has them"
            raise InputError(f"{self.method} has no parameters for {symbol}: {known}")
        return self.elements[symbol]


@cache
def parameters(method: str) -> Parameters:
    """Parameters of a method, cached."""
    if method not in METHODS:
        raise InputError(f"unknown semiempirical method {method!r}: choose {', '.join(METHODS)}")
    text = (files("cuanto") / "data" / "semiempirical" / f"{method}.json").read_text()
    data = json.loads(text)
    pairs: dict[tuple[str, str], tuple[float, ...]] = {}
    for one, others in data["pairs"].items():
        for other, values in others.items():
            pairs[one, other] = pairs[other, one] = tuple(values)
    by_partner = {
        (one, other): tuple((K, L, M) for K, L, M in terms)
        for one, others in data.get("gaussians_by_partner", {}).items()
        for other, terms in others.items()
    }
    return Parameters(method, Elements(data["elements"]), pairs, by_partner)


def _element(symbol: str, given: Mapping[str, Any]) -> Element:
    shells = Shells.of(given)
    U = tuple(u / HARTREE for u in given["U"])
    isolated = derived.isolated_atom(given["configuration"], U, shells.g)
    if "isolated_atom" in given:
        isolated += shells.isolated_d(given["isolated_atom"])
    return Element(
        symbol=symbol,
        number=int(given["Z"]),
        core_charge=int(given["core_charge"]),
        shells=shells,
        U=U,
        beta=tuple(beta / HARTREE for beta in given["beta"]),
        alpha=float(given.get("alpha", 0.0)),
        gaussians=tuple((K, L, M) for K, L, M in given.get("gaussians", ())),
        isolated=isolated,
        heat=float(given["heat_of_formation_atom"]),
        radius=given.get("radius"),
    )
