"""Calculations of the command line and of job files, one molecule after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cuanto.cli.arguments import options_given
from cuanto.cli.lines import print_error, print_remarks, print_text
from cuanto.cli.show import IterationTable, basis_text, print_heading, print_overview, print_summary
from cuanto.errors import CuantoError, InputError
from cuanto.files import require_writable, write_text
from cuanto.log import step_listener
from cuanto.options import errors_about_option

if TYPE_CHECKING:
    from cuanto.basis import Basis
    from cuanto.interaction import CounterpoiseResult
    from cuanto.interfaces.sources import Model, Source
    from cuanto.methods import Request, Result
    from cuanto.motion.optimize import OptimizationResult
    from cuanto.scf.checkpoint import Checkpoint
    from cuanto.scf.state import State
    from cuanto.system import Molecule

    Outcome = Result | OptimizationResult | CounterpoiseResult

NOT_CONVERGED = 1
BAD_INPUT = 2
STDOUT = "-"
STDIN = "-"
EXAMPLE = {"method": "hf, b3lyp or pm6", "basis": "def2-svp"}


OUTPUTS = ("json", "molden", "checkpoint", "report")
"""Kinds of files that may be written for each molecule."""
COUNTERPOISE = "counterpoise"
TASKS = ("energy", "gradient", "optimize", "frequencies", "md", COUNTERPOISE)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to compute: molecules as the user names them, `keywords` of `cuanto.energy`, and paths of outputs by kind.

    `driver`: the task, one of TASKS, with `settings` of its own. Where a value is None, that of the molecule's file is
    used (a QCSchema input names its method), or else the default.
    `file`: the job file, if there is one. `basis_path(name, key)`: path or name of a basis set that a molecule's file
    names; `key` (`basis` or `auxbasis`) is for error messages.
    """

    sources: Sequence[str]
    driver: str = "energy"
    settings: Mapping[str, Any] = field(default_factory=dict)
    method: str | None = None
    basis: str | None = None
    charge: int | None = None
    multiplicity: int | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    restart: str | None = None
    quiet: bool = False
    file: str | None = None
    basis_path: Callable[[str, str], str] | None = None

    def __post_init__(self) -> None:
        for name, value in (("method", self.method), ("basis", self.basis)):
            if value is not None and not value.strip():
                raise InputError(f"the {name} is empty: give a name such as {EXAMPLE[name]}, or leave it out")
        if list(self.sources).count(STDIN) > 1:
            raise InputError(f"`{STDIN}` is given twice: standard input can only be read once")

    @property
    def model(self) -> Model:
        """Method, basis and keywords."""
        from cuanto.interfaces.sources import Model

        return Model(self.method, self.basis, self.keywords, self.driver, self.settings)

    @property
    def inputs(self) -> list[str]:
        """Files that are read and must not be overwritten; a restarted calculation may write to its own checkpoint."""
        known = (*self.sources, self.file, self.basis, self.keywords.get("auxbasis"))
        return [name for name in known if isinstance(name, str) and name != STDIN]

    def errors_about(self, key: str = "") -> AbstractContextManager[None]:
        """Context that prefixes error messages with the job file and the `key`; without a job file it does nothing."""
        from cuanto.interfaces.keywords import errors_about

        if self.file is None:
            return nullcontext()
        return errors_about(f"{self.file}: {key}" if key else self.file)


def job_given(flags: Mapping[str, Any], **fields: Any) -> Job:
    """Make a job from the flags that `with_options` added, and from the other fields of a job."""
    known = {name: flags[name] for name in ("method", "basis", "charge", "multiplicity")}
    return Job(**known, keywords=options_given(flags), **fields)


def read_sources(job: Job) -> list[Source]:
    """The molecules of a job."""
    from cuanto.interfaces.sources import read_source

    with job.errors_about("molecule"):
        electrons = (job.charge, job.multiplicity)
        sources = [read_source(given, *electrons, in_a_job=job.file is not None) for given in job.sources]
        if job.basis_path is not None:
            sources = [replace(source, basis_path=job.basis_path) for source in sources]
    return sources


