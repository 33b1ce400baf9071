"""Searches of several elements at once: who optimises what, what is on disk already, what has to be tried again.

Everything that was computed is in one file per element in the state folder, under a key made of all that decides the
result; a search that is started again finds it there. The optimisations write their own logs while they run.
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
from cuanto.atomic.evaluations import Evaluation, EvaluationLog
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.job import AtomEnergy, described, element_job
from cuanto.atomic.nucleus import Model
from cuanto.atomic.optimise import EnergyFailure, EnergyOf, Optimum, optimise_basis, resolve_method
from cuanto.atomic.steps import Batches, Chain, Found, Outcome, Parameters, Trial, stretched
from cuanto.atomic.wtbs import Range, WellTempered, table
from cuanto.errors import CuantoError, InputError
from cuanto.journal import JsonLines
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.workers import Runner

Task = dict[str, Any]
TABLE_THRESHOLD = "table"
LIMIT, TABLE = Trial({}, (), "limit"), Trial({}, (), "table")


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """`threshold`: relative to the limit, or 'table': what the set of the table reaches; `size`: the M of (1:M)."""

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
        if self.scan not in ("auto", "full", "bisect"):
            raise InputError(f"scan {self.scan!r}: it may be auto, full or bisect")
        if not 2 <= self.size <= 80:
            raise InputError(f"size {self.size}: give a number of functions from 2 to 80")
        if self.threshold != TABLE_THRESHOLD and not (isinstance(self.threshold, float) and self.threshold > 0):
            raise InputError(f"threshold {self.threshold}: give a positive number such as 5e-9, or 'table'")


@dataclass(frozen=True)
class Progress:
    """Sent to the watcher after every outcome."""

    element: str
    what: str
    outcome: Outcome
    known: bool  # found on disk
    retry: bool = False


Watcher = Callable[[Progress], None]


# ------------------------------------------------------------------------------------- what a worker does


def evaluate(task: Task) -> dict[str, Any]:
    """Optimise one set, or take its energy as it is; plain data in and out, so that any worker can do it."""
    begin = time.perf_counter()
    settings = {"max_iterations": 80}
    try:
        if task["name"]:
            basis = "wtbs" if task["name"] == TABLE.name else "limit"
            job = element_job(task["element"], basis, task["configuration"], None, task["nucleus"], settings=settings)
            outcome = Outcome(AtomEnergy(job, task["backend"])(job.basis), evaluations=1)
        else:
            found = _optimise(task, settings)
            outcome = Outcome(found.energy, found.basis.parameters, len(found.evaluations))
    except (EnergyFailure, InputError) as error:
        outcome = Outcome(None, error=str(error))
    return asdict(replace(outcome, seconds=time.perf_counter() - begin))


def _optimise(task: Task, settings: dict[str, Any]) -> Optimum:
    ranges: dict[str, Range] = {letter: (a, b) for letter, (a, b) in task["ranges"].items()}
    starts = [WellTempered.shared(parameters, ranges) for parameters in task["starts"]]
    job = element_job(task["element"], starts[0], task["configuration"], None, task["nucleus"], settings=settings)
    energy_of = AtomEnergy(job, task["backend"])
    log = None
    if Path(task["log"]).parent.is_dir():  # not so on a machine without this folder
        log = EvaluationLog(task["log"], {**described(job), "key": task["key"]})
    start = best_start(starts, energy_of, log)
    trust = TrustRegion(**task["trust"])
    return optimise_basis(start, energy_of, trust, task["method"], rounds=task["rounds"], log=log)


def best_start(starts: list[WellTempered], energy_of: EnergyOf, log: EvaluationLog | None) -> WellTempered:
    """The one of lowest energy."""
    if len(starts) == 1:
        return starts[0]
    energies: list[tuple[float, int]] = []
    reason = ""
    for i, basis in enumerate(starts):
        found = log.find(basis.parameters) if log is not None else None
        try:
            if (found is not None and found.energy is None) or basis.objection():
                continue
            energy = found.energy if found is not None and found.energy is not None else energy_of(basis)
        except EnergyFailure as error:
            reason = str(error)
            continue
        if log is not None and found is None:
            log.append(Evaluation(0, basis.parameters, energy))
        energies.append((energy, i))
    if not energies:
        raise EnergyFailure(reason or "no set of parameters to start from makes sense")
    return starts[min(energies)[1]]


# ----------------------------------------------------------------------------------------- what is on disk


class State:
    """Outcomes by key in one file per element; failures are not kept, so that the next run tries them again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        self._known: dict[str, dict[str, Any]] = {}
        for path in sorted(folder.glob("*.jsonl")):
            self._known |= {str(line["key"]): line["outcome"] for line in JsonLines(path).read() if "outcome" in line}

    def find(self, key: str) -> Outcome | None:
        return outcome_of(self._known[key]) if key in self._known else None

    def keep(self, element: str, task: Task, outcome: Outcome) -> None:
        if outcome.energy is None:
            return
        line = {"key": task["key"], "task": task, "outcome": asdict(outcome)}
        JsonLines(self.folder / f"{element}.jsonl").append(line, safely=True)
        self.log_of(task["key"]).unlink(missing_ok=True)

    def log_of(self, key: str) -> Path:
        return self.folder.absolute() / "logs" / f"{key}.jsonl"


def outcome_of(values: dict[str, Any]) -> Outcome:
    return Outcome(**{**values, "parameters": tuple(values["parameters"])})


def key_of(task: Task) -> str:
    decisive = {name: value for name, value in task.items() if name not in ("log", "key", "backend")}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:24]


