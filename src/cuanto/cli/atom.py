"""``cuanto atom``: a four-component atom from an input file or an element, and the optimisation of its basis."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cuanto.cli.arguments import Verbose
from cuanto.cli.energy import NOT_CONVERGED, Device, parse_options
from cuanto.errors import InputError

CALCULATION, OPTIMISATION, FILES = "Calculation", "Optimisation of the basis", "Files"
C_HELP = "Speed of light in atomic units; 1e5 and more is the non-relativistic limit. \\[default: 137.0359998]"
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
OptimiserName = Annotated[Optimiser, _flag(OPTIMISER_HELP, "--optimiser", "--optimizer", panel=OPTIMISATION)]
FormerName = Annotated[Optimiser | None, typer.Option("--method", hidden=True)]
Json = Annotated[Path | None, _text("FILE", "Write the result as JSON.", "--json", panel=FILES)]
Export = Annotated[
    Path | None, _text("FILE", "Write the basis: .json (BSE), .nw (NWChem), .gbs.", "--export", panel=FILES)
]
Contract = Annotated[bool, _flag("Export functions contracted to the atomic orbitals.", "--contract", panel=FILES)]
Diffuse = Annotated[
    int, typer.Option(help="Uncontracted diffuse functions to add to a contracted basis.", min=0, rich_help_panel=FILES)
]


def atom(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.inp", help="Input file; or use --element.")] = None,
    element: Annotated[str | None, _text("NAME", "Symbol or atomic number.", "--element", "-e")] = None,
    basis: Annotated[
        str | None, _text("NAME", "wtbs (table, He to Rn), limit, a basis file or name.", "--basis", "-b")
    ] = None,
    config: Annotated[str | None, _text("SHELLS", "Configuration such as '\\[Ar] 3d5 4s1'.")] = None,
    charge: Annotated[int | None, typer.Option(help="Charge of the ion.")] = None,
    nucleus: Annotated[NucleusModel | None, _flag(NUCLEUS_HELP, "--nucleus", panel=CALCULATION)] = None,
    parameters: Annotated[
        str | None, _text("A,B,D,G", "alpha,beta,delta,gamma. \\[default: table]", panel=CALCULATION)
    ] = None,
    ranges: Annotated[
        str | None, _text("RANGES", "Such as 's(1:18)p(3:9)'. \\[default: table]", panel=CALCULATION)
    ] = None,
    pool: Annotated[
        bool, _flag("Use one K, the largest last index, for all symmetries.", "--pool", panel=CALCULATION)
    ] = False,
    c: Annotated[float | None, _text("NUMBER", C_HELP, "--c", panel=CALCULATION)] = None,
    nonrelativistic: Annotated[
        bool, _flag("Non-relativistic Hartree-Fock.", "--nonrelativistic", panel=CALCULATION)
    ] = False,
    option: Annotated[list[str] | None, _text("NAME=VALUE", OPTION_HELP, "--option", "-o", panel=CALCULATION)] = None,
    backend: Annotated[
        Device, typer.Option(help="auto: the GPU if there is one, else cpu.", rich_help_panel=CALCULATION)
    ] = Device.AUTO,
    optimise: Annotated[
        bool, _flag("Optimise the well-tempered set.", "--optimise", "--optimize", panel=OPTIMISATION)
    ] = False,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: Annotated[
        int | None, typer.Option(help="Maximum number of energy evaluations.", min=1, rich_help_panel=OPTIMISATION)
    ] = None,
    log: Annotated[
        Path | None, _text("FILE", "Log of the optimisation; an existing log is continued.", panel=OPTIMISATION)
    ] = None,
    json: Json = None,
    export: Export = None,
    contract: Contract = False,
    diffuse: Diffuse = 1,
    plot: Annotated[Path | None, _text("FILE", "Plot of the radial densities (.png, .pdf, .svg).", panel=FILES)] = None,
    plot_optimisation: Annotated[
        Path | None, _text("FILE", "Plot of the convergence of the optimisation.", panel=FILES)
    ] = None,
    quiet: Annotated[bool, _flag("Print the energy only.", "--quiet", "-q")] = False,
    verbose: Verbose = False,
) -> None:
    """Compute an atom by Dirac-Hartree-Fock; exit status 0 converged, 1 not converged, 2 bad input."""
    from rich.console import Console

    from cuanto.atomic.job import run_energy
    from cuanto.atomic.plot import plot_convergence, plot_spinors
    from cuanto.atomic.report import heading, result_dict, symbol_of_charge
    from cuanto.cli import atom_output as output
    from cuanto.cli.optimisation import optimise_job
    from cuanto.integrals.engine import resolve

    pictures = [path for path in (plot, plot_optimisation) if path is not None]
    output.check_outputs(json, export, pictures, file)
    given: dict[str, Any] = {"basis": basis, "config": config, "charge": charge, "nucleus": nucleus, "c": c}
    given |= {"parameters": parameters, "ranges": ranges}
    job = output.make_job(file, element, {name: value for name, value in given.items() if value is not None})
    job = output.change_settings(job, {"relativistic": not nonrelativistic, **parse_options(option or [])})
    if pool:
        job = output.share_last_index(job)
    if plot_optimisation is not None and not (optimise or job.optimise):
        raise InputError("--plot-optimisation needs an optimisation: add --optimise")
    device = resolve(backend.value).name
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    for line in heading(job):
        console.print(line, markup=False)
    optimum = None
    if optimise or job.optimise is not None:
        optimum = optimise_job(console, job, device, (method or optimiser).value, max_evaluations, log)
        job = replace(job, basis=optimum.basis)
    result = run_energy(job, device, output.iteration_printer(console))
    output.print_result(console, result)
    if quiet:
        verdict = "" if result.converged else ", NOT converged"
        print(f"{symbol_of_charge(job.nucleus.charge)} {result.energy:.10f} Hartree{verdict}")
    if json is not None:
        output.write_json(json, result_dict(job, result, optimum))
    if export is not None:
        output.export_basis(export, job, result, device, diffuse if contract else None)
    if plot is not None:
        plot_spinors(plot, result, job.title)
    if plot_optimisation is not None and optimum is not None:
        plot_convergence(plot_optimisation, optimum.evaluations, job.title)
    if not result.converged or (optimum is not None and not optimum.converged):
        raise typer.Exit(NOT_CONVERGED)
