"""Energies of many molecules: what is known is not computed again, what fails does not stop the rest."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuanto.backends.base import get_backend
from cuanto.backends.host import HostMemory
from cuanto.basis.library import element_tables, sources_by_element
from cuanto.batch.entry import Entry
from cuanto.batch.evaluate import BATCH_KEYWORDS, evaluate, plain_molecule
from cuanto.batch.processes import LostWorkerError, ProcessRunner, TaskError
from cuanto.batch.table import Row, Table
from cuanto.errors import InputError, describe_error
from cuanto.interfaces.qcschema import plain
from cuanto.interfaces.sources import Model
from cuanto.journal import JsonLines
from cuanto.methods import SEMIEMPIRICAL
from cuanto.methods.request import check, require_molecule
from cuanto.options import DEFAULT_BASIS, OPTIONS, require_known
from cuanto.system import Molecule
from cuanto.workers import DaskRunner, Runner, SerialRunner, usable_cores

CHUNK = {"cpu": 32, "cuda": 1024}
"""Most molecules of one composition in a task of a semiempirical method."""
LARGEST_TOGETHER = 100
"""Atoms of molecules that share a task on a CPU, where several processes share the memory."""
WORTH_STARTING = 4
"""Tasks for which a process is started: it needs a second or two before it can do anything."""
AHEAD = 1000
"""Tasks that a scheduler has at once."""
TRIES = 2
"""Of a molecule whose worker was lost: perhaps another one had taken the memory."""
SHARE = 0.8
"""Of the free memory, for all processes together."""

Watcher = Callable[[Row], object]


def energies(
    molecules: Sequence[Molecule],
    method: str = "pm6",
    basis: str | os.PathLike[str] | None = None,
    *,
    gradient: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    on_row: Watcher | None = None,
    **keywords: Any,
) -> list[Row]:
    """Energies of many molecules, a row for each in the order given; a molecule that fails has its `error` there.

    `workers` processes of one thread each on this machine (None: as many as cores, or this process where there is a
    GPU; 0: this process), or those of a Dask `scheduler`. Molecules of one composition are computed together by
    semiempirical methods. `out` (.parquet, .jsonl, .csv) gets a table; what the journal beside it has is not computed
    again, so that a call that was killed goes on where it was. `keywords` are those of `cuanto.energy`. `on_row` is
    called with every row that is finished.
    """
    for molecule in molecules:
        require_molecule(molecule)
    require_known(keywords, OPTIONS, "cuanto.energies: unknown key")
    require_sound(method, basis, keywords, molecules)
    chosen = None if method.lower() in SEMIEMPIRICAL else os.fspath(DEFAULT_BASIS if basis is None else basis)
    if gradient and chosen is not None:
        raise InputError(f"{method} has no gradients yet: choose {', '.join(SEMIEMPIRICAL)}, or gradient=False")
    model = Model(method, chosen, keywords, "gradient" if gradient else "energy")
    names = [molecule.name or f"molecule {k}" for k, molecule in enumerate(molecules, start=1)]
    entries = [Entry(name, molecule, model) for name, molecule in zip(names, molecules, strict=True)]
    table = None if out is None else Table(out)
    if not _portable(keywords):
        if workers or scheduler is not None:
            raise InputError("keywords that are no plain data stay in this process: use workers=0, or leave them out")
        workers = 0
    with Batch(entries, table, workers, scheduler) as batch:
        return batch.run(on_row or (lambda row: None))


def _portable(keywords: Mapping[str, Any]) -> bool:
    """Can they be sent to another process?"""
    try:
        json.dumps(plain(dict(keywords)))
    except TypeError:
        return False
    return True


@dataclass
class Counts:
    """What was done in `seconds`."""

    computed: int = 0
    known: int = 0
    failed: int = 0
    unconverged: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Molecules computed in a second."""
        return self.computed / self.seconds if self.seconds else 0.0

    def add(self, row: Row) -> None:
        """One more."""
        self.computed += not row.known and not row.error
        self.known += row.known
        self.failed += bool(row.error)
        self.unconverged += not row.error and not row.converged


@dataclass(frozen=True)
class _Task:
    entries: list[Entry]
    tries: int = 1


