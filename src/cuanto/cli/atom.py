"""``cuanto atom``: a four-component atom from an input file or an element, and the optimisation of its basis."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto.cli.arguments import Device, Verbose, parse_options
from cuanto.cli.calculate import NOT_CONVERGED
from cuanto.cli.lines import print_error
from cuanto.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic import AtomResult
    from cuanto.atomic.input import AtomInput

CALCULATION, OPTIMISATION, FILES = "Calculation", "Optimisation of the basis", "Files"
C_HELP = "Speed of light in atomic units, at most 3e5; see also --nonrelativistic. \\[default: 137.0359998]"
RADIUS_HELP = "Root mean square radius of the nucleus in fm. \\[default: that of its mass number]"
BASIS_HELP = (
    "wtbs (table, He to Rn), even (even-tempered, any element), auto (wtbs, else even), limit (near the basis-set "
    "limit), a basis file or name. "
    "\\[default: auto]"
)
OPTION_HELP = "Setting of the SCF, such as max_iterations=80, level_shift=0.3 or accelerator=damping; may be repeated."


class NucleusModel(StrEnum):
    """Charge distribution of the nucleus."""

    POINT = "point"
    SPHERE = "sphere"
    GAUSSIAN = "gaussian"


Optimiser = StrEnum("Optimiser", ["AUTO", "NEWUOA", "COBYQA"])


def _text(metavar: str | None, help: str, *names: str, panel: str | None = None) -> Any:
    """Make an option, with a value unless `metavar` is None."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


_flag = partial(_text, None)
NUCLEUS_HELP = "Charge distribution of the nucleus. \\[default: gaussian]"
OPTIMISER_HELP = "Optimiser of the basis; auto: NEWUOA if nlopt is installed."
File = Annotated[Path | None, typer.Argument(metavar="FILE.inp", help="Input file; or use --element.")]
Element = Annotated[str | None, _text("NAME", "Symbol or atomic number.", "--element", "-e")]
BasisName = Annotated[str | None, _text("NAME", BASIS_HELP, "--basis", "-b")]
Config = Annotated[str | None, _text("SHELLS", "Configuration such as '\\[Ar] 3d5 4s1'.")]
Charge = Annotated[int | None, typer.Option(help="Charge of the ion.")]
ModelName = Annotated[NucleusModel | None, _flag(NUCLEUS_HELP, "--nucleus", panel=CALCULATION)]
Radius = Annotated[float | None, _text("FM", RADIUS_HELP, "--nuclear-radius", panel=CALCULATION)]
Parameters = Annotated[
    str | None,
    _text(
        "A,B,D,G", "alpha,beta,delta,gamma of a well-tempered set. \\[default: those of the basis]", panel=CALCULATION
    ),
]
Ranges = Annotated[
    str | None,
    _text(
        "RANGES",
        "First and last exponent of each angular momentum, such as 's(1:18)p(3:9)'. \\[default: those of the basis]",
        panel=CALCULATION,
    ),
]
Pool = Annotated[
    bool,
    _flag(
        "Well-tempered sets: K of every symmetry is the largest last index of all symmetries.",
        "--pool",
        panel=CALCULATION,
    ),
]
SpeedOfLight = Annotated[float | None, _text("NUMBER", C_HELP, "--c", panel=CALCULATION)]
NonRelativistic = Annotated[
    bool,
    _flag(
        "Non-relativistic Hartree-Fock; add --nucleus point for a point nucleus.",
        "--nonrelativistic",
        panel=CALCULATION,
    ),
]
Setting = Annotated[list[str] | None, _text("NAME=VALUE", OPTION_HELP, "--option", "-o", panel=CALCULATION)]
Backend = Annotated[Device, typer.Option(help="auto: the GPU if there is one, else cpu.", rich_help_panel=CALCULATION)]
Optimise = Annotated[bool, _flag("Optimise the well-tempered set.", "--optimise", "--optimize", panel=OPTIMISATION)]
OptimiserName = Annotated[Optimiser, _flag(OPTIMISER_HELP, "--optimiser", "--optimizer", panel=OPTIMISATION)]
FormerName = Annotated[Optimiser | None, typer.Option("--method", hidden=True)]
"""The name that --optimiser had; it works until the next release, with a warning."""
MaxEvaluations = Annotated[
    int | None, typer.Option(help="Maximum number of energy evaluations.", min=1, rich_help_panel=OPTIMISATION)
]
Log = Annotated[
    Path | None, _text("FILE", "Log of the optimisation; an existing log is continued.", panel=OPTIMISATION)
]
Json = Annotated[Path | None, _text("FILE", "Write the result as JSON.", "--json", panel=FILES)]
Export = Annotated[
    Path | None, _text("FILE", "Write the basis: .json (BSE), .nw (NWChem), .gbs.", "--export", panel=FILES)
]
Contract = Annotated[bool, _flag("Export functions contracted to the atomic orbitals.", "--contract", panel=FILES)]
X2C_HELP = "Export functions contracted to the orbitals of the X2C atom, for --relativity x2c."
ContractX2C = Annotated[bool, _flag(X2C_HELP, "--contract-x2c", panel=FILES)]
Diffuse = Annotated[
    int, typer.Option(help="Uncontracted diffuse functions to add to a contracted basis.", min=0, rich_help_panel=FILES)
]
Plot = Annotated[Path | None, _text("FILE", "Plot of the radial densities (.png, .pdf, .svg).", panel=FILES)]
PlotOptimisation = Annotated[Path | None, _text("FILE", "Plot of the convergence of the optimisation.", panel=FILES)]
Quiet = Annotated[bool, _flag("Print the energy only.", "--quiet", "-q")]


