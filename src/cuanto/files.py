"""Output files, written completely or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuanto.errors import InputError

Name = str | os.PathLike[str]


def destination(path: Name) -> Path:
    """Resolve the path of an output file; refuse paths that cannot or must not be replaced."""
    try:
        target = Path(path).resolve()
        found, folder = target.exists(), target.parent
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder; give the name of a file")
        if found and not target.is_file():
            raise InputError(f"cannot write {path}: it is a device or a pipe; give the name of a file")
        if not folder.is_dir():
            raise InputError(f"cannot write {path}: the folder {Path(path).parent} does not exist")
        if found and not os.access(target, os.W_OK):
            raise InputError(f"cannot write {path}: the file is read-only")
        if not os.access(folder, os.W_OK):
            raise InputError(f"cannot write {path}: no permission to write in {folder}")
    except (OSError, RuntimeError, ValueError) as error:  # link loops, impossible names
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot write {str(path)[:200]!r}: {reason}") from None
    return target


def draft_of(target: Path) -> Path:
    """A temporary file of this process beside the target, whose name is short enough for every file system."""
    mark = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f".cuanto-{mark}-{os.getpid()}.part")


@contextmanager
def replacing(path: Name, kind: str = "") -> Iterator[Path]:
    """Yield a temporary file beside the target, which replaces the target once it is complete.

    `kind`: what the file is, for error messages, such as "the checkpoint ".
    """
    target = destination(path)
    draft = draft_of(target)
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        raise InputError(f"cannot write {kind}{path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Name, text: str) -> None:
    """Write a text file completely or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files need not be UTF-8


def save_as(path: Name, texts: Mapping[str, Callable[[], str]]) -> None:
    """Write the text that belongs to the ending of the path; `texts` by ending, such as .json."""
    make = texts.get(os.path.splitext(os.fspath(path))[1].lower())
    if make is None:
        raise InputError(f"cannot save this as {os.fspath(path)!r}: use a name ending in {', '.join(texts)}")
    write_text(path, make())


def save_npz(path: Name, arrays: Mapping[str, Any]) -> None:
    """Write NumPy's .npz file completely or not at all."""
    import numpy  # imported here, because `cuanto --help` does not need it

    with replacing(path) as draft, draft.open("wb") as file:
        numpy.savez(file, **arrays)


def require_writable(path: Name, *inputs: Name | None) -> None:
    """Refuse an output that cannot be written, or that would overwrite one of the `inputs`, before the work begins."""
    target = destination(path)
    for name in inputs:
        if name is not None and _same_file(target, Path(name)):
            raise InputError(f"{path} would overwrite the input {name}: give the output another name")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False  # one of them does not exist, or no file can have such a name
