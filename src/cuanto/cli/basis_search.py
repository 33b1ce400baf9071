"""``cuanto basis-search``: the smallest well-tempered sets of many elements, on all cores or on a Dask cluster."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cuanto.cli.arguments import Verbose
from cuanto.cli.atom import Contract, Diffuse, Export, FormerName, Json, NucleusModel, Optimiser, OptimiserName
from cuanto.cli.energy import NOT_CONVERGED, Device

Scan = StrEnum("Scan", ["AUTO", "FULL", "BISECT"])


def basis_search(
    elements: Annotated[str, typer.Option("--elements", "-e", help="Such as Ne,Ar,Kr or He-Ne.")],
    threshold: Annotated[str, typer.Option(help="Relative error, or 'table': that of the table's set.")] = "5e-9",
    size: Annotated[int, typer.Option(help="Functions of every momentum at the start.")] = 40,
    scan: Annotated[
        Scan, typer.Option(help="full: every candidate; bisect: few of them; auto: full for small sizes.")
    ] = Scan.AUTO,
    nucleus: Annotated[NucleusModel, typer.Option(help="Model of the nucleus.")] = NucleusModel.GAUSSIAN,
    config: Annotated[list[str] | None, typer.Option(help="Such as 'Cr=[Ar] 3d5 4s1'; may be repeated.")] = None,
    reference: Annotated[list[str] | None, typer.Option(help="Limit, such as Ne=-128.6919305; else computed.")] = None,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: Annotated[int, typer.Option(help="Energies per optimisation.", min=10)] = 1000,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes here; 0: only this one.", min=0)] = None,
    retries: Annotated[int, typer.Option(help="Of an optimisation whose worker was lost.", min=0)] = 2,
    state: Annotated[Path, typer.Option(help="Folder of results; the same command continues from it.")] = Path(
        "basis-search"
    ),
    backend: Annotated[Device, typer.Option(help="Of every worker.")] = Device.CPU,
    json: Json = None,
    export: Export = None,
    contract: Contract = False,
    diffuse: Diffuse = 1,
    verbose: Verbose = False,
) -> None:
    """Find the smallest well-tempered sets; exit status 0 all accurate, 1 some not, 2 bad input."""
    from rich.console import Console

    from cuanto.atomic.input import TrustRegion
    from cuanto.atomic.search import SearchSettings, search
    from cuanto.cli import optimisation as it
    from cuanto.cli.atom_output import check_outputs

    check_outputs(json, export)
    symbols = it.parse_elements(elements)
    settings = SearchSettings(
        threshold=it.parse_threshold(threshold),
        size=size,
        scan=scan.value,
        nucleus=nucleus.value,
        configurations=dict(it.parse_pairs(config, "config", symbols)),
        references={
            symbol: it.parse_number(text, -1e6, 0, "reference", "a negative energy in Hartree")
            for symbol, text in it.parse_pairs(reference, "reference", symbols)
        },
        method=(method or optimiser).value,
        trust=TrustRegion(maxfun=max_evaluations),
        retries=retries,
        backend=backend.value,
    )
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        runner = it.make_runner(stack, scheduler, workers)
        progress = stack.enter_context(it.search_progress(console, symbols))
        try:
            found = search(symbols, settings, runner, state, progress)
        except KeyboardInterrupt:
            console.print(f"interrupted; results so far are in {state}: the same command continues", markup=False)
            raise
    it.print_sets(console, found)
    it.write_results(found, settings, json, export, diffuse if contract else None)
    if any(isinstance(one, Exception) or not one.accurate for one in found.values()):
        raise typer.Exit(NOT_CONVERGED)
