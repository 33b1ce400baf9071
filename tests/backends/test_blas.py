"""LAPACK of NumPy's library, without SciPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuanto.arrays import Array
from cuanto.backends import blas

DATA = Path(__file__).parents[1] / "data"
CALCULATION = """
import sys
import cuanto
hydrogen = cuanto.Molecule(["H", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
cuanto.energy(hydrogen, "hf", "cc-pvdz", auxbasis="cc-pvdz-jkfit", fitting="jk", backend="cpu")
print(sorted({name.split(".")[0] for name in sys.modules} & {"scipy", "cupy", "basis_set_exchange"}))
"""


def positive(n: int) -> Array:
    A = np.random.default_rng(n).normal(size=(n, n + 3))
    return np.asarray(A @ A.T + 0.1 * np.eye(n))


@pytest.mark.parametrize("routines", ["numpy", "scipy"])
@pytest.mark.parametrize("n", [1, 7, 120])
def test_inverse_of_a_factor(n: int, routines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a larger matrix is replaced; the rest stays as it is."""
    if routines == "scipy":
        monkeypatch.setattr(blas, "_triangular_routines", lambda: None)
    A, whole = positive(n), np.full((n + 4, n + 6), 7.0)
    part = whole[1 : n + 1, 2 : n + 2]
    part[...] = A
    smallest, L = blas.invert_factor(part), np.linalg.cholesky(A)
    assert smallest == pytest.approx(L.diagonal().min() ** 2, rel=1e-12)
    np.testing.assert_allclose(part @ L, np.eye(n), atol=1e-12)
    assert not np.triu(part, 1).any()
    part[...] = 7.0
    assert (whole == 7.0).all()


def test_other_memory_layouts() -> None:
    A = positive(6)
    for given in (np.asfortranarray(A), np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::2, ::2]):
        assert blas.invert_factor(given) > 0.0
        np.testing.assert_allclose(given @ np.linalg.cholesky(A), np.eye(6), atol=1e-13)


@pytest.mark.parametrize("routines", ["numpy", "scipy"])
def test_indefinite_matrices(routines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if routines == "scipy":
        monkeypatch.setattr(blas, "_triangular_routines", lambda: None)
    assert blas.invert_factor(np.diag([1.0, -1.0, 2.0])) == -1.0


def test_a_fitted_calculation_imports_no_slow_package() -> None:
    environment: dict[str, Any] = {**os.environ, "CUANTO_BASIS_PATH": str(DATA / "basis")}
    done = subprocess.run([sys.executable, "-c", CALCULATION], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[]", done.stderr


def test_small_matrices_on_one_thread() -> None:
    """Contexts can be nested; the previous number of threads is restored, also after an error."""
    threads = [read() for read, _ in blas._controls()]
    with pytest.raises(ValueError, match="on purpose"), blas.one_thread:
        with blas.one_thread:
            assert all(read() == 1 for read, _ in blas._controls())
        assert all(read() == 1 for read, _ in blas._controls())
        raise ValueError("on purpose")
    assert [read() for read, _ in blas._controls()] == threads


def test_a_failed_entry_leaves_the_threads_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("cuanto.backends.blas._controls", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError), blas.one_thread:
            pass
    assert not blas._contexts._open


def test_contexts_that_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several threads: the last context that is open applies, and the first number comes back at the end."""
    number = [7]
    monkeypatch.setattr(blas, "_controls", lambda: [(lambda: number[0], lambda count: number.__setitem__(0, count))])
    first, second = blas.threads(1), blas.threads(4)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert number == [4]
    second.__exit__(None, None, None)
    assert number == [7]
