"""Results of many molecules as a table: Parquet, JSON lines or CSV, complete or not there at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.batch.entry import Entry
from cuanto.errors import InputError, MissingDependencyError
from cuanto.interfaces.files import replacing, write_text
from cuanto.system import Molecule

Array = NDArray[np.float64]

COLUMNS = {
    "name": "string",
    "file": "string",
    "formula": "string",
    "charge": "int32",
    "multiplicity": "int32",
    "method": "string",
    "basis": "string",
    "energy_hartree": "float64",
    "converged": "bool",
    "iterations": "int32",
    "homo_hartree": "float64",
    "lumo_hartree": "float64",
    "dipole_au": "list<float64>",
    "charges": "list<float64>",
    "heat_of_formation_kcal_mol": "float64",
    "gradient_hartree_per_bohr": "list<float64>",
    "numbers": "list<int32>",
    "positions_bohr": "list<float64>",
    "seconds": "float64",
    "error": "string",
}
"""Names and types; of gradient and positions x, y, z of the first atom, then of the second, and so on; the number of a
ghost atom is 0."""


@dataclass(frozen=True, eq=False)
class Row:
    """One molecule: energy in Hartree (not a number where there is none; `error` says why), the rest in atomic units.

    `heat_of_formation` (kcal/mol) is of semiempirical methods; what a method or a batch does not give is None.
    """

    entry: Entry
    energy: float = float("nan")
    converged: bool = False
    iterations: int = 0
    homo: float | None = None
    lumo: float | None = None
    dipole: Array | None = None
    charges: Array | None = None
    heat_of_formation: float | None = None
    gradient: Array | None = None
    seconds: float = 0.0
    error: str = ""
    known: bool = False
    """It was in the journal."""

    @classmethod
    def of(cls, entry: Entry, found: dict[str, Any], known: bool = False) -> Row:
        """From the plain data of a worker or a journal."""
        values = {name: value for name, value in found.items() if value is not None}
        for name in ("dipole", "charges", "gradient"):
            if name in values:
                values[name] = np.array(values[name], dtype=float)
        return cls(entry, **values, known=known)

    @property
    def name(self) -> str:
        """Of the molecule's file."""
        return self.entry.name

    def record(self) -> dict[str, Any]:
        """One line of the table."""
        entry, molecule = self.entry, self.entry.molecule
        there = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        flat = {name: array.reshape(-1).tolist() for name, array in there.items()}
        return {
            "name": entry.name,
            "file": entry.file or None,
            "formula": None if molecule is None else formula(molecule),
            "charge": None if molecule is None else molecule.charge,
            "multiplicity": None if molecule is None else molecule.multiplicity,
            "method": entry.model.method,
            "basis": None if entry.model.basis is None else str(entry.model.basis),
            "energy_hartree": None if self.error else self.energy,
            "converged": self.converged,
            "iterations": None if self.error else self.iterations,
            "homo_hartree": self.homo,
            "lumo_hartree": self.lumo,
            "dipole_au": flat.get("dipole"),
            "charges": flat.get("charges"),
            "heat_of_formation_kcal_mol": self.heat_of_formation,
            "gradient_hartree_per_bohr": flat.get("gradient"),
            "numbers": None if molecule is None else molecule.nuclei.protons.tolist(),
            "positions_bohr": None if molecule is None else molecule.R_ax.reshape(-1).tolist(),
            "seconds": self.seconds,
            "error": self.error or None,
        }


def formula(molecule: Molecule) -> str:
    """Without ghosts, in Hill's order."""
    return "".join(name + (str(count) if count > 1 else "") for name, count in molecule.composition.items())


class Table:
    """A file to be written in the end; whether that is possible is known from the beginning."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        writers = {".parquet": self._parquet, ".jsonl": self._lines, ".csv": self._csv}
        if (ending := self.path.suffix.lower()) not in writers:
            raise InputError(f"cannot write a table as {self.path.name!r}: it may end in {', '.join(writers)}")
        self._write = writers[ending]
        if ending == ".parquet":
            self._write = partial(self._parquet, arrow=_pyarrow())

    @property
    def journal(self) -> Path:
        """Beside the table: what was computed, also by a run that did not come to its end."""
        return self.path.with_name(f"{self.path.name}.journal")

    def write(self, rows: Sequence[Row]) -> None:
        """All rows, in their order."""
        self._write([row.record() for row in rows])

    def _lines(self, records: list[dict[str, Any]]) -> None:
        write_text(self.path, "".join(json.dumps(record, allow_nan=False) + "\n" for record in records))

    def _csv(self, records: list[dict[str, Any]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in record.items()})
        write_text(self.path, text.getvalue())

    def _parquet(self, records: list[dict[str, Any]], arrow: Any = None) -> None:
        schema = arrow.schema([(name, _arrow_type(arrow, kind)) for name, kind in COLUMNS.items()])
        with replacing(self.path) as draft:
            table = arrow.Table.from_pylist(records, schema=schema)
            import_module("pyarrow.parquet").write_table(table, draft)


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise MissingDependencyError(
            "Parquet needs pyarrow (pip install 'cuanto[parquet]'); a table that ends in .jsonl or .csv needs nothing"
        ) from None


def _arrow_type(arrow: Any, kind: str) -> Any:
    if kind.startswith("list<"):
        return arrow.list_(_arrow_type(arrow, kind[5:-1]))
    return {"string": arrow.string, "bool": arrow.bool_, "int32": arrow.int32, "float64": arrow.float64}[kind]()
