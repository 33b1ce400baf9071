"""The journal of an optimisation: every energy and gradient, so that an interrupted one can continue where it stopped.

geomeTRIC's steps depend only on energies and gradients: given those of the journal, it reaches the same geometry. Each
line has a key, a hash of everything the result depends on, so that it is not used for another calculation.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.basis.library import files_of_set, is_file
from cuanto.basis.names import split_names
from cuanto.errors import InputError
from cuanto.files import destination, require_writable
from cuanto.journal import JsonLines
from cuanto.methods import Result
from cuanto.motion.surface import Surface
from cuanto.options import OPTIONS
from cuanto.system import Molecule
from cuanto.system.text import file_bytes

SAME_POSITION = 1e-6
"""Bohr. Positions that differ by less are taken to be those of the journal: another machine may round differently."""
LINE_START = b'{"key": '
"""Beginning of every line of a journal; a crash may leave a part of a line."""


def calculation_key(molecule: Molecule, method: str, basis: object, keywords: Mapping[str, Any], *more: Any) -> str:
    """A hash of everything that a result depends on, including the version of cuanto.

    Options such as `backend` and `max_memory` are not part of it: a run may be continued on another machine.
    """
    what = {name: value for name, value in keywords.items() if OPTIONS[name].affects_result}
    sets = [content_of(one, molecule.elements) for one in (basis, what.pop("auxbasis", None))]
    atoms = molecule.symbols if molecule.masses is None else (molecule.symbols, molecule.masses)
    parts = [atoms, molecule.charge, molecule.multiplicity, method.lower(), *sets, what, *more]
    text = json.dumps([import_module("cuanto").__version__, *parts], sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode() + molecule.R_ax.tobytes()).hexdigest()[:32]


def content_of(basis: object, elements: Sequence[str] = ()) -> object:
    """The name of a basis, with a hash of its functions if these are not determined by the version of cuanto.

    Files, also those of CUANTO_BASIS_PATH, may be edited.
    """
    if isinstance(basis, Basis):
        numbers = [(one.atom, one.l, one.pure, one.exponents, one.coefficients) for one in basis.shells]
        content = [numbers, basis.core_potentials]
        return hashlib.sha256(json.dumps(content, default=_plain).encode()).hexdigest()
    if isinstance(basis, Mapping):
        return {str(key): content_of(one, elements) for key, one in basis.items()}
    if isinstance(basis, os.PathLike):
        basis = os.fspath(basis)
    if not isinstance(basis, str):
        return basis
    if (parts := split_names(basis)) is not None:
        return content_of(parts, elements)
    files = [Path(os.path.expanduser(basis))] if is_file(basis) else files_of_set(basis, elements)
    try:
        contents = [file_bytes(path) for path in files]
    except OSError:
        return basis  # reported when it is used
    if is_file(basis):
        return hashlib.sha256(contents[0]).hexdigest()
    return [basis, hashlib.sha256(b"\0".join(contents)).hexdigest()] if contents else basis


def open_journal(path: str | os.PathLike[str]) -> JsonLines:
    """The journal at a path; a file that is not a journal is refused, because journals are removed at the end."""
    target = destination(path)
    if target.exists():
        lines = target.read_bytes().splitlines()
        if any(line[: len(LINE_START)] != LINE_START[: len(line)] for line in lines):
            raise InputError(f"{path} exists and is not a journal: give the journal another name")
    return JsonLines(path)


def require_own_files(molecule: object, basis: object, *outputs: str | os.PathLike[str] | None) -> None:
    """Refuse outputs that would overwrite the file of the molecule or of the basis."""
    inputs = [one for one in (molecule, basis) if isinstance(one, str | os.PathLike)]
    for path in outputs:
        if path is not None:
            require_writable(path, *inputs)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)


class Recorder:
    """Energies and gradients in the order of their evaluation; those in the journal are not computed again."""

    def __init__(self, path: str | os.PathLike[str] | None, key: str) -> None:
        self.path = None if path is None else Path(path)
        self._file = None if path is None else open_journal(path)
        self._key = key
        self._known = [] if self._file is None else self._read(self._file)
        self._count = 0
        self.replayed = 0
        """Number of evaluations that came from the journal."""

    @property
    def known(self) -> int:
        """Evaluations of an earlier run."""
        return len(self._known)

    def _read(self, file: JsonLines) -> list[dict[str, Any]]:
        """Read the evaluations of this key; a repeated evaluation replaces the earlier one and all that followed it."""
        found: list[dict[str, Any]] = []
        for line in file.read():
            number, energy = line.get("number"), line.get("energy")
            if line.get("key") != self._key or not isinstance(number, int) or not isinstance(energy, float):
                continue
            if 1 <= number <= len(found) + 1:
                found[number - 1 :] = [line]
        return found

    def evaluate(self, surface: Surface, R_ax: Array) -> tuple[float, Array]:
        """Energy and gradient, from the journal or computed and written to it."""
        known = self._take(R_ax)
        self._count += 1
        if known is not None:
            self.replayed += 1
            return known
        result = result_at(surface, R_ax)
        if self._file is not None:
            line = {"key": self._key, "number": self._count, "R_ax": R_ax.tolist(), "energy": result.energy}
            self._file.append({**line, "gradient": result.gradient.tolist()}, safely=True)
        return result.energy, result.gradient

    def _take(self, R_ax: Array) -> tuple[float, Array] | None:
        """Return the next evaluation of the journal if it has these positions; otherwise the rest is discarded."""
        if self._count < len(self._known):
            line = self._known[self._count]
            S_ax, gradient_ax = (np.array(line.get(name), dtype=float) for name in ("R_ax", "gradient"))
            if S_ax.shape == gradient_ax.shape == R_ax.shape and np.abs(S_ax - R_ax).max() < SAME_POSITION:
                return float(line["energy"]), gradient_ax
        self._known = self._known[: self._count]
        return None

    def finish(self) -> None:
        """Remove the lines of this finished optimisation; those of others stay."""
        if self._file is None or self.path is None:
            return
        others = [line for line in self._file.read() if line.get("key") != self._key]
        if others:
            self._file.replace(*others)
        else:
            self.path.unlink(missing_ok=True)


def result_at(surface: Surface, R_ax: Array) -> Result:
    """The result at these positions: the last one of the surface if it has them, else a new calculation."""
    last = surface.result
    if last is not None and np.array_equal(last.molecule.R_ax, R_ax):
        return last
    return surface.at(R_ax)