# ------------------------------------------------------------------------------------------ the whole search


def search(
    elements: list[str], settings: SearchSettings, runner: Runner, folder: Path, watch: Watcher | None = None
) -> dict[str, Found | CuantoError]:
    """The smallest set of every element, or why there is none."""
    return Search(settings, runner, State(folder), watch).run(elements)


@dataclass
class _Pending:
    """A batch of which some outcomes are missing."""

    batches: Batches
    trials: list[Trial]
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class Search:
    """Feeds the chains of all elements from one pool of workers."""

    def __init__(self, settings: SearchSettings, runner: Runner, state: State, watch: Watcher | None) -> None:
        self.settings, self.runner, self.state = settings, runner, state
        self._watch = watch or (lambda progress: None)
        self._pending: dict[str, _Pending] = {}
        self._found: dict[str, Found | CuantoError] = {}
        self._running: dict[str, tuple[str, int, Task, int]] = {}  # key: element, place, task, tries
        self._problem: dict[str, dict[str, Any]] = {}

    def run(self, elements: list[str]) -> dict[str, Found | CuantoError]:
        for symbol in elements:
            self._problem[symbol] = self._problem_of(symbol)
        for symbol in elements:
            self._advance(symbol, self._whole(symbol), None)
        while self._running:
            key, result = self.runner.next()
            self._finished(key, result)
        return {symbol: self._found[symbol] for symbol in elements}

    def _problem_of(self, symbol: str) -> dict[str, Any]:
        text = self.settings.configurations.get(symbol)
        held = parse_configuration(text) if text is not None else ground_configuration(symbol)
        occupation = occupation_of(held)
        occupied = tuple(max(occupation.shells(i) for i in _species(l)) for l in range((occupation.nsym + 1) // 2))
        if self.settings.threshold == TABLE_THRESHOLD and symbol not in table():
            raise InputError(f"the table has no {symbol}: give a threshold such as 5e-9")
        if max(occupied) >= self.settings.size:
            raise InputError(f"size {self.settings.size} is too small for {symbol}")
        return {"configuration": text, "occupied": occupied}

    def _whole(self, symbol: str) -> Batches:
        """Reference energy and threshold, then the steps."""
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
        occupied = self._problem[symbol]["occupied"]
        chain = Chain(symbol, occupied, reference, threshold, settings.size, start, settings.scan)
        return (yield from chain.run())

    def _advance(self, symbol: str, batches: Batches, outcomes: list[Outcome] | None) -> None:
        """One batch further; those outcomes that are on disk need no worker."""
        try:
            trials = next(batches) if outcomes is None else batches.send(outcomes)
        except StopIteration as stop:
            self._found[symbol] = stop.value
            return
        except CuantoError as error:
            self._found[symbol] = error
            return
        self._pending[symbol] = _Pending(batches, trials)
        for place, trial in enumerate(trials):
            task = self._task(symbol, trial)
            known = self.state.find(task["key"])
            if known is None:
                self._submit(symbol, place, task, tries=1)
            else:
                self._watch(Progress(symbol, trial.text, known, known=True))
                self._pending[symbol].outcomes[place] = known
        self._complete(symbol)

    def _complete(self, symbol: str) -> None:
        pending = self._pending[symbol]
        if len(pending.outcomes) == len(pending.trials):
            outcomes = [pending.outcomes[place] for place in range(len(pending.trials))]
            self._advance(symbol, pending.batches, outcomes)

    def _submit(self, symbol: str, place: int, task: Task, tries: int) -> None:
        self._running[task["key"]] = (symbol, place, task, tries)
        self.runner.submit(task["key"], evaluate, task)

    def _finished(self, key: str, result: dict[str, Any] | BaseException) -> None:
        symbol, place, task, tries = self._running.pop(key)
        trial = self._pending[symbol].trials[place]
        if isinstance(result, BaseException):
            text = " ".join(f"{type(result).__name__}: {result}".split())
            outcome = Outcome(None, error=f"{text} (tried {tries} times)" if tries > 1 else text)
            again = tries <= self.settings.retries
            self._watch(Progress(symbol, trial.text, outcome, known=False, retry=again))
            if again:
                self._submit(symbol, place, task, tries + 1)
                return
        else:
            outcome = outcome_of(result)
            self.state.keep(symbol, task, outcome)
            self._watch(Progress(symbol, trial.text, outcome, known=False))
        self._pending[symbol].outcomes[place] = outcome
        self._complete(symbol)

    def _task(self, symbol: str, trial: Trial) -> Task:
        settings = self.settings
        task: Task = {
            "element": symbol,
            "configuration": self._problem[symbol]["configuration"],
            "nucleus": settings.nucleus,
            "name": trial.name,
            "ranges": {letter: list(limits) for letter, limits in trial.ranges.items()},
            "starts": [list(parameters) for parameters in trial.starts],
            "method": resolve_method(settings.method),
            "trust": asdict(settings.trust),
            "rounds": settings.rounds,
            "backend": settings.backend,
        }
        task["key"] = key_of(task)
        task["log"] = str(self.state.log_of(task["key"]))
        return task


def start_parameters(symbol: str, size: int) -> Parameters:
    """Those of the nearest element in the table, stretched over `size` functions."""
    number = ATOMIC_NUMBERS[symbol]
    nearest = min(table(), key=lambda other: (abs(ATOMIC_NUMBERS[other] - number), other))
    found = table()[nearest]
    return stretched(found.parameters, found.ranges[0][1], size)


def _species(l: int) -> range:
    return range(1) if l == 0 else range(2 * l - 1, 2 * l + 1)
