"""Printed iterations and results; every number has its unit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cuanto.cli.lines import print_error, print_notes, print_text
from cuanto.log import logger
from cuanto.options import errors_about_option
from cuanto.wording import count, format_charge

if TYPE_CHECKING:
    from cuanto.basis import Basis
    from cuanto.interaction import CounterpoiseResult
    from cuanto.methods import Result
    from cuanto.motion.optimize import OptimizationResult
    from cuanto.scf.state import State
    from cuanto.system import Molecule

    Outcome = Result | OptimizationResult | CounterpoiseResult

FIELDS = (("iteration", 9), ("energy / Hartree", 19), ("change / Hartree", 18), ("gradient", 10), ("step", 0))
FRAME_LINES = 6
"""Lines of a terminal that a table needs besides its rows: its frame and the line below."""
MAX_NAME = 60
MAX_WIDTH = 10_000
"""Columns that are enough for every table."""
MIN_WIDTH = 72
"""Columns of the narrowest terminal that has room for the table of iterations."""
SHORTEST_STEP = 0.005
"""Seconds; faster steps are not printed."""
SHORTEST_LINE = 1.0
"""Seconds; faster parts of a gradient have no line of their own."""


class IterationTable:
    """Iterations as they are finished: a live table on a terminal, plain lines in a file or pipe."""

    def __init__(self, console: Console, quiet: bool = False, heading: Callable[[], object] | None = None) -> None:
        """`heading` is printed at once: integrals may take a while before the first row."""
        self.console, self.quiet, self._heading = console, quiet, heading
        self._rows: list[list[str]] = []
        self._live: Any = None
        self._spinner: Any = None

    def __enter__(self) -> IterationTable:
        if self.quiet:
            return self
        if self._heading is not None:
            self._heading()
        if self.console.is_terminal and self.console.width >= MIN_WIDTH:
            from rich.live import Live
            from rich.spinner import Spinner

            self._spinner = Spinner("dots", text=" integrals and guess")
            self._live = Live(self._spinner, console=self.console, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.update(self._table(self._rows) if self._rows else "")
            self._live.stop()

    def add(self, state: State) -> None:
        """Show an iteration."""
        if not self._rows and not self.quiet and self._live is None:
            self._line([name for name, _ in FIELDS])
        change = "" if state.iteration == 1 else f"{state.energy_change:.2e}"
        row = [str(state.iteration), f"{state.energy:.9f}", change, f"{state.gradient:.2e}", state.step]
        self._rows.append(row)
        if self._live is not None:
            self._spinner.update(text=f" iteration {state.iteration + 1}")
            fitting = max(self.console.height - FRAME_LINES, 1)  # all rows are shown at the end
            self._live.update(Group(self._table(self._rows[-fitting:]), self._spinner))
        elif not self.quiet:
            self._line(row)

    def note(self, text: str) -> None:
        """Print a line below the table."""
        print_text(self.console, text)

    def add_step(self, name: str, seconds: float | None) -> None:
        """Show the part of a gradient being computed (live table), or the parts that took long (plain lines)."""
        if self.quiet or not name.startswith("gradient"):
            return
        if self._live is not None:
            self._spinner.update(text=f" {name}")
        elif seconds is not None and seconds >= SHORTEST_LINE:
            print_text(self.console, f"  {name}: {seconds:.1f} s")

    def _table(self, rows: list[list[str]]) -> Table:
        table = make_table([name for name, _ in FIELDS], right=range(len(FIELDS) - 1))
        for column in table.columns[:-1]:
            column.no_wrap = True  # only the steps may be wrapped
        for row in rows:
            table.add_row(*row)
        return table

    def _line(self, row: list[str]) -> None:
        cells = [text.rjust(width) if width else f"  {text}" for text, (_, width) in zip(row, FIELDS, strict=True)]
        print_text(self.console, "".join(cells).rstrip())


def basis_text(basis: Basis | str | None, molecule: Molecule) -> str:
    """A basis for the heading; s and p functions are the same, whether spherical or Cartesian."""
    from cuanto.basis import Basis

    if basis is None:
        return ""
    with errors_about_option("basis"):
        orbital = basis if isinstance(basis, Basis) else Basis(basis, molecule)
    kind = "" if orbital.l_max < 2 else ", spherical" if orbital.spherical else ", Cartesian"
    return f"/{orbital.name}, {orbital.nbf} functions{kind}"


def print_heading(console: Console, molecule: Molecule, method: str, basis: str) -> None:
    """Print what is computed: molecule, charge, multiplicity, method and basis."""
    named = molecule.name.isprintable() and 0 < len(molecule.name) <= MAX_NAME
    name = f"{molecule.name}: " if named else ""  # no escape sequences on a terminal
    if method.lower() == "hf":
        method = "rhf" if molecule.multiplicity == 1 else "uhf"
    state = f"charge {format_charge(molecule.charge)}, multiplicity {molecule.multiplicity}"
    ghosts = int(molecule.nuclei.ghosts.sum())
    atoms = count(molecule.natom, "atom") + (f" ({count(ghosts, 'ghost')})" if ghosts else "")
    line = f"{name}{atoms}, {state}, {method}{basis}"
    print_text(console, line, "bold")


def print_summary(console: Console, result: Result, driver: str = "energy") -> None:
    """Print energies by term, frontier orbitals, dipole, charges, spin, and whether it converged; with -v, timings."""
    from cuanto.methods.hints import convergence_advice
    from cuanto.methods.summary import LAST_ENERGY, summary_rows

    rows = list(summary_rows(result, gradient=driver == "gradient"))
    names, values = (max(len(row[i]) for row in rows) for i in (0, 1))
    bold = "energy" if result.converged else LAST_ENERGY
    for name, value, unit in rows:
        line = f" {name:<{names}}  {value:>{values}}  {unit}".rstrip()
        print_text(console, line, "bold" if name == bold else "")
    print_notes(console, (*_lines(result, driver), *result.notes))
    iterations = count(result.iterations, "iteration")
    if result.converged:
        console.print(f"converged in {iterations}", style="bold green")
        return
    change = result.state.energy_change
    line = f"NOT converged in {iterations}: "
    line += f"the energy change is {change:.1e}, " * isfinite(change)  # the first iteration has none
    line += f"the gradient {result.state.gradient:.1e} Hartree; "
    print_error(f"{line}{convergence_advice(result.options)}")


def _lines(result: Result, driver: str) -> Iterator[str]:
    """Lines below the table."""
    from cuanto.methods.summary import error_warnings, fitting_line, property_lines

    if driver == "gradient":
        yield "gradient / (Hartree/Bohr):"
        for k, (symbol, row) in enumerate(zip(result.molecule.symbols, result.gradient, strict=True), start=1):
            yield f"{k:5d} {symbol:<4s}" + "".join(f"{value:z16.9f}" for value in row)
        for k, row in enumerate(getattr(result, "charges_gradient", ()), start=1):
            yield f"{k:5d} charge" + "".join(f"{value:z16.9f}" for value in row)[2:]
    if line := fitting_line(result):
        yield line
    yield from error_warnings(result)
    yield from property_lines(result)
    if not logger.isEnabledFor(logging.INFO):
        return
    steps = [f"{name} {t:.2f}" for name, t in result.timings.seconds.items() if t >= SHORTEST_STEP]
    yield f"time / s: {result.timings.total:.2f}" + (f" ({', '.join(steps)})" if steps else "")


def print_overview(
    console: Console, done: Sequence[tuple[str, Outcome | None, str]], counted: str = "iterations"
) -> None:
    """Print a line for each of several molecules: label, result or None, error message; `counted`: steps of a task."""
    heads = ("molecule", "energy / Hartree", counted, "time / s", "")
    rows = [_overview(*one) for one in done]
    table = make_table(heads, right=range(1, 4))
    for row, (_, result, _) in zip(rows, done, strict=True):
        table.add_row(*(Text(cell) for cell in row), style="red" if result is None else "")
    if console.is_terminal and _width(console, table) <= console.width:
        console.print(table)
        return
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(4)]
    for row in (heads, *rows):
        numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:4], widths[1:], strict=True))
        print_text(console, f"{row[0]:<{widths[0]}}{numbers}  {row[4]}".rstrip())


def make_table(heads: Sequence[str], right: Iterable[int] = (), **style: Any) -> Table:
    """An empty table; the columns `right` are aligned to the right."""
    table = Table(*heads, **{"box": box.ROUNDED, "border_style": "dim", **style})
    for column in right:
        table.columns[column].justify = "right"
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table in full width: a narrow terminal wraps its lines instead of cutting numbers off."""
    needed = _width(console, table)
    console.print(table, width=max(needed, console.width), soft_wrap=needed > console.width)


def progress_bar(console: Console, *texts: str, **settings: Any) -> Any:
    """A progress bar with a description, numbers of finished and of all tasks, the time left, and further texts."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, *map(TextColumn, texts), console=console, **settings)


@contextmanager
def status_line(
    console: Console, text: str, hidden: bool = False, redirect: bool = True
) -> Iterator[Callable[[str], None]]:
    """Show a status line on a terminal; yields a function that replaces its text."""
    if hidden or not console.is_terminal:
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task(text, total=None)
        yield lambda text: bar.update(task, description=text)


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(width=MAX_WIDTH), table).maximum


def _overview(label: str, result: Outcome | None, problem: str) -> tuple[str, str, str, str, str]:
    if result is None:
        return label, "", "", "", problem
    verdict = "converged" if result.converged else "NOT converged"
    return label, f"{result.energy:.9f}", str(result.iterations), f"{result.timings.total:.2f}", verdict
