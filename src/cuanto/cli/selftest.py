"""``cuanto selftest``: compute known energies on the CPU and GPU of this machine, in about half a minute."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.text import Text

from cuanto.cli.arguments import Device, Verbose, examples
from cuanto.cli.lines import print_text
from cuanto.cli.show import make_table, print_table

if TYPE_CHECKING:
    from cuanto.basis import Basis
    from cuanto.system import Molecule

EXAMPLES = examples("cuanto selftest", "cuanto selftest --backend cpu")
FAILED = 1
FITTING_BASIS = "cc-pvdz-jkfit"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one test, a line of the table; `problem`: why there is no converged value."""

    title: str
    backend: str
    expected: float
    unit: str
    tolerance: float
    seconds: float
    value: float | None = None
    problem: str = ""

    @property
    def good(self) -> bool:
        """Whether the value is within the tolerance."""
        return not self.problem and self.value is not None and abs(self.value - self.expected) <= self.tolerance


def selftest(
    backend: Annotated[Device, typer.Option(help="auto: the CPU, and the GPU if there is one.")] = Device.AUTO,
    verbose: Verbose = False,
) -> None:
    """Compute known energies and compare them; exit status 0 if all agree, 1 otherwise."""
    console = Console(highlight=False)
    begin = time.perf_counter()
    done = list(_run_with_progress(console, outcomes(_backends(backend.value))))
    print_outcomes(console, done)
    bad, seconds = sum(not outcome.good for outcome in done), time.perf_counter() - begin
    if bad:
        line = f"{bad} of {len(done)} tests failed ({seconds:.1f} s); `cuanto doctor` describes this installation"
        print_text(console, line, "bold red")
        raise typer.Exit(FAILED)
    console.print(f"all {len(done)} tests passed ({seconds:.1f} s)", style="bold green")


def _backends(given: str) -> list[str]:
    """Names of the backends to test; asking for a GPU that is not there is an error."""
    from cuanto.backends.base import get_backend
    from cuanto.backends.cuda.backend import why_no_gpu

    if given != "auto":
        return [get_backend(given).name]
    return ["cpu"] if why_no_gpu() else ["cpu", "cuda"]


def outcomes(backends: list[str]) -> Iterator[Outcome]:
    """Run all cases. Their basis sets are included, so that neither a network nor a database is needed."""
    data = references()
    for backend in backends:
        for case in data["cases"]:
            yield _outcome(case, data, backend)


def references() -> dict[str, Any]:
    """Return the cases with their reference energies and sources."""
    found: dict[str, Any] = json.loads((files("cuanto") / "data" / "selftest.json").read_text())
    return found


def _outcome(case: dict[str, Any], data: dict[str, Any], backend: str) -> Outcome:
    """Run a case; any error becomes its outcome."""
    heat = "heat_of_formation" in case
    expected, unit = case["heat_of_formation" if heat else "energy"], "kcal/mol" if heat else "Hartree"
    begin, value, problem = time.perf_counter(), None, ""
    try:
        result = _atom(case, backend) if "element" in case else _molecule(case, data, backend)
        value = float(result.heat_of_formation if heat else result.energy)
        problem = "" if result.converged else "NOT converged"
    except Exception as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
    seconds = time.perf_counter() - begin
    title = case["title"] + (f"/{case['basis']}" if "basis" in case else "")
    return Outcome(title, backend, expected, unit, case["tolerance"], seconds, value, problem)


def _atom(case: dict[str, Any], backend: str) -> Any:
    from cuanto.atomic.job import element_job, run_energy

    return run_energy(element_job(case["element"]), backend)


def _molecule(case: dict[str, Any], data: dict[str, Any], backend: str) -> Any:
    from cuanto.api import energy
    from cuanto.system import Molecule

    molecule = Molecule.from_string("\n".join(data["water"]), case["charge"], case["multiplicity"])
    keywords: dict[str, Any] = {"backend": backend}
    if "basis" in case:
        keywords |= {"basis": _basis(case["basis"], data, molecule), "fitting": case["fitting"]}
        if case["fitting"] != "none":
            keywords["auxbasis"] = _basis(FITTING_BASIS, data, molecule)
    return energy(molecule, case["method"], **keywords)


def _basis(name: str, data: dict[str, Any], molecule: Molecule) -> Basis:
    from cuanto.basis import Basis
    from cuanto.basis.formats import parse_basis

    return Basis.from_tables(name, parse_basis("\n".join(data["basis_sets"][name]), name), molecule)


def _run_with_progress(console: Console, results: Iterator[Outcome]) -> Iterator[Outcome]:
    """Show progress on a terminal."""
    if not console.is_terminal:
        yield from results
        return
    with console.status("compiling kernels that are not in the cache") as status:
        for number, outcome in enumerate(results, start=1):
            status.update(f"{number} done, last: {outcome.title} on {outcome.backend}")
            yield outcome


def print_outcomes(console: Console, done: list[Outcome]) -> None:
    """Print the table, and the problems below it."""
    heads = ("calculation", "on", "found", "", "off by", "time/s", "")
    table = make_table(heads, right=(2, 4, 5), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    for one in done:
        value = "" if one.value is None else f"{one.value:.8f}"
        difference = "" if one.value is None else f"{one.value - one.expected:.1e}"
        mark = Text("ok", style="green") if one.good else Text("FAILED", style="bold red")
        table.add_row(one.title, one.backend, value, one.unit, difference, f"{one.seconds:.2f}", mark)
    print_table(console, table)
    for one in done:
        if not one.good:
            text = one.problem or f"differs by more than {one.tolerance:.0e} {one.unit} from {one.expected:.9f}"
            print_text(console, f"{one.title} on {one.backend}: {text}", "red")
