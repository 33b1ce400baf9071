"""Reference energies and gradients: rows of tests/data/*_references.json and how they are computed here.

A row says all about its calculation; `tools/make_gradient_references.py` and `make_core_potential_references.py` write
them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

import cuanto
from paths import DATA
from scf_cases import basis

FILES = {name: DATA / f"{name}_references.json" for name in ("gradient", "core_potential")}
FILE = FILES["gradient"]
WITH_GRID, WITHOUT_GRID = 1e-6, 1e-8
"""Tolerances of gradients, Hartree/Bohr; rows with core potentials always have the larger one."""
TIGHT = {"gradient_tolerance": 1e-9, "energy_tolerance": 1e-12}
Row = dict[str, Any]


@lru_cache
def references(kind: str = "gradient") -> list[Row]:
    """All rows of a file."""
    found: list[Row] = json.loads(FILES[kind].read_text())
    return found


def key(row: Row) -> str:
    """The name of a row."""
    form = " cartesian" if row["cartesian"] else ""
    fitting = "direct" if row["fitting"] == "none" else f"RI-{row['fitting'].upper()}"
    return f"{row['molecule']} {row['method']}/{basis_name(row)}{form} {fitting}"


def basis_name(row: Row) -> str:
    """The name of the basis; of several: that of the heavy element and the one for all others."""
    return "+".join(row["basis"].values()) if isinstance(row["basis"], dict) else str(row["basis"])


def tolerance(row: Row) -> float:
    """Largest difference from the reference, Hartree/Bohr."""
    return WITHOUT_GRID if row["grid"] is None and "start" not in row else WITH_GRID


def energy_tolerance(row: Row) -> float:
    """Largest difference from the reference, Hartree."""
    return 1e-8 if row["grid"] is None else 1e-6


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
    """Energy and gradient of a row; only the energy if the row has no gradient."""
    mol = molecule_of(row)
    orbital, aux = bases(row, mol)
    options: dict[str, Any] = {"fitting": row["fitting"], "auxbasis": aux, "backend": backend, **TIGHT}
    options["search"] = "none"  # references are the states that the default guess leads to
    if row["grid"] is not None:
        options["grid"] = {"level": tuple(row["grid"]), **row.get("rules", {})}
    compute = cuanto.energy if row.get("gradient", []) is None else cuanto.gradient
    return compute(mol, row["method"], orbital, **options)


def difference(row: Row, result: cuanto.Result) -> float:
    """Largest difference of the gradients, Hartree/Bohr."""
    return float(np.abs(result.gradient - row["gradient"]).max())
