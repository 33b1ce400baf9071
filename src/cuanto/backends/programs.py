"""Index tables and cost of a class; those of large classes are cached on disk, because making them takes seconds.

The key of a file is the class and the text of the whole generator, so that a change there invalidates it.
"""

from __future__ import annotations

import io
import json
import threading
import zlib
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from cuanto import tuning
from cuanto.backends import cache as disk
from cuanto.backends.base import Class
from cuanto.kernels.build import Programs, make_integrals, make_programs, source_of
from cuanto.kernels.cost import Cost, StageCost, cost
from cuanto.kernels.ir import Integrals
from cuanto.kernels.schedule.loops import by_loops, loop_cost, loop_program, without_primitives
from cuanto.kernels.schedule.table import Program
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import Source

WORTH_KEEPING = 10_000
"""Bytes of tables above which loading is faster than generating them."""
STAGES = ("primitive", "ket", "bra")
KEPT_OPERATIONS = 20_000
"""Operations in all graphs that are kept, 100 to 250 bytes each."""

T = TypeVar("T")


@dataclass(frozen=True)
class ClassTables:
    """Index tables of a class for table-driven kernels."""

    programs: Programs
    cost: Cost
    width: int
    middle: int
    bra_functions: int

    def arguments(self, real: np.dtype[Any]) -> dict[str, Any]:
        """Arguments of a table-driven kernel in this precision."""
        values: dict[str, Any] = {"width": self.width, "bra_functions": self.bra_functions}
        for stage, program in zip(STAGES, self.programs, strict=True):
            values |= {f"{stage}_table": program.table, f"{stage}_constants": program.constants.astype(real)}
        return values


@cache
def class_tables(operator: str, bra: Shells, ket: Shells, algorithm: str, levels: bool) -> ClassTables:
    """Tables from memory, from disk, or generated: depth first for one core, by `levels` for a group of threads."""
    path = tables_path(operator, bra, ket, algorithm, levels)
    found = _read(path, _tables)
    if found is None:
        if not levels and by_loops(operator, bra, ket, algorithm):
            integrals = without_primitives(bra, ket)
            count = loop_cost(integrals, bra, ket)
            programs = (loop_program(bra, ket), *make_programs(integrals, operator, ket, levels)[1:])
        else:
            integrals, count = GRAPHS((operator, bra, ket, algorithm))
            programs = make_programs(integrals, operator, ket, levels)
        found = ClassTables(programs, count, integrals.width, integrals.middle, integrals.bra_functions)
        if sum(program.table.nbytes for program in programs) > WORTH_KEEPING:
            disk.write_later(path, partial(_packed, found))
    return found


