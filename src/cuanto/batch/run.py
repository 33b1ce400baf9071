"""Energies of many molecules: known results are not computed again, and failures do not stop the rest."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuanto.backends.base import Traits
from cuanto.backends.host import main_memory
from cuanto.basis.auxiliary import is_generated
from cuanto.basis.library import BasisChoice, element_tables, sources_by_element
from cuanto.batch.entry import Entry, entries_of_molecule
from cuanto.batch.evaluate import BATCH_KEYWORDS, evaluate
from cuanto.batch.table import Row, Table
from cuanto.errors import InputError, describe_error
from cuanto.integrals.engine import resolve
from cuanto.interfaces.qcschema import plain
from cuanto.interfaces.sources import HESSIAN, OPTIMIZE, Model
from cuanto.journal import JsonLines
from cuanto.methods import SEMIEMPIRICAL
from cuanto.methods.request import check
from cuanto.motion.tasks import plain_molecule
from cuanto.options import DEFAULT_BASIS, OPTIONS, require_known
from cuanto.processes import LostWorkerError, ProcessRunner, TaskError
from cuanto.system import Molecule
from cuanto.workers import DaskRunner, Runner, SerialRunner, usable_cores

MAX_TASK_MOLECULES = {"cpu": 32, "cuda": 1024}
"""Largest number of molecules of one composition in a task of a semiempirical method."""
MAX_BATCH_ATOMS = 100
"""Largest number of atoms of molecules that share a task on a CPU, where several processes share the memory."""
TASKS_PER_PROCESS = 4
"""Tasks that a process must have to be worth its start, which takes a second or two; of optimisations one is enough."""
MAX_SUBMITTED = 1000
"""Largest number of tasks that are submitted but not finished."""
MAX_TRIES = 2
"""Attempts at a molecule whose worker was lost: another process may have used up the memory."""
MEMORY_SHARE = 0.8
"""Fraction of the free memory for all processes together."""

Watcher = Callable[[Row], object]


def energies(
    molecules: Sequence[Molecule | str | os.PathLike[str]] | Molecule | str | os.PathLike[str],
    method: str = "pm6",
    basis: BasisChoice | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
    gradient: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    on_row: Watcher | None = None,
    **keywords: Any,
) -> list[Row]:
    """Energies of many molecules: a row for each, in the order given; the row of a molecule that failed has an `error`.

    `molecules`, and the `charge` and `multiplicity` of all of them, as in `cuanto.energy`; each structure of an XYZ
    file with several is a molecule.
    `workers`: processes of one thread each on this machine (None: one for each core, or this process if there is a GPU;
    0: this process). `scheduler`: address of a Dask scheduler, whose workers are used instead. Semiempirical methods
    compute molecules of one composition together. `out` (.parquet, .jsonl, .csv): file for a table; results in the
    journal beside it are not computed again, so that a call that was killed can be continued. `keywords` are those of
    `cuanto.energy`, whose default method is another. `on_row` is called with every finished row.
    """
    require_known(keywords, OPTIONS, "cuanto.energies: unknown key")
    check(method, basis, keywords)
    chosen = None if method.lower() in SEMIEMPIRICAL else _basis_name(DEFAULT_BASIS if basis is None else basis)
    model = Model(method, chosen, keywords, "gradient" if gradient else "energy")
    entries = list[Entry]()
    for molecule in _listed(molecules):
        entries += entries_of_molecule(molecule, model, charge, multiplicity, len(entries) + 1)
    require_readable(entries)
    table = None if out is None else Table(out)
    if not _portable(keywords):
        if workers or scheduler is not None:
            raise InputError("some keywords are not plain data, which other processes need: use workers=0")
        workers = 0
    with Batch(entries, table, workers, scheduler) as batch:
        return batch.run(on_row or (lambda row: None))


def _listed(molecules: Any) -> Sequence[Any]:
    """A single molecule as a list."""
    single = isinstance(molecules, Molecule | str | os.PathLike) or hasattr(molecules, "get_chemical_symbols")
    return [molecules] if single else molecules


def _basis_name(basis: object) -> str:
    """The name of a basis, also of one that differs between elements."""
    if isinstance(basis, Mapping):
        return ",".join(f"{element}={_basis_name(one)}" for element, one in basis.items())
    if isinstance(basis, str | os.PathLike):
        return str(os.fspath(basis))
    example = {"O": "def2-tzvp", "default": "def2-svp"}
    raise InputError(
        f"the basis of many molecules is a name, a file, or names by element such as {example}, not "
        f"{type(basis).__name__}"
    )


def require_readable(entries: Sequence[Entry]) -> None:
    """Refuse a batch in which no molecule can be read."""
    if entries and all(entry.molecule is None for entry in entries):
        raise InputError(f"none of the molecules can be read; the first one: {entries[0].problem}")


def _portable(keywords: Mapping[str, Any]) -> bool:
    """Whether keywords can be sent to another process."""
    try:
        json.dumps(plain(dict(keywords)))
    except TypeError:
        return False
    return True


@dataclass
class Counts:
    """Numbers of molecules, and the `seconds` they took."""

    computed: int = 0
    known: int = 0
    failed: int = 0
    unconverged: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Molecules computed per second."""
        return self.computed / self.seconds if self.seconds else 0.0

    def add(self, row: Row) -> None:
        """Count a row."""
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
    """A calculation of many entries; as a context manager it stops its workers at the end."""

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
        _require_known_bases(self.entries)
        self._stack, self._journal = ExitStack(), None if self.table is None else Journal(self.table.journal)
        self._rows: dict[str, Row] = {}

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def run(self, watch: Watcher) -> list[Row]:
        """Compute all rows, in the order of the entries, and write the table."""
        begin = time.perf_counter()

        def finish(row: Row) -> None:
            self.counts.add(row)
            self.counts.seconds = time.perf_counter() - begin
            watch(row)

        waiting = self._finish_known(finish)
        for row in self._compute(waiting):
            finish(row)
        rows = [self._row(entry) for entry in self.entries]
        self.counts.seconds = time.perf_counter() - begin
        if self.table is not None:
            self.table.write(rows)
        return rows

    def _row(self, entry: Entry) -> Row:
        """Row of an entry; a molecule that is given twice is computed once."""
        if entry.molecule is None:
            return Row(entry, error=entry.problem)
        found = self._rows[entry.key]
        return found if found.entry is entry else Row(**{**vars(found), "entry": entry})

    def _finish_known(self, finish: Watcher) -> list[Entry]:
        """Finish the entries that are known from the journal or cannot be read; return the others."""
        known = {} if self._journal is None else self._journal.read()
        waiting: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.molecule is None:
                finish(self._row(entry))
            elif entry.key in self._rows:
                continue
            elif entry.key in known:
                self._rows[entry.key] = Row.of(entry, known[entry.key], known=True)
                finish(self._rows[entry.key])
            else:
                waiting.setdefault(entry.key, entry)
        return list(waiting.values())

    def _compute(self, waiting: Sequence[Entry]) -> Iterator[Row]:
        if not waiting:
            return
        backend = waiting[0].model.keywords.get("backend", "auto")
        traits = resolve(backend if self.scheduler is None else "cpu").traits
        tasks = deque(_Task(entries) for entries in chunks(waiting, traits, self.workers))
        runner, memory = self._runner(traits, len(tasks))
        running: dict[str, _Task] = {}
        while tasks or running:
            while tasks and len(running) < MAX_SUBMITTED:
                task = tasks.popleft()
                running[key := task.entries[0].key] = task
                runner.submit(key, evaluate, _task(task.entries, memory, here=isinstance(runner, SerialRunner)))
            key, result = runner.next()
            task = running.pop(key)
            if isinstance(result, BaseException) and _retry(task, result):
                tasks.extendleft(_Task([entry], task.tries + 1) for entry in reversed(task.entries))
                continue
            if isinstance(result, BaseException):
                tried = f" (tried {MAX_TRIES} times)" if isinstance(result, LostWorkerError) else ""
                result = {"rows": [{"error": describe_error(result) + tried}] * len(task.entries)}
            for entry, values in zip(task.entries, result["rows"], strict=True):
                if self._journal is not None:
                    self._journal.keep(entry, values)
                self._rows[entry.key] = Row.of(entry, values)
                yield self._rows[entry.key]

    def _runner(self, traits: Traits, tasks: int) -> tuple[Runner, float | None]:
        """The runner of the tasks, and the memory that each of them may use."""
        if self.scheduler is not None:
            return self._stack.enter_context(DaskRunner(self.scheduler)), None
        workers = self.workers
        if workers is None:
            fewest = 1 if self.entries[0].model.driver == OPTIMIZE else TASKS_PER_PROCESS
            workers = min(usable_cores(), tasks // fewest) if traits.parallel_calculations else 0
            workers = 0 if workers == 1 else workers  # this process can use more threads
        workers = min(workers, tasks)
        if workers == 0:
            return SerialRunner(), None
        share = MEMORY_SHARE * main_memory()[0] / workers if traits.unified_memory else None
        return self._stack.enter_context(ProcessRunner(workers)), share


def _task(entries: Sequence[Entry], memory: float | None, here: bool) -> dict[str, Any]:
    """Arguments of `evaluate`; plain data unless the task stays in this process (`here`)."""
    model = entries[0].model
    assert model.method is not None
    keywords = dict(model.keywords) if here else plain(dict(model.keywords))
    if memory is not None and len(entries) == 1:
        keywords.setdefault("max_memory", memory)
    molecules = [entry.molecule for entry in entries if entry.molecule is not None]
    about = {"method": model.method, "basis": model.basis, "keywords": keywords, "gradient": model.gradient}
    about |= {"driver": model.driver, "settings": plain(dict(model.settings))}
    return {"molecules": molecules if here else [plain_molecule(one) for one in molecules], **about}


def _retry(task: _Task, error: BaseException) -> bool:
    """Whether to try again: a worker may be lost because of one of several molecules, or for another reason."""
    return not isinstance(error, TaskError) and (len(task.entries) > 1 or task.tries < MAX_TRIES)


def chunks(entries: Sequence[Entry], traits: Traits, workers: int | None = None) -> list[list[Entry]]:
    """Group entries into tasks: alone, or together with others of the same composition and model."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_group_key(entry, traits) or entry.key, []).append(entry)
    cores = usable_cores() if traits.parallel_calculations else 1
    sharing = cores if workers is None else max(workers, 1)
    size = max(1, min(MAX_TASK_MOLECULES[traits.language], -(-len(entries) // sharing)))
    return [group[k : k + size] for group in groups.values() for k in range(0, len(group), size)]


def _group_key(entry: Entry, traits: Traits) -> str:
    """Key of the group that an entry is computed with; empty if it is computed alone."""
    molecule, model = entry.molecule, entry.model
    assert molecule is not None and model.method is not None
    alone = model.driver in (HESSIAN, OPTIMIZE)
    small = (not traits.parallel_calculations or molecule.natom <= MAX_BATCH_ATOMS) and not alone
    if not small or model.method.lower() not in SEMIEMPIRICAL or not set(model.keywords) <= BATCH_KEYWORDS:
        return ""
    composition = [molecule.symbols, molecule.charge, molecule.multiplicity]
    return json.dumps([composition, model.method, dict(model.keywords), model.gradient], default=repr)


def _require_known_bases(entries: Sequence[Entry]) -> None:
    """Raise one error for an unknown basis, instead of one per molecule: it must have at least one of the elements."""
    elements: dict[str, set[str]] = {}
    for entry in entries:
        for basis in (entry.model.basis, entry.model.keywords.get("auxbasis")):
            if entry.molecule is not None and isinstance(basis, str):
                elements.setdefault(basis, set()).update(entry.molecule.elements)
    for basis, symbols in elements.items():
        if all(_problem_of(basis, symbol) for symbol in sorted(symbols)):
            raise InputError(_problem_of(basis, min(symbols)))


def _problem_of(basis: str, symbol: str) -> str:
    """Why there is no basis of this name for an element; empty if there is one."""
    try:
        source = sources_by_element(basis, [symbol])[symbol]
        if not is_generated(source):
            element_tables(source, [symbol])
    except InputError as error:
        return str(error)
    return ""


class Journal:
    """Finished rows by key; failures are not kept, since another attempt may succeed."""

    def __init__(self, path: Path) -> None:
        self._file = JsonLines(path)

    def read(self) -> dict[str, dict[str, Any]]:
        """All rows that earlier runs with the same table have computed."""
        known: dict[str, dict[str, Any]] = {}
        for line in self._file.read():
            key, row = line.get("key"), line.get("row")
            if isinstance(key, str) and isinstance(row, dict) and _is_valid(row):
                known[key] = row
        return known

    def keep(self, entry: Entry, row: Mapping[str, Any]) -> None:
        """Write a row to the disk."""
        if not row.get("error"):
            self._file.append({"key": entry.key, "name": entry.name, "row": dict(row)}, safely=True)


def _is_valid(row: Mapping[str, Any]) -> bool:
    """Whether a row of a file has the fields of a `Row`."""
    numbers = all(isinstance(row.get(name), int | float) for name in ("energy", "iterations"))
    fields = set(Row.__dataclass_fields__) - {"entry", "known", "error"}
    return numbers and isinstance(row.get("converged"), bool) and set(row) <= fields