def run_job(job: Job) -> int:
    """Compute all molecules of a job; returns the exit status: 0 all converged, 1 some not, 2 bad input or an error."""
    sources = read_sources(job)
    paths = output_paths(job, [source.label for source in sources])
    console = Console(highlight=False, stderr=job.outputs.get("json") == STDOUT)
    errors = Console(highlight=False, stderr=True)
    for note in (note for source in sources for note in source.notes):
        print_text(errors, f"cuanto: {note}")
    calculate = _function_of(job)
    if len(sources) == 1:
        return 0 if calculate(console, sources[0], job, paths[0]).converged else NOT_CONVERGED
    done: list[tuple[str, Outcome | None, str]] = []
    for source, outputs in zip(sources, paths, strict=True):
        try:
            done.append((source.label, calculate(console, source, job, outputs), ""))
        except CuantoError as error:
            done.append((source.label, None, " ".join(str(error).split())))
            print_error(f"{source.label}: {done[-1][2]}")
        if not job.quiet:
            console.print()
    if not job.quiet:
        print_overview(console, done, "steps" if job.driver == "optimize" else "iterations")
    if any(result is None for _, result, _ in done):
        return BAD_INPUT
    return 0 if all(result is not None and result.converged for _, result, _ in done) else NOT_CONVERGED


def _function_of(job: Job) -> Callable[[Console, Source, Job, Mapping[str, str]], Outcome]:
    """Return the function that computes one molecule of a job."""
    if job.driver == "optimize":
        from cuanto.cli.optimize import optimize_source

        return optimize_source
    if job.driver == COUNTERPOISE:
        from cuanto.cli.counterpoise import counterpoise_source

        return counterpoise_source
    return _calculate


def output_paths(job: Job, labels: Sequence[str]) -> list[dict[str, str]]:
    """Output files of every molecule, all different; `{name}` in a path becomes the label."""
    dashes = "" if job.file is not None else "--"
    paths = [{name: path.replace("{name}", label) for name, path in job.outputs.items()} for label in labels]
    seen: dict[str, tuple[str, str]] = {}
    for label, outputs in zip(labels, paths, strict=True):
        for name, path in outputs.items():
            if path != STDOUT:
                require_writable(path, *job.inputs)
            elif name != "json":
                raise InputError(f"{dashes}{name} cannot go to standard output (-): only {dashes}json can")
            file = path if path == STDOUT else str(Path(path).resolve())
            other, owner = seen.setdefault(file, (name, label))
            if other != name:
                raise InputError(f"{dashes}{other} and {dashes}{name} are the same file {path}: give two names")
            if owner != label and "{name}" not in job.outputs[name]:
                text = f"{dashes}{name} {path} would hold several results: write {{name}}, such as {{name}}.{name}"
                raise InputError(text)
    if job.outputs and len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"several molecules are called {twice} and would share output files: rename their files")
    return paths


def _calculate(console: Console, source: Source, job: Job, outputs: Mapping[str, str]) -> Result:
    """Compute one molecule, write its files and print its result."""
    from cuanto.interfaces.sources import HESSIAN, choose_model

    with job.errors_about():
        model = choose_model(source, job.model)
        if model.driver == HESSIAN:
            raise InputError(f"{source.label} asks for a Hessian: use `cuanto frequencies`")
        request, basis_text, checkpoint = _prepare(source.molecule, model, job, outputs)
        heading = partial(print_heading, console, source.molecule, request.method, basis_text)
        with IterationTable(console, job.quiet, heading) as table:
            result = _solve(request, table, checkpoint, job, model.gradient)
    write_files(result, outputs, source, model.driver)
    if job.quiet:
        from cuanto.methods.summary import error_warnings

        verdict = "" if result.converged else ", NOT converged"
        print_text(console, f"{source.label} {result.energy:.9f} Hartree{verdict}")
        print_remarks(source.label, (*result.notes, *error_warnings(result)))
    else:
        print_summary(console, result, model.driver)
    return result


def refuse_files(job: Job, outputs: Mapping[str, str], names: Sequence[str], task: str) -> None:
    """Refuse files of these kinds, which do not apply to a method or task."""
    for name in names:
        if name in outputs or (name == "restart" and job.restart is not None):
            option = name if job.file is not None else f"--{name}"
            raise InputError(f"{option} does not apply to {task}: leave it out")