@cache
def class_cost(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Cost:
    """Cost of a class, without building its expression graph if it or its tables are in the cache."""
    if by_loops(operator, bra, ket, algorithm):
        return loop_cost(without_primitives(bra, ket), bra, ket)
    path = _cost_path(operator, bra, ket, algorithm)
    try:
        return _cost_from(json.loads(disk.read(path) or b""))
    except (ValueError, TypeError):
        stored = (_read(tables_path(operator, bra, ket, algorithm, levels), _cost) for levels in (True, False))
        found = next(filter(None, stored), None) or GRAPHS((operator, bra, ket, algorithm))[1]
    disk.write_later(path, lambda: json.dumps(astuple(found)).encode())
    return found


def is_cached(operator: str, bra: Shells, ket: Shells, algorithm: str, levels: bool) -> bool:
    """Whether the tables of a class, or at least its cost, are on the disk."""
    class_ = (operator, bra, ket, algorithm)
    return tables_path(*class_, levels).exists() or _cost_path(*class_).exists()


def cost_is_known(operator: str, bra: Shells, ket: Shells, algorithm: str) -> bool:
    """Whether the cost of a class is on the disk."""
    return _cost_path(operator, bra, ket, algorithm).exists()


def load_or_make_source(spec: KernelSpec) -> Source:
    """The text of a straight-line kernel from the disk; generated and stored if it is not there."""
    found = load_source(spec)
    if found is not None:
        return found
    source = source_of(spec)
    disk.write_later(_source_path(spec), lambda: json.dumps(asdict(source)).encode())
    return source


def load_source(spec: KernelSpec) -> Source | None:
    """The text of a straight-line kernel if it is on the disk."""
    try:
        values = json.loads(disk.read(_source_path(spec)) or b"")
        return Source(**values | {"arguments": tuple(tuple(argument) for argument in values["arguments"])})
    except (ValueError, TypeError, KeyError):
        return None


def _source_path(spec: KernelSpec) -> Path:
    return disk.file_path(f"{disk.key((_generator(), _templates(), repr(spec)))}.source")


class Graphs:
    """Makes the graphs and the cost of a class; keeps the last ones, because costs of all classes may be needed before
    the tables of the first."""

    def __init__(self) -> None:
        self._kept: dict[Class, tuple[Integrals, Cost]] = {}
        self._lock = threading.Lock()

    def __call__(self, class_: Class) -> tuple[Integrals, Cost]:
        if (known := self._kept.get(class_)) is not None:
            return known
        integrals = make_integrals(*class_)
        made = integrals, cost(integrals)
        with self._lock:
            self._kept[class_] = made
            operations = sum(each.text_operations for _, each in self._kept.values())
            while operations > KEPT_OPERATIONS and len(self._kept) > 1:
                _, oldest = self._kept.pop(next(iter(self._kept)))
                operations -= oldest.text_operations
        return made

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


GRAPHS = Graphs()


def tables_path(operator: str, bra: Shells, ket: Shells, algorithm: str, levels: bool) -> Path:
    """The file of the tables of a class in the cache."""
    parts = (_generator(), operator, str(bra), str(ket), algorithm, str(levels))
    return disk.file_path(f"{disk.key(parts)}.npz")


def _cost_path(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Path:
    return tables_path(operator, bra, ket, algorithm, False).with_suffix(".cost")


@cache
def _templates() -> str:
    """Hash of the templates of kernels."""
    folder = files("cuanto.kernels") / "templates"
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return disk.key(entry.read_text() for entry in entries if entry.is_file())


@cache
def _generator() -> str:
    """Hash of all source files and tuned numbers that determine the tables, and the texts apart from templates."""
    sources = [*_sources(files("cuanto.kernels")), files("cuanto.basis") / "solid_harmonics.py"]
    numbers = [json.dumps(tuning.content(language)) for language in tuning.LANGUAGES]
    return disk.key([*(source.read_text() for source in sources), *numbers])


def _sources(folder: Traversable) -> list[Traversable]:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    inner = [source for entry in entries if entry.is_dir() for source in _sources(entry)]
    return [*(entry for entry in entries if entry.name.endswith(".py")), *inner]


def _packed(tables: ClassTables) -> bytes:
    arrays: dict[str, Any] = {}
    for stage, program in zip(STAGES, tables.programs, strict=True):
        arrays[f"{stage}_table"], arrays[f"{stage}_constants"] = program.table, program.constants
        arrays[f"{stage}_sizes"] = [program.uniforms, program.slots, program.repeat]
    arrays["shape"] = [tables.width, tables.middle, tables.bra_functions]
    arrays["cost"] = np.frombuffer(json.dumps(astuple(tables.cost)).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _read(path: Path, take: Callable[[Any], T]) -> T | None:
    """Part of a file, None if it does not exist or is damaged."""
    content = disk.read(path)
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content)) as arrays:
            return take(arrays)
    except (ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return None


def _tables(file: Any) -> ClassTables:
    primitive, ket, bra = (
        Program(file[f"{stage}_table"], file[f"{stage}_constants"], *file[f"{stage}_sizes"].tolist())
        for stage in STAGES
    )
    width, middle, bra_functions = file["shape"].tolist()
    return ClassTables((primitive, ket, bra), _cost(file), width, middle, bra_functions)


def _cost(file: Any) -> Cost:
    return _cost_from(json.loads(file["cost"].tobytes()))


def _cost_from(values: Any) -> Cost:
    primitive, sweeps, width, read, written = values
    stages = tuple((repeat, StageCost(*stage)) for repeat, stage in sweeps)
    return Cost(StageCost(*primitive), stages, width, read, written)
