"""One molecule of many with all that decides its result; files, folders and trajectories that they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cuanto import __version__
from cuanto.basis.library import is_file
from cuanto.errors import CuantoError, InputError
from cuanto.interfaces.qcschema import plain, require_driver
from cuanto.interfaces.sources import (
    SMILES,
    STDIN,
    Source,
    file_source,
    file_text,
    first_given,
    inherited,
    read_source,
    read_stdin,
    safe_label,
    shown_name,
    text_source,
)
from cuanto.options import OPTIONS
from cuanto.system import Molecule
from cuanto.system.text import parse_whole, quoted, split_lines


@dataclass(frozen=True)
class Model:
    """What is computed; None where it is left to a file, or to the default."""

    method: str | None = None
    basis: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    gradient: bool = False


@dataclass(frozen=True)
class Entry:
    """A molecule and its calculation; or, where there is none, the `problem` with it."""

    name: str
    molecule: Molecule | None
    model: Model
    file: str = ""
    problem: str = ""

    @cached_property
    def key(self) -> str:
        """Of the result in a journal: nothing that decides it is left out, the version of cuanto included.

        Options that say where and how, not what, are left out: a run may go on elsewhere.
        """
        assert self.molecule is not None
        molecule, model = self.molecule, self.model
        what = {name: value for name, value in model.keywords.items() if OPTIONS[name].decides}
        sets = [_content(model.basis), _content(what.pop("auxbasis", None))]
        parts = [molecule.symbols, molecule.charge, molecule.multiplicity, model.method, *sets, what, model.gradient]
        text = json.dumps(plain([__version__, *parts]), sort_keys=True, default=repr)
        return hashlib.sha256(text.encode() + molecule.R_ax.tobytes()).hexdigest()[:32]


def _content(basis: object) -> object:
    """A basis by its name, or by what is in its file."""
    if not isinstance(basis, str) or not is_file(basis):
        return basis
    try:
        return hashlib.sha256(Path(basis).expanduser().read_bytes()).hexdigest()
    except OSError:
        return basis  # said when it is used


def entries_of(
    given: str, model: Model, defaults: tuple[str, str], charge: int | None, multiplicity: int | None
) -> list[Entry]:
    """A file, every structure of a trajectory, every XYZ file of a folder; what cannot be read is an entry, too."""
    try:
        paths = _files(given)
    except CuantoError as error:
        return [_unreadable(given, model, error)]
    found: list[Entry] = []
    for path in paths:
        try:
            found += [_entry(path, source, model, defaults) for source in _sources(path, charge, multiplicity)]
        except CuantoError as error:
            found.append(_unreadable(path, model, error))
    return found


def _unreadable(given: str, model: Model, error: CuantoError) -> Entry:
    return Entry(safe_label(Path(given).stem), None, model, given, " ".join(str(error).split()))


def _files(given: str) -> list[str]:
    if given == STDIN or given.lower().startswith(SMILES) or "\0" in given or not Path(given).is_dir():
        return [given]
    if files := sorted(str(path) for path in Path(given).iterdir() if path.suffix.lower() == ".xyz"):
        return files
    raise InputError(f"the folder {quoted(given, 200)} has no XYZ files")


def _sources(given: str, charge: int | None, multiplicity: int | None) -> Iterator[Source | CuantoError]:
    """One of most files; of a trajectory all, the bad ones as their errors."""
    if given.lower().startswith(SMILES):
        yield read_source(given, charge, multiplicity)
        return
    piped = given == STDIN
    text = read_stdin() if piped else file_text(given)
    shown, stem = ("standard input", "stdin") if piped else (shown_name(given), Path(given).stem)
    frames = structures(text)
    if len(frames) == 1:
        one = text_source(text, shown, stem, charge, multiplicity) if piped else None
        yield one or file_source(text, given, charge, multiplicity)
        return
    width = len(str(len(frames)))
    for number, frame in enumerate(frames, start=1):
        try:
            yield text_source(frame, f"{shown}, structure {number}", f"{stem}-{number:0{width}d}", charge, multiplicity)
        except CuantoError as error:
            yield error


def _entry(file: str, source: Source | CuantoError, model: Model, defaults: tuple[str, str]) -> Entry:
    """What the command line leaves open is the file's, else the default."""
    from cuanto.methods import SEMIEMPIRICAL

    if isinstance(source, CuantoError):
        return _unreadable(file, model, source)
    method = first_given(model.method, source.method, defaults[0])
    try:
        require_driver(source.driver, method)
        keywords = {**inherited(source, model.method, model.basis, model.keywords), **model.keywords}
    except CuantoError as error:
        return Entry(source.label, None, model, file, str(error))
    basis = None if method.lower() in SEMIEMPIRICAL else first_given(model.basis, source.basis, defaults[1])
    gradient = model.gradient or source.driver == "gradient"
    return Entry(source.label, source.molecule, Model(method, basis, keywords, gradient), file)


def structures(text: str) -> list[str]:
    """The structures of an XYZ file with several, the last as far as it goes; the text itself of everything else."""
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
