"""Searches for the smallest sets of several elements at once, on a pool of workers.

Every result is kept in one file per element in the state folder, under a key made of everything that determines it: a
search that is started again finds it there. The optimisations write their own logs while they run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cuanto.atomic.configuration import ground_configuration, occupation_of, parse_configuration
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.job import AtomEnergy, element_job, problem_of
from cuanto.atomic.nucleus import Model
from cuanto.atomic.optimise import EnergyFailure, EnergyOf, EvaluationLog, evaluate, optimise_basis, resolve_method
from cuanto.atomic.steps import Batches, Chain, Outcome, Parameters, SearchResult, Trial, stretch
from cuanto.atomic.wtbs import NAMES, Range, WellTempered, nearest_set, table
from cuanto.errors import CuantoError, InputError, require
from cuanto.journal import JsonLines
from cuanto.system.text import parse_json_numbers
from cuanto.workers import Runner

Task = dict[str, Any]
TABLE_THRESHOLD = "table"
LIMIT, TABLE = Trial({}, (), "limit"), Trial({}, (), "table")


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of a search.

    `threshold`: largest relative error, or 'table' for the error of the tabulated set; `size`: M of the range (1:M).
    """

    threshold: float | str = 5e-9
    size: int = 40
    scan: str = "auto"
    nucleus: Model = "gaussian"
    configurations: dict[str, str] = field(default_factory=dict)
    references: dict[str, float] = field(default_factory=dict)
    method: str = "auto"
    trust: TrustRegion = field(default_factory=lambda: TrustRegion(maxfun=1000))
    rounds: int = 2
    retries: int = 2
    backend: str = "auto"

    def __post_init__(self) -> None:
        require(self.scan in ("auto", "full", "bisect"), f"scan {self.scan!r}: it may be auto, full or bisect")
        require(2 <= self.size <= 80, f"size {self.size}: give a number of functions from 2 to 80")
        good = self.threshold == TABLE_THRESHOLD or (isinstance(self.threshold, float) and self.threshold > 0)
        require(good, f"threshold {self.threshold}: give a positive number such as 5e-9, or 'table'")


@dataclass(frozen=True)
class Progress:
    """Report about one outcome; `known`: it was found on disk, `retry`: it will be tried again."""

    element: str
    what: str
    outcome: Outcome
    known: bool
    retry: bool = False


Watcher = Callable[[Progress], None]


# ------------------------------------------------------------------------------------------------- one trial


def run_task(task: Task) -> dict[str, Any]:
    """Optimise one set, or compute the energy of a named one; input and output are plain data, so that any worker can
    run it."""
    begin = time.perf_counter()
    named = {TABLE.name: "wtbs", LIMIT.name: "limit"}
    ranges: dict[str, Range] = {letter: (a, b) for letter, (a, b) in task["ranges"].items()}
    try:
        starts = [WellTempered.shared(parameters, ranges) for parameters in task["starts"]]
        basis, given = named.get(task["name"]) or starts[0], (task["configuration"], None, task["nucleus"])
        job = element_job(task["element"], basis, *given, settings={"max_iterations": 80})
        energy_of = AtomEnergy(job, task["backend"])
        if task["name"]:
            outcome = Outcome(energy_of(job.basis), evaluations=1)
        else:
            path = task["log"] if Path(task["log"]).parent.is_dir() else None  # another machine may lack the folder
            log = EvaluationLog(path, {**problem_of(job), "key": task["key"]})
            start, trust = best_start(starts, energy_of, log), TrustRegion(**task["trust"])
            found = optimise_basis(start, energy_of, trust, task["method"], rounds=task["rounds"], log=log)
            outcome = Outcome(found.energy, found.basis.parameters, len(found.evaluations))
    except (EnergyFailure, InputError) as error:
        outcome = Outcome(None, error=str(error))
    return asdict(replace(outcome, seconds=time.perf_counter() - begin))


def best_start(starts: list[WellTempered], energy_of: EnergyOf, log: EvaluationLog) -> WellTempered:
    """Return the starting parameters of lowest energy."""
    if len(starts) == 1:
        return starts[0]
    found = [evaluate(basis, energy_of, log) for basis in starts]
    energies = [(one.energy, i) for i, one in enumerate(found) if one.energy is not None]
    if not energies:
        raise EnergyFailure(f"no set of parameters to start from has an energy: {found[-1].note}")
    return starts[min(energies)[1]]


# ------------------------------------------------------------------------------------------ the whole search


def outcome_of(values: dict[str, Any]) -> Outcome:
    """An outcome from plain data."""
    return Outcome(**{**values, "parameters": tuple(values["parameters"])})


def stored_outcome(line: dict[str, Any]) -> Outcome | None:
    """The outcome in a line of a state file; None if the line is damaged, so that the set is computed again."""
    try:
        values = line["outcome"]
        energy, seconds = parse_json_numbers([values["energy"], values["seconds"]])
        parameters = parse_json_numbers(values["parameters"])
        require(len(parameters) in (0, len(NAMES)), "wrong number of parameters")
        return Outcome(energy, tuple(parameters), int(values["evaluations"]), seconds=seconds)
    except (InputError, KeyError, TypeError, ValueError):
        return None


def search(
    elements: list[str], settings: SearchSettings, runner: Runner, folder: Path, watch: Watcher | None = None
) -> dict[str, SearchResult | CuantoError]:
    """Find the smallest set of every element; the value is an error if there is none."""
    return Search(settings, runner, folder, watch).run(elements)


