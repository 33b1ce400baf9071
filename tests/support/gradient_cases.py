"""Reference gradients: rows of tests/data/gradient_references.json and how they are computed here.

A row describes its calculation completely; `tools/make_gradient_references.py` writes them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

import cuanto
from places import DATA
from scf_cases import basis

FILE = DATA / "gradient_references.json"
WITH_GRID, WITHOUT_GRID = 1e-6, 1e-8
"""Largest difference, Hartree/Bohr."""
TIGHT = {"gradient_tolerance": 1e-9, "energy_tolerance": 1e-12}
Row = dict[str, Any]


@lru_cache
def references() -> list[Row]:
    """All rows."""
    found: list[Row] = json.loads(FILE.read_text())
    return found


def key(row: Row) -> str:
    """The name of a row."""
    form = " cartesian" if row["cartesian"] else ""
    fitting = "direct" if row["fitting"] == "none" else f"RI-{row['fitting'].upper()}"
    return f"{row['molecule']} {row['method']}/{row['basis']}{form} {fitting}"


def tolerance(row: Row) -> float:
    """Largest difference from the reference, Hartree/Bohr."""
    return WITHOUT_GRID if row["grid"] is None else WITH_GRID


def molecule_of(row: Row) -> cuanto.Molecule:
    """The molecule of a row."""
    lines = [line.strip() for line in row["geometry"].split(";")]
    plain = cuanto.Molecule.from_string("\n".join([str(len(lines)), "", *lines]) + "\n")
    return cuanto.Molecule(plain.symbols, plain.R_ax, row["charge"], row["multiplicity"])


def bases(row: Row, mol: cuanto.Molecule) -> tuple[cuanto.Basis, cuanto.Basis | None]:
    """Orbital and fitting basis."""
    spherical = False if row["cartesian"] else None
    aux = None if row["auxbasis"] is None else basis(row["auxbasis"], mol)
    return basis(row["basis"], mol, spherical), aux


def calculate(row: Row, backend: str = "cpu") -> cuanto.Result:
    """Energy and gradient of a row."""
    mol = molecule_of(row)
    orbital, aux = bases(row, mol)
    options: dict[str, Any] = {"fitting": row["fitting"], "auxbasis": aux, "backend": backend, **TIGHT}
    if row["grid"] is not None:
        options["grid"] = tuple(row["grid"])
    return cuanto.gradient(mol, row["method"], orbital, **options)


def difference(row: Row, result: cuanto.Result) -> float:
    """Largest difference of the gradients, Hartree/Bohr."""
    return float(np.abs(result.gradient - row["gradient"]).max())
