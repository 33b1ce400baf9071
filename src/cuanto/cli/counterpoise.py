"""``cuanto energy --counterpoise``: interaction energies of fragments, and how they are printed and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cuanto.cli.lines import print_error, print_notes, print_remarks, print_text
from cuanto.cli.show import basis_text, print_heading, status_line
from cuanto.errors import InputError
from cuanto.units import HARTREE_IN_KCAL_PER_MOL
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.cli.calculate import Job
    from cuanto.interaction import CounterpoiseResult
    from cuanto.interfaces.sources import Source
    from cuanto.methods import Result
    from cuanto.scf.state import State

OUTPUTS = ("json", "molden", "report")
"""Kinds of files; Molden files and reports are those of the complex."""
PANEL = "Interaction energies"
COLUMNS = (("calculation", 26), ("functions", 9), ("energy / Hartree", 18), ("iterations", 10), ("time / s", 8))


def _flag(name: str, metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(name, metavar=metavar, help=help, rich_help_panel=PANEL)]


FLAGS = {
    "counterpoise": _flag(
        "--counterpoise",
        "FRAGMENTS",
        "Compute the interaction energy of fragments, with and without the counterpoise correction. FRAGMENTS: number "
        "of atoms of each, such as 3,3, or their atoms, such as '1-3;4-6'.",
    ),
    "fragment_charges": _flag("--fragment-charges", "LIST", "Charge of every fragment. \\[default: all neutral]"),
    "fragment_multiplicities": _flag(
        "--fragment-mult", "LIST", "Multiplicity of every fragment. \\[default: the lowest ones]"
    ),
}
"""Annotations of the parameters that a command needs for a counterpoise correction."""


def division_given(flags: Mapping[str, Any]) -> dict[str, Any] | None:
    """Checked settings of a counterpoise correction from the flags; None if none is requested."""
    given = {name: flags.get(name) for name in FLAGS}
    if given["counterpoise"] is None:
        for name in FLAGS:
            if given[name] is not None:
                option = name.replace("_", "-").replace("multiplicities", "mult")
                raise InputError(f"--{option} needs --counterpoise with the fragments")
        return None
    names = {"fragments": "counterpoise", "charges": "fragment_charges", "multiplicities": "fragment_multiplicities"}
    return checked_division({key: given[name] for key, name in names.items() if given[name] is not None})


def checked_division(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a counterpoise correction as plain data."""
    from cuanto.system.fragments import Division

    return Division.of(**given).plain()


def counterpoise_source(console: Console, source: Source, job: Job, outputs: Mapping[str, str]) -> CounterpoiseResult:
    """Compute the interaction energy of one molecule's fragments, write its files and print every energy."""
    from cuanto.cli.calculate import check_molden, refuse_files
    from cuanto.interaction import counterpoise
    from cuanto.interfaces.sources import choose_model

    refuse_files(job, outputs, ("checkpoint", "restart"), "a counterpoise correction")
    with job.errors_about():
        model = choose_model(source, job.model)
        assert model.method is not None
        check_molden(outputs, model.basis, source.molecule)
        parts = len(job.settings["fragments"])
        basis = f"{basis_text(model.basis, source.molecule)}, {count(parts, 'fragment')}"
        heading = partial(print_heading, console, source.molecule, model.method, basis)
        table = _Lines(console, job.quiet, heading, parts)
        with status_line(console, " complex", hidden=job.quiet) as status:
            found = counterpoise(
                source.molecule,
                method=model.method,
                basis=model.basis,
                on_iteration=lambda state: status(_progress(table, state)),
                on_result=table.add,
                **job.settings,
                **model.keywords,
            )
    _write_files(found, outputs, source)
    _print_end(console, found, source.label, job.quiet)
    return found


