"""Systems, densities and stored elements of direct J and K (tests/data/direct_jk.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto import Basis, Molecule
from cuanto.basis import unit_norm_factors
from cuanto.coulomb import DirectJK
from paths import DATA

Array = NDArray[np.float64]
Record = dict[str, Any]

FILE = DATA / "direct_jk.json"
ELEMENTS = 300
"""Number of stored elements of J and of K."""
ROUNDING = 1e-12
"""Tolerance relative to the largest element, if the screening threshold is far smaller."""
EXACT = 1e-10
"""Tolerance of J and K with the screening threshold 1e-12 against PySCF."""

DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@dataclass(frozen=True)
class System:
    """A molecule of tests/data/geometries, a basis of tests/data/basis, and whether its functions are spherical."""

    molecule: str
    basis: str
    spherical: bool

    def __str__(self) -> str:
        return f"{self.molecule}-{self.basis}"


SYSTEMS = (
    System("naphthalene", "6-31g**", True),
    System("alkane_18", "cc-pvdz", True),
    System("CuO", "6-31g**", False),
    System("water_01", "cc-pv5z", True),
    System("alkane_08", "cc-pvdz", True),
)


def molecule_of(name: str) -> Molecule:
    """A geometry of the test data, or one hydrogen atom."""
    if name == "H_atom":
        return Molecule(["H"], [[0.0, 0.0, 0.0]], multiplicity=2)
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def basis_of(system: System) -> Basis:
    """The basis of a system, from the test data if CUANTO_BASIS_PATH points there."""
    return Basis(system.basis, molecule_of(system.molecule), spherical=system.spherical)


def density(basis: Basis, length: float = 2.0) -> Array:
    """D_pq = cos(0.1 p q) exp(-|R_p - R_q| / length), which decays like a real density; R_p: centre of p in Bohr."""
    p = np.arange(basis.nbf)
    D: Array = np.cos(0.1 * np.outer(p, p)) * np.exp(-distances(basis) / length)
    return D


def distances(basis: Basis) -> Array:
    """|R_p - R_q| of all functions."""
    atom = np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])
    R_px = basis.R_ax[atom]
    distance: Array = np.linalg.norm(R_px[:, None] - R_px[None], axis=2)
    return distance


def fingerprint(M_pq: Array, D_pq: Array, indices: NDArray[np.int64]) -> Record:
    """The numbers that are stored of J and K."""
    return {
        "frobenius": float(np.linalg.norm(M_pq)),
        "trace_with_D": float((M_pq * D_pq).sum()),
        "elements": M_pq[indices[:, 0], indices[:, 1]].tolist(),
    }


@cache
def stored() -> dict[str, Record]:
    """All records by the name of their system."""
    records: list[Record] = json.loads(FILE.read_text())["systems"]
    return {f"{record['molecule']}-{record['basis']}": record for record in records}


def ours(direct: DirectJK, D: Array, **wanted: bool) -> tuple[Array, Array]:
    """J and K as NumPy arrays."""
    device = direct.backend
    J, K = direct(device.to_device(D), **wanted)
    return tuple(M if M is None else device.to_host(M) for M in (J, K))  # type: ignore[return-value]


def close(M: Array, exact: Array, tolerance: float = ROUNDING) -> None:
    """Assert that two matrices agree to `tolerance` times the largest element."""
    assert M.shape == exact.shape
    assert np.abs(M - exact).max() <= tolerance * max(1.0, np.abs(exact).max())


def densities(nbf: int) -> dict[str, Array]:
    """A symmetric, an antisymmetric and a general density."""
    A = np.random.default_rng(3).normal(size=(nbf, nbf))
    return {"symmetric": A + A.T, "antisymmetric": A - A.T, "general": A}


def stored_errors(system: System, device: str) -> dict[str, float]:
    """Largest error of the elements, and relative errors of norm and trace; with threshold 1e-12."""
    record, basis = stored()[str(system)], basis_of(system)
    assert basis.nbf == record["nbf"]
    D, indices = density(basis), np.array(record["places"])
    errors = {}
    for letter, M in zip("JK", ours(DirectJK(basis, backend=device, threshold=1e-12), D), strict=True):
        found, expected = fingerprint(M, D, indices), record[letter]
        errors[f"{letter} elements"] = float(np.abs(np.subtract(found["elements"], expected["elements"])).max())
        for name in ("frobenius", "trace_with_D"):
            errors[f"{letter} {name}"] = abs(found[name] / expected[name] - 1.0)
    return errors


@cache
def four_centre() -> list[Record]:
    """The records of integrals.json that have J and K."""
    records: list[Record] = json.loads((DATA / "integrals.json").read_text())["four_centre"]
    return records


def title(record: Record) -> str:
    """Name of a record of integrals.json: molecule, basis, and cartesian or spherical."""
    return f"{record['molecule']}-{record['basis']}-{'cartesian' if record['cartesian'] else 'spherical'}"


def fingerprint_errors(record: Record, device: str) -> dict[str, float]:
    """Errors of J and K of D_ij = 2 cos(0.1 i j) relative to the size of what is added up; with threshold 1e-12."""
    basis = Basis(record["basis"], molecule_of(record["molecule"]), spherical=not record["cartesian"])
    i = np.arange(basis.nbf)
    D = 2.0 * np.cos(0.1 * np.outer(i, i))
    direct = DirectJK(basis, backend=device, threshold=1e-12)
    errors = {}
    for normalisation, expected in record["normalisations"].items():
        s = unit_norm_factors(basis) if normalisation == "unit" else np.ones(basis.nbf)
        for letter, scaled in zip("JK", ours(direct, D * np.outer(s, s)), strict=True):
            M = scaled * np.outer(s, s)
            size = float(np.abs(M).max())
            found = {
                "sum_abs": (np.abs(M).sum(), np.abs(M).sum()),
                "frobenius": (np.linalg.norm(M), np.linalg.norm(M)),
                f"trace_{letter}D": ((M * D).sum(), np.abs(M * D).sum()),
                "first": (M[0, 0], size),
                "last": (M[-1, -1], size),
                "first_last": (M[0, -1], size),
            }
            for name, (value, scale) in found.items():
                errors[f"{normalisation} {letter} {name}"] = float(abs(value - expected[letter][name]) / scale)
    return errors
