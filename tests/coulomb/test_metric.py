"""Factorisation of the metric of a fitting basis: well-conditioned ones, and those for which plain Cholesky fails."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import cuanto
from cuanto import Basis, integrals
from cuanto.backends import device_linalg
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.linalg import inverse_triangle
from cuanto.basis import Shell
from cuanto.coulomb import metric
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.metric import (
    FittingMetric,
    ModifiedFactor,
    default_delta,
    modified_cholesky,
    smallest_eigenvalue,
)
from cuanto.errors import InputError
from fitting_cases import DATA, Device, molecule, random_orbitals, smallest_budget

Array = NDArray[np.float64]
SINGULAR_ENERGY = 1e-9
"""Tolerance of an energy with a near-singular metric, Hartree."""
ROUNDING = 1e-11
"""Tolerance of solves with well-conditioned matrices."""


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def factor(modified: ModifiedFactor) -> Array:
    """M = P^T L U sqrt(Lambda)"""
    M = np.empty_like(modified.L)
    M[modified.permutation] = (modified.L @ modified.U) * np.sqrt(modified.eigenvalues)
    return M


def positive(n: int, seed: int = 0) -> Array:
    A = np.random.default_rng(seed).normal(size=(n, n))
    return np.asarray(A @ A.T + n * np.eye(n))


@pytest.mark.parametrize("n", [1, 2, 95, 96, 97, 300])
def test_inverse_of_a_triangle(n: int) -> None:
    L = np.linalg.cholesky(positive(n))
    noise = np.triu(np.ones((n, n)), 1)  # factorisations leave arbitrary values above the diagonal
    inverse = inverse_triangle(L + noise, np, np.linalg.inv)
    np.testing.assert_allclose(inverse @ L, np.eye(n), atol=1e-13)
    assert not np.triu(inverse, 1).any()


@pytest.mark.parametrize("device", [CpuBackend, Device])
@pytest.mark.parametrize("n", [1, 40, 600])
def test_solves(n: int, device: Any) -> None:
    V, rows, backend = positive(n), np.random.default_rng(1).normal(size=(7, n)), device()
    metric = FittingMetric(backend.to_device(V), backend)
    assert metric.report.method == "cholesky" and metric.report.perturbation == 0.0
    solved = backend.to_host(metric.solve(backend.to_device(rows)))
    np.testing.assert_allclose(solved, np.linalg.solve(V, rows.T).T, rtol=0, atol=ROUNDING)
    half = backend.to_host(metric.half_solve(backend.to_device(rows.copy())))
    np.testing.assert_allclose(half @ half.T, rows @ np.linalg.solve(V, rows.T), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("device", [CpuBackend, Device])
def test_the_residual_corrects_solves(device: Any) -> None:
    """The Coulomb energy, half of c x, is then exact to rounding."""
    backend, water = device(), molecule("water_04")
    basis, aux = Basis("def2-svp", water), Basis("def2-universal-jkfit", water)
    weights_kp = np.random.default_rng(8).uniform(0.0, 2.0, (20, basis.nbf))
    V, x = integrals.eri_2c(aux), np.einsum("kp,ppP->kP", weights_kp, integrals.eri_3c(basis, aux))
    exact = np.linalg.solve(V, x.T).T.astype(np.longdouble)
    for _ in range(4):
        exact += np.linalg.solve(V, (x - exact @ V.astype(np.longdouble)).astype(float).T).T
    error = {}
    for keep in (False, True):
        solved = FittingMetric(backend.to_device(V.copy()), backend, keep=keep).solve(backend.to_device(x))
        errors_k = ((backend.to_host(solved) - exact) * x).sum(axis=1) / (exact * x).sum(axis=1)
        error[keep] = float(np.abs(errors_k).max())
    assert error[True] < 5e-15 and error[True] < 0.2 * error[False]


def test_rows_anywhere_in_memory() -> None:
    V, rows = positive(30), np.random.default_rng(1).normal(size=(7, 30))
    metric = FittingMetric(V, CpuBackend())
    expected = metric.half_solve(rows.copy())
    np.testing.assert_allclose(expected, np.linalg.solve(np.linalg.cholesky(V), rows.T).T, rtol=0, atol=1e-14)
    for apart in (np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], np.repeat(rows, 2, axis=1)[:, ::2]):
        assert np.array_equal(metric.half_solve(apart), expected) and np.array_equal(apart, expected)


@pytest.mark.parametrize("device", [CpuBackend, Device])
@pytest.mark.parametrize(("smallest", "method"), [(30.0, "cholesky"), (3.0, "modified cholesky")])
def test_small_eigenvalues_above_the_threshold_are_not_raised(smallest: float, method: str, device: Any) -> None:
    """A pivot that is not safe, but an eigenvalue that is: block eigenvalues are not smaller, and none is raised."""
    n, backend = 60, device()
    A = np.eye(n)
    A[0, -1] = A[-1, 0] = 1.0 - smallest * default_delta(A)
    inverse, pivot = CpuBackend().linalg.inverse_factor(A.copy())
    found = smallest_eigenvalue(inverse, CpuBackend())
    assert found == pytest.approx(np.linalg.eigvalsh(A)[0], rel=0.01, abs=0.0) and found < pivot < 1e3 * default_delta(
        A
    )
    metric = FittingMetric(backend.to_device(A), backend)
    assert metric.report.method == method and metric.report.raised == 0


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_modified_factor_is_positive_and_its_perturbation_is_reported(n: int, seed: int) -> None:
    A = np.random.default_rng(seed).normal(size=(n, n))
    A = A + A.T  # usually indefinite
    found = modified_cholesky(A, delta=1e-3)
    M = factor(found)
    E = M @ M.T - A
    scale = np.abs(found.L).max() ** 2 * n * max(1.0, np.abs(A).max())
    assert np.linalg.norm(E) == pytest.approx(found.report.perturbation, abs=1e-11 * scale)
    assert found.eigenvalues.min() >= 1e-3
    assert (found.report.raised == 0) == (found.report.smallest >= 1e-3)
    np.testing.assert_allclose(found.inverse_factor() @ M, np.eye(n), rtol=0, atol=1e-9 * scale)


def test_two_by_two_blocks_are_raised() -> None:
    A = np.array([[0.0, 1.0], [1.0, 0.0]])  # Bunch and Kaufman take it as one block, eigenvalues -1 and 1
    found = modified_cholesky(A, delta=0.5)
    assert found.report.raised == 1 and found.report.smallest == pytest.approx(-1.0)
    M = factor(found)
    np.testing.assert_allclose(np.linalg.eigvalsh(M @ M.T), [0.5, 1.0], atol=1e-14)


def test_safe_matrices_are_not_perturbed() -> None:
    found = modified_cholesky(positive(50))
    assert found.report.raised == 0 and found.report.perturbation == 0.0
    M = factor(found)
    np.testing.assert_allclose(M @ M.T, positive(50), atol=1e-11)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="square matrix"):
        modified_cholesky(np.ones((2, 3)))
    with pytest.raises(InputError, match="finite"):
        modified_cholesky(np.full((2, 2), np.nan))


# ------------------------------------------------------------------------------------------------- bad fitting sets


def doubled(aux: Basis) -> Basis:
    """Every centre twice."""
    return Basis.from_shells([*aux.shells, *aux.shells], aux.R_ax)


def nearly_doubled(aux: Basis, apart: float = 1e-11) -> Basis:
    """Every centre twice, 1e-11 Bohr apart: what coordinates of a few more digits would do."""
    atoms = len(aux.R_ax)
    moved = [replace(shell, atom=shell.atom + atoms) for shell in aux.shells]
    return Basis.from_shells([*aux.shells, *moved], np.concatenate([aux.R_ax, aux.R_ax + apart]))


def very_diffuse(aux: Basis) -> Basis:
    """Add s functions to every atom that are nearly the same throughout the molecule."""
    extra = [
        Shell.from_table(a, 0, [exponent], [[1.0]], True)
        for a in range(len(aux.R_ax))
        for exponent in (1e-5, 1.00001e-5, 1.00002e-5, 1.00003e-5)
    ]
    return Basis.from_shells([*aux.shells, *extra], aux.R_ax)


def scaled(V_PQ: Array) -> Array:
    """The metric, scaled to a unit diagonal."""
    scale_P = 1.0 / np.sqrt(np.diag(V_PQ))
    return np.asarray(V_PQ * scale_P[:, None] * scale_P)


def assert_not_positive(V_PQ: Array) -> None:
    """Plain Cholesky fails, with and without a unit diagonal: many pivots are pure rounding errors, so that some are
    negative on any machine."""
    for A_PQ in (V_PQ, scaled(V_PQ)):
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.cholesky(A_PQ)


@pytest.mark.parametrize("spoil", [doubled, nearly_doubled, very_diffuse])
@pytest.mark.parametrize("device", [CpuBackend, Device])
def test_near_singular_metric(spoil: Any, device: Any) -> None:
    water = molecule("water_01")
    basis, aux = Basis("cc-pvdz", water), Basis("cc-pvdz-jkfit", water)
    worse = spoil(aux)
    V_PQ = integrals.eri_2c(worse, backend="cpu")
    A_PQ = scaled(V_PQ)
    assert np.linalg.eigvalsh(A_PQ)[0] < 0.01 * default_delta(A_PQ)
    assert_not_positive(V_PQ)
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    fit = FittedJK(basis, worse, backend=device())
    assert fit.metric.method == "modified cholesky" and fit.metric.raised > 0
    assert 0.0 < fit.metric.perturbation < 1e-4
    assert "raised" in str(fit.metric)
    J, K = (fit.backend.to_host(result) for result in fit(*map(fit.backend.to_device, (D_spq, C_spi))))
    expected_J, expected_K = pseudo_inverse_jk(basis, worse, D_spq[0], C_spi[0])
    assert np.abs(J[0] - expected_J).max() < 1e-8
    assert np.abs(K[0] - expected_K).max() < 1e-8
    if spoil is not very_diffuse:  # copies of functions do not change the fit
        plain = FittedJK(basis, aux, backend=CpuBackend())
        assert plain.metric.method == "cholesky"
        for mine, theirs in zip((J, K), plain(D_spq, C_spi), strict=True):
            assert np.abs(mine - theirs).max() < 1e-8


def test_plain_cholesky_of_a_singular_metric_is_wrong() -> None:
    """One shell twice, 1e-9 Bohr apart: its pivots of 1e-18 are lost; where rounding leaves positive ones, J is wrong.

    Which shells those are depends on the machine: all 31 of s and p are tried, and some get through.
    """
    water = molecule("water_01")
    basis, aux = Basis("cc-pvdz", water), Basis("cc-pvdz-jkfit", water)
    both = nearly_doubled(aux, 1e-9)
    V_PQ, I_pqP = integrals.eri_2c(both, backend="cpu"), integrals.eri_3c(basis, both, backend="cpu")
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    expected = pseudo_inverse_jk(basis, aux, D_spq[0], C_spi[0])[0]
    x_P = np.einsum("pqP,pq->P", I_pqP, D_spq[0])
    errors = []
    last = aux.nbf
    for shell in aux.shells:
        first, last = last, last + shell.nbf
        if shell.l > 1:
            continue
        mine = np.r_[: aux.nbf, first:last]
        V, x = V_PQ[np.ix_(mine, mine)], x_P[mine]
        found = FittingMetric(V, CpuBackend())
        assert found.report.raised == shell.nbf
        assert np.abs(I_pqP[:, :, mine] @ found.solve(x[None])[0] - expected).max() < 1e-8
        scale = 1.0 / np.sqrt(np.diag(V))
        try:
            L = np.linalg.cholesky(scaled(V))
        except np.linalg.LinAlgError:
            continue
        c = scale * np.linalg.solve(L.T, np.linalg.solve(L, scale * x))
        errors.append(np.abs(I_pqP[:, :, mine] @ c - expected).max())
    assert errors and max(errors) > 1e-8


@pytest.mark.parametrize("spoil", [doubled, nearly_doubled, very_diffuse])
def test_near_singular_metric_in_the_j_engine(spoil: Any) -> None:
    """The metric magnifies the screening errors of the J engine as well."""
    water = molecule("water_01")
    basis, worse = Basis("cc-pvdz", water), spoil(Basis("cc-pvdz-jkfit", water))
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    fit = FittedJK(basis, worse, backend="cpu", kind="j", budget=smallest_budget(basis, worse, "j"))
    assert "J engine" in str(fit.plan) and fit.metric.method == "modified cholesky"
    J = fit(D_spq, None, True, False)[0]
    assert np.abs(J[0] - pseudo_inverse_jk(basis, worse, D_spq[0], C_spi[0])[0]).max() < 1e-8


@pytest.mark.parametrize("spoil", [doubled, nearly_doubled, very_diffuse])
def test_energy_with_a_near_singular_metric(spoil: Any) -> None:
    """Stable: converged as fast as with the plain set. Correct: that of its density with the pseudo-inverse."""
    water = molecule("water_01")
    basis, aux = Basis("cc-pvdz", water), Basis("cc-pvdz-jkfit", water)
    worse = spoil(aux)
    assert_not_positive(integrals.eri_2c(worse, backend="cpu"))
    plain, found = (
        cuanto.energy(water, "rhf", basis, fitting="jk", auxbasis=set_, backend="cpu", energy_tolerance=1e-11)
        for set_ in (aux, worse)
    )
    assert found.converged and found.iterations <= plain.iterations + 1
    assert not any("metric" in note for note in plain.notes)
    (note,) = [note for note in found.notes if "metric" in note]
    output = re.fullmatch(
        r"fitting metric: modified cholesky, (\d+) eigenvalues raised to (\S+), norm of E (\S+)", note
    )
    assert output is not None
    V_PQ = integrals.eri_2c(worse, backend="cpu")
    assert int(output[1]) == FittingMetric(V_PQ, CpuBackend()).report.raised > 0
    assert float(output[2]) == pytest.approx(default_delta(scaled(V_PQ)), rel=0.05)
    assert 0.0 < float(output[3]) < metric.MAX_PERTURBATION
    D_pq, C_pi = found.density[0], np.sqrt(2.0) * found.coefficients[0][:, : water.nelectron // 2]
    H_pq = integrals.kinetic(basis, backend="cpu") + integrals.nuclear(basis, water, backend="cpu")
    J_pq, K_pq = pseudo_inverse_jk(basis, worse, D_pq, C_pi)
    expected = water.nuclear_repulsion() + float((D_pq * (H_pq + 0.5 * J_pq - 0.25 * K_pq)).sum())
    assert found.energy == pytest.approx(expected, abs=SINGULAR_ENERGY)
    if spoil is not very_diffuse:
        assert found.energy == pytest.approx(plain.energy, abs=SINGULAR_ENERGY)
    else:  # diffuse functions change the energy a little
        assert 1e-12 < abs(found.energy - plain.energy) < 1e-4


def test_functions_left_out_are_reported() -> None:
    """For the attenuated operator of a functional; the metric of 1/r is well conditioned and not mentioned."""
    water = molecule("water_01")
    options: dict[str, Any] = {"auxbasis": "cc-pvdz-jkfit", "backend": "cpu", "grid": (10, 26), "max_iterations": 1}
    found = cuanto.energy(water, "cam-b3lyp", "cc-pvdz", fitting="jk", **options)
    (note,) = [note for note in found.notes if "metric" in note]
    output = re.fullmatch(r"fitting metric at long range: pivoted cholesky, (\d+) functions left out .*", note)
    basis, aux = Basis("cc-pvdz", water), Basis("cc-pvdz-jkfit", water)
    fit = FittedJK(basis, aux, backend=CpuBackend(), omega=0.33)
    assert output is not None and int(output[1]) == fit.metric.left_out > 0


def pseudo_inverse_jk(basis: Basis, aux: Basis, D_pq: Array, C_pi: Array) -> tuple[Array, Array]:
    """J and K from eigenvectors of the scaled metric; eigenvalues that rounding cannot tell from zero are left out."""
    I_pqP = integrals.eri_3c(basis, aux, backend="cpu")
    V_PQ = integrals.eri_2c(aux, backend="cpu")
    scale = 1.0 / np.sqrt(np.diag(V_PQ))
    values, U = np.linalg.eigh(V_PQ * scale[:, None] * scale)
    kept = values > 1e-11
    half = (U[:, kept] / np.sqrt(values[kept])) * scale[:, None]
    B_pqx = I_pqP @ half
    X_pix = np.einsum("pqx,qi->pix", B_pqx, C_pi)
    J_pq = B_pqx @ np.einsum("pqx,pq->x", B_pqx, D_pq)
    return J_pq, np.einsum("pix,qix->pq", X_pix, X_pix)


def test_products_by_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products by panels, as a GPU does large ones, take half the operations and give the same numbers."""
    monkeypatch.setattr(device_linalg, "PANEL", 7)
    monkeypatch.setattr(device_linalg, "GRAM_ROWS", 5)
    rng, backend = np.random.default_rng(3), Device()
    for size in (20, 28, 40):
        L, rows = np.tril(rng.normal(size=(size, size))), rng.normal(size=(11, size))
        there, products = backend.to_device(L), backend.to_device(rows)
        backend.linalg.times_transpose(products, there, triangle=True)
        assert np.abs(backend.to_host(products) - rows @ L.T).max() < 1e-13
        assert np.abs(backend.to_host(backend.linalg.gram(there)) - L @ L.T).max() < 1e-13
