"""Parts of functionals: energy densities, registered under their Libxc labels with the papers to cite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuanto.functionals.density import Density
from cuanto.kernels.values import Value


@dataclass(frozen=True)
class Citation:
    """A publication."""

    text: str
    doi: str

    def __str__(self) -> str:
        return f"{self.text}, doi:{self.doi}"


@dataclass(frozen=True)
class Definition:
    """An energy density as a function of the density and, for short-range exchange, of omega."""

    family: str
    citations: tuple[Citation, ...]
    energy: Callable[..., Value]


DEFINITIONS: dict[str, Definition] = {}


def define(label: str, *citations: Citation) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register the energy density of both spins; the label begins with the family: lda, gga or mgga."""

    def register(energy: Callable[..., Value]) -> Callable[..., Value]:
        DEFINITIONS[label] = Definition(label.removeprefix("hyb_").split("_")[0], citations, energy)
        return energy

    return register


def define_exchange(label: str, *citations: Citation) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register an exchange part, given the energy density of one spin."""

    def register(energy: Callable[..., Value]) -> Callable[..., Value]:
        def of_both(d: Density, **omega: float) -> Value:
            return energy(d.a, **omega) + energy(d.b, **omega)

        define(label, *citations)(of_both)
        return energy

    return register
