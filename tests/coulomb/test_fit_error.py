"""Estimated fitting errors: one centre against integrals, limits, and molecules against four-centre integrals."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fit_error import COULOMB_FACTOR, EXCHANGE_FACTOR, fit_errors
from cuanto.coulomb.fitting import FittedJK
from paths import DATA

WATER = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def missing_integrals(basis: Basis, aux: Basis) -> Array:
    """(ab|cd) minus its fit, [a, b, c, d]."""
    n = basis.nbf
    exact = np.asarray(cuanto.integrals.eri_4c(basis, backend="cpu")).reshape(n * n, n * n)
    three = np.asarray(cuanto.integrals.eri_3c(basis, aux, backend="cpu")).reshape(n * n, -1)
    V_PQ = np.asarray(cuanto.integrals.eri_2c(aux, backend="cpu"))
    return (exact - three @ np.linalg.solve(V_PQ, three.T)).reshape(n, n, n, n)


@pytest.mark.parametrize("spins", [1, 2])
@pytest.mark.parametrize("name", ["def2-svp", "6-31gss"])  # pure and Cartesian d functions
def test_one_atom_agrees_with_integrals(name: str, spins: int) -> None:
    atom = cuanto.Molecule(["O"], [[0.1, 0.2, 0.3]], multiplicity=3)
    basis, aux = Basis(name, atom), Basis("def2-universal-jkfit", atom)
    C_spi = np.random.default_rng(1).normal(size=(spins, basis.nbf, 4))
    D_spq = np.einsum("spi,sqi->spq", C_spi, C_spi) / basis.nbf
    missing, total = missing_integrals(basis, aux), D_spq.sum(axis=0)
    coulomb = -0.5 * np.einsum("ab,abcd,cd", total, missing, total, optimize=True)
    exchange = np.einsum("sac,abcd,sbd", D_spq, missing, D_spq, optimize=True) * (0.25 if spins == 1 else 0.5)
    found = fit_errors(basis, aux, D_spq, True, None)
    assert found == pytest.approx((COULOMB_FACTOR * coulomb, EXCHANGE_FACTOR * exchange), rel=2e-3)
    assert fit_errors(basis, aux, D_spq, False, None) == pytest.approx((found[0], 0.0))
    assert fit_errors(basis, aux, D_spq, True, 1e5) == pytest.approx(found, rel=1e-3)
    assert fit_errors(basis, aux, D_spq, True, 0.1)[1] < 0.01 * found[1]


def test_no_error_if_all_products_are_fitted() -> None:
    own = [Shell.from_table(0, l, [a], [[1.0]], True) for l, a in ((0, 1.3), (1, 0.7))]
    fitting = [Shell.from_table(0, l, [a], [[1.0]], True) for l, a in ((0, 2.6), (1, 2.0), (2, 1.4), (0, 1.4))]
    basis, aux = (Basis.from_shells(shells, [[0.0, 0.0, 0.0]]) for shells in (own, fitting))
    D_spq = np.ones((1, 4, 4))
    (coulomb, exchange), (less, _) = (fit_errors(basis, one, D_spq, True, None) for one in (aux, basis))
    # r^2 exp(-1.4 r^2), the spherical part of a product of p functions, is not an s function
    assert -0.05 < coulomb < 0 < exchange < 0.1 and less < 5 * coulomb


def test_large_sets_lose_their_highest_momenta() -> None:
    shells = [Shell.from_table(0, l, [0.5 + k], [[1.0]], True) for l in range(5) for k in range(4)]
    basis = Basis.from_shells(shells, [[0.0, 0.0, 0.0]])
    D_spq = np.zeros((1, basis.nbf, basis.nbf))
    D_spq[0, 0, 0] = 2.0
    few = Basis.from_shells(shells[:4], [[0.0, 0.0, 0.0]])
    found = fit_errors(basis, few, D_spq, True, None)
    assert found == pytest.approx(fit_errors(few, few, D_spq[:, :4, :4], True, None))


@pytest.mark.parametrize("name", ["def2-universal-jfit", "def2-universal-jkfit"])
def test_a_molecule(name: str) -> None:
    """Within a factor of three for water, J and K separately."""
    molecule = cuanto.Molecule.from_string(WATER)
    result = cuanto.energy(molecule, "hf", "def2-svp", fitting="none", backend="cpu")
    basis, D_spq = result.basis, result.density  # type: ignore[attr-defined]
    aux = Basis(name, molecule)
    (J, K), (fitted_J, fitted_K) = (one(D_spq) for one in (DirectJK(basis, backend="cpu"), FittedJK(basis, aux)))
    coulomb, exchange = 0.5 * np.sum(D_spq * (fitted_J - J)), -0.25 * np.sum(D_spq * (fitted_K - K))
    for found, actual in zip(fit_errors(basis, aux, D_spq, True, None), (coulomb, exchange), strict=True):
        assert 1 / 3 < found / actual < 3
