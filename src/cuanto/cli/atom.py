"""``cuanto atom``: a four-component atom, from an input file of the thesis or from its element; its basis optimised."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto import __version__
from cuanto.cli.arguments import Verbose
from cuanto.cli.energy import NOT_CONVERGED, Device, parse_options
from cuanto.cli.optimisation import optimised
from cuanto.cli.show import count
from cuanto.errors import InputError
from cuanto.interfaces.files import require_writable

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic import AtomIteration, AtomResult
    from cuanto.atomic.input import AtomInput
    from cuanto.atomic.optimise import Optimum

COLUMNS = (
    ("iteration", 9),
    ("energy / Hartree", 20),
    ("change / Hartree", 18),
    ("dD(LL)", 10),
    ("dD(SL)", 10),
    ("dD(SS)", 10),
)
SPINORS = ("spinor", "electrons", "energy/Hartree", "<1/r>/Bohr^-1", "<r>/Bohr", "<r^2>/Bohr^2")
HOW, OPTIMISATION, FILES = "How it is computed", "Optimisation of the basis", "Files"
C_HELP = "Speed of light in atomic units; 1e5 and more is the non-relativistic limit. \\[default: 137.0359998]"
OPTION_HELP = "Setting of the SCF, such as max_iterations=80, level_shift=0.3 or accelerator=damping; may be repeated."


class NucleusModel(StrEnum):
    """Where its charge is."""

    POINT = "point"
    SPHERE = "sphere"
    GAUSSIAN = "gaussian"


class Optimiser(StrEnum):
    """Both work without derivatives; auto is NEWUOA where nlopt is installed."""

    AUTO = "auto"
    NEWUOA = "newuoa"
    COBYQA = "cobyqa"


def _text(metavar: str, help: str, *names: str, panel: str | None = None) -> Any:
    """An option with a value."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def _flag(help: str, *names: str, panel: str | None = None) -> Any:
    """An option that is there or not."""
    return typer.Option(*names, help=help, rich_help_panel=panel)


OptimiserName = Annotated[
    Optimiser, typer.Option("--optimiser", "--optimizer", help="Of the basis.", rich_help_panel=OPTIMISATION)
]
FormerName = Annotated[Optimiser | None, typer.Option("--method", hidden=True)]


