"""Optimisations and searches of basis sets on the command line: progress, results, files."""

from __future__ import annotations

import hashlib
import json as json_format
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from cuanto.atomic.configuration import parse_configuration
from cuanto.atomic.export import Contraction, basis_text
from cuanto.atomic.input import AtomInput, TrustRegion
from cuanto.atomic.job import AtomEnergy, check_electrons, element_job, element_table, problem_of
from cuanto.atomic.optimise import Evaluation, EvaluationLog, Optimum, optimise_basis, resolve_method
from cuanto.atomic.report import parameter_texts, symbol_of_charge
from cuanto.atomic.search import Progress, SearchSettings
from cuanto.atomic.steps import SearchResult
from cuanto.atomic.wtbs import WellTempered
from cuanto.cli.atom_output import write_json
from cuanto.cli.lines import print_error, print_text
from cuanto.cli.show import status_line
from cuanto.errors import CuantoError, InputError, require
from cuanto.files import write_text
from cuanto.processes import ProcessRunner
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS, symbol_of
from cuanto.system.text import parse_finite
from cuanto.workers import DaskRunner, Runner, SerialRunner, usable_cores

# ----------------------------------------------------------------------------------------------- optimisations


def optimise_job(
    console: Console, job: AtomInput, device: str, method: str, max_evaluations: int | None, log: Path | None
) -> Optimum:
    """Optimise the well-tempered set of the job and show the progress."""
    basis = job.basis
    if not isinstance(basis, WellTempered):
        raise InputError("only well-tempered sets can be optimised: use --basis wtbs or bastype='wtbs'")
    trust = job.optimise or TrustRegion(iprint=2)
    if max_evaluations is not None:
        trust = replace(trust, maxfun=max_evaluations)
    problem = problem_of(job)
    path = _default_log(job, problem) if log is None else log
    evaluations = EvaluationLog(path, problem)
    method = resolve_method(method)
    known = f", {len(evaluations.known)} evaluations known" if evaluations.known else ""
    print_text(console, f"optimising with {method.upper()}, log {path}{known}")
    rounds = 1 if job.optimise else 3
    energy_of = AtomEnergy(job, device)
    try:
        with status_line(console, "optimising", hidden=trust.iprint >= 3) as update:
            progress = OptimisationProgress(console, trust, update)
            found = optimise_basis(basis, energy_of, trust, method, rounds=rounds, log=evaluations, watch=progress)
    except KeyboardInterrupt:
        print_text(console, f"interrupted; the same command with --log {path} continues")
        raise
    state = "optimum" if found.converged else f"NOT converged in {len(found.evaluations)} evaluations; best so far"
    if job.optimise is None or trust.iprint >= 1 or not found.converged:
        print_text(console, f"{len(found.evaluations)} evaluations, relative gain {found.gain:.2e}")
    print_text(console, f"{state}: " + ", ".join(parameter_texts(found.basis)))
    if not found.converged:
        print_error(f"the optimisation did not converge in {len(found.evaluations)} evaluations; try --max-evaluations")
    return found


def _default_log(job: AtomInput, problem: dict[str, Any]) -> Path:
    """A file name that is unique to the optimisation."""
    digest = hashlib.sha256(json_format.dumps(problem, sort_keys=True).encode()).hexdigest()[:8]
    name = symbol_of_charge(job.nucleus.charge).replace("=", "")
    return Path(f"cuanto-{name}-{digest}.jsonl")


class OptimisationProgress:
    """Prints as many evaluations as `iprint` asks for; `update` changes the status line."""

    def __init__(self, console: Console, trust: TrustRegion, update: Callable[[str], None]) -> None:
        self.console, self.iprint, self.update = console, trust.iprint, update
        self._best: Evaluation | None = None
        self._radius = trust.rhobeg

    def __call__(self, evaluation: Evaluation) -> None:
        best = self._best
        distance = self._distance(evaluation)
        if evaluation.energy is not None and (best is None or best.energy is None or evaluation.energy < best.energy):
            self._best = evaluation
        shrunk = 0 < distance < 0.1 * self._radius
        if self.iprint >= 3 or (self.iprint == 2 and (shrunk or best is None)):
            print_text(self.console, self._text(evaluation if self.iprint >= 3 else self._best or evaluation))
        if shrunk:
            self._radius *= 0.1  # estimated from the steps, because the optimisers do not report it
        if self._best is not None:
            self.update(f"evaluation {evaluation.number}, best {self._best.energy:.12f}")

    def _distance(self, evaluation: Evaluation) -> float:
        """Distance from the best point, relative to its parameters."""
        if self._best is None:
            return 0.0
        pairs = zip(evaluation.parameters, self._best.parameters, strict=True)
        return float(max(abs(x - y) / (abs(y) or 1.0) for x, y in pairs))

    @staticmethod
    def _text(evaluation: Evaluation) -> str:
        energy = f"{evaluation.energy:.12f}" if evaluation.energy is not None else f"refused: {evaluation.note}"
        return f"{evaluation.number:6d}  {energy}  " + "  ".join(f"{p:.7g}" for p in evaluation.parameters)


# ---------------------------------------------------------------------------------------------------- searches


def make_runner(stack: ExitStack, scheduler: str | None, workers: int | None) -> Runner:
    """A Dask cluster if its scheduler is given, else processes on this machine."""
    if scheduler is not None and workers is not None:
        raise InputError("--scheduler has its own workers: leave out --workers")
    if scheduler is not None:
        return stack.enter_context(DaskRunner(scheduler))
    return SerialRunner() if workers == 0 else stack.enter_context(ProcessRunner(workers or usable_cores()))