def choose_optimiser(optimiser: Optimiser, former: Optimiser | None) -> str:
    """Name of the optimiser, which may have been given by the former name of its option."""
    if former is None:
        return optimiser.value
    print_error(f"--method is deprecated and will be removed: write --optimiser {former.value}")
    return former.value


def atom(
    file: File = None,
    element: Element = None,
    basis: BasisName = None,
    config: Config = None,
    charge: Charge = None,
    nucleus: ModelName = None,
    nuclear_radius: Radius = None,
    parameters: Parameters = None,
    ranges: Ranges = None,
    pool: Pool = False,
    c: SpeedOfLight = None,
    nonrelativistic: NonRelativistic = False,
    option: Setting = None,
    backend: Backend = Device.AUTO,
    optimise: Optimise = False,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: MaxEvaluations = None,
    log: Log = None,
    json: Json = None,
    export: Export = None,
    contract: Contract = False,
    contract_x2c: ContractX2C = False,
    diffuse: Diffuse = 1,
    plot: Plot = None,
    plot_optimisation: PlotOptimisation = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compute an atom by Dirac-Hartree-Fock; exit status 0 converged, 1 not converged, 2 bad input."""
    from rich.console import Console

    from cuanto.cli import atom_output as output
    from cuanto.cli.optimisation import optimise_job
    from cuanto.integrals.engine import resolve

    contraction = output.choose_contraction(contract, contract_x2c, diffuse)
    files = output.Files(json, export, contraction, plot, plot_optimisation, log)
    files.check(file)
    given = {"basis": basis, "config": config, "charge": charge, "nucleus": nucleus, "c": c}
    given |= {"nuclear_radius": nuclear_radius, "parameters": parameters, "ranges": ranges}
    settings = {"relativistic": not nonrelativistic, **parse_options(option or [])}
    job = output.make_job(file, element, {name: value for name, value in given.items() if value is not None}, settings)
    job = output.change_settings(job, settings)
    files.check_job(job)
    if pool:
        job = output.share_last_index(job)
    wanted = optimise or job.optimise is not None
    if plot_optimisation is not None and not wanted:
        raise InputError("--plot-optimisation needs an optimisation: add --optimise")
    device, console = resolve(backend.value).name, Console(highlight=False, soft_wrap=True, quiet=quiet)
    output.print_heading(console, job)
    optimum = None
    if wanted:
        optimum = optimise_job(console, job, device, choose_optimiser(optimiser, method), max_evaluations, log)
        job = replace(job, basis=optimum.basis)
    result = _solve(console, job, device)
    files.write(job, result, optimum, device)
    if not result.converged or (optimum is not None and not optimum.converged):
        raise typer.Exit(NOT_CONVERGED)


def _solve(console: Console, job: AtomInput, device: str) -> AtomResult:
    """Compute the energy and print it, one line only on a quiet console."""
    from cuanto.atomic.job import run_energy
    from cuanto.atomic.report import symbol_of_charge
    from cuanto.cli import atom_output as output

    result = run_energy(job, device, output.iteration_printer(console))
    output.print_result(console, result)
    if console.quiet:
        verdict = "" if result.converged else ", NOT converged"
        print(f"{symbol_of_charge(job.nucleus.charge)} {result.energy:.10f} Hartree{verdict}")
    return result
