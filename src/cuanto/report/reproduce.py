"""Input that reproduces a result: geometry, command line, Python; names are quoted, so that it is safe to paste."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from cuanto.interfaces.keywords import option_value
from cuanto.interfaces.qcschema import plain
from cuanto.methods import Result
from cuanto.options import OPTIONS

FLAGS = {name: option.flags[-1] for name, option in OPTIONS.items() if option.flags}
"""Keywords of `cuanto.energy` that are options of the command line; the others are given with -o."""
WIDTH = 96
GENERATED = "autoaux"
"""Part of the name of a generated fitting basis, which is generated again when it is left out."""
_BY_ELEMENT = re.compile(r"[A-Z][a-z]?: [^,]+(, [A-Z][a-z]?: [^,]+)*")


def file_name(result: Result) -> str:
    """Name of the geometry file: only letters, digits, _ and -."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", result.molecule.name)[:60].strip("_-")
    return f"{stem or 'molecule'}.xyz"


def command_line(result: Result, command: str = "energy") -> str:
    """The command, on several lines if it is long; a comment where the command line has no option for a keyword."""
    # Names come from files: one with a line break would end the comment.
    unavailable = [
        name if name.isidentifier() else "a keyword"
        for name, value in _keywords(result).items()
        if not _can_be_written(name, value)
    ]
    unavailable += ["a basis for each element"] * isinstance(_sets(result.basis_name), dict)
    if unavailable:
        return f"# No options for {' and '.join(unavailable)}: run the Python below."
    words = [[f"cuanto {command}", file_name(result)], ["-m", result.method]]
    if result.basis_name is not None:
        words.append(["-b", result.basis_name])
    if result.molecule.charge:
        words.append(["--charge", str(result.molecule.charge)])
    if result.molecule.multiplicity != 1:
        words.append(["--mult", str(result.molecule.multiplicity)])
    for name, value in _keywords(result).items():
        words.append([FLAGS[name], _word(value)] if name in FLAGS else ["-o", f"{name}={_word(value)}"])
    pieces = [" ".join([words[0][0], shlex.quote(words[0][1])])]
    pieces += [" ".join(shlex.quote(word) for word in pair) for pair in words[1:]]
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {piece}")
        else:
            lines[-1] += f" {piece}"
    return "\n".join(lines)


def python_text(result: Result, command: str = "energy") -> str:
    """The same calculation in Python."""
    molecule = result.molecule
    arguments = [repr(result.method)]
    if result.basis_name is not None:
        arguments.append(repr(_sets(result.basis_name)))
    for name, value in _keywords(result).items():
        if name.isidentifier():
            sets = _sets(value) if name == "auxbasis" else value
            arguments.append(f"{name}={tuple(sets) if isinstance(sets, list) else sets!r}")
    where = f"{file_name(result)!r}, charge={molecule.charge}, multiplicity={molecule.multiplicity}"
    return (
        "import cuanto\n\n"
        f"molecule = cuanto.Molecule.from_xyz({where})\n"
        f"result = cuanto.{command}(molecule, {', '.join(arguments)})\n"
        "print(result.energy)\n"
    )


def _keywords(result: Result) -> dict[str, Any]:
    """Keywords as plain data, without those that are determined automatically."""
    given = {name: value for name, value in plain(result.keywords).items() if value is not None}
    if GENERATED in str(given.get("auxbasis", "")):
        del given["auxbasis"]
    return given


def _sets(basis: Any) -> Any:
    """The name of a basis, or a dictionary if the name lists a basis for each element."""
    if not isinstance(basis, str) or not _BY_ELEMENT.fullmatch(basis):
        return basis
    return dict(part.split(": ", 1) for part in basis.split(", "))


def _can_be_written(name: str, value: Any) -> bool:
    """Whether the command line has an option for this value."""
    if name == "auxbasis":
        return isinstance(_sets(value), str)
    if isinstance(value, Mapping):
        return False
    word = _word(value)
    plain = list(value) if isinstance(value, (list, tuple)) else value
    return name in FLAGS or bool(option_value(word) == plain)


def _word(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(_word(inner) for inner in value) if isinstance(value, (list, tuple)) else str(value)
