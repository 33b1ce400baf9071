"""Calculations that were asked for on the command line or in a job file, one molecule after the other."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuanto.cli.show import IterationTable, print_heading, print_overview, print_summary
from cuanto.errors import CuantoError, InputError
from cuanto.interfaces.files import require_writable
from cuanto.options import DEFAULT_BASIS, DEFAULT_METHOD, about_option

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.interfaces.sources import Source
    from cuanto.methods import Request, Result
    from cuanto.scf.state import State

NOT_CONVERGED = 1
BAD_INPUT = 2
STDOUT = "-"
STDIN = "-"
EXAMPLE = {"method": "hf, b3lyp or pm6", "basis": "def2-svp"}


@dataclass(frozen=True)
class Outputs:
    """Files to write; `{name}` in a path becomes the name of the input file without its ending."""

    json: str | None = None
    molden: str | None = None
    checkpoint: str | None = None
    report: str | None = None

    def expanded(self, label: str) -> Outputs:
        """For one molecule; `label` has no separators."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return Outputs(**{name: path and path.replace("{name}", label) for name, path in named.items()})

    def given(self) -> dict[str, str]:
        """Those that were asked for, by name."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: path for name, path in named.items() if path is not None}

    def check(self, inputs: Sequence[str] = ()) -> None:
        """What cannot be written, or would overwrite an input, is said before the work."""
        for name, path in self.given().items():
            if path != STDOUT:
                require_writable(Path(path), *inputs)
            elif name != "json":
                raise InputError(f"--{name} - is not possible: only --json can go to standard output")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to compute: molecules as a person named them, and `keywords` of `cuanto.energy`.

    What is None comes from the molecule's file (a QCSchema input has a method of its own), else it has a default.
    `file`: the one that asks for all this, if any.
    """

    sources: Sequence[str]
    method: str | None = None
    basis: str | None = None
    charge: int | None = None
    multiplicity: int | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=Outputs)
    restart: str | None = None
    quiet: bool = False
    file: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("method", self.method), ("basis", self.basis)):
            if value is not None and not value.strip():
                raise InputError(f"the {name} is empty: give a name such as {EXAMPLE[name]}, or leave it out")
        if list(self.sources).count(STDIN) > 1:
            raise InputError(f"`{STDIN}` is there twice: standard input can be read once")

    @property
    def inputs(self) -> list[str]:
        """Names of files that are read and must stay; a checkpoint may go on in its own file."""
        known = (*self.sources, self.file, self.basis, self.keywords.get("auxbasis"))
        return [name for name in known if isinstance(name, str) and name != STDIN]

    def about(self, key: str = "") -> AbstractContextManager[None]:
        """What is wrong with a value of a job file names the file and the `key`; an option names itself."""
        from cuanto.interfaces.keywords import about

        if self.file is None:
            return nullcontext()
        return about(f"{self.file}: {key}" if key else self.file)


def carry_out(job: Job) -> int:
    """Exit status: 0 all converged, 1 some did not, 2 something was wrong with the input."""
    from rich.console import Console

    from cuanto.interfaces.sources import read_source

    with job.about("molecule"):
        about = (job.charge, job.multiplicity, job.file is not None)
        sources = [read_source(given, *about) for given in job.sources]
    places = _places(job, [source.label for source in sources])
    console = Console(highlight=False, stderr=job.outputs.json == STDOUT)
    errors = Console(highlight=False, stderr=True)
    if len(sources) == 1:
        return 0 if _one(console, sources[0], job, places[0]).converged else NOT_CONVERGED
    done: list[tuple[str, Result | None, str]] = []
    for source, outputs in zip(sources, places, strict=True):
        try:
            done.append((source.label, _one(console, source, job, outputs), ""))
        except CuantoError as error:
            done.append((source.label, None, " ".join(str(error).split())))
            errors.print(f"cuanto: {source.label}: {done[-1][2]}", markup=False, soft_wrap=True, style="bold red")
        if not job.quiet:
            console.print()
    if not job.quiet:
        print_overview(console, done)
    if any(result is None for _, result, _ in done):
        return BAD_INPUT
    return 0 if all(result is not None and result.converged for _, result, _ in done) else NOT_CONVERGED


def _places(job: Job, labels: Sequence[str]) -> list[Outputs]:
    """The files of every molecule, no two the same."""
    outputs, mark = job.outputs, "" if job.file is not None else "--"
    places, patterns = [outputs.expanded(label) for label in labels], outputs.given()
    seen: dict[str, tuple[str, str]] = {}
    for label, place in zip(labels, places, strict=True):
        place.check(job.inputs)
        for name, path in place.given().items():
            file = path if path == STDOUT else str(Path(path).resolve())
            other, whose = seen.setdefault(file, (name, label))
            if other != name:
                raise InputError(f"{mark}{other} and {mark}{name} are the same file {path}: give two names")
            if whose != label and "{name}" not in patterns[name]:
                text = f"{mark}{name} {path} would hold several results: write {{name}}, such as {{name}}.{name}"
                raise InputError(text)
    if patterns and len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"several molecules are called {twice}: rename their files, which name the output")
    return places


