"""A density functional: a sum of parts, each with its Libxc label, and a fraction of exact exchange."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cuanto.functionals import becke, perdew, power_series, scan, tpss, uniform_gas  # noqa: F401 (they register parts)
from cuanto.functionals.density import closed_shell, open_shell
from cuanto.functionals.parts import DEFINITIONS, Citation, Definition
from cuanto.kernels.derivative import gradient
from cuanto.kernels.functional_source import FAMILIES, VARIABLES, functional_source
from cuanto.kernels.ir import Graph, Stage
from cuanto.kernels.text import Source
from cuanto.kernels.values import number


@dataclass(frozen=True)
class Part:
    """`factor` times the functional with this label; `omega` for short-range exchange."""

    factor: float
    label: str
    omega: float | None = None

    @property
    def definition(self) -> Definition:
        """Family, papers and energy density."""
        return DEFINITIONS[self.label]


@dataclass(frozen=True)
class RangeSeparation:
    """Exact exchange with the operator [alpha + beta erf(omega r)] / r."""

    omega: float
    alpha: float
    beta: float


@dataclass(frozen=True)
class Functional:
    """A functional; `exact_exchange` is the fraction of exchange with 1/r, supplemented by `range_separation` if
    given."""

    name: str
    parts: tuple[Part, ...]
    exact_exchange: float = 0.0
    range_separation: RangeSeparation | None = None
    papers: tuple[Citation, ...] = ()
    note: str = ""

    @property
    def family(self) -> str:
        """`lda`, `gga` (needs the gradient), `mgga` (needs the kinetic energy density as well)."""
        return max((part.definition.family for part in self.parts), key=FAMILIES.index)

    @property
    def needs_gradient(self) -> bool:
        """Whether it depends on sigma."""
        return self.family != "lda"

    @property
    def needs_tau(self) -> bool:
        """Whether it depends on tau."""
        return self.family == "mgga"

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Papers of the functional and of its parts, each once."""
        parts = (citation for part in self.parts for citation in part.definition.citations)
        return tuple(dict.fromkeys((*self.papers, *parts)))

    def expressions(self, spins: int) -> Stage:
        """Energy density and its derivatives with respect to the variables x[i], as one graph."""
        return _expressions(self.parts, spins, VARIABLES[spins][self.family])

    def source(self, target: str, spins: int, real: str = "double", consumer: str = "store") -> Source:
        """Source of the kernel."""
        name = "".join(letter if letter.isalnum() else "_" for letter in self.name)
        return functional_source(self.expressions(spins), name, self.family, spins, target, real, consumer)


@cache
def _expressions(parts: tuple[Part, ...], spins: int, count: int) -> Stage:
    graph = Graph()
    density, variables = open_shell(graph) if spins == 2 else closed_shell(graph)
    total = number(graph, 0)
    for part in parts:
        options = {} if part.omega is None else {"omega": part.omega}
        total = total + part.factor * part.definition.energy(density, **options)
    outputs = (total, *gradient(total, variables[:count]))
    return Stage(graph, tuple(output.node for output in outputs))


def labels() -> list[str]:
    """Labels of all parts."""
    return sorted(DEFINITIONS)
