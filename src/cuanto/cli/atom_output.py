"""Input and output of ``cuanto atom``: the job from options, tables of the result, files."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from cuanto import __version__
from cuanto.atomic import AtomIteration, AtomResult
from cuanto.atomic.export import Contraction, basis_text, format_of
from cuanto.atomic.input import AtomInput, read_input
from cuanto.atomic.job import element_job, element_table
from cuanto.atomic.optimise import Optimum
from cuanto.atomic.plot import plot_convergence, plot_spinors, require_picture
from cuanto.atomic.report import heading, parameter_texts, result_dict, symbol_of_charge
from cuanto.atomic.wtbs import WellTempered
from cuanto.cli.lines import print_error, print_text
from cuanto.errors import InputError, require
from cuanto.files import require_writable, write_text
from cuanto.interfaces.qcschema import plain
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS
from cuanto.wording import count

COLUMNS = {"iteration": 9, "energy / Hartree": 20, "change / Hartree": 18, "dD(LL)": 10, "dD(SL)": 10, "dD(SS)": 10}
SPINORS = ("spinor", "electrons", "energy/Hartree", "<1/r>/Bohr^-1", "<r>/Bohr", "<r^2>/Bohr^2")


def check_outputs(
    json: Path | None,
    export: Path | None,
    pictures: Sequence[Path] = (),
    log: Path | None = None,
    file: Path | None = None,
) -> None:
    """Check before the calculation that output files can be written and replace neither the input `file` nor each
    other."""
    paths = [path for path in (json, export, *pictures) if path is not None]
    for path in paths:
        require_writable(path, file)
    seen: set[Path] = set()
    for path in paths if log is None else (*paths, log):  # the log itself is checked where it is opened
        require(path.resolve() not in seen, f"{path} was given for two outputs: give every output a name of its own")
        seen.add(path.resolve())
    if export is not None:
        format_of(export)
    for path in pictures:
        require_picture(path)


def choose_contraction(plain: bool, x2c: bool, diffuse: int) -> Contraction | None:
    """The contraction that --contract or --contract-x2c ask for."""
    require(not (plain and x2c), "--contract and --contract-x2c were given: choose one of them")
    return Contraction(diffuse, x2c) if plain or x2c else None


@dataclass(frozen=True)
class Files:
    """Files to write about an atom; the exported basis is uncontracted without a `contraction`."""

    json: Path | None
    export: Path | None
    contraction: Contraction | None
    plot: Path | None
    plot_optimisation: Path | None
    log: Path | None

    def check(self, file: Path | None) -> None:
        """Refuse what cannot be written, or would replace the input `file` or another output."""
        pictures = [path for path in (self.plot, self.plot_optimisation) if path]
        check_outputs(self.json, self.export, pictures, self.log, file)

    def check_job(self, job: AtomInput) -> None:
        """Refuse a nucleus whose basis cannot be exported, before the calculation."""
        charge = job.nucleus.charge
        known = self.export is None or symbol_of_charge(charge) in ATOMIC_NUMBERS
        require(known, f"a basis file needs an element; the charge {charge:g} has none")

    def write(self, job: AtomInput, result: AtomResult, optimum: Optimum | None, device: str) -> None:
        """Write the files that are wanted; nothing is written if the basis cannot be exported."""
        basis = None if self.export is None else export_text(self.export, job, result, device, self.contraction)
        if self.json is not None:
            write_json(self.json, result_dict(job, result, optimum))
        if self.export is not None and basis is not None:
            write_text(self.export, basis)
        if self.plot is not None:
            plot_spinors(self.plot, result, job.title)
        if self.plot_optimisation is not None and optimum is not None:
            plot_convergence(self.plot_optimisation, optimum.evaluations, job.title)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a result as JSON, with the version of the program."""
    content = plain(content | {"provenance": {"creator": "cuanto", "version": __version__}})
    write_text(path, json_format.dumps(content, indent=1, allow_nan=False) + "\n")