@dataclass
class Batch:
    """Entries on their way to rows; as a context it ends its workers, whatever happens."""

    entries: Sequence[Entry]
    table: Table | None = None
    workers: int | None = None
    scheduler: str | None = None
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.workers is not None:
            raise InputError("a scheduler has its own workers: leave out the number of workers")
        if self.workers is not None and self.workers < 0:
            raise InputError(f"{self.workers} workers: give a number from 0 (this process) upwards")
        require_some_basis(self.entries)
        self._stack, self._journal = ExitStack(), None if self.table is None else Journal(self.table.journal)
        self._rows: dict[str, Row] = {}

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def run(self, watch: Watcher) -> list[Row]:
        """Rows in the order of the entries; the table is written in the end."""
        begin = time.perf_counter()

        def finished(row: Row) -> None:
            self.counts.add(row)
            self.counts.seconds = time.perf_counter() - begin
            watch(row)

        waiting = self._known(finished)
        for row in self._computed(waiting):
            finished(row)
        rows = [self._row(entry) for entry in self.entries]
        self.counts.seconds = time.perf_counter() - begin
        if self.table is not None:
            self.table.write(rows)
        return rows

    def _row(self, entry: Entry) -> Row:
        """A molecule that is there twice is computed once."""
        if entry.molecule is None:
            return Row(entry, error=entry.problem)
        found = self._rows[entry.key]
        return found if found.entry is entry else Row(**{**vars(found), "entry": entry})

    def _known(self, finished: Watcher) -> list[Entry]:
        """What is to be computed; the rest is finished."""
        known = {} if self._journal is None else self._journal.read()
        waiting: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.molecule is None:
                finished(self._row(entry))
            elif entry.key in self._rows:
                continue
            elif entry.key in known:
                self._rows[entry.key] = Row.of(entry, known[entry.key], known=True)
                finished(self._rows[entry.key])
            else:
                waiting.setdefault(entry.key, entry)
        return list(waiting.values())

    def _computed(self, waiting: Sequence[Entry]) -> Iterator[Row]:
        if not waiting:
            return
        backend = waiting[0].model.keywords.get("backend", "auto")
        device = backend if isinstance(backend, str) else backend.name
        name = get_backend(device).name if self.scheduler is None else "cpu"
        tasks = deque(_Task(entries) for entries in chunks(waiting, name, self.workers))
        runner, memory = self._runner(name, len(tasks))
        running: dict[str, _Task] = {}
        while tasks or running:
            while tasks and len(running) < AHEAD:
                task = tasks.popleft()
                running[key := task.entries[0].key] = task
                runner.submit(key, evaluate, _task(task.entries, memory, here=isinstance(runner, SerialRunner)))
            key, result = runner.next()
            task = running.pop(key)
            if isinstance(result, BaseException) and _again(task, result):
                tasks.extendleft(_Task([entry], task.tries + 1) for entry in reversed(task.entries))
                continue
            found = [_failed(result)] * len(task.entries) if isinstance(result, BaseException) else result["rows"]
            for entry, values in zip(task.entries, found, strict=True):
                if self._journal is not None:
                    self._journal.keep(entry, values)
                self._rows[entry.key] = Row.of(entry, values)
                yield self._rows[entry.key]

    def _runner(self, device: str, tasks: int) -> tuple[Runner, float | None]:
        """Where the tasks run, and the memory that each may take."""
        if self.scheduler is not None:
            return self._stack.enter_context(DaskRunner(self.scheduler)), None
        workers = self.workers
        if workers is None:
            workers = 0 if device == "cuda" else min(usable_cores(), tasks // WORTH_STARTING)
            workers = 0 if workers == 1 else workers  # this process has more threads than that
        workers = min(workers, tasks)
        if workers == 0:
            return SerialRunner(), None
        share = None if device == "cuda" else SHARE * HostMemory().memory()[0] / workers
        return self._stack.enter_context(ProcessRunner(workers)), share


def _task(entries: Sequence[Entry], memory: float | None, here: bool) -> dict[str, Any]:
    """For `evaluate`: plain data, but for tasks that stay `here`."""
    model = entries[0].model
    assert model.method is not None
    keywords = dict(model.keywords) if here else plain(dict(model.keywords))
    if memory is not None and len(entries) == 1:
        keywords.setdefault("max_memory", memory)
    molecules = [entry.molecule for entry in entries if entry.molecule is not None]
    about = {"method": model.method, "basis": model.basis, "keywords": keywords, "gradient": model.gradient}
    return {"molecules": molecules if here else [plain_molecule(one) for one in molecules], **about}


def _again(task: _Task, error: BaseException) -> bool:
    """A lost worker may have been the fault of one molecule among several, or of none."""
    return not isinstance(error, TaskError) and (len(task.entries) > 1 or task.tries < TRIES)


def _failed(error: BaseException) -> dict[str, Any]:
    tried = f" (tried {TRIES} times)" if isinstance(error, LostWorkerError) else ""
    return {"error": describe_error(error) + tried}


def chunks(entries: Sequence[Entry], device: str, workers: int | None = None) -> list[list[Entry]]:
    """Entries that make a task: alone, or together with others of their composition and model."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_together(entry, device) or entry.key, []).append(entry)
    sharing = 1 if device == "cuda" else usable_cores() if workers is None else max(workers, 1)
    size = max(1, min(CHUNK.get(device, 32), -(-len(entries) // sharing)))
    return [group[k : k + size] for group in groups.values() for k in range(0, len(group), size)]


def _together(entry: Entry, device: str) -> str:
    """Of whom it shares a task with; empty for those that go alone."""
    molecule, model = entry.molecule, entry.model
    assert molecule is not None and model.method is not None
    small = device == "cuda" or molecule.natom <= LARGEST_TOGETHER
    if not small or model.method.lower() not in SEMIEMPIRICAL or not set(model.keywords) <= BATCH_KEYWORDS:
        return ""
    composition = [molecule.symbols, molecule.charge, molecule.multiplicity]
    return json.dumps([composition, model.method, dict(model.keywords), model.gradient], default=repr)


def require_some_basis(entries: Sequence[Entry]) -> None:
    """A basis that nobody knows is one error, not one for every molecule."""
    symbols: dict[str, set[str]] = {}
    for entry in entries:
        if entry.molecule is not None and entry.model.basis is not None:
            symbols.setdefault(entry.model.basis, set()).update(entry.molecule.elements)
    for basis, elements in symbols.items():
        _require_basis(basis, elements)


def _require_basis(basis: str, elements: Iterable[str]) -> None:
    """It must have one of the elements."""
    problem = None
    for symbol in sorted(elements):
        try:
            element_tables(sources_by_element(basis, [symbol])[symbol], [symbol])
            return
        except InputError as error:
            problem = problem or error
    if problem is not None:
        raise InputError(str(problem)) from None


def require_sound(method: str, basis: object, keywords: Mapping[str, Any], molecules: Sequence[Molecule]) -> None:
    """Values that are wrong for every molecule are one error, before anything is computed."""
    check(method, basis, keywords)
    if isinstance(auxbasis := keywords.get("auxbasis"), str):
        _require_basis(auxbasis, {symbol for molecule in molecules for symbol in molecule.elements})


class Journal:
    """Rows as they come, by their keys; failures are not kept: another attempt may be luckier."""

    def __init__(self, path: Path) -> None:
        self._file = JsonLines(path)

    def read(self) -> dict[str, dict[str, Any]]:
        """Whatever was computed by runs with the same name of the table."""
        known: dict[str, dict[str, Any]] = {}
        for line in self._file.read():
            key, row = line.get("key"), line.get("row")
            if isinstance(key, str) and isinstance(row, dict) and _sound(row):
                known[key] = row
        return known

    def keep(self, entry: Entry, row: Mapping[str, Any]) -> None:
        """On the disk when this returns."""
        if not row.get("error"):
            self._file.append({"key": entry.key, "name": entry.name, "row": dict(row)}, safely=True)


def _sound(row: Mapping[str, Any]) -> bool:
    """Does it look like one of ours? A file that somebody wrote is not trusted."""
    numbers = all(isinstance(row.get(name), int | float) for name in ("energy", "iterations"))
    fields = set(Row.__dataclass_fields__) - {"entry", "known", "error"}
    return numbers and isinstance(row.get("converged"), bool) and set(row) <= fields
