"""``cuanto basis-search``: the smallest well-tempered sets of many elements, on all cores or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto.cli.atom import (
    Contract,
    Diffuse,
    Export,
    FormerName,
    Json,
    NucleusModel,
    Optimiser,
    OptimiserName,
    check_outputs,
    write_json,
)
from cuanto.cli.energy import NOT_CONVERGED, Device
from cuanto.cli.verbose import Verbose
from cuanto.errors import InputError, MissingDependencyError
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS, symbol_of
from cuanto.system.text import parse_real

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic.search import Progress, SearchSettings
    from cuanto.atomic.steps import Found
    from cuanto.errors import CuantoError
    from cuanto.workers import Runner


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
    workers: Annotated[int | None, typer.Option(help="Processes here; 0: this one, without Dask.", min=0)] = None,
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

    check_outputs(json, export)
    symbols = parse_elements(elements)
    settings = SearchSettings(
        threshold=parse_threshold(threshold),
        size=size,
        scan=scan.value,
        nucleus=nucleus.value,
        configurations=dict(_pairs(config, "config", symbols)),
        references={
            symbol: _number(text, -1e6, 0, "reference", "a negative energy in Hartree")
            for symbol, text in _pairs(reference, "reference", symbols)
        },
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
            console.print(f"interrupted; what is known is in {state}: the same command continues", markup=False)
            raise
    print_found(console, found)
    write_results(found, settings, json, export, diffuse if contract else None)
    if any(isinstance(one, Exception) or not one.accurate for one in found.values()):
        raise typer.Exit(NOT_CONVERGED)


def _runner(stack: ExitStack, console: Console, scheduler: str | None, workers: int | None) -> Runner:
    """Dask if it is requested or installed, otherwise this process."""
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
    """A relative error, or 'table'."""
    return (
        "table"
        if text.strip().lower() == "table"
        else _number(text, 0, 1, "threshold", "a number such as 5e-9, or 'table'")
    )


def _number(text: str, low: float, high: float, option: str, advice: str) -> float:
    """A number between limits."""
    value = parse_real(text.strip())
    if value is None or not low < value < high:
        raise InputError(f"--{option} {text}: give {advice}")
    return value


def _pairs(given: Iterable[str] | None, option: str, symbols: list[str]) -> Iterable[tuple[str, str]]:
    """ELEMENT=VALUE of a repeated option."""
    for text in given or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"--{option} {text}: write ELEMENT=VALUE")
        if symbol_of(name) not in symbols:
            raise InputError(f"--{option} {text}: {name} is not among the elements of this search")
        yield symbol_of(name), value


def _line(progress: Progress) -> str:
    """What became of one set."""
    outcome = progress.outcome
    if outcome.energy is not None:
        rest = f"{outcome.energy:.10f} Hartree" + ("" if progress.known else f", {outcome.seconds:.1f} s")
        rest += f", {outcome.evaluations} evaluations" if outcome.evaluations > 1 else ""
    else:
        rest = f"failed: {outcome.error}" + ("; tried again" if progress.retry else "")
    known = ", known already" if progress.known else ""
    return f"{progress.element:<3}{progress.what}: {rest}{known}"


class Watch:
    """Prints a line for every set and, on a terminal, a status line below them (on standard error)."""

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
        self.console.print(_line(progress), markup=False)
        self._done, self._known = self._done + 1, self._known + progress.known
        if self._bar is not None:
            known = f", {self._known} of them known already" if self._known else ""
            text = f"{self._searched}: {self._done} sets done{known}; the last was {progress.element} {progress.what}"
            self._bar.update(self._bar.task_ids[0], description=text)


def print_found(console: Console, found: dict[str, Found | CuantoError]) -> None:
    """Two lines for each: a table would be wider than most terminals."""
    from cuanto.atomic.report import parameter_texts

    problems = []
    for symbol, one in found.items():
        if isinstance(one, Exception):
            problems.append(f"{symbol}: {one}")
            continue
        error = f"relative error {one.error:.1e}" + ("" if one.accurate else f", NOT below {one.threshold:.1e}")
        console.print(f"{symbol:<3}{one.basis.described()}: {one.energy:.10f} Hartree, {error}", style="bold")
        console.print("   " + ", ".join(parameter_texts(one.basis)))
        problems += [f"{symbol}: {line}" for line in one.warnings]
    for line in problems:
        console.print(line, markup=False)


def write_results(
    found: dict[str, Found | CuantoError],
    settings: SearchSettings,
    json: Path | None,
    export: Path | None,
    diffuse: int | None,
) -> None:
    """Write the sets as JSON and as a basis file."""
    from dataclasses import asdict

    from cuanto.atomic.export import basis_text
    from cuanto.atomic.job import element_job, element_table
    from cuanto.interfaces.files import write_text

    good = {symbol: one for symbol, one in found.items() if not isinstance(one, Exception)}
    if json is not None:
        sets = {symbol: {**asdict(one), "accurate": one.accurate} for symbol, one in good.items()}
        failed = {symbol: str(one) for symbol, one in found.items() if isinstance(one, Exception)}
        write_json(json, {"settings": asdict(settings), "elements": sets, "failed": failed})
    if export is not None and good:
        tables, lines = [], ["well-tempered sets"]
        for symbol, one in good.items():
            job = element_job(symbol, one.basis, settings.configurations.get(symbol), None, settings.nucleus)
            tables.append(element_table(symbol, job, diffuse, settings.backend))
            lines.append(f"{symbol}: {one.basis.described()}, relative error {one.error:.1e}")
        write_text(export, basis_text(export, tables, export.stem, "\n".join(lines)))
