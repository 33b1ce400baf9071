"""The integral fingerprints of tests/data/integrals.json (PySCF 2.14.0; conventions in tests/data/README.md)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, get_backend
from cuanto.basis import unit_norm_factors
from paths import DATA

Array = NDArray[np.float64]
Record = dict[str, Any]

REFERENCE: dict[str, list[Record]] = json.loads((DATA / "integrals.json").read_text())
SUM = 1e-12
"""Relative tolerance of sums over many integrals."""
FITTED = 1e-10
"""Relative tolerance of results that involve the inverse of (P|Q), whose condition number is about 1e6."""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Backend:
    return get_backend(request.param)


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def molecule(name: str) -> Molecule:
    if name == "H_atom":
        return Molecule(["H"], [[0.0, 0.0, 0.0]], multiplicity=2)
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def title(record: Record) -> str:
    return f"{record['molecule']}-{record['basis']}-{'cartesian' if record['cartesian'] else 'spherical'}"


def density(n: int) -> Array:
    """D_ij = cos(0.1 i j) + cos(0.1 j i)"""
    return np.asarray(2 * np.cos(0.1 * np.outer(np.arange(n), np.arange(n))))


def close(value: Any, expected: float, tolerance: float = SUM, scale: float = 0.0) -> None:
    """`scale` is the size of the terms of a sum that may cancel."""
    assert float(value) == pytest.approx(expected, rel=tolerance, abs=tolerance * scale)


def check_matrix(M: Array, expected: Record) -> None:
    close(np.abs(M).sum(), expected["sum_abs"])
    close(np.linalg.norm(M), expected["frobenius"])
    close(np.trace(M), expected["trace"], scale=np.abs(np.diag(M)).sum())


@pytest.mark.parametrize("record", REFERENCE["four_centre"], ids=title)
def test_one_electron_integrals(record: Record, device: Backend) -> None:
    mol = molecule(record["molecule"])
    basis = Basis(record["basis"], mol, spherical=not record["cartesian"])
    assert basis.nbf == record["nbf"]
    assert basis.ao_labels() == record["ao_labels"]
    S, T, V, R = (
        device.to_host(values)
        for values in (
            integrals.overlap(basis, backend=device),
            integrals.kinetic(basis, backend=device),
            integrals.nuclear(basis, mol, backend=device),
            integrals.dipole(basis, backend=device),
        )
    )
    assert np.diag(S) == pytest.approx(np.array(record["overlap_diagonal"]), rel=1e-12)
    for normalisation, expected in record["normalisations"].items():
        s = unit_norm_factors(basis) if normalisation == "unit" else np.ones(basis.nbf)
        D = density(basis.nbf)
        for name, M in {"S": S, "T": T, "V": V}.items():
            scaled = M * np.outer(s, s)
            check_matrix(scaled, expected[name])
            close((scaled * D).sum(), expected[f"trace_{name}D"], scale=np.abs(scaled * D).sum())
        for x in range(3):
            scaled = R[x] * np.outer(s, s)
            size = np.abs(scaled).sum()
            close(np.linalg.norm(scaled), expected["dipole_frobenius_xyz"][x], scale=1e-5 * size)
            close((scaled * D).sum(), expected["dipole_SD_xyz"][x], scale=size)


def test_unit_normalisation_is_the_overlap_diagonal() -> None:
    records = [r for r in REFERENCE["four_centre"] if "unit" in r["normalisations"]]
    assert len(records) == 8
    for record in records:
        basis = Basis(record["basis"], molecule(record["molecule"]), spherical=False)
        assert unit_norm_factors(basis) ** -2 == pytest.approx(np.array(record["overlap_diagonal"]), rel=1e-12)


# ------------------------------------------------------------------------------------------------- fitting


@cache
def fitting_integrals(number: int, backend: str) -> tuple[Basis, Basis, Array, Array]:
    device = get_backend(backend)
    record = REFERENCE["fitting"][number]
    mol = molecule(record["molecule"])
    spherical = not record["cartesian"]
    basis, aux = (Basis(record[name], mol, spherical=spherical) for name in ("basis", "auxbasis"))
    B_pqP, V_PQ = integrals.eri_3c(basis, aux, backend=device), integrals.eri_2c(aux, backend=device)
    return basis, aux, device.to_host(B_pqP), device.to_host(V_PQ)


FITTING = pytest.mark.parametrize(
    "number", range(len(REFERENCE["fitting"])), ids=[title(record) for record in REFERENCE["fitting"]]
)


@FITTING
def test_two_and_three_centre_integrals(number: int, device: Backend) -> None:
    record = REFERENCE["fitting"][number]
    basis, aux, B_pqP, V_PQ = fitting_integrals(number, device.name)
    assert (basis.nbf, aux.nbf) == (record["nbf"], record["naux"])
    assert basis.ao_labels() == record["ao_labels"] and aux.ao_labels() == record["aux_labels"]
    three, two = record["three_centre"], record["two_centre"]
    close(np.abs(B_pqP).sum(), three["sum_abs"])
    close(np.linalg.norm(B_pqP), three["frobenius"])
    check_matrix(V_PQ, two)
    close(np.linalg.slogdet(V_PQ)[1], two["log_det"], 1e-9)
    for values, elements in ((B_pqP, three["elements"]), (V_PQ, two["elements"])):
        for element in elements:
            close(values[tuple(element["index"])], element["value"])
    g_P = np.einsum("pqP,pq->P", B_pqP, density(basis.nbf))
    expected = record["gamma_P_from_D"]
    close(np.abs(g_P).sum(), expected["sum_abs"])
    close(np.linalg.norm(g_P), expected["frobenius"])
    close(g_P[0], expected["first"], scale=1.0)
    close(g_P[-1], expected["last"], scale=1.0)


@FITTING
def test_fitted_coulomb_and_exchange(number: int, device: Backend) -> None:
    """J = (pq|P) (P|Q)^-1 (Q|rt) D_rt and K likewise."""
    record = REFERENCE["fitting"][number]
    basis, _, B_pqP, V_PQ = fitting_integrals(number, device.name)
    D = density(basis.nbf)
    n, naux = basis.nbf, len(V_PQ)
    J = B_pqP @ np.linalg.solve(V_PQ, np.einsum("pqP,pq->P", B_pqP, D))
    B_Ppq = np.linalg.solve(np.linalg.cholesky(V_PQ), B_pqP.reshape(n * n, naux).T).reshape(naux, n, n)
    K = np.einsum("Ppr,rt,Pqt->pq", B_Ppq, D, B_Ppq, optimize=True)
    for name, M in (("J", J), ("K", K)):
        expected = record["fitted"][name]
        size = np.abs(M).max()
        close(np.abs(M).sum(), expected["sum_abs"], FITTED)
        close(np.linalg.norm(M), expected["frobenius"], FITTED)
        close((M * D).sum(), expected[f"trace_{name}D"], FITTED, scale=np.abs(M * D).sum())
        close(M[0, 0], expected["first"], FITTED, scale=size)
        close(M[-1, -1], expected["last"], FITTED, scale=size)
        close(M[0, -1], expected["first_last"], FITTED, scale=size)