def make_job(file: Path | None, element: str | None, given: dict[str, Any], chosen: dict[str, Any]) -> AtomInput:
    """Make the job from a file, or from an element and the options `given`; relativity is among the settings `chosen`,
    because the basis depends on it."""
    if file is not None and element is None:
        if str(file).capitalize() in SYMBOLS and not file.exists():
            raise InputError(f"{file} is not an input file: for the element write --element {str(file).capitalize()}")
        for name in given:
            raise InputError(f"--{name.replace('_', '-')} applies to --element only: set it in the file {file} instead")
        return read_input(file)
    if file is not None or element is None:
        raise InputError("give either an input file FILE.inp or --element")
    if "nucleus" in given:
        given["nucleus"] = given["nucleus"].value
    settings = {"relativistic": chosen["relativistic"]} | ({"c": given.pop("c")} if "c" in given else {})
    return element_job(element, configuration=given.pop("config", None), settings=settings, **given)


def change_settings(job: AtomInput, settings: dict[str, Any]) -> AtomInput:
    """Change settings of the SCF, given by name with `--option`."""
    known = {field.name: type(getattr(job.settings, field.name)) for field in fields(job.settings)}
    for name, value in settings.items():
        require(name in known, f"--option {name}: the SCF of an atom has {', '.join(known)}")
        fits = isinstance(value, known[name]) or (known[name] is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and known[name] is not bool):
            raise InputError(f"--option {name}={value}: it must be of the type {known[name].__name__}")
    return replace(job, settings=replace(job.settings, **settings))


def share_last_index(job: AtomInput) -> AtomInput:
    """Use the largest last index as K of all symmetries (`--pool`); raises an error if that gives no valid set."""
    if not isinstance(job.basis, WellTempered):
        raise InputError("--pool applies to well-tempered sets only: use --basis wtbs or bastype='wtbs'")
    basis = replace(job.basis, pool=True)
    basis.exponents()
    return replace(job, basis=basis)


def print_heading(console: Console, job: AtomInput) -> None:
    """Print what is computed."""
    for line in heading(job):
        print_text(console, line)


def iteration_printer(console: Console) -> Callable[[AtomIteration], None]:
    """Return a function that prints a line for every iteration, with a heading before the first."""

    def show(state: AtomIteration) -> None:
        if state.iteration == 1:
            console.print("".join(name.rjust(width) for name, width in COLUMNS.items()))
        changes = (state.energy_change, state.change_LL, state.change_SL, state.change_SS)
        texts = ["" if state.iteration == 1 else f"{value:.2e}" for value in changes]
        row = [str(state.iteration), f"{state.energy:.10f}", *texts]
        console.print("".join(text.rjust(width) for text, width in zip(row, COLUMNS.values(), strict=True)).rstrip())

    return show


def print_result(console: Console, result: AtomResult) -> None:
    """Print the parts of the energy, the spinors, and whether it converged."""
    parts = Table(Column(), Column(justify="right"), show_header=False, box=None)
    for name, value in result.parts.items():
        parts.add_row(name.replace("_electron", "-electron").replace("_", " "), f"{value:.10f}", "Hartree")
    total = "energy" if result.converged else "last energy, NOT converged"
    parts.add_row(total, f"{result.energy:.10f}", "Hartree", style="bold")
    parts.add_row("virial ratio", f"{result.virial:.10f}")
    console.print(parts)
    spinors = Table(SPINORS[0], *(Column(name, justify="right") for name in SPINORS[1:]), box=None)
    for s in result.spinors:
        radii = (f"{value:.6f}" for value in (s.r_inverse, s.r, s.r_squared))
        spinors.add_row(s.label, f"{s.occupation:g}", f"{s.energy:.8f}", *radii)
    console.print(spinors)
    if result.converged:
        console.print(f"converged in {count(result.iterations, 'iteration')}")
        return
    line = f"NOT converged in {result.iterations} iterations; try more iterations, ixtrp=1 or a smaller dfctr"
    print_error(line)


def export_text(path: Path, job: AtomInput, result: AtomResult, device: str, contraction: Contraction | None) -> str:
    """Text of a file with the basis of the job."""
    symbol = symbol_of_charge(job.nucleus.charge)
    text = f"{job.title}; energy {result.energy:.10f} Hartree"
    if isinstance(job.basis, WellTempered):
        text += f"\nwell-tempered, {job.basis.range_text()}, {', '.join(parameter_texts(job.basis))}"
    return basis_text(path, [element_table(symbol, job, contraction, device)], path.stem, text)