def check_molden(outputs: Mapping[str, str], basis: Basis | str | None, molecule: Molecule) -> None:
    """Refuse a Molden file of functions that the format does not have, before they are used."""
    from cuanto.basis import Basis
    from cuanto.interfaces.molden import supported_kinds

    if "molden" in outputs and basis is not None:
        with errors_about_option("molden"):
            supported_kinds(basis if isinstance(basis, Basis) else Basis(basis, molecule))


def _prepare(
    molecule: Molecule, model: Model, job: Job, outputs: Mapping[str, str]
) -> tuple[Request, str, Checkpoint | None]:
    """Check a request and find its device, basis sets and restart file, before anything is printed.

    Returns the request, a description of its basis, and a checkpoint if one is to be written.
    """
    from cuanto.api import tight_keywords
    from cuanto.backends.base import begin_compiling

    begin_compiling(model.keywords.get("backend", "auto"))  # while the following are imported
    from cuanto.basis import auxiliary_basis
    from cuanto.files import destination
    from cuanto.integrals.engine import resolve
    from cuanto.methods import Request, Semiempirical
    from cuanto.scf.checkpoint import Checkpoint
    from cuanto.solve import restart_orbitals

    assert model.method is not None
    keywords = tight_keywords(model.keywords) if model.gradient else model.keywords
    request = Request.of(molecule, model.method, model.basis, **keywords)
    found: dict[str, Any] = {}
    with errors_about_option("backend"):
        found["backend"] = device = resolve(request.options.backend)
    if request.model is None:
        refuse_files(job, outputs, ("molden", "checkpoint", "restart"), model.method)
        Semiempirical(molecule, request.method, device)  # refuses elements without parameters
        return replace(request, options=replace(request.options, **found)), "", None
    with errors_about_option("basis"):
        orbital = request.orbital_basis()
    check_molden(outputs, orbital, molecule)
    if "auxbasis" in model.keywords:
        with errors_about_option("auxbasis"):
            found["auxbasis"] = auxiliary_basis(orbital, molecule, name=model.keywords["auxbasis"])
    if job.restart is not None:
        with errors_about_option("restart"):
            found["guess"] = restart_orbitals(job.restart, molecule)
    checkpoint = None
    if "checkpoint" in outputs:
        checkpoint = Checkpoint(destination(outputs["checkpoint"]), molecule, orbital, model.method, device)
    request = replace(request, basis=orbital, options=replace(request.options, **found))
    return request, basis_text(orbital, molecule), checkpoint


def _solve(request: Request, table: IterationTable, checkpoint: Checkpoint | None, job: Job, gradient: bool) -> Result:
    """Run the SCF; every iteration is saved before it is printed, so that every printed iteration can be restarted
    from."""
    from cuanto.solve import solve

    saved = False

    def watch(state: State) -> None:
        nonlocal saved
        if checkpoint is not None:
            checkpoint(state)
            saved = True
        table.add(state)

    try:
        with step_listener(table.add_step):
            return solve(request, watch, gradient)
    except KeyboardInterrupt:
        if checkpoint is not None and saved:
            path = checkpoint.path
            option = f"--restart {path}" if job.file is None else f"restart = '{path}' in the job"
            table.note(f"interrupted; continue with {option}")
        raise


def write_files(result: Result, outputs: Mapping[str, str], source: Source, driver: str) -> None:
    """Write the output files, even if the calculation did not converge (the files say so)."""
    from cuanto.interfaces.qcschema import qcschema_text
    from cuanto.methods import GaussianResult

    if "json" in outputs:
        write_schema(outputs["json"], lambda: qcschema_text(result, driver, source.input_schema))
    if "molden" in outputs and isinstance(result, GaussianResult):
        from cuanto.interfaces.molden import write_molden

        write_molden(outputs["molden"], result)
    if "report" in outputs:
        from cuanto.report import write_report

        write_report(outputs["report"], result)


def write_schema(path: str, make_text: Callable[[], str]) -> None:
    """Write a QCSchema file, or print it for `-`; if QCElemental rejects it, it is written anyway, with a warning on
    standard error."""
    from cuanto.interfaces.qcschema import SchemaWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        text = make_text()
    if path == STDOUT:
        print(text, end="")
    else:
        write_text(path, text)
    for warning in caught:
        print_text(Console(stderr=True, highlight=False), f"cuanto: {warning.message}")
