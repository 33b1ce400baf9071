"""``cuanto basis-search``: the smallest well-tempered sets of many elements, on all cores or on a Dask cluster."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cuanto.cli.arguments import Device, Verbose
from cuanto.cli.atom import (
    Contract,
    ContractX2C,
    Diffuse,
    Export,
    FormerName,
    Json,
    NucleusModel,
    Optimiser,
    OptimiserName,
    choose_optimiser,
)
from cuanto.cli.calculate import NOT_CONVERGED
from cuanto.cli.lines import print_text

Scan = StrEnum("Scan", ["AUTO", "FULL", "BISECT"])


def basis_search(
    elements: Annotated[str, typer.Option("--elements", "-e", help="Elements, such as Ne,Ar,Kr or He-Ne.")],
    threshold: Annotated[
        str, typer.Option(help="Relative error, or 'table': that of the tabulated well-tempered set.")
    ] = "5e-9",
    size: Annotated[int, typer.Option(help="Initial number of functions of every angular momentum.")] = 40,
    scan: Annotated[
        Scan, typer.Option(help="full: every candidate; bisect: only a few; auto: full for small sizes.")
    ] = Scan.AUTO,
    nucleus: Annotated[NucleusModel, typer.Option(help="Model of the nucleus.")] = NucleusModel.GAUSSIAN,
    config: Annotated[
        list[str] | None, typer.Option(help="Configuration, such as 'Cr=[Ar] 3d5 4s1'; may be repeated.")
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(help="Energy at the basis-set limit, such as Ne=-128.6919305; computed by default."),
    ] = None,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: Annotated[int, typer.Option(help="Maximum number of energies per optimisation.", min=10)] = 1000,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")] = None,
    workers: Annotated[int | None, typer.Option(help="Local processes; 0: compute in this process.", min=0)] = None,
    retries: Annotated[int, typer.Option(help="Retries of an optimisation whose worker was lost.", min=0)] = 2,
    state: Annotated[Path, typer.Option(help="Folder of results, from which the same command continues.")] = Path(
        "basis-search"
    ),
    backend: Annotated[Device, typer.Option(help="Backend of every worker.")] = Device.CPU,
    json: Json = None,
    export: Export = None,
    contract: Contract = False,
    contract_x2c: ContractX2C = False,
    diffuse: Diffuse = 1,
    verbose: Verbose = False,
) -> None:
    """Find the smallest well-tempered sets; exit status 0 energies within the threshold, 1 some not, 2 bad input."""
    from rich.console import Console

    from cuanto.atomic.input import TrustRegion
    from cuanto.atomic.search import SearchSettings, search
    from cuanto.cli import optimisation
    from cuanto.cli.atom_output import check_outputs, choose_contraction

    check_outputs(json, export)
    contraction = choose_contraction(contract, contract_x2c, diffuse)
    symbols = optimisation.parse_elements(elements)
    settings = SearchSettings(
        threshold=optimisation.parse_threshold(threshold),
        size=size,
        scan=scan.value,
        nucleus=nucleus.value,
        configurations=optimisation.parse_configurations(config, symbols),
        references={
            symbol: optimisation.parse_number(text, -1e6, 0, "reference", "a negative energy in Hartree")
            for symbol, text in optimisation.parse_pairs(reference, "reference", symbols).items()
        },
        method=choose_optimiser(optimiser, method),
        trust=TrustRegion(maxfun=max_evaluations),
        retries=retries,
        backend=backend.value,
    )
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        runner = optimisation.make_runner(stack, scheduler, workers)
        progress = stack.enter_context(optimisation.search_progress(console, symbols))
        try:
            found = search(symbols, settings, runner, state, progress)
        except KeyboardInterrupt:
            print_text(console, f"interrupted; results so far are in {state}: the same command continues")
            raise
    optimisation.print_sets(console, found)
    optimisation.write_results(found, settings, json, export, contraction)
    if any(isinstance(one, Exception) or not one.accurate for one in found.values()):
        raise typer.Exit(NOT_CONVERGED)
