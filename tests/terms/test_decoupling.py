"""The X2C decoupling against a plain version, and its derivative against finite differences, for any matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto.backends.base import Backend, get_backend
from cuanto.terms import decoupling
from cuanto.terms.decoupling import Decoupling
from oracles import x2c as oracle

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
NAMES = ("overlap", "kinetic", "potential", "momentum")
C, N = 2.0, 6
Array = NDArray[np.float64]


def symmetric(rng: np.random.Generator) -> Array:
    A = rng.normal(size=(N, N))
    return A + A.T


def matrices() -> tuple[Array, ...]:
    """S, T, V, W of order one: S and T positive, V and W negative definite."""
    rng = np.random.default_rng(1)
    squares = [np.cov(rng.normal(size=(N, N))) + shift * np.eye(N) for shift in (1.0, 1.0, 0.1, 0.1)]
    return squares[0], squares[1], -squares[2], -squares[3]


def energy(M: tuple[Array, ...], D: Array, backend: Backend) -> float:
    given = [backend.to_device(one) for one in M]
    return float((D * backend.to_host(Decoupling(*given, C, backend).contracted(backend.to_device(np.eye(N))))).sum())


@pytest.mark.parametrize("device", ["cpu", "simt", CUDA])
def test_hamiltonian(device: str) -> None:
    backend, M = get_backend(device), matrices()
    rng = np.random.default_rng(2)
    C_kp = rng.normal(size=(N, 4))
    found = Decoupling(*map(backend.to_device, M), C, backend)
    expected = C_kp.T @ oracle.hamiltonian(*M, C) @ C_kp
    assert found.dropped == 0
    assert np.abs(backend.to_host(found.contracted(backend.to_device(C_kp))) - expected).max() < 1e-12


def test_energies_are_those_of_the_dirac_equation() -> None:
    """A hydrogen-like ion in one function: the positive solution of a quadratic equation."""
    z, c, Z = 0.8, 137.0, 3.0
    S, T, V = 1.0, 1.5 * z, -Z * np.sqrt(8 * z / np.pi)
    W = -Z * 8 * z / 3 * np.sqrt(2 * z / np.pi) * 2  # <x exp|1/r|x exp> (2 z)^2 of normalised s functions
    one = [np.array([[value]]) for value in (S, T, V, W)]
    found = Decoupling(*one, c, get_backend("cpu")).contracted(np.eye(1))[0, 0]
    energies = np.linalg.eigvalsh([[V, np.sqrt(2 * T) * c], [np.sqrt(2 * T) * c, W / (2 * T) - 2 * c**2]])
    assert found == pytest.approx(energies[1], abs=1e-10)


@pytest.mark.parametrize("threshold", [1e-11, 0.6])
@pytest.mark.parametrize("which", range(4), ids=NAMES)
def test_adjoint_is_the_derivative(which: int, threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if linearly dependent combinations are left out, which depend on S themselves."""
    monkeypatch.setattr(decoupling, "DEPENDENCE", threshold)
    monkeypatch.setattr(decoupling, "SAFE_PIVOT", threshold * 2)
    backend, M = get_backend("cpu"), matrices()
    rng = np.random.default_rng(3)
    D, change = symmetric(rng), symmetric(rng)
    if which == 0:
        np.fill_diagonal(change, 0.0)  # functions stay normalised
    made = Decoupling(*M, C, backend)
    assert (made.dropped > 0) == (threshold > 0.1)
    found = float((getattr(made.adjoint(D), NAMES[which]) * change).sum())

    def along(h: float) -> float:
        moved = list(M)
        moved[which] = M[which] + h * change
        return energy(tuple(moved), D, backend)

    h, weights = 5e-4, (672, -168, 32, -3)  # differences of eighth order
    slope = sum(w * (along(k * h) - along(-k * h)) for k, w in enumerate(weights, start=1)) / (840 * h)
    assert found == pytest.approx(slope, abs=1e-9)
