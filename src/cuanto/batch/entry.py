"""One molecule of many with everything its result depends on, read from files, folders and trajectories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cuanto.errors import CuantoError, InputError, describe_error
from cuanto.interfaces.sources import (
    HESSIAN,
    STDIN,
    Model,
    Source,
    choose_model,
    is_written_out,
    read_input,
    read_source,
    safe_label,
    source_from_text,
)
from cuanto.motion.record import calculation_key
from cuanto.system import Molecule
from cuanto.system.text import format_path, parse_whole, quote, read_text, split_lines


@dataclass(frozen=True)
class Entry:
    """A molecule and its model; if its file cannot be read, `molecule` is None, and `problem` says why."""

    name: str
    molecule: Molecule | None
    model: Model
    file: str = ""
    problem: str = ""

    @cached_property
    def key(self) -> str:
        """Key of the result in a journal: a hash of everything it depends on."""
        model = self.model
        assert self.molecule is not None and model.method is not None
        single_point = not model.settings and model.driver != HESSIAN
        task = [model.gradient] if single_point else [model.driver, dict(model.settings)]
        return calculation_key(self.molecule, model.method, model.basis, model.keywords, *task)


def entries_of(given: str, model: Model, charge: int | None, multiplicity: int | None) -> list[Entry]:
    """Entries of a file, of every structure of a trajectory, or of every XYZ file of a folder.

    What cannot be read becomes an entry with a `problem`.
    """
    try:
        paths = _files(given)
    except CuantoError as error:
        return [_unreadable(given, model, error)]
    found: list[Entry] = []
    for path in paths:
        try:
            found += [_entry(path, source, model) for source in _sources(path, charge, multiplicity)]
        except CuantoError as error:
            found.append(_unreadable(path, model, error))
    return found


def entries_of_molecule(
    given: Molecule | str | os.PathLike[str], model: Model, charge: int | None, multiplicity: int | None, number: int
) -> list[Entry]:
    """Entries of a molecule as in `cuanto.energy`, or of every structure of a file or text with several.

    Molecules without a name are numbered from `number`. What cannot be read becomes an entry with a `problem`.
    """
    if not isinstance(given, str | os.PathLike):
        molecule = Molecule.of(given, charge, multiplicity)
        return [Entry(molecule.name or f"molecule {number}", molecule, model)]
    file = os.fspath(given)
    file = "" if is_written_out(file) or "\n" in file else file
    found = list[Entry]()
    for one in _molecules(given, file, charge, multiplicity):
        name = Path(file).stem or f"molecule {number + len(found)}"
        if isinstance(one, Molecule):
            found.append(Entry(one.name or name, one, model, file))
        else:
            found.append(Entry(name, None, model, file, describe_error(one)))
    return found


def _molecules(
    given: str | os.PathLike[str], file: str, charge: int | None, multiplicity: int | None
) -> Iterator[Molecule | CuantoError]:
    """The molecules of a `file`, or of a text or SMILES if it is empty, with an error for each that cannot be read."""
    try:
        if not file and "\n" not in os.fspath(given):
            yield Molecule.of(given, charge, multiplicity)
            return
        frames = structures(read_text(given, "file") if file else os.fspath(given))
    except CuantoError as error:
        yield error
        return
    shown, several = format_path(file) if file else "the input", len(frames) > 1
    for number, frame in enumerate(frames, start=1):
        source = f"{shown}, structure {number}" if several else shown
        name = Path(file).stem + f"-{number:0{len(str(len(frames)))}d}" * (several and bool(file))
        try:
            yield Molecule.from_text(frame, charge, multiplicity, source, name)
        except CuantoError as error:
            yield error


def _unreadable(given: str, model: Model, error: CuantoError) -> Entry:
    return Entry(safe_label(Path(given).stem), None, model, given, " ".join(str(error).split()))


def _files(given: str) -> list[str]:
    if given == STDIN or is_written_out(given) or "\0" in given or not Path(given).is_dir():
        return [given]
    if files := sorted(str(path) for path in Path(given).iterdir() if path.suffix.lower() == ".xyz"):
        return files
    raise InputError(f"the folder {quote(given, 200)} has no XYZ files")


def _sources(given: str, charge: int | None, multiplicity: int | None) -> Iterator[Source | CuantoError]:
    """The molecule of a file, or all structures of a trajectory, with an error for each that cannot be read."""
    if is_written_out(given):
        yield read_source(given, charge, multiplicity)
        return
    text, shown, stem = read_input(given)
    frames = structures(text)
    if len(frames) == 1:
        yield source_from_text(text, shown, stem, charge, multiplicity, given)
        return
    width = len(str(len(frames)))
    for number, frame in enumerate(frames, start=1):
        name = f"{stem}-{number:0{width}d}"
        try:
            yield source_from_text(frame, f"{shown}, structure {number}", name, charge, multiplicity)
        except CuantoError as error:
            yield error


def _entry(file: str, source: Source | CuantoError, model: Model) -> Entry:
    if isinstance(source, CuantoError):
        return _unreadable(file, model, source)
    try:
        return Entry(source.label, source.molecule, choose_model(source, model), file)
    except CuantoError as error:
        return Entry(source.label, None, model, file, str(error))


def structures(text: str) -> list[str]:
    """Structures of an XYZ file with several (the last may be incomplete); any other text as a single one."""
    lines, i = split_lines(text), 0
    found: list[str] = []
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    while i < len(lines):
        natom = parse_whole(lines[i].strip())
        if natom is None or natom < 1 or len(lines) < i + natom + 2:
            if len(found) > 1 or (found and natom is not None):
                found.append("\n".join(lines[i:]))
                break
            return [text]
        found.append("\n".join(lines[i : i + natom + 2]))
        i += natom + 2
        while i < len(lines) and not lines[i].strip():
            i += 1
    return found if len(found) > 1 else [text]
