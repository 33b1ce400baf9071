"""Secants of earlier SCFs: independent combinations, and extrapolations that use them."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.motion.surface import Surface
from cuanto.scf.diis import History
from cuanto.scf.orthogonal import make_frame
from cuanto.scf.secants import Carried, Secants, independent, smooth_directions

HOST = get_backend("cpu")
WATER = Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")
VELOCITY = np.array([[0.0, 0.01, 0.0], [0.01, 0.02, -0.02], [0.0, 0.0, 0.01]])


def test_independent_combinations_are_orthonormal_and_newer_vectors_have_precedence() -> None:
    vectors = np.random.default_rng(1).normal(size=(4, 6))
    vectors = np.insert(vectors, 2, vectors[0] + 1e-3 * vectors[3], axis=0)  # nearly a copy of the first vector
    vectors[4] *= 1e-6
    T_mn = independent(vectors @ vectors.T, 0.05)
    found = T_mn @ vectors
    assert len(found) == 4 and np.allclose(found @ found.T, np.eye(4), atol=1e-10)
    assert np.count_nonzero(T_mn[0]) == 1 and not T_mn[:, 2].any()


def test_carried_pairs_solve_a_linear_problem_at_once() -> None:
    """The error is linear in F: with secants along all directions the first extrapolation is exact."""
    rng, n = np.random.default_rng(2), 3
    J, exact = rng.normal(size=(n * n, n * n)), rng.normal(size=(1, n, n))
    steps = rng.normal(size=(n * n, n * n))
    T_mn = independent((steps @ J.T) @ (steps @ J.T).T, 1e-8)
    history = History(6, HOST)
    history.carry(Carried(T_mn @ steps, T_mn @ steps @ J.T))
    F = rng.normal(size=(1, n, n))
    error = (J @ (F - exact).reshape(-1)).reshape(F.shape)
    assert history.absorb(history.push(F, error)) == pytest.approx(np.linalg.norm(error))
    assert np.allclose(history.extrapolate(), exact, atol=1e-9)


def test_own_differences_and_carried_ones_together() -> None:
    """Carried pairs along some directions; own iterations have to add only the others."""
    rng, n = np.random.default_rng(4), 3
    J, exact = np.eye(n * n) + 0.1 * rng.normal(size=(n * n, n * n)), rng.normal(size=(1, n, n))
    steps = rng.normal(size=(n * n - 2, n * n))
    T_mn = independent((steps @ J.T) @ (steps @ J.T).T, 1e-8)
    history, F = History(6, HOST), rng.normal(size=(1, n, n))
    history.carry(Carried(T_mn @ steps, T_mn @ steps @ J.T))
    for _ in range(3):
        assert not np.allclose(F, exact, atol=1e-3)
        history.absorb(history.push(F, (J @ (F - exact).reshape(-1)).reshape(F.shape)))
        F = history.extrapolate() + rng.normal(size=F.shape)
    assert np.allclose(history.extrapolate(), exact, atol=1e-9)


def test_the_symmetric_basis_depends_smoothly_on_the_geometry() -> None:
    from cuanto import Basis, integrals

    rotated = []
    for shift in (0.0, 1e-4):
        basis = Basis("6-31g", Molecule(WATER.symbols, WATER.R_ax + shift * VELOCITY))
        S_pq = integrals.overlap(basis, backend="cpu")
        frame = make_frame(S_pq, 1e-7, HOST)
        U_pj = smooth_directions(frame, S_pq)
        assert np.allclose(U_pj @ U_pj.T, np.eye(len(U_pj)), atol=1e-12)
        rotated.append(frame.X_pm @ U_pj.T)
        symmetric = make_frame(S_pq, 1e-7, HOST, symmetric=True)
        assert symmetric.symmetric and np.allclose(symmetric.X_pm, rotated[-1], atol=1e-12)
        shortened = make_frame(S_pq, 0.1, HOST, symmetric=True)
        assert shortened.dropped and not shortened.symmetric
    assert np.abs(rotated[0] - rotated[1]).max() < 1e-4
    assert len(Secants()) == 0


@pytest.mark.parametrize(("method", "multiplicity", "charge"), [("pbe", 1, 0), ("uhf", 2, 1)])
def test_along_a_trajectory_an_scf_takes_half_the_iterations(method: str, multiplicity: int, charge: int) -> None:
    molecule = Molecule(WATER.symbols, WATER.R_ax, charge, multiplicity)
    surface = Surface(molecule, method, "sto-3g", points=4, backend="cpu")
    results = [surface.at(molecule.R_ax + 0.5 * k * VELOCITY) for k in range(8)]
    alone = Surface(molecule, method, "sto-3g", backend="cpu").at(results[-1].molecule.R_ax)
    assert results[-1].energy == pytest.approx(alone.energy, abs=1e-9)
    assert np.allclose(results[-1].gradient, alone.gradient, atol=1e-6)
    assert results[-1].iterations <= alone.iterations / 2


@pytest.mark.parametrize(
    "molecule", [Molecule.from_string("2\n\nH 0 0 0\nH 0 0 0.74\n"), Molecule.from_string("1\n\nHe 0 0 0\n")], ids=str
)
def test_orbitals_that_symmetry_determines_have_no_secants(molecule: Molecule) -> None:
    """Their errors are rounding errors, of which nothing is kept for the next geometry."""
    surface = Surface(molecule, "hf", "sto-3g", points=4, backend="cpu")
    for k in range(3):
        found = surface.at(molecule.R_ax * (1.0 + 0.05 * k))
        assert found.converged
    alone = Surface(molecule, "hf", "sto-3g", backend="cpu").at(found.molecule.R_ax)
    assert found.energy == pytest.approx(alone.energy, abs=1e-10)
