"""Tables of results: Parquet, JSON lines or CSV, written completely or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.batch.entry import Entry
from cuanto.errors import InputError, import_optional
from cuanto.files import replacing, write_text
from cuanto.interfaces.sources import HESSIAN
from cuanto.system import Molecule


@dataclass(frozen=True, eq=False)
class Row:
    """Results of one molecule in atomic units; the energy is NaN if it failed, and `error` says why.

    `energy_error`: estimated size of all numerical errors of the energy. `heat_of_formation` (kcal/mol): semiempirical
    methods only. `steps`: those of an optimisation. `positions` (Bohr): given where they differ from those of the
    entry. `wavenumbers` in cm^-1, `intensities` in km/mol. What a method or a batch does not compute is None.
    `warnings`: those among the notes of the result, and hints, separated by semicolons.
    """

    entry: Entry
    energy: float = float("nan")
    energy_error: float | None = None
    converged: bool = False
    iterations: int = 0
    homo: float | None = None
    lumo: float | None = None
    dipole: Array | None = None
    charges: Array | None = None
    heat_of_formation: float | None = None
    gradient: Array | None = None
    steps: int | None = None
    positions: Array | None = None
    wavenumbers: Array | None = None
    intensities: Array | None = None
    zero_point_energy: float | None = None
    enthalpy: float | None = None
    entropy_term: float | None = None
    gibbs_energy: float | None = None
    seconds: float = 0.0
    warnings: str = ""
    error: str = ""
    known: bool = False
    """Whether the row was taken from the journal."""

    @classmethod
    def of(cls, entry: Entry, data: dict[str, Any], known: bool = False) -> Row:
        """A row from the plain data of a worker or a journal."""
        values = {name: value for name, value in data.items() if value is not None}
        for name in ("dipole", "charges", "gradient", "positions", "wavenumbers", "intensities"):
            if name in values:
                values[name] = np.array(values[name], dtype=float)
        return cls(entry, **values, known=known)

    @property
    def name(self) -> str:
        """Name of the molecule or of its file."""
        return self.entry.name

    def record(self) -> dict[str, Any]:
        """One line of the table; None where there is no value."""
        return {name: _readable(value(self)) for name, (_, value) in columns_of([self]).items()}


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which formulas begin in spreadsheets."""
Column = tuple[str, Callable[[Row], Any]]
"""Type of a column, and its value in a row."""


def _of_molecule(value: Callable[[Molecule], Any]) -> Callable[[Row], Any]:
    return lambda row: None if row.entry.molecule is None else value(row.entry.molecule)


def _flat(name: str) -> Column:
    """Column of x, y, z of the first atom, then of the second, and so on."""
    return "list<float64>", lambda row: None if getattr(row, name) is None else getattr(row, name).reshape(-1).tolist()


def _positions(row: Row) -> list[float] | None:
    """Positions of the atoms; the optimised ones after an optimisation."""
    found = row.positions
    if found is None and row.entry.molecule is not None:
        found = row.entry.molecule.R_ax
    return None if found is None else found.reshape(-1).tolist()


COLUMNS: dict[str, Column] = {
    "name": ("string", lambda row: row.name),
    "file": ("string", lambda row: row.entry.file or None),
    "formula": ("string", _of_molecule(lambda molecule: molecule.formula)),
    "charge": ("int32", _of_molecule(lambda molecule: molecule.charge)),
    "multiplicity": ("int32", _of_molecule(lambda molecule: molecule.multiplicity)),
    "method": ("string", lambda row: row.entry.model.method),
    "basis": ("string", lambda row: row.entry.model.basis),
    "energy_hartree": ("float64", lambda row: None if row.error else row.energy),
    "energy_error_hartree": ("float64", lambda row: row.energy_error),
    "converged": ("bool", lambda row: row.converged),
    "iterations": ("int32", lambda row: None if row.error else row.iterations),
    "steps": ("int32", lambda row: row.steps),
    "homo_hartree": ("float64", lambda row: row.homo),
    "lumo_hartree": ("float64", lambda row: row.lumo),
    "dipole_au": _flat("dipole"),
    "charges": _flat("charges"),
    "heat_of_formation_kcal_mol": ("float64", lambda row: row.heat_of_formation),
    "gradient_hartree_per_bohr": _flat("gradient"),
    "numbers": ("list<int32>", _of_molecule(lambda molecule: molecule.nuclei.protons.tolist())),  # ghost atoms: 0
    "positions_bohr": ("list<float64>", lambda row: _positions(row)),
    "seconds": ("float64", lambda row: row.seconds),
    "warnings": ("string", lambda row: row.warnings or None),
    "error": ("string", lambda row: row.error or None),
}


VIBRATION_COLUMNS: dict[str, Column] = {
    "wavenumbers_per_cm": _flat("wavenumbers"),
    "intensities_km_mol": _flat("intensities"),
    "zero_point_energy_hartree": ("float64", lambda row: row.zero_point_energy),
    "enthalpy_hartree": ("float64", lambda row: row.enthalpy),
    "entropy_term_hartree": ("float64", lambda row: row.entropy_term),
    "gibbs_energy_hartree": ("float64", lambda row: row.gibbs_energy),
}
"""Further columns of frequencies."""


def columns_of(rows: Sequence[Row]) -> dict[str, Column]:
    """Columns of a table with these rows."""
    return COLUMNS | (VIBRATION_COLUMNS if any(row.entry.model.driver == HESSIAN for row in rows) else {})


class Table:
    """A file written at the end; its format is checked at the beginning."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        writers = {".parquet": self._parquet, ".jsonl": self._lines, ".csv": self._csv}
        if (ending := self.path.suffix.lower()) not in writers:
            raise InputError(f"cannot write a table as {self.path.name!r}: use a name ending in {', '.join(writers)}")
        self._write = writers[ending]
        if ending == ".parquet":
            message = "Parquet needs pyarrow (pip install 'cuanto[parquet]'); .jsonl and .csv tables need no package"
            self._write = partial(self._parquet, arrow=import_optional("pyarrow", message))

    @property
    def journal(self) -> Path:
        """File beside the table with everything computed so far, including by interrupted runs."""
        return self.path.with_name(f"{self.path.name}.journal")

    def write(self, rows: Sequence[Row]) -> None:
        """Write all rows."""
        self._write([row.record() for row in rows], columns_of(rows))

    def _lines(self, records: list[dict[str, Any]], columns: dict[str, Column]) -> None:
        write_text(self.path, "".join(json.dumps(record, allow_nan=False) + "\n" for record in records))

    def _csv(self, records: list[dict[str, Any]], columns: dict[str, Column]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(columns), lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow({name: _cell(value) for name, value in record.items()})
        write_text(self.path, text.getvalue())

    def _parquet(self, records: list[dict[str, Any]], columns: dict[str, Column], arrow: Any = None) -> None:
        schema = arrow.schema([(name, _arrow_type(arrow, kind)) for name, (kind, _) in columns.items()])
        with replacing(self.path) as draft:
            table = arrow.Table.from_pylist(records, schema=schema)
            import_module("pyarrow.parquet").write_table(table, draft)


def _cell(value: Any) -> Any:
    """A value for CSV; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return json.dumps(value) if isinstance(value, list) else value


def _readable(value: Any) -> Any:
    """A text without the surrogates that stand for bytes of file names that are not UTF-8."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _arrow_type(arrow: Any, kind: str) -> Any:
    if kind.startswith("list<"):
        return arrow.list_(_arrow_type(arrow, kind[5:-1]))
    return {"string": arrow.string, "bool": arrow.bool_, "int32": arrow.int32, "float64": arrow.float64}[kind]()
