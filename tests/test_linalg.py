"""Dense linear algebra of the backends: by tiles in our own threads, and by panels as on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto.backends import blas, linalg
from cuanto.backends.base import Linalg
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.linalg import DeviceLinalg

Array = NDArray[np.float64]
ROUNDING = 1e-12
SIZES = (3, 40, 450)

MAKERS: dict[str, Callable[[], Linalg]] = {
    "one thread": lambda: CpuBackend(threads=1).linalg,
    "threads": lambda: CpuBackend(threads=3).linalg,
    "device": lambda: DeviceLinalg(np),
}


@pytest.fixture(params=MAKERS)
def algebra(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Linalg:
    """Tiles and panels of small matrices, too."""
    for name, value in (("SMALL", 1e3), ("TILE", 32), ("PANEL", 7), ("GRAM_ROWS", 5), ("ROWS_AT_ONCE", 16)):
        monkeypatch.setattr(linalg, name, value)
    return MAKERS[request.param]()


def random(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape)


def assert_same(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=ROUNDING * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("n", SIZES)
def test_products(n: int, algebra: Linalg) -> None:
    """Also of transposed matrices and of parts of larger ones."""
    A, B = random(n, n + 5), random(n + 5, 2 * n)
    wide = random(n, 2 * n + 10)
    for left in (A, np.asfortranarray(A), wide[:, : n + 5], wide[:, ::2][:, : n + 5]):
        for right in (B, np.asfortranarray(B)):
            assert_same(algebra.product(left, right), left @ right)


@pytest.mark.parametrize("n", SIZES)
def test_squares(n: int, algebra: Linalg) -> None:
    for X in (random(n, 33), random(33, n).T, np.tril(random(n, n))):
        assert_same(algebra.gram(X), X @ X.T)


@pytest.mark.parametrize("n", SIZES)
def test_factors(n: int, algebra: Linalg) -> None:
    A = random(n, n)
    A = A @ A.T + n * np.eye(n)
    L = np.linalg.cholesky(A)
    inverse, smallest = algebra.inverse_factor(A.copy())
    assert_same(inverse @ L, np.eye(n))
    assert not np.triu(inverse, 1).any()
    assert smallest == pytest.approx(float(np.diag(L).min()) ** 2)
    A[-1, -1] = -1.0
    assert algebra.inverse_factor(A)[1] == -1.0


@pytest.mark.parametrize("triangle", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_rows_times_a_matrix(n: int, triangle: bool, algebra: Linalg) -> None:
    L, rows = random(n, n), random(50, n)
    if triangle:
        L = np.tril(L)
    for given in (rows.copy(), np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        algebra.times_transpose(given, L, triangle)
        assert_same(given, rows @ L.T)
    one, other = np.arange(0, 50, 3), np.arange(0, 50, 3) + 1  # the third row stays what it is
    one, other = one[:16], other[:16]
    got, wanted = rows.copy(), rows.copy()
    wanted[one] = wanted[other] = rows[one] @ L.T
    algebra.times_transpose_to(got, one, other, L, triangle)
    assert_same(got, wanted)


def test_eigenvalues(algebra: Linalg) -> None:
    A = random(2, 30, 30)
    A = A + A.transpose(0, 2, 1)
    values, vectors = algebra.eigh(A)
    assert (np.diff(values, axis=1) >= 0).all()
    assert_same(A @ vectors, vectors * values[:, None, :])


def test_products_have_the_same_bits_with_any_number_of_threads() -> None:
    X = random(500, 300)
    found = [CpuBackend(threads=threads).linalg for threads in (1, 2, 5)]
    for call in (lambda one: one.gram(X), lambda one: one.product(X, X.T)):
        assert len({call(one).tobytes() for one in found}) == 1


def test_products_leave_the_librarys_threads_alone() -> None:
    (read, _), *_ = blas._controls()
    before = read()
    CpuBackend(threads=2).linalg.gram(random(500, 300))
    assert read() == before
