"""Molecules, reference records and calculations that the SCF tests share."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import cuanto
from cuanto.methods import Result

DATA = Path(__file__).parent / "data"

N2_STRETCHED = "2\n\nN 0 0 0\nN 0 0 3.0\n"
ZWITTERION = """10
glycine, NH3+ and COO-, set by hand
N  -1.246  -0.229   0.000
C   0.000   0.590   0.000
C   1.220  -0.360   0.000
O   2.310   0.240   0.000
O   0.970  -1.580   0.000
H  -1.230  -0.850   0.820
H  -1.230  -0.850  -0.820
H  -2.080   0.360   0.000
H   0.030   1.220   0.890
H   0.030   1.220  -0.890
"""
WATER = "3\n\nO 0.0 0.1 0.117\nH 0.2 0.757 -0.469\nH 0.0 -0.757 -0.469\n"


def molecule(name: str) -> cuanto.Molecule:
    return cuanto.Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def basis(name: str, of: cuanto.Molecule, spherical: bool | None = None) -> cuanto.Basis:
    """From the files of the tests, whose contraction is that of the reference."""
    before = os.environ.get("CUANTO_BASIS_PATH")
    os.environ["CUANTO_BASIS_PATH"] = str(DATA / "basis")
    try:
        return cuanto.Basis(name, of, spherical=spherical)
    finally:
        if before is None:
            del os.environ["CUANTO_BASIS_PATH"]
        else:
            os.environ["CUANTO_BASIS_PATH"] = before


@lru_cache
def records(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{file}.json").read_text())
    return found


def record(file: str, **wanted: Any) -> dict[str, Any]:
    """The only record with these entries."""
    (found,) = [r for r in records(file) if all(r.get(key) == value for key, value in wanted.items())]
    return found


def run_record(given: dict[str, Any], **options: Any) -> Result:
    """The calculation of a record."""
    mol = molecule(given["molecule"])
    orbital = basis(given["basis"], mol, spherical=not given["cartesian"])
    kind = {"n": "none", "RI-J and RI-K": "jk", "RI-J, exact K": "j"}
    fitting = kind.get(given["fitting"]) or kind[given["fitting"][0]]
    aux = basis(given["auxbasis"], mol, spherical=orbital.spherical) if given["auxbasis"] else None
    settings: dict[str, Any] = {"backend": "cpu", "fitting": fitting, "auxbasis": aux, **options}
    return cuanto.energy(mol, given["method"].lower(), orbital, **settings)


def water(spherical: bool = True, name: str = "cc-pvdz") -> tuple[cuanto.Molecule, cuanto.Basis]:
    mol = cuanto.Molecule.from_string(WATER)
    return mol, basis(name, mol, spherical)


def rotated(mol: cuanto.Molecule, seed: int) -> cuanto.Molecule:
    """Turned and shifted."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.linalg.det(Q)
    return cuanto.Molecule(mol.symbols, mol.R_ax @ Q + rng.normal(size=3), mol.charge, mol.multiplicity)
