"""The input that gives the same result again: geometry, command line, Python. Safe to paste: names are quoted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from cuanto.interfaces.keywords import option_value
from cuanto.options import OPTIONS
from cuanto.report.record import Record
from cuanto.units import BOHR_IN_ANGSTROM

FLAGS = {name: option.flags[-1] for name, option in OPTIONS.items() if option.flags}
"""Keywords of `cuanto.energy` that are options of the command line; the others are given with -o."""
WIDTH = 96
GENERATED = "autoaux"
"""Part of the name of a fitting basis that no file has: leaving it out chooses it again."""
_BY_ELEMENT = re.compile(r"[A-Z][a-z]?: [^,]+(, [A-Z][a-z]?: [^,]+)*")


def file_name(record: Record) -> str:
    """Of the geometry: letters, digits, nothing that a shell or a file system could misunderstand."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", record.molecule.name)[:60].strip("_-")
    return f"{stem or 'molecule'}.xyz"


def xyz_text(record: Record) -> str:
    """Angstrom; charge and multiplicity on the comment line, where cuanto reads them."""
    molecule = record.molecule
    comment = f"{' '.join(molecule.name.split())} charge={molecule.charge} mult={molecule.multiplicity}"
    lines = [str(molecule.natom), comment.strip()]
    for symbol, R_x in zip(molecule.symbols, (molecule.R_ax * BOHR_IN_ANGSTROM).tolist(), strict=True):
        lines.append(f"{symbol:2s} " + " ".join(f"{x:15.9f}" for x in R_x))
    return "\n".join(lines) + "\n"


def command_line(record: Record) -> str:
    """With continued lines where it is long; what no option can say is left to Python, and said."""
    beyond = [
        name if name.isidentifier() else "a keyword"  # names come from files: no second line in a comment
        for name, value in _keywords(record).items()
        if not _can_be_written(name, value)
    ]
    beyond += ["a basis for each element"] * isinstance(_sets(record.basis), dict)
    if beyond:
        return f"# No options for {' and '.join(beyond)}: run the Python below."
    words = [["cuanto energy", file_name(record)], ["-m", record.method]]
    if record.basis is not None:
        words.append(["-b", record.basis])
    if record.molecule.charge:
        words.append(["--charge", str(record.molecule.charge)])
    if record.molecule.multiplicity != 1:
        words.append(["--mult", str(record.molecule.multiplicity)])
    for name, value in _keywords(record).items():
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


def python_text(record: Record) -> str:
    """The same by the Python interface."""
    molecule = record.molecule
    arguments = [repr(record.method)]
    if record.basis is not None:
        arguments.append(repr(_sets(record.basis)))
    for name, value in _keywords(record).items():
        if name.isidentifier():
            sets = _sets(value) if name == "auxbasis" else value
            arguments.append(f"{name}={tuple(sets) if isinstance(sets, list) else sets!r}")
    where = f"{file_name(record)!r}, charge={molecule.charge}, multiplicity={molecule.multiplicity}"
    return (
        "import cuanto\n\n"
        f"molecule = cuanto.Molecule.from_xyz({where})\n"
        f"result = cuanto.energy(molecule, {', '.join(arguments)})\n"
        "print(result.energy)\n"
    )


def _keywords(record: Record) -> dict[str, Any]:
    """Those that say something."""
    given = {name: value for name, value in record.keywords.items() if value is not None}
    if GENERATED in str(given.get("auxbasis", "")):
        del given["auxbasis"]
    return given


def _sets(basis: Any) -> Any:
    """A basis by its name, or by element where its name lists them."""
    if not isinstance(basis, str) or not _BY_ELEMENT.fullmatch(basis):
        return basis
    return dict(part.split(": ", 1) for part in basis.split(", "))


def _can_be_written(name: str, value: Any) -> bool:
    """Does an option of the command line mean this value?"""
    if name == "auxbasis":
        return isinstance(_sets(value), str)
    if isinstance(value, Mapping):
        return False
    word = _word(value)
    plain = list(value) if isinstance(value, (list, tuple)) else value
    return name in FLAGS or bool(option_value(word) == plain)


def _word(value: Any) -> str:
    """As the command line takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(_word(inner) for inner in value) if isinstance(value, (list, tuple)) else str(value)
