"""Invalid arguments of the integral functions give one-line errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import integrals
from cuanto.errors import InputError

MOLECULE = cuanto.Molecule.from_string("1\n\nHe 0 0 0\n")
BASIS = cuanto.Basis("sto-3g", MOLECULE)

WRONG: dict[str, Callable[[], Any]] = {
    "finite numbers of shape (3,)": lambda: integrals.dipole(BASIS, origin=(0, 0), backend="cpu"),
    "origin must be": lambda: integrals.dipole(BASIS, origin="here", backend="cpu"),
    "positions must be": lambda: integrals.nuclear(
        BASIS, charges=np.ones(2), positions=np.zeros((3, 2)), backend="cpu"
    ),
    "charges must be": lambda: integrals.nuclear(BASIS, charges=[np.nan], positions=[[0, 0, 0]], backend="cpu"),
    "give a molecule, or charges": lambda: integrals.nuclear(BASIS, backend="cpu"),
    "must be a cuanto.Molecule": lambda: integrals.nuclear(BASIS, BASIS, backend="cpu"),  # type: ignore[arg-type]
    "must be a cuanto.Basis": lambda: integrals.overlap(MOLECULE, backend="cpu"),  # type: ignore[arg-type]
    "threshold must be": lambda: integrals.eri_3c(BASIS, BASIS, threshold=float("nan"), backend="cpu"),
    "unknown algorithm 'rys'": lambda: integrals.eri_3c(BASIS, BASIS, algorithm="rys", backend="cpu"),
    "unknown backend 'gpu'": lambda: integrals.overlap(BASIS, backend="gpu"),
    "backend must be a name": lambda: integrals.overlap(BASIS, backend=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", WRONG)
def test_one_line_says_what_would_work(message: str) -> None:
    with pytest.raises(InputError) as caught:
        WRONG[message]()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_result_larger_than_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuanto.backends.base import get_backend

    monkeypatch.setattr(type(get_backend("cpu")), "memory", lambda self: (4, 8))
    with pytest.raises(InputError, match="use packed=True, which needs half of it"):
        integrals.eri_3c(BASIS, BASIS, backend="cpu")


def test_momenta_above_the_limit_are_refused() -> None:
    shell = cuanto.basis.Shell.from_table(0, 9, np.array([1.0]), np.array([[1.0]]), True)
    basis = cuanto.Basis.from_shells([shell], np.zeros((1, 3)))
    with pytest.raises(InputError, match="l = 9"):
        integrals.overlap(basis, backend="cpu")
