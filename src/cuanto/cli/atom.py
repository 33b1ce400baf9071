"""``cuanto atom``: a four-component atom, from an input file of the thesis or from its element; its basis optimised."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto import __version__
from cuanto.cli.energy import NOT_CONVERGED, Device, parse_options
from cuanto.cli.integrals import require_writable
from cuanto.cli.show import count
from cuanto.cli.verbose import Verbose
from cuanto.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic import AtomIteration, AtomResult
    from cuanto.atomic.evaluations import Evaluation
    from cuanto.atomic.input import AtomInput, TrustRegion
    from cuanto.atomic.optimise import Optimum

COLUMNS = (("iteration", 9), ("energy / Hartree", 22), ("change", 11), ("dD(LL)", 10), ("dD(SL)", 10), ("dD(SS)", 10))
SPINORS = ("spinor", "electrons", "energy / Hartree", "<1/r>", "<r> / Bohr", "<r^2>")


class NucleusModel(StrEnum):
    """Where its charge is."""

    POINT = "point"
    SPHERE = "sphere"
    GAUSSIAN = "gaussian"


class Optimiser(StrEnum):
    """Both work without derivatives; auto is NEWUOA where nlopt is installed."""

    AUTO = "auto"
    NEWUOA = "newuoa"
    COBYQA = "cobyqa"


def atom(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.inp", help="Input file; or use --element.")] = None,
    element: Annotated[str | None, typer.Option("--element", "-e", help="Symbol or atomic number.")] = None,
    basis: Annotated[
        str | None, typer.Option("--basis", "-b", help="wtbs (table, He to Rn), limit, a basis file or name.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Configuration such as '[Ar] 3d5 4s1'.")] = None,
    charge: Annotated[int | None, typer.Option(help="Charge of the ion.")] = None,
    nucleus: Annotated[NucleusModel | None, typer.Option(help="Gaussian when left out.")] = None,
    parameters: Annotated[str | None, typer.Option(help="alpha,beta,delta,gamma instead of the table's.")] = None,
    ranges: Annotated[str | None, typer.Option(help="Such as 's(1:18)p(3:9)' instead of the table's.")] = None,
    pool: Annotated[bool, typer.Option("--pool", help="One K, the largest last index, for all symmetries.")] = False,
    c: Annotated[float | None, typer.Option("--c", help="Speed of light.")] = None,
    nonrelativistic: Annotated[bool, typer.Option("--nonrelativistic", help="Hartree-Fock without c.")] = False,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="NAME=VALUE of ScfSettings.")] = None,
    optimise: Annotated[bool, typer.Option("--optimise", "--optimize", help="Optimise the well-tempered set.")] = False,
    method: Annotated[Optimiser, typer.Option(help="Of the optimisation.")] = Optimiser.AUTO,
    max_evaluations: Annotated[int | None, typer.Option(help="Energies that it may take.", min=1)] = None,
    log: Annotated[Path | None, typer.Option(help="Log of the optimisation; goes on where the log ends.")] = None,
    backend: Annotated[Device, typer.Option(help="auto: the GPU where there is one, else cpu.")] = Device.AUTO,
    json: Annotated[Path | None, typer.Option(help="Write the result as JSON.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write the basis: .json (BSE), .nw (NWChem), .gbs.")] = None,
    contract: Annotated[bool, typer.Option("--contract", help="Export contracted to the atomic orbitals.")] = False,
    diffuse: Annotated[int, typer.Option(help="Uncontracted diffuse functions beside a contraction.", min=0)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Picture of the radial densities (.png, .pdf, .svg).")] = None,
    plot_optimisation: Annotated[Path | None, typer.Option(help="Picture of the optimisation's way.")] = None,
    verbose: Verbose = False,
) -> None:
    """Compute an atom by Dirac-Hartree-Fock; exit status 0 converged, 1 not converged, 2 bad input."""
    outputs = Outputs(json, export, diffuse if contract else None, plot, plot_optimisation)
    outputs.check(file)
    given: dict[str, Any] = {"basis": basis, "configuration": config, "charge": charge, "nucleus": nucleus, "c": c}
    given |= {"parameters": parameters, "ranges": ranges}
    job = _job(file, element, given)
    job = _changed(job, {"relativistic": not nonrelativistic, **parse_options(option or [])})
    if pool:
        job = _pooled(job)
    if plot_optimisation is not None and not (optimise or job.optimise):
        raise InputError("--plot-optimisation needs an optimisation: add --optimise")
    from rich.console import Console

    from cuanto.atomic.job import run_energy
    from cuanto.atomic.report import heading
    from cuanto.integrals.engine import resolve

    device = resolve(backend.value).name
    console = Console(highlight=False, soft_wrap=True)
    for line in heading(job):
        console.print(line, markup=False)
    optimum = None
    if optimise or job.optimise is not None:
        optimum = _optimised(console, job, device, method.value, max_evaluations, log)
        job = replace(job, basis=optimum.basis)
    result = run_energy(job, device, _iterations(console))
    print_result(console, result)
    outputs.write(job, result, optimum, device)
    if not result.converged or (optimum is not None and not optimum.converged):
        raise typer.Exit(NOT_CONVERGED)


@dataclass(frozen=True)
class Outputs:
    """The files that were asked for; `diffuse` is None where the exported basis is not to be contracted."""

    json: Path | None
    export: Path | None
    diffuse: int | None
    plot: Path | None
    plot_optimisation: Path | None

    def check(self, file: Path | None = None) -> None:
        """What cannot be written is said before the work; the input `file` stays."""
        pictures = [path for path in (self.plot, self.plot_optimisation) if path is not None]
        for path in (self.json, self.export, *pictures):
            if path is not None:
                require_writable(path, file)
        if self.export is not None:
            from cuanto.atomic.export import format_of

            format_of(self.export)
        for path in pictures:
            from cuanto.atomic.plot import require_picture

            require_picture(path)

    def write(self, job: AtomInput, result: AtomResult, optimum: Optimum | None, device: str) -> None:
        """Also of a calculation that did not converge: the files say so."""
        from cuanto.atomic.plot import plot_convergence, plot_spinors
        from cuanto.atomic.report import result_dict
        from cuanto.interfaces.files import write_text
        from cuanto.interfaces.qcschema import plain

        if self.json is not None:
            made_by = {"provenance": {"creator": "cuanto", "version": __version__}}
            content = plain(result_dict(job, result, optimum) | made_by)
            text = json_format.dumps(content, indent=1, allow_nan=False)
            write_text(self.json, text + "\n")
        if self.export is not None:
            write_text(self.export, _basis_text(self.export, job, result, device, self.diffuse))
        if self.plot is not None:
            plot_spinors(self.plot, result, job.title)
        if self.plot_optimisation is not None and optimum is not None:
            plot_convergence(self.plot_optimisation, optimum.evaluations, job.title)


def _job(file: Path | None, element: str | None, given: dict[str, Any]) -> AtomInput:
    from cuanto.atomic.input import read_input
    from cuanto.atomic.job import element_job

    if (file is None) == (element is None):
        raise InputError("give an input file FILE.inp or --element, one of them")
    if file is not None:
        names = {"configuration": "config"}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"--{names.get(name, name)} goes with --element; the file {file} has its own")
        return read_input(file)
    model = given["nucleus"]
    return element_job(
        str(element),
        given["basis"] or "wtbs",
        given["configuration"],
        given["charge"],
        "gaussian" if model is None else model.value,
        parameters=given["parameters"],
        ranges=given["ranges"],
        settings={} if given["c"] is None else {"c": given["c"]},
    )


def _changed(job: AtomInput, settings: dict[str, Any]) -> AtomInput:
    """The settings of the SCF by name, as `--option` has them."""
    known = {field.name: type(getattr(job.settings, field.name)) for field in fields(job.settings)}
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"--option {name}: the SCF of an atom has {', '.join(known)}")
        fits = isinstance(value, known[name]) or (known[name] is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and known[name] is not bool):
            raise InputError(f"--option {name}={value}: it must be of the type {known[name].__name__}")
    return replace(job, settings=replace(job.settings, **settings))


def _pooled(job: AtomInput) -> AtomInput:
    from cuanto.atomic.wtbs import WellTempered

    if not isinstance(job.basis, WellTempered):
        raise InputError("--pool belongs to well-tempered sets: use --basis wtbs or bastype='wtbs'")
    basis = replace(job.basis, pool=True)
    basis.exponents()  # which may not exist with this K
    return replace(job, basis=basis)


def _iterations(console: Console) -> Callable[[AtomIteration], None]:
    """Prints a line for every iteration, the heading before the first."""

    def show(state: AtomIteration) -> None:
        if state.iteration == 1:
            console.print("".join(name.rjust(width) for name, width in COLUMNS))
        changes = (state.energy_change, state.change_LL, state.change_SL, state.change_SS)
        texts = ["" if state.iteration == 1 else f"{value:.2e}" for value in changes]
        row = [str(state.iteration), f"{state.energy:.10f}", *texts]
        console.print("".join(text.rjust(width) for text, (_, width) in zip(row, COLUMNS, strict=True)).rstrip())

    return show


def _optimised(
    console: Console, job: AtomInput, device: str, method: str, max_evaluations: int | None, log: Path | None
) -> Optimum:
    from cuanto.atomic.evaluations import EvaluationLog
    from cuanto.atomic.input import TrustRegion
    from cuanto.atomic.job import AtomEnergy, described
    from cuanto.atomic.optimise import optimise_basis, resolve_method
    from cuanto.atomic.report import parameter_texts
    from cuanto.atomic.wtbs import WellTempered

    basis = job.basis
    if not isinstance(basis, WellTempered):
        raise InputError("only well-tempered sets can be optimised: use --basis wtbs or bastype='wtbs'")
    trust = job.optimise or TrustRegion(iprint=2)
    if max_evaluations is not None:
        trust = replace(trust, maxfun=max_evaluations)
    problem = described(job)
    path = _default_log(job, problem) if log is None else log
    kept = EvaluationLog(path, problem)
    method = resolve_method(method)
    known = f", {len(kept)} evaluations known" if len(kept) else ""
    console.print(f"optimising with {method.upper()}, log {path}{known}", markup=False)
    with Progress(console, trust) as progress:
        try:
            found = optimise_basis(
                basis, AtomEnergy(job, device), trust, method, rounds=1 if job.optimise else 3, log=kept, watch=progress
            )
        except KeyboardInterrupt:
            progress.close()
            console.print(f"interrupted; the same command with --log {path} goes on", markup=False)
            raise
    state = "optimum" if found.converged else f"NOT converged in {len(found.evaluations)} evaluations; best so far"
    if job.optimise is None or trust.iprint >= 1 or not found.converged:
        console.print(f"{len(found.evaluations)} evaluations, relative gain {found.gain:.2e}")
    console.print(f"{state}: " + ", ".join(parameter_texts(found.basis)))
    return found


def _default_log(job: AtomInput, problem: dict[str, Any]) -> Path:
    """A name that no other optimisation has."""
    import hashlib

    from cuanto.atomic.report import symbol_of_charge

    digest = hashlib.sha256(json_format.dumps(problem, sort_keys=True).encode()).hexdigest()[:8]
    name = symbol_of_charge(job.nucleus.charge).replace("=", "")
    return Path(f"cuanto-{name}-{digest}.jsonl")


class Progress:
    """A line that changes on a terminal; as lines, what `iprint` asks for."""

    def __init__(self, console: Console, trust: TrustRegion) -> None:
        self.console, self.iprint = console, trust.iprint
        self._best: Evaluation | None = None
        self._radius = trust.rhobeg
        self._status: Any = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal and self.iprint < 3:
            self._status = self.console.status("optimising")
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __call__(self, evaluation: Evaluation) -> None:
        best = self._best
        distance = self._distance(evaluation)
        if evaluation.energy is not None and (best is None or best.energy is None or evaluation.energy < best.energy):
            self._best = evaluation
        shrunk = 0 < distance < 0.1 * self._radius
        if self.iprint >= 3 or (self.iprint == 2 and (shrunk or best is None)):
            self.console.print(self._text(evaluation if self.iprint >= 3 else self._best or evaluation), markup=False)
        if shrunk:
            self._radius *= 0.1  # the steps tell the radius, which the optimisers keep to themselves
        if self._status is not None and self._best is not None:
            self._status.update(f"evaluation {evaluation.number}, best {self._best.energy:.12f}")

    def _distance(self, evaluation: Evaluation) -> float:
        """From the best point, relative to its parameters."""
        if self._best is None:
            return 0.0
        pairs = zip(evaluation.parameters, self._best.parameters, strict=True)
        return float(max(abs(x - y) / (abs(y) or 1.0) for x, y in pairs))

    @staticmethod
    def _text(evaluation: Evaluation) -> str:
        energy = f"{evaluation.energy:.12f}" if evaluation.energy is not None else f"refused: {evaluation.note}"
        return f"{evaluation.number:6d}  {energy}  " + "  ".join(f"{p:.7g}" for p in evaluation.parameters)


def print_result(console: Console, result: AtomResult) -> None:
    """Parts of the energy, spinors, and whether it converged."""
    from rich.console import Console
    from rich.table import Table

    from cuanto.atomic.report import energy_rows, spinor_rows

    parts = Table(show_header=False, box=None)
    parts.add_column()
    parts.add_column(justify="right")
    for name, value in energy_rows(result):
        parts.add_row(name, value, style="bold" if "energy" in name else "")
    console.print(parts)
    spinors = Table(*SPINORS, box=None)
    for column in spinors.columns[1:]:
        column.justify = "right"
    for row in spinor_rows(result):
        spinors.add_row(*row)
    console.print(spinors)
    if result.converged:
        console.print(f"converged in {count(result.iterations, 'iteration')}")
        return
    line = f"NOT converged in {result.iterations} iterations; try more iterations, ixtrp=1 or a smaller dfctr"
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"cuanto: {line}", style="bold red")


def _basis_text(path: Path, job: AtomInput, result: AtomResult, device: str, diffuse: int | None) -> str:
    from cuanto.atomic.export import basis_text, contracted, uncontracted
    from cuanto.atomic.job import run_energy
    from cuanto.atomic.report import parameter_texts, symbol_of_charge
    from cuanto.atomic.wtbs import WellTempered
    from cuanto.system.elements import ATOMIC_NUMBERS

    symbol = symbol_of_charge(job.nucleus.charge)
    if symbol not in ATOMIC_NUMBERS:
        raise InputError(f"a basis file needs an element; the charge {job.nucleus.charge:g} has none")
    text = f"{job.title}; energy {result.energy:.10f} Hartree"
    if isinstance(job.basis, WellTempered):
        text += f"\nwell-tempered, {job.basis.described()}, {', '.join(parameter_texts(job.basis))}"
    if diffuse is None:
        return basis_text(path, [uncontracted(symbol, result.atom.basis)], path.stem, text)
    plain = run_energy(replace(job, settings=replace(job.settings, relativistic=False)), device)
    return basis_text(path, [contracted(symbol, plain, diffuse)], path.stem, text)