def parse_elements(text: str) -> list[str]:
    """Symbols of 'Ne,Ar,Kr' or 'He-Ne', each once."""
    found: list[str] = []
    for word in text.replace(",", " ").split():
        first, dash, last = word.partition("-")
        numbers = [ATOMIC_NUMBERS[symbol_of(part)] for part in ((first, last) if dash else (first,))]
        require(numbers[0] <= numbers[-1], f"elements {word}: the first comes after the last; write {last}-{first}")
        found += SYMBOLS[numbers[0] - 1 : numbers[-1]]
    require(found, "--elements is empty; give some such as Ne,Ar or He-Ne")
    return list(dict.fromkeys(found))


def parse_threshold(text: str) -> float | str:
    """A relative error, or 'table'."""
    if text.strip().lower() == "table":
        return "table"
    return parse_number(text, 0, 1, "threshold", "a number such as 5e-9, or 'table'")


def parse_number(text: str, low: float, high: float, option: str, advice: str) -> float:
    """A number between limits."""
    value = parse_finite(text.strip())
    if value is None or not low < value < high:
        raise InputError(f"--{option} {text}: give {advice}")
    return value


def parse_configurations(given: Iterable[str] | None, symbols: list[str]) -> dict[str, str]:
    """Configurations by element, none with more electrons than the element can bind."""
    found = parse_pairs(given, "config", symbols)
    for symbol, text in found.items():
        check_electrons(symbol, text, parse_configuration(text))
    return found


def parse_pairs(given: Iterable[str] | None, option: str, symbols: list[str]) -> dict[str, str]:
    """ELEMENT=VALUE of a repeated option, one value for each element."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        require(name and equals and value, f"--{option} {text}: write ELEMENT=VALUE")
        require(symbol_of(name) in symbols, f"--{option} {text}: {name} is not among the elements of this search")
        require(symbol_of(name) not in found, f"--{option} {text}: {name} was given a second time")
        found[symbol_of(name)] = value
    return found


def _line(progress: Progress) -> str:
    """A line on the outcome of one set."""
    outcome = progress.outcome
    if outcome.energy is not None:
        rest = f"{outcome.energy:.10f} Hartree" + ("" if progress.known else f", {outcome.seconds:.1f} s")
        rest += f", {outcome.evaluations} evaluations" if outcome.evaluations > 1 else ""
    else:
        rest = f"failed: {outcome.error}" + ("; tried again" if progress.retry else "")
    known = ", known already" if progress.known else ""
    return f"{progress.element:<3}{progress.what}: {rest}{known}"


@contextmanager
def search_progress(console: Console, symbols: list[str]) -> Iterator[Callable[[Progress], None]]:
    """Prints a line for every set, above a status line on standard error."""
    searched = f"{symbols[0]} to {symbols[-1]}" if len(symbols) > 1 else symbols[0]
    counts = {"done": 0, "known": 0}
    same_terminal = console.is_terminal  # otherwise the lines go to a file and do not disturb the status line
    errors = Console(stderr=True, highlight=False)
    with status_line(errors, f"{searched}: computing the basis-set limit", redirect=same_terminal) as update:

        def show(progress: Progress) -> None:
            print_text(console, _line(progress))
            counts["done"] += 1
            counts["known"] += progress.known
            known = f", {counts['known']} of them known already" if counts["known"] else ""
            last = f"{progress.element} {progress.what}"
            update(f"{searched}: {counts['done']} sets done{known}; the last was {last}")

        yield show


def print_sets(console: Console, results: dict[str, SearchResult | CuantoError]) -> None:
    """Print two lines for each set: a table would be too wide for most terminals."""
    problems = []
    for symbol, result in results.items():
        if isinstance(result, Exception):
            problems.append(f"{symbol}: {result}")
            continue
        error = f"relative error {result.error:.1e}" + (
            "" if result.accurate else f", NOT below {result.threshold:.1e}"
        )
        print_text(console, f"{symbol:<3}{result.basis.range_text()}: {result.energy:.10f} Hartree, {error}", "bold")
        print_text(console, "   " + ", ".join(parameter_texts(result.basis)))
        problems += [f"{symbol}: {line}" for line in result.warnings]
    for line in problems:
        print_text(console, line)


def write_results(
    results: dict[str, SearchResult | CuantoError],
    settings: SearchSettings,
    json: Path | None,
    export: Path | None,
    contraction: Contraction | None,
) -> None:
    """Write the sets as JSON and as a basis file; nothing is written if a set cannot be contracted."""
    good = {symbol: result for symbol, result in results.items() if not isinstance(result, Exception)}
    basis = None if export is None or not good else _export_text(export, good, settings, contraction)
    if json is not None:
        sets = {symbol: {**asdict(result), "accurate": result.accurate} for symbol, result in good.items()}
        failed = {symbol: str(result) for symbol, result in results.items() if isinstance(result, Exception)}
        write_json(json, {"settings": asdict(settings), "elements": sets, "failed": failed})
    if export is not None and basis is not None:
        write_text(export, basis)


def _export_text(
    path: Path, results: dict[str, SearchResult], settings: SearchSettings, contraction: Contraction | None
) -> str:
    """Text of a file with the sets of all elements."""
    tables, lines = [], ["well-tempered sets"]
    for symbol, result in results.items():
        job = element_job(symbol, result.basis, settings.configurations.get(symbol), None, settings.nucleus)
        tables.append(element_table(symbol, job, contraction, settings.backend))
        lines.append(f"{symbol}: {result.basis.range_text()}, relative error {result.error:.1e}")
    return basis_text(path, tables, path.stem, "\n".join(lines))