@dataclass
class _Batch:
    """Trials of one element that are optimised at the same time, and their outcomes so far by position."""

    symbol: str
    steps: Batches
    trials: list[Trial]
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class Search:
    """Runs the chains of all elements on one pool of workers.

    Outcomes are stored by key; failures are not, so that the next run retries them.
    """

    def __init__(self, settings: SearchSettings, runner: Runner, folder: Path, watch: Watcher | None) -> None:
        self.settings, self.runner, self.folder = settings, runner, folder.absolute()
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in JsonLines(path).read()]
        self._known = {str(line.get("key")): outcome for line in lines if (outcome := stored_outcome(line))}
        self._watch = watch or (lambda progress: None)
        self._found: dict[str, SearchResult | CuantoError] = {}
        self._running: dict[str, tuple[_Batch, int, Task, int]] = {}  # key: batch, position, task, tries

    def run(self, elements: list[str]) -> dict[str, SearchResult | CuantoError]:
        """Run the searches of all elements; an element that fails has an error as its result."""
        occupied = {symbol: self._occupied(symbol) for symbol in elements}
        for symbol in elements:
            self._advance(symbol, self._steps(symbol, occupied[symbol]), None)
        while self._running:
            self._finish(*self.runner.next())
        return {symbol: self._found[symbol] for symbol in elements}

    def _occupied(self, symbol: str) -> tuple[int, ...]:
        """Occupied shells by angular momentum."""
        text = self.settings.configurations.get(symbol)
        subshells = parse_configuration(text) if text is not None else ground_configuration(symbol)
        occupation = occupation_of(subshells)
        shells = [occupation.shells(i) for i in range(occupation.nsym)]
        occupied = (shells[0], *map(max, zip(shells[1::2], shells[2::2], strict=True)))
        listed = self.settings.threshold != TABLE_THRESHOLD or symbol in table()
        require(listed, f"the table has no {symbol}: give a threshold such as 5e-9")
        require(max(occupied) < self.settings.size, f"size {self.settings.size} is too small for {symbol}")
        return occupied

    def _steps(self, symbol: str, occupied: tuple[int, ...]) -> Batches:
        """Reference energy and threshold, then the steps of the chain."""
        settings = self.settings
        reference: float | None = settings.references.get(symbol)
        wanted = [] if reference is not None else [LIMIT]
        wanted += [TABLE] if settings.threshold == TABLE_THRESHOLD else []
        energies: list[float] = []
        for outcome in (yield wanted) if wanted else []:
            if outcome.energy is None:
                raise InputError(f"{symbol}: no reference energy: {outcome.error}")
            energies.append(outcome.energy)
        reference = energies[0] if reference is None else reference
        threshold = settings.threshold
        if isinstance(threshold, str):
            threshold = abs((energies[-1] - reference) / reference)
        start = start_parameters(symbol, settings.size)
        chain = Chain(symbol, occupied, reference, threshold, settings.size, start, settings.scan)
        return (yield from chain.run())

    def _advance(self, symbol: str, steps: Batches, outcomes: Any) -> None:
        """Start the next batch; outcomes found on disk are not computed again."""
        try:
            batch = _Batch(symbol, steps, steps.send(outcomes))
        except (StopIteration, CuantoError) as end:
            self._found[symbol] = end.value if isinstance(end, StopIteration) else end
            return
        for position, trial in enumerate(batch.trials):
            task = self._task(symbol, trial)
            known = self._known.get(task["key"])
            if known is None:
                self._submit(batch, position, task, tries=1)
            else:
                self._watch(Progress(symbol, trial.text, known, known=True))
                batch.outcomes[position] = known
        self._complete(batch)

    def _complete(self, batch: _Batch) -> None:
        if len(batch.outcomes) == len(batch.trials):
            self._advance(batch.symbol, batch.steps, [batch.outcomes[i] for i in range(len(batch.trials))])

    def _submit(self, batch: _Batch, position: int, task: Task, tries: int) -> None:
        self._running[task["key"]] = (batch, position, task, tries)
        self.runner.submit(task["key"], run_task, task)

    def _finish(self, key: str, result: dict[str, Any] | BaseException) -> None:
        batch, position, task, tries = self._running.pop(key)
        lost = isinstance(result, BaseException)
        if isinstance(result, BaseException):
            text = " ".join(f"{type(result).__name__}: {result}".split())
            outcome = Outcome(None, error=f"{text} (tried {tries} times)" if tries > 1 else text)
        else:
            outcome = outcome_of(result)
            if outcome.energy is not None:
                line = {"key": key, "task": task, "outcome": asdict(outcome)}
                JsonLines(self.folder / f"{batch.symbol}.jsonl").append(line, safely=True)
                Path(task["log"]).unlink(missing_ok=True)
        retry = lost and tries <= self.settings.retries
        self._watch(Progress(batch.symbol, batch.trials[position].text, outcome, known=False, retry=retry))
        if retry:
            self._submit(batch, position, task, tries + 1)
        else:
            batch.outcomes[position] = outcome
            self._complete(batch)

    def _task(self, symbol: str, trial: Trial) -> Task:
        settings = self.settings
        task: Task = {
            "element": symbol,
            "configuration": settings.configurations.get(symbol),
            "nucleus": settings.nucleus,
            "name": trial.name,
            "ranges": {letter: list(limits) for letter, limits in trial.ranges.items()},
            "starts": [list(parameters) for parameters in trial.starts],
            "method": resolve_method(settings.method),
            "trust": asdict(settings.trust),
            "rounds": settings.rounds,
        }
        key = hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()[:24]
        return {**task, "backend": settings.backend, "key": key, "log": str(self.folder / "logs" / f"{key}.jsonl")}


def start_parameters(symbol: str, size: int) -> Parameters:
    """Parameters of the nearest element in the table, stretched over `size` functions."""
    found = nearest_set(symbol)
    return stretch(found.parameters, found.ranges[0][1], size)