def _one(console: Console, source: Source, job: Job, outputs: Outputs) -> Result:
    """One molecule: computed, kept, shown."""
    from cuanto.interfaces.qcschema import require_driver
    from cuanto.interfaces.sources import first_given
    from cuanto.methods import SEMIEMPIRICAL

    method = first_given(job.method, source.method, DEFAULT_METHOD)
    with job.about():
        require_driver(source.driver, method)
        if method.lower() in SEMIEMPIRICAL:
            given = {"--basis": job.basis, "--molden": outputs.molden, "--checkpoint": outputs.checkpoint}
            refuse(method, given | {"--restart": job.restart}, job.file is not None)
        calculation = _prepare(source, method, job, outputs)
        heading = partial(print_heading, console, source.molecule, method, calculation.described)
        result = calculation.watched(IterationTable(console, job.quiet, heading))
    write_files(result, outputs, source)
    if job.quiet:
        verdict = "" if result.converged else ", NOT converged"
        console.print(f"{source.label} {result.energy:.9f} Hartree{verdict}", markup=False, soft_wrap=True)
    else:
        print_summary(console, result, source.driver)
    return result


@dataclass(frozen=True)
class Prepared:
    """A request, looked at before anything is shown; `keep` writes every iteration."""

    request: Request
    described: str = ""
    keep: Any = None
    in_a_job: bool = False

    def watched(self, table: IterationTable) -> Result:
        """Every iteration is kept, then shown, so that what was seen can be restarted from."""
        from cuanto import api

        kept = False

        def watch(state: State) -> None:
            nonlocal kept
            if self.keep is not None:
                self.keep(state)
                kept = True
            table.add(state)

        with table:
            try:
                return api.solve(self.request, watch)
            except KeyboardInterrupt:
                if kept:
                    path = self.keep.path
                    option = f"{path} as restart of the job" if self.in_a_job else f"--restart {path}"
                    table.note(f"interrupted; go on with {option}")
                raise


def _prepare(source: Source, method: str, job: Job, outputs: Outputs) -> Prepared:
    """Check what is asked for, and find the device and the basis sets that it names."""
    from cuanto.basis import Basis
    from cuanto.integrals.engine import resolve
    from cuanto.interfaces.files import destination
    from cuanto.interfaces.sources import inherited
    from cuanto.methods import SEMIEMPIRICAL, Request, Semiempirical
    from cuanto.scf.checkpoint import Checkpoint, read_checkpoint

    molecule, keywords = source.molecule, {**inherited(source, job.method, job.basis, job.keywords), **job.keywords}
    basis = None if method.lower() in SEMIEMPIRICAL else job.basis or source.basis
    request = Request.of(molecule, method, basis, **keywords)
    with about_option("backend"):
        device = resolve(request.options.backend)
    if request.model is None:
        Semiempirical(molecule, request.method, device)  # elements without parameters are refused here
        return Prepared(replace(request, options=replace(request.options, backend=device)))
    found: dict[str, Any] = {"backend": device}
    with about_option("basis"):
        orbital = Basis(basis or DEFAULT_BASIS, molecule)
    if "auxbasis" in keywords:
        with about_option("auxbasis"):
            found["auxbasis"] = Basis(keywords["auxbasis"], molecule, spherical=orbital.spherical)
    if job.restart is not None:
        with about_option("restart"):
            found["guess"] = read_checkpoint(job.restart).orbitals
    keep = None
    if outputs.checkpoint is not None:
        keep = Checkpoint(destination(outputs.checkpoint), molecule, orbital, method, device)
    request = replace(request, basis=orbital, options=replace(request.options, **found))
    return Prepared(request, f"/{orbital.name}, {orbital.nbf} functions", keep, job.file is not None)


def refuse(method: str, given: Mapping[str, object], in_a_job: bool = False) -> None:
    """Options that mean nothing for a method without a basis."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name.removeprefix('--') if in_a_job else name} is not for {method}: leave it out")


def write_files(result: Result, outputs: Outputs, source: Source) -> None:
    """What was asked for, also of a calculation that did not converge: the files say so."""
    from cuanto.interfaces.qcschema import SchemaWarning, qcschema_text, write_qcschema
    from cuanto.methods import GaussianResult

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        if outputs.json == STDOUT:
            print(qcschema_text(result, source.driver, source.asked), end="")
        elif outputs.json is not None:
            write_qcschema(outputs.json, result, source.driver, source.asked)
    for warning in caught:
        print(f"cuanto: {warning.message}", file=sys.stderr)
    if outputs.molden is not None and isinstance(result, GaussianResult):
        from cuanto.interfaces.molden import write_molden

        write_molden(outputs.molden, result)
    if outputs.report is not None:
        from cuanto.report import write_report

        write_report(outputs.report, result)
