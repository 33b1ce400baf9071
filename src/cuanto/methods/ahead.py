"""Kernels that a calculation will need, requested before its first step, so that they are compiled in parallel.

Without this every kernel would be compiled when it is launched for the first time, one after the other. A kernel that
is missing here is compiled then; one that turns out not to be needed costs time of other cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.j_steps import SUMMATION
from cuanto.coulomb.quartets import QuartetEngine
from cuanto.functionals import Functional
from cuanto.grid import GridSettings
from cuanto.grid.base import ShellTable
from cuanto.kernels import hermite_build
from cuanto.kernels.build import general_source
from cuanto.kernels.direct import cpu_expand, cpu_store, cpu_stored
from cuanto.kernels.fitting_force import fit_expand_source, fit_force_source, fit_pairs_source
from cuanto.kernels.grid_setup import near_source, setup_kernel, weights_gradient_source, weights_source
from cuanto.kernels.grid_values import cpu_density, cpu_matrix, device_kernel, device_values
from cuanto.kernels.products import rows_kernel
from cuanto.kernels.shell_pairs import shell_pairs_source
from cuanto.kernels.spec import Shells
from cuanto.kernels.text import Source, add_sums_source
from cuanto.methods.context import Context

DENSITY_STEPS = ("gather_transposed", "gather_orbitals", "gather_matrix", "density", "weigh", "scatter")
_announced: set[tuple[str, tuple[Shells, ...], tuple[Shells, ...]]] = set()
POTENTIAL_STEPS = ("j_select", "j_expand", *SUMMATION, "j_keys", "j_bras")
"""Steps of the Coulomb potential of a density."""


def compile_energy(context: Context) -> None:
    """Request the kernels of an energy."""
    if isinstance(context.options.auxbasis, Basis):
        kinds = _momenta(context.basis)
        pairs = [Shells((a[0], b[0]), (a[1], b[1])) for i, a in enumerate(kinds) for b in kinds[i:]]
        _expect(context.backend, pairs, _kets(context.options.auxbasis), "hgp")
    if context.request.fitting == "none":
        QuartetEngine.begin(context.backend, context.options.precision)
    _compile(context, ENERGY)
    _compile(context, POSSIBLE, later=True)


def _momenta(basis: Basis) -> list[tuple[int, bool]]:
    """Angular momenta, and whether the functions are solid harmonics; highest first."""
    return sorted({(shell.l, shell.pure) for shell in basis.shells}, reverse=True)


def _kets(aux: Basis) -> list[Shells]:
    return [Shells((l,), (pure,)) for l, pure in _momenta(aux)]


def _expect(backend: Backend, bras: Sequence[Shells], kets: Sequence[Shells], algorithm: str) -> None:
    """Announce classes of three-centre integrals, once."""
    key = (backend.traits.language, tuple(bras), tuple(kets))
    if key not in _announced:
        _announced.add(key)
        backend.expect([("coulomb", bra, ket, algorithm) for bra in bras for ket in kets])


def compile_gradient(context: Context) -> None:
    """Request the kernels of a gradient."""
    if isinstance(context.options.auxbasis, Basis):
        highest = 2 * max(l for l, _ in _momenta(context.basis)) + 1
        hermite = [Shells((order,), hermite=True) for order in range(highest + 1)]
        _expect(context.backend, hermite, _kets(context.options.auxbasis), "md")
    _compile(context, GRADIENT)


def _compile(context: Context, lists: dict[str, Callable[[Context], Iterator[Source]]], later: bool = False) -> None:
    if (sources := lists.get(context.backend.traits.language)) is not None:
        for source in sources(context):
            context.backend.compile(source, later)


def _host_energy(context: Context) -> Iterator[Source]:
    model, request = context.model, context.request
    yield general_source("table", "double")
    if request.fitting == "none":
        yield cpu_expand()
        yield from (cpu_store("double"), cpu_stored("double"))
    else:
        for name in ("fit", "potential", *(("solve", "transform", "squares") if request.fitting == "jk" else ())):
            yield rows_kernel(name)
    if model.has_functional:
        yield from _setup(request.grid, "cpu", "bound")
        yield model.functional.source("cpu", model.spins, consumer="potential")
        table = ShellTable.of(context.basis)
        texts = (table.kinds, table.columns, model.functional.family)
        yield from (cpu_density(texts, "double", True), cpu_matrix(texts, "double"))


def _host_possible(context: Context) -> Iterator[Source]:
    """Kernels that some grids need: the density of a guess of many orbitals is made from its matrix."""
    if context.model.has_functional:
        table = ShellTable.of(context.basis)
        yield cpu_density((table.kinds, table.columns, context.model.functional.family), "double", False)


def _setup(settings: GridSettings, language: str, *more: str) -> Iterator[Source]:
    """Kernels that make a grid, `more` by name."""
    for name in ("extents", "count", "place", "fill", *more):
        yield setup_kernel(name, language)
    stratmann = settings.partition == "stratmann"
    yield from (weights_source(language, stratmann), near_source(language, stratmann))


def _device_energy(context: Context) -> Iterator[Source]:
    model, request = context.model, context.request
    yield add_sums_source()
    if request.fitting == "none":
        yield hermite_build.general_source("cuda", "double")
        for step in POTENTIAL_STEPS:
            yield hermite_build.step_source("cuda", step)
    else:
        yield shell_pairs_source("cuda")
    if model.has_functional:
        yield from _device_grid(context.basis, model.functional, request.grid)
        yield model.functional.source("cuda", model.spins, consumer="potential")


def _device_grid(basis: Basis, functional: Functional, settings: GridSettings) -> Iterator[Source]:
    yield from _setup(settings, "cuda")
    table = ShellTable.of(basis)
    yield device_values((table.kinds, table.columns, functional.family), "double")
    for name in DENSITY_STEPS:
        yield device_kernel(name, functional.family, "double")


def _device_gradient(context: Context) -> Iterator[Source]:
    yield add_sums_source()
    yield hermite_build.general_source("cuda", "double")
    for step in (*POTENTIAL_STEPS, "j_overlap", "j_force"):
        yield hermite_build.step_source("cuda", step)
    if context.request.fitting != "none":
        yield from (fit_pairs_source("cuda"), fit_expand_source("cuda"), fit_force_source("cuda"))
    if context.model.has_functional:
        table, family = ShellTable.of(context.basis), context.model.functional.family
        yield device_values((table.kinds, table.columns, family), "double", 1)
        for name in ("right", "force", "atoms"):
            yield device_kernel(name, family, "double")
        yield weights_gradient_source("cuda", context.request.grid.partition == "stratmann")


ENERGY: dict[str, Callable[[Context], Iterator[Source]]] = {"cpu": _host_energy, "cuda": _device_energy}
POSSIBLE: dict[str, Callable[[Context], Iterator[Source]]] = {"cpu": _host_possible}
GRADIENT: dict[str, Callable[[Context], Iterator[Source]]] = {"cuda": _device_gradient}
