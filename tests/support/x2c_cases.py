"""Reference energies and gradients with scalar relativity: rows of tests/data/x2c_references.json.

A row describes its calculation completely; `tools/make_x2c_references.py` writes them, `tools/compare_x2c.py` compares.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

import cuanto
from cuanto.scf.atoms import solve
from cuanto.terms.x2c import OneElectronModel
from gradient_cases import molecule_of
from paths import DATA
from scf_cases import basis
from tolerances import ENERGY, ENERGY_GRID

FILE = DATA / "x2c_references.json"
SPEED_OF_LIGHT = 137.03599967994
"""The value that PySCF uses."""
RELATIVE = 1e-11
"""Relative tolerance of energies, used where it is larger than ENERGY or ENERGY_GRID."""
GRADIENT = 1e-6
"""Tolerance of gradients, Hartree/Bohr."""
CONVERGED = {"gradient_tolerance": 1e-7, "energy_tolerance": 1e-11}
Row = dict[str, Any]
BY_MOMENTUM = {
    2: (2.0,),
    10: (4.0, 6.0),
    18: (6.0, 12.0),
    28: (6.0, 12.0, 10.0),
    36: (8.0, 18.0, 10.0),
    46: (8.0, 18.0, 20.0),
    54: (10.0, 24.0, 20.0),
    68: (10.0, 24.0, 20.0, 14.0),
    78: (10.0, 24.0, 30.0, 14.0),
    86: (12.0, 30.0, 30.0, 14.0),
}
"""Electrons in s, p, d and f shells of the closed-shell ions, by their total number."""


@lru_cache
def references() -> list[Row]:
    """All rows."""
    found: list[Row] = json.loads(FILE.read_text())
    return found


def key(row: Row) -> str:
    """The name of a row."""
    fitting = "direct" if row["fitting"] == "none" else f"RI-{row['fitting'].upper()}"
    return f"{row['molecule']} {row['method']}/{row['basis']} {fitting} {row['nuclear_model']}"


def bases(row: Row, mol: cuanto.Molecule) -> tuple[cuanto.Basis, cuanto.Basis | None]:
    """Orbital and fitting basis."""
    return basis(row["basis"], mol), None if row["auxbasis"] is None else basis(row["auxbasis"], mol)


def calculate(row: Row, backend: str = "cpu") -> cuanto.Result:
    """The energy of a row."""
    mol = molecule_of(row)
    orbital, aux = bases(row, mol)
    options: dict[str, Any] = {"relativity": "x2c", "speed_of_light": SPEED_OF_LIGHT}
    options |= {"nuclear_model": row["nuclear_model"], "fitting": row["fitting"], "auxbasis": aux, "backend": backend}
    options["search"] = "none"  # references are the states that the default guess leads to
    if row["grid"] is not None:
        options["grid"] = tuple(row["grid"])
    return cuanto.energy(mol, row["method"], orbital, **options, **CONVERGED)


def closed_shell_energy(row: Row) -> tuple[float, bool]:
    """Energy of an atom or ion by the SCF of spherical atoms, and whether it converged.

    That SCF, which makes the guess for molecules, solves the same equations for closed shells and is fast enough to
    test every element.
    """
    mol, model = molecule_of(row), OneElectronModel(SPEED_OF_LIGHT, row["nuclear_model"] == "gaussian")
    electrons = list(BY_MOMENTUM[mol.nelectron])
    shells = [shell for shell in bases(row, mol)[0].shells if shell.l < len(electrons)]
    found = solve(int(mol.nuclei.protons[0]), electrons, shells, None, model)
    return found.energy, found.converged


def energy_tolerance(row: Row) -> float:
    """Largest difference from the reference, Hartree."""
    return max(ENERGY if row["grid"] is None else ENERGY_GRID, RELATIVE * abs(row["energy"]))


def gradient_difference(row: Row, result: cuanto.Result) -> float | None:
    """Largest difference of the gradients, Hartree/Bohr; None without a reference."""
    return None if row["gradient"] is None else float(np.abs(result.gradient - row["gradient"]).max())