def atom(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.inp", help="Input file; or use --element.")] = None,
    element: Annotated[str | None, _text("NAME", "Symbol or atomic number.", "--element", "-e")] = None,
    basis: Annotated[
        str | None, _text("NAME", "wtbs (table, He to Rn), limit, a basis file or name.", "--basis", "-b")
    ] = None,
    config: Annotated[str | None, _text("SHELLS", "Configuration such as '\\[Ar] 3d5 4s1'.")] = None,
    charge: Annotated[int | None, typer.Option(help="Charge of the ion.")] = None,
    nucleus: Annotated[NucleusModel | None, typer.Option(help="Gaussian when left out.", rich_help_panel=HOW)] = None,
    parameters: Annotated[str | None, _text("A,B,D,G", "alpha,beta,delta,gamma; else the table's.", panel=HOW)] = None,
    ranges: Annotated[str | None, _text("RANGES", "Such as 's(1:18)p(3:9)'; else the table's.", panel=HOW)] = None,
    pool: Annotated[bool, _flag("One K, the largest last index, for all symmetries.", "--pool", panel=HOW)] = False,
    c: Annotated[float | None, _text("NUMBER", C_HELP, "--c", panel=HOW)] = None,
    nonrelativistic: Annotated[bool, _flag("Hartree-Fock without c.", "--nonrelativistic", panel=HOW)] = False,
    option: Annotated[list[str] | None, _text("NAME=VALUE", OPTION_HELP, "--option", "-o", panel=HOW)] = None,
    backend: Annotated[
        Device, typer.Option(help="auto: the GPU where there is one, else cpu.", rich_help_panel=HOW)
    ] = Device.AUTO,
    optimise: Annotated[
        bool, _flag("Optimise the well-tempered set.", "--optimise", "--optimize", panel=OPTIMISATION)
    ] = False,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: Annotated[
        int | None, typer.Option(help="Energies that it may take.", min=1, rich_help_panel=OPTIMISATION)
    ] = None,
    log: Annotated[
        Path | None, _text("FILE", "Log of the optimisation; goes on where the log ends.", panel=OPTIMISATION)
    ] = None,
    json: Annotated[Path | None, _text("FILE", "Write the result as JSON.", panel=FILES)] = None,
    export: Annotated[
        Path | None, _text("FILE", "Write the basis: .json (BSE), .nw (NWChem), .gbs.", panel=FILES)
    ] = None,
    contract: Annotated[bool, _flag("Export contracted to the atomic orbitals.", "--contract", panel=FILES)] = False,
    diffuse: Annotated[
        int, typer.Option(help="Uncontracted diffuse functions beside a contraction.", min=0, rich_help_panel=FILES)
    ] = 1,
    plot: Annotated[
        Path | None, _text("FILE", "Picture of the radial densities (.png, .pdf, .svg).", panel=FILES)
    ] = None,
    plot_optimisation: Annotated[Path | None, _text("FILE", "Picture of the optimisation's way.", panel=FILES)] = None,
    quiet: Annotated[bool, _flag("Print the energy only.", "--quiet", "-q")] = False,
    verbose: Verbose = False,
) -> None:
    """Compute an atom by Dirac-Hartree-Fock; exit status 0 converged, 1 not converged, 2 bad input."""
    outputs = Outputs(json, export, diffuse if contract else None, plot, plot_optimisation)
    outputs.check(file)
    given: dict[str, Any] = {"basis": basis, "configuration": config, "charge": charge, "nucleus": nucleus, "c": c}
    given |= {"parameters": parameters, "ranges": ranges}
    job = _job(file, element, given)
    job = _changed(job, {"relativistic": not nonrelativistic, **parse_options(option or [])})
    if pool:
        job = _pooled(job)
    if plot_optimisation is not None and not (optimise or job.optimise):
        raise InputError("--plot-optimisation needs an optimisation: add --optimise")
    from rich.console import Console

    from cuanto.atomic.job import run_energy
    from cuanto.atomic.report import heading, symbol_of_charge
    from cuanto.integrals.engine import resolve

    device = resolve(backend.value).name
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    for line in heading(job):
        console.print(f"{line} a.u." if line.startswith("c = ") else line, markup=False)
    optimum = None
    if optimise or job.optimise is not None:
        optimum = optimised(console, job, device, (method or optimiser).value, max_evaluations, log)
        job = replace(job, basis=optimum.basis)
    result = run_energy(job, device, _iterations(console))
    print_result(console, result)
    if quiet:
        verdict = "" if result.converged else ", NOT converged"
        print(f"{symbol_of_charge(job.nucleus.charge)} {result.energy:.10f} Hartree{verdict}")
    outputs.write(job, result, optimum, device)
    if not result.converged or (optimum is not None and not optimum.converged):
        raise typer.Exit(NOT_CONVERGED)


@dataclass(frozen=True)
class Outputs:
    """The files that were asked for; `diffuse` is None where the exported basis is not to be contracted."""

    json: Path | None
    export: Path | None
    diffuse: int | None
    plot: Path | None
    plot_optimisation: Path | None

    def check(self, file: Path | None = None) -> None:
        """What cannot be written is said before the work; the input `file` stays."""
        pictures = [path for path in (self.plot, self.plot_optimisation) if path is not None]
        for path in (self.json, self.export, *pictures):
            if path is not None:
                require_writable(path, file)
        if self.export is not None:
            from cuanto.atomic.export import format_of

            format_of(self.export)
        for path in pictures:
            from cuanto.atomic.plot import require_picture

            require_picture(path)

    def write(self, job: AtomInput, result: AtomResult, optimum: Optimum | None, device: str) -> None:
        """Also of a calculation that did not converge: the files say so."""
        from cuanto.atomic.plot import plot_convergence, plot_spinors
        from cuanto.atomic.report import result_dict
        from cuanto.interfaces.files import write_text
        from cuanto.interfaces.qcschema import plain

        if self.json is not None:
            made_by = {"provenance": {"creator": "cuanto", "version": __version__}}
            content = plain(result_dict(job, result, optimum) | made_by)
            text = json_format.dumps(content, indent=1, allow_nan=False)
            write_text(self.json, text + "\n")
        if self.export is not None:
            write_text(self.export, _basis_text(self.export, job, result, device, self.diffuse))
        if self.plot is not None:
            plot_spinors(self.plot, result, job.title)
        if self.plot_optimisation is not None and optimum is not None:
            plot_convergence(self.plot_optimisation, optimum.evaluations, job.title)


