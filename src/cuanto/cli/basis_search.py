"""``cuanto basis-search``: the smallest well-tempered sets of many elements, on all cores or on a Dask cluster."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto.cli.arguments import Verbose
from cuanto.cli.atom import FormerName, NucleusModel, Optimiser, OptimiserName
from cuanto.cli.energy import NOT_CONVERGED, Device
from cuanto.interfaces.files import require_writable

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic.search import Progress, SearchSettings
    from cuanto.atomic.steps import Found
    from cuanto.basis.table import ElementTable
    from cuanto.errors import CuantoError
    from cuanto.workers import Runner


class Scan(StrEnum):
    """Which sets of a step are tried; auto: all of them for small sizes."""

    AUTO = "auto"
    FULL = "full"
    BISECT = "bisect"


def basis_search(
    elements: Annotated[str, typer.Option("--elements", "-e", help="Such as Ne,Ar,Kr or He-Ne.")],
    threshold: Annotated[str, typer.Option(help="Relative error, or 'table': that of the table's set.")] = "5e-9",
    size: Annotated[int, typer.Option(help="Functions of every momentum at the start.")] = 40,
    scan: Annotated[Scan, typer.Option(help="full: every candidate; bisect: few of them.")] = Scan.AUTO,
    nucleus: Annotated[NucleusModel, typer.Option(help="Model of the nucleus.")] = NucleusModel.GAUSSIAN,
    config: Annotated[list[str] | None, typer.Option(help="Such as 'Cr=[Ar] 3d5 4s1'; may be repeated.")] = None,
    reference: Annotated[list[str] | None, typer.Option(help="Limit, such as Ne=-128.6919305; else computed.")] = None,
    optimiser: OptimiserName = Optimiser.AUTO,
    method: FormerName = None,
    max_evaluations: Annotated[int, typer.Option(help="Energies per optimisation.", min=10)] = 1000,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes here; 0: this one, without Dask.", min=0)] = None,
    retries: Annotated[int, typer.Option(help="Of an optimisation whose worker was lost.", min=0)] = 2,
    state: Annotated[Path, typer.Option(help="Folder of what is known; the same command goes on.")] = Path(
        "basis-search"
    ),
    backend: Annotated[Device, typer.Option(help="Of every worker.")] = Device.CPU,
    json: Annotated[Path | None, typer.Option(help="Write sets, errors and steps as JSON.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write the sets: .json (BSE), .nw (NWChem), .gbs.")] = None,
    contract: Annotated[bool, typer.Option("--contract", help="Export contracted to the atomic orbitals.")] = False,
    diffuse: Annotated[int, typer.Option(help="Uncontracted diffuse functions beside a contraction.", min=0)] = 1,
    verbose: Verbose = False,
) -> None:
    """Find the smallest well-tempered sets; exit status 0 all accurate, 1 some not, 2 bad input."""
    from rich.console import Console

    from cuanto.atomic.export import format_of
    from cuanto.atomic.input import TrustRegion
    from cuanto.atomic.search import SearchSettings, search

    for path in (json, export):
        if path is not None:
            require_writable(path)
    if export is not None:
        format_of(export)
    symbols = parse_elements(elements)
    settings = SearchSettings(
        threshold=parse_threshold(threshold),
        size=size,
        scan=scan.value,
        nucleus=nucleus.value,
        configurations=dict(_pairs(config, "config", symbols)),
        references={symbol: _energy(text) for symbol, text in _pairs(reference, "reference", symbols)},
        method=(method or optimiser).value,
        trust=TrustRegion(maxfun=max_evaluations),
        retries=retries,
        backend=backend.value,
    )
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        runner = _runner(stack, console, scheduler, workers)
        step = stack.enter_context(Watch(console, symbols))
        try:
            found = search(symbols, settings, runner, state, step)
        except KeyboardInterrupt:
            console.print(f"interrupted; what is known is in {state}: the same command goes on", markup=False)
            raise
    print_found(console, found)
    write_results(found, settings, json, export, diffuse if contract else None)
    if not all(is_accurate(one) for one in found.values()):
        raise typer.Exit(NOT_CONVERGED)


def _runner(stack: ExitStack, console: Console, scheduler: str | None, workers: int | None) -> Runner:
    """Dask if it was asked for or is installed; in this process otherwise."""
    from cuanto.errors import InputError, MissingDependencyError
    from cuanto.workers import DaskRunner, SerialRunner, dask_distributed

    if scheduler is not None and workers is not None:
        raise InputError("--scheduler has its own workers: leave out --workers")
    if workers == 0:
        return SerialRunner()
    try:
        dask_distributed()
    except MissingDependencyError:
        if scheduler is not None or workers is not None:
            raise
        console.print("Dask is not installed: one optimisation at a time (pip install 'cuanto[cluster]')", markup=False)
        return SerialRunner()
    return stack.enter_context(DaskRunner(scheduler, workers))


def parse_elements(text: str) -> list[str]:
    """Symbols of 'Ne,Ar,Kr' or 'He-Ne', each once."""
    from cuanto.errors import InputError
    from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS, symbol_of

    found: list[str] = []
    for word in text.replace(",", " ").split():
        first, dash, last = word.partition("-")
        numbers = [ATOMIC_NUMBERS[symbol_of(part)] for part in ((first, last) if dash else (first,))]
        if numbers[0] > numbers[-1]:
            raise InputError(f"elements {word}: the first comes after the last")
        found += SYMBOLS[numbers[0] - 1 : numbers[-1]]
    if not found:
        raise InputError("--elements is empty; give some such as Ne,Ar or He-Ne")
    return list(dict.fromkeys(found))


def parse_threshold(text: str) -> float | str:
    from cuanto.errors import InputError
    from cuanto.system.text import parse_real

    if text.strip().lower() == "table":
        return "table"
    value = parse_real(text.strip())
    if value is None or not 0 < value < 1:
        raise InputError(f"--threshold {text}: give a number such as 5e-9, or 'table'")
    return value


def _pairs(given: Iterable[str] | None, option: str, symbols: list[str]) -> Iterable[tuple[str, str]]:
    from cuanto.errors import InputError
    from cuanto.system.elements import symbol_of

    for text in given or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"--{option} {text}: write ELEMENT=VALUE")
        if symbol_of(name) not in symbols:
            raise InputError(f"--{option} {text}: {name} is not among the elements of this search")
        yield symbol_of(name), value


def _energy(text: str) -> float:
    from cuanto.errors import InputError
    from cuanto.system.text import parse_real

    value = parse_real(text)
    if value is None or not -1e6 < value < 0:
        raise InputError(f"--reference {text}: give a negative energy in Hartree")
    return value


def show(console: Console, progress: Progress) -> None:
    """A line for everything that is finished."""
    outcome = progress.outcome
    if outcome.energy is not None:
        rest = f"{outcome.energy:.10f} Hartree" + ("" if progress.known else f", {outcome.seconds:.1f} s")
        rest += f", {outcome.evaluations} evaluations" if outcome.evaluations > 1 else ""
    else:
        rest = f"failed: {outcome.error}" + ("; tried again" if progress.retry else "")
    known = ", known already" if progress.known else ""
    console.print(f"{progress.element:<3}{progress.what}: {rest}{known}", markup=False)


class Watch:
    """A line for everything that is finished and, on a terminal, one below that says what goes on (stderr)."""

    def __init__(self, console: Console, symbols: list[str]) -> None:
        self.console, self._searched = console, f"{symbols[0]} to {symbols[-1]}" if len(symbols) > 1 else symbols[0]
        self._done = self._known = 0
        self._bar: Any = None

    def __enter__(self) -> Watch:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        errors = Console(stderr=True, highlight=False)
        if errors.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            together = self.console.is_terminal  # else the lines go to a file, and the bar does not concern them
            self._bar = Progress(*columns, console=errors, transient=True, redirect_stdout=together)
            self._bar.start()
            self._bar.add_task(f"{self._searched}: the limit is computed", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        show(self.console, progress)
        self._done, self._known = self._done + 1, self._known + progress.known
        if self._bar is not None:
            known = f", {self._known} of them known already" if self._known else ""
            text = f"{self._searched}: {self._done} sets done{known}; the last was {progress.element} {progress.what}"
            self._bar.update(self._bar.task_ids[0], description=text)


def is_accurate(found: Found | CuantoError) -> bool:
    return not isinstance(found, Exception) and found.accurate


def print_found(console: Console, found: dict[str, Found | CuantoError]) -> None:
    """Two lines for each: a table would be wider than most terminals."""
    from cuanto.atomic.report import parameter_texts

    for symbol, one in found.items():
        if isinstance(one, Exception):
            continue
        error = f"relative error {one.error:.1e}" + ("" if one.accurate else f", NOT below {one.threshold:.1e}")
        console.print(f"{symbol:<3}{one.basis.described()}: {one.energy:.10f} Hartree, {error}", style="bold")
        console.print("   " + ", ".join(parameter_texts(one.basis)))
    for symbol, one in found.items():
        lines = [str(one)] if isinstance(one, Exception) else one.warnings
        for line in lines:
            console.print(f"{symbol}: {line}", markup=False)


def write_results(
    found: dict[str, Found | CuantoError],
    settings: SearchSettings,
    json: Path | None,
    export: Path | None,
    diffuse: int | None,
) -> None:
    from dataclasses import asdict

    from cuanto import __version__
    from cuanto.atomic.export import basis_text
    from cuanto.interfaces.files import write_text

    good = {symbol: one for symbol, one in found.items() if not isinstance(one, Exception)}
    if json is not None:
        content: dict[str, Any] = {
            "settings": asdict(settings),
            "elements": {symbol: {**asdict(one), "accurate": one.accurate} for symbol, one in good.items()},
            "failed": {symbol: str(one) for symbol, one in found.items() if isinstance(one, Exception)},
            "provenance": {"creator": "cuanto", "version": __version__},
        }
        write_text(json, json_format.dumps(content, indent=1, allow_nan=False) + "\n")
    if export is not None and good:
        tables = [_exported(one, settings, diffuse) for one in good.values()]
        sets = [f"{symbol}: {one.basis.described()}, relative error {one.error:.1e}" for symbol, one in good.items()]
        write_text(export, basis_text(export, tables, export.stem, "\n".join(["well-tempered sets", *sets])))


def _exported(found: Found, settings: SearchSettings, diffuse: int | None) -> ElementTable:
    """The primitives, or contracted to the orbitals of the non-relativistic atom."""
    from cuanto.atomic.export import contracted, uncontracted
    from cuanto.atomic.job import element_job, run_energy

    if diffuse is None:
        return uncontracted(found.element, found.basis.basis())
    configuration, plain = settings.configurations.get(found.element), {"relativistic": False}
    job = element_job(found.element, found.basis, configuration, None, settings.nucleus, settings=plain)
    return contracted(found.element, run_energy(job, settings.backend), diffuse)
