"""A density functional: a sum of parts, each defined in the file of its Libxc label, and a share of exact exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import closed_shell, open_shell
from cuanto.kernels.derivative import gradient
from cuanto.kernels.functional_source import FAMILIES, VARIABLES, functional_source
from cuanto.kernels.ir import Graph, Stage
from cuanto.kernels.text import Source
from cuanto.kernels.values import Value, number


@dataclass(frozen=True)
class Part:
    """`factor` times the functional of this label; `omega` where its exchange is a short-range one."""

    factor: float
    label: str
    omega: float | None = None

    @property
    def definition(self) -> Any:
        """The module with FAMILY, CITATIONS and energy()."""
        return import_module(f"cuanto.functionals.{self.label}")


@dataclass(frozen=True)
class RangeSeparation:
    """Exact exchange of the operator [alpha + beta erf(omega r)] / r: alpha near, alpha + beta far."""

    omega: float
    alpha: float
    beta: float


@dataclass(frozen=True)
class Functional:
    """`exact_exchange` is the share of exchange with 1/r; `range_separation` says more where there is any."""

    name: str
    parts: tuple[Part, ...]
    exact_exchange: float = 0.0
    range_separation: RangeSeparation | None = None
    papers: tuple[Citation, ...] = ()
    note: str = ""

    @property
    def family(self) -> str:
        """`lda`, `gga` (needs the gradient), `mgga` (needs the kinetic energy density as well)."""
        found: list[str] = [part.definition.FAMILY for part in self.parts]
        return max(found, key=FAMILIES.index)

    @property
    def needs_gradient(self) -> bool:
        """Does it depend on sigma?"""
        return self.family != "lda"

    @property
    def needs_tau(self) -> bool:
        """Does it depend on tau?"""
        return self.family == "mgga"

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Of the whole and of its parts, each once."""
        parts = (citation for part in self.parts for citation in part.definition.CITATIONS)
        return tuple(dict.fromkeys((*self.papers, *parts)))

    def expressions(self, spins: int) -> Stage:
        """Energy density, then its derivative by each of the variables x[i], as one graph."""
        return _expressions(self.parts, spins, VARIABLES[spins][self.family])

    def source(self, target: str, spins: int, real: str = "double", consumer: str = "store") -> Source:
        """The kernel's text."""
        name = "".join(letter if letter.isalnum() else "_" for letter in self.name)
        return functional_source(self.expressions(spins), name, self.family, spins, target, real, consumer)


@cache
def _expressions(parts: tuple[Part, ...], spins: int, count: int) -> Stage:
    graph = Graph()
    density, variables = open_shell(graph) if spins == 2 else closed_shell(graph)
    total = number(graph, 0)
    for part in parts:
        energy: Callable[..., Value] = part.definition.energy
        options = {} if part.omega is None else {"omega": part.omega}
        total = total + part.factor * energy(density, **options)
    outputs = (total, *gradient(total, variables[:count]))
    return Stage(graph, tuple(output.node for output in outputs))


def labels() -> Iterator[str]:
    """Every defined part."""
    from importlib.resources import files

    for item in sorted(files("cuanto.functionals").iterdir(), key=lambda file: file.name):
        stem = item.name.removesuffix(".py")
        if stem != item.name and stem.removeprefix("hyb_").startswith(("lda_", "gga_", "mgga_")):
            yield stem