def _job(file: Path | None, element: str | None, given: dict[str, Any]) -> AtomInput:
    from cuanto.atomic.input import read_input
    from cuanto.atomic.job import element_job
    from cuanto.system.elements import SYMBOLS

    if (file is None) == (element is None):
        raise InputError("give an input file FILE.inp or --element, one of them")
    if file is not None and str(file).capitalize() in SYMBOLS and not file.exists():
        raise InputError(f"{file} is no input file: for the element write --element {str(file).capitalize()}")
    if file is not None:
        names = {"configuration": "config"}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"--{names.get(name, name)} goes with --element; the file {file} has its own")
        return read_input(file)
    model = given["nucleus"]
    return element_job(
        str(element),
        given["basis"] or "wtbs",
        given["configuration"],
        given["charge"],
        "gaussian" if model is None else model.value,
        parameters=given["parameters"],
        ranges=given["ranges"],
        settings={} if given["c"] is None else {"c": given["c"]},
    )


def _changed(job: AtomInput, settings: dict[str, Any]) -> AtomInput:
    """The settings of the SCF by name, as `--option` has them."""
    known = {field.name: type(getattr(job.settings, field.name)) for field in fields(job.settings)}
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"--option {name}: the SCF of an atom has {', '.join(known)}")
        fits = isinstance(value, known[name]) or (known[name] is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and known[name] is not bool):
            raise InputError(f"--option {name}={value}: it must be of the type {known[name].__name__}")
    return replace(job, settings=replace(job.settings, **settings))


def _pooled(job: AtomInput) -> AtomInput:
    from cuanto.atomic.wtbs import WellTempered

    if not isinstance(job.basis, WellTempered):
        raise InputError("--pool belongs to well-tempered sets: use --basis wtbs or bastype='wtbs'")
    basis = replace(job.basis, pool=True)
    basis.exponents()  # which may not exist with this K
    return replace(job, basis=basis)


def _iterations(console: Console) -> Callable[[AtomIteration], None]:
    """Prints a line for every iteration, the heading before the first."""

    def show(state: AtomIteration) -> None:
        if state.iteration == 1:
            console.print("".join(name.rjust(width) for name, width in COLUMNS))
        changes = (state.energy_change, state.change_LL, state.change_SL, state.change_SS)
        texts = ["" if state.iteration == 1 else f"{value:.2e}" for value in changes]
        row = [str(state.iteration), f"{state.energy:.10f}", *texts]
        console.print("".join(text.rjust(width) for text, (_, width) in zip(row, COLUMNS, strict=True)).rstrip())

    return show


def print_result(console: Console, result: AtomResult) -> None:
    """Parts of the energy, spinors, and whether it converged."""
    from rich.console import Console
    from rich.table import Table

    from cuanto.atomic.report import energy_rows, spinor_rows

    parts = Table(show_header=False, box=None)
    parts.add_column()
    parts.add_column(justify="right")
    for name, value in energy_rows(result):
        unit = "" if "ratio" in name else "Hartree"
        parts.add_row(name.removesuffix(" / Hartree"), value, unit, style="bold" if "energy" in name else "")
    console.print(parts)
    spinors = Table(*SPINORS, box=None)
    for column in spinors.columns[1:]:
        column.justify = "right"
    for row in spinor_rows(result):
        spinors.add_row(*row)
    console.print(spinors)
    if result.converged:
        console.print(f"converged in {count(result.iterations, 'iteration')}")
        return
    line = f"NOT converged in {result.iterations} iterations; try more iterations, ixtrp=1 or a smaller dfctr"
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"cuanto: {line}", style="bold red")


def _basis_text(path: Path, job: AtomInput, result: AtomResult, device: str, diffuse: int | None) -> str:
    from cuanto.atomic.export import basis_text, contracted, uncontracted
    from cuanto.atomic.job import run_energy
    from cuanto.atomic.report import parameter_texts, symbol_of_charge
    from cuanto.atomic.wtbs import WellTempered
    from cuanto.system.elements import ATOMIC_NUMBERS

    symbol = symbol_of_charge(job.nucleus.charge)
    if symbol not in ATOMIC_NUMBERS:
        raise InputError(f"a basis file needs an element; the charge {job.nucleus.charge:g} has none")
    text = f"{job.title}; energy {result.energy:.10f} Hartree"
    if isinstance(job.basis, WellTempered):
        text += f"\nwell-tempered, {job.basis.described()}, {', '.join(parameter_texts(job.basis))}"
    if diffuse is None:
        return basis_text(path, [uncontracted(symbol, result.atom.basis)], path.stem, text)
    plain = run_energy(replace(job, settings=replace(job.settings, relativistic=False)), device)
    return basis_text(path, [contracted(symbol, plain, diffuse)], path.stem, text)
