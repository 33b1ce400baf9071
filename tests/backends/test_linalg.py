"""Cholesky factors of Gram matrices, division by them in blocks, and matrix products."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

from cuanto.backends.base import get_backend

BACKENDS = ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    return get_backend(request.param)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 40, 64, 65, 330, 1100])
def test_division_by_a_triangle(backend: Any, n: int, kind: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(n)
    L = np.tril(rng.normal(scale=0.5 / np.sqrt(n), size=(n, n)), -1) + np.diag(rng.uniform(0.8, 1.5, n))
    B = rng.normal(size=(40, n + 200)).astype(kind)
    L_on, C_on = backend.to_device(L.astype(kind)), backend.to_device(B.copy())
    backend.linalg.divisor(L_on).divide(C_on[:, 100:-100])
    C, own = backend.to_host(C_on), slice(100, -100)
    assert C.dtype == kind
    assert np.abs(C[:, own] @ L.T - B[:, own]).max() < 400 * np.finfo(kind).eps
    assert (C[:, :100] == B[:, :100]).all() and (C[:, -100:] == B[:, -100:]).all()


@pytest.mark.parametrize(("o", "v"), [(1, 1), (150, 90), (90, 400)])
def test_both_factors_of_rotations(backend: Any, o: int, v: int) -> None:
    X = np.random.default_rng(o).normal(scale=0.02, size=(o, v))
    found = [backend.to_host(backend.xp.tril(one.L)) for one in backend.linalg.rotation_factors(backend.to_device(X))]
    assert [len(L) for L in found] == [o, v]
    for L, A in zip(found, (X, X.T), strict=True):
        assert np.abs(L - np.linalg.cholesky(np.eye(len(A)) + A @ A.T)).max() < 1e-14


@pytest.mark.parametrize("smallest", [1.0, 1e-3])
def test_columns_become_orthonormal(backend: Any, smallest: float) -> None:
    """Two steps are enough, even if the columns are nearly linearly dependent."""
    rng = np.random.default_rng(4)
    values = np.geomspace(1.0, smallest, 600)
    B = np.linalg.qr(rng.normal(size=(900, 600)))[0] * values @ np.linalg.qr(rng.normal(size=(600, 600)))[0]
    B_on = backend.to_device(B)
    for _ in range(2):
        backend.linalg.factor(backend.linalg.lower_gram(B_on.T)).divide(B_on)
    B = backend.to_host(B_on)
    assert np.abs(B.T @ B - np.eye(600)).max() < 1e-14


def test_stacks_of_triangles(backend: Any) -> None:
    """Many small matrices at once."""
    rng = np.random.default_rng(7)
    X, B = rng.normal(scale=0.1, size=(3, 20, 30)), rng.normal(size=(3, 8, 20))
    both = list(backend.linalg.rotation_factors(backend.to_device(X)))
    B_on = backend.to_device(B.copy())
    both[0].divide(B_on)
    for A, own in zip((X, X.swapaxes(1, 2)), both, strict=True):
        expected = np.linalg.cholesky(np.eye(A.shape[1]) + A @ A.swapaxes(1, 2))
        assert np.abs(backend.to_host(backend.xp.tril(own.L)) - expected).max() < 1e-14
    divided = backend.to_host(B_on)
    L = np.linalg.cholesky(np.eye(20) + X @ X.swapaxes(1, 2))
    assert np.abs(divided @ L.swapaxes(1, 2) - B).max() < 1e-13


def test_factors_have_no_reference_cycles() -> None:
    """Large matrices must be freed at once, not when the cyclic garbage collector runs."""
    B = np.random.default_rng(5).normal(size=(400, 300))
    gc.collect()
    gc.disable()
    try:
        linalg = get_backend("cpu").linalg
        factor = linalg.factor(linalg.lower_gram(B.T))
        factor.divide(B)
        reference = weakref.ref(factor)
        del factor
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("shapes", [((400, 300), (300, 500)), ((2, 330, 330), (330, 330)), ((330, 330), (2, 330, 330))])
def test_products_of_matrices_and_stacks(backend: Any, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """The host works by tiles; transposed factors are tested as well."""
    rng = np.random.default_rng(3)
    A, B = (rng.normal(size=shape) for shape in shapes)
    for left, right in ((A, B), (np.swapaxes(np.swapaxes(A, -1, -2).copy(), -1, -2), B)):
        found = backend.linalg.product(backend.to_device(left), backend.to_device(right))
        assert np.abs(backend.to_host(found) - left @ right).max() < 1e-12


@pytest.mark.parametrize("count", [1, 3])
def test_products_are_added_to_parts_of_rows(backend: Any, count: int) -> None:
    rng = np.random.default_rng(6)
    A, B_k, C_k = (rng.normal(size=shape) for shape in ((5, 40), (count, 40, 7), (count + 2, 5, 20)))
    C_on = backend.to_device(C_k)
    backend.linalg.add_products(backend.to_device(A), backend.to_device(B_k), C_on[1:-1, :, 4:11])
    C_k[1:-1, :, 4:11] += A @ B_k
    np.testing.assert_allclose(backend.to_host(C_on), C_k, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("kind, limit", [(np.float64, 1e-12), (np.float32, 1e-3)])
def test_products_with_the_transpose(backend: Any, kind: type, limit: float) -> None:
    """The host computes half of them; tiles in single precision are larger."""
    A = np.random.default_rng(4).normal(size=(450, 400)).astype(kind)
    device = backend.to_device(A)
    for found in (
        backend.linalg.product(device, device.T),
        backend.linalg.product(device, backend.to_device(A.T.copy())),
    ):
        host = backend.to_host(found)
        assert host.dtype == kind and np.abs(host - A.astype(float) @ A.T).max() < limit


@pytest.mark.parametrize("n", [1, 30, 200, 330])
def test_inverse_factors(backend: Any, n: int) -> None:
    A = np.random.default_rng(n).normal(size=(n, n + 5))
    A = A @ A.T + 0.1 * np.eye(n)
    inverse, smallest = backend.linalg.inverse_factor(backend.to_device(A.copy()))
    L = np.linalg.cholesky(A)
    np.testing.assert_allclose(backend.to_host(inverse) @ L, np.eye(n), atol=1e-11)
    assert smallest == pytest.approx(L.diagonal().min() ** 2, rel=1e-9)
    A[n // 2, n // 2] = -1.0
    assert backend.linalg.inverse_factor(backend.to_device(A))[1] == -1.0


def test_inverse_factors_of_nearly_singular_matrices(backend: Any) -> None:
    """L^-1 L = 1 for Gaussian functions that overlap almost completely, in any order; without refinement 2e-11."""
    n, rng = 300, np.random.default_rng(3)
    place = rng.permutation(n)
    A = np.exp(-0.12 * (place[:, None] - place) ** 2.0)
    inverse, smallest = backend.linalg.inverse_factor(backend.to_device(A.copy()))
    assert 1e-7 < smallest < 1e-6
    error = np.abs(backend.to_host(inverse) @ np.linalg.cholesky(A) - np.eye(n)).max()
    # The refined inverse belongs to the factor of the device, which is LAPACK's only in a simulation.
    assert error < (3e-12 if backend.name == "simt" else 1e-8)
    c = rng.normal(size=n)
    y = backend.to_host(inverse) @ (A @ c)
    assert y @ y == pytest.approx(c @ A @ c, rel=2e-14)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2, 30, 30), (1500, 1500)])
def test_scalar_products(backend: Any, shape: tuple[int, ...]) -> None:
    A, B = np.random.default_rng(3).uniform(0.5, 1.5, size=(2, *shape))
    found = float(backend.linalg.scalar_product(backend.to_device(A), backend.to_device(B)))
    exact = math.fsum((A.astype(np.longdouble) * B).ravel())
    assert abs(found - exact) < 2e-15 * exact


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (50, 50), (3, 9, 9)])
def test_eigenvectors(backend: Any, shape: tuple[int, ...], kind: type[np.floating[Any]]) -> None:
    A = np.random.default_rng(1).normal(size=shape).astype(kind)
    A = A + A.swapaxes(-1, -2)
    values, vectors = map(backend.to_host, backend.linalg.eigh(backend.to_device(A)))
    assert values.dtype == vectors.dtype == kind
    assert np.abs(A @ vectors - vectors * values[..., None, :]).max() < 400 * np.finfo(kind).eps
    assert (np.diff(values) >= 0).all()
