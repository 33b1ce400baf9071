"""The input that gives the same result again: geometry, command line, Python. Safe to paste: names are quoted."""

from __future__ import annotations

import re
import shlex
from typing import Any

from cuanto.report.record import Record
from cuanto.units import BOHR_IN_ANGSTROM

FLAGS = {"fitting": "--fitting", "auxbasis": "--aux", "precision": "--precision", "grid": "--grid"}
"""Keywords of `cuanto.energy` that are options of the command line; the others are given with -o."""
WIDTH = 96


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
    """With continued lines where it is long."""
    words = [["cuanto energy", file_name(record)], ["-m", record.method]]
    if record.basis is not None:
        words.append(["-b", record.basis])
    if record.molecule.charge:
        words.append(["--charge", str(record.molecule.charge)])
    if record.molecule.multiplicity != 1:
        words.append(["--mult", str(record.molecule.multiplicity)])
    for name, value in record.keywords.items():
        if value is not None:
            flag = [FLAGS[name], _word(value)] if name in FLAGS else ["-o", f"{name}={_word(value)}"]
            words.append(flag)
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
        arguments.append(repr(record.basis))
    for name, value in record.keywords.items():
        if value is not None and name.isidentifier():
            arguments.append(f"{name}={tuple(value) if isinstance(value, list) else value!r}")
    where = f"{file_name(record)!r}, charge={molecule.charge}, multiplicity={molecule.multiplicity}"
    return (
        "import cuanto\n\n"
        f"molecule = cuanto.Molecule.from_xyz({where})\n"
        f"result = cuanto.energy(molecule, {', '.join(arguments)})\n"
        "print(result.energy)\n"
    )


def _word(value: Any) -> str:
    """As the command line takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(_word(inner) for inner in value) if isinstance(value, (list, tuple)) else str(value)