class _Lines:
    """Prints a line for every calculation that is finished."""

    def __init__(self, console: Console, quiet: bool, heading: Callable[[], object], fragments: int) -> None:
        self.console, self.quiet, self.heading, self.fragments = console, quiet, heading, fragments
        self.done = 0

    def add(self, name: str, result: Result) -> None:
        """Print one calculation, the heading before the first."""
        if not self.quiet:
            if self.done == 0:
                self.heading()
                self._line(*(title for title, _ in COLUMNS))
            functions, seconds = str(result.coefficients.shape[-2]), f"{result.timings.total:.2f}"
            cells = (functions, f"{result.energy:.9f}", str(result.iterations), seconds)
            self._line(name, *cells, verdict="" if result.converged else "  NOT converged")
        self.done += 1

    def _line(self, name: str, *cells: str, verdict: str = "") -> None:
        (_, first), *others = COLUMNS
        numbers = "".join(f" {cell:>{width}}" for cell, (_, width) in zip(cells, others, strict=True))
        print_text(self.console, f"{name:<{first}}{numbers}{verdict}")


def _progress(table: _Lines, state: State) -> str:
    total = 2 * table.fragments + 1
    return f" calculation {table.done + 1} of {total}, iteration {state.iteration}: {state.energy:.6f} Hartree"


def _rows(found: CounterpoiseResult) -> Iterator[tuple[str, float, float]]:
    """Name, Hartree, kcal/mol."""
    yield "interaction energy, uncorrected", found.raw, found.raw_kcal_mol
    yield "counterpoise correction", found.correction, found.correction_kcal_mol
    yield "interaction energy, corrected", found.corrected, found.corrected_kcal_mol


def _error_rows(found: CounterpoiseResult) -> Iterator[tuple[str, float, str]]:
    """Name, estimated error in Hartree, and its parts."""
    for name, errors, total in (
        ("estimated error, uncorrected", found.raw_errors, found.raw_error),
        ("estimated error, corrected", found.corrected_errors, found.corrected_error),
    ):
        if errors:
            yield name, total, ", ".join(f"{source} {value:+.0e}" for source, value in errors.items())


def _notes(found: CounterpoiseResult) -> Iterator[str]:
    """Notes about the complex, and those about fragments whose kind (the text before a colon) has not occurred yet."""
    seen: set[str] = set()
    for result in found.results:
        kinds = {note: note.split(":")[0] for note in result.notes}
        yield from (note for note, kind in kinds.items() if kind not in seen)
        seen |= set(kinds.values())


def _print_end(console: Console, found: CounterpoiseResult, label: str, quiet: bool) -> None:
    from cuanto.methods.hints import convergence_advice

    if quiet:
        verdict = "" if found.converged else ", NOT converged"
        text = f"{label} {found.corrected:.9f} Hartree, {found.corrected_kcal_mol:.6f} kcal/mol{verdict}"
        print_text(console, text)
        print_remarks(label, _notes(found))
        return
    for name, hartree, kcal in _rows(found):
        bold = "bold" if name.endswith(", corrected") else ""
        print_text(console, f" {name:<32}{hartree:14.9f}  Hartree{kcal:13.6f}  kcal/mol", bold)
    for name, error, parts in _error_rows(found):
        print_text(console, f" {name:<32}{error:14.1e}  Hartree{error * HARTREE_IN_KCAL_PER_MOL:13.1e}  kcal/mol")
        print_notes(console, [f"   {parts}"])
    print_notes(console, _notes(found))
    if found.converged:
        console.print(
            f"converged in {count(found.iterations, 'iteration')} of {len(found.results)} calculations",
            style="bold green",
        )
        return
    print_error(f"some of the calculations are NOT converged: {convergence_advice(found.complex.options)}")


def _write_files(found: CounterpoiseResult, outputs: Mapping[str, str], source: Source) -> None:
    """Write the files, also of calculations that did not converge: the files say so."""
    if not outputs:
        return
    from cuanto.cli.calculate import write_files, write_schema
    from cuanto.interfaces.qcschema import counterpoise_schema, schema_text

    lines = tuple(f"{name}: {hartree:.9f} Hartree, {kcal:.6f} kcal/mol" for name, hartree, kcal in _rows(found))
    lines += tuple(f"{name}: {error:.1e} Hartree ({parts})" for name, error, parts in _error_rows(found))
    found = replace(found, complex=replace(found.complex, notes=(*found.complex.notes, *lines)))
    if "json" in outputs:
        write_schema(outputs["json"], lambda: schema_text(counterpoise_schema(found), source.input_schema))
    write_files(found.complex, {name: path for name, path in outputs.items() if name != "json"}, source, "energy")
