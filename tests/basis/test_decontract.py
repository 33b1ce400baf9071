"""Decontracted basis sets: every primitive once, and the contraction back."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto import integrals
from cuanto.basis.decontract import decontract
from scf_cases import basis, water


@pytest.mark.parametrize(("name", "functions"), [("sto-3g", 21), ("cc-pvdz", 40), ("6-31g* cartesian", 36)])
def test_contraction_reproduces_the_basis(name: str, functions: int) -> None:
    """General contractions, SP shells and Cartesian functions; cc-pVDZ repeats primitives in several columns."""
    mol, _ = water(name="sto-3g")
    orbital = basis(name.split()[0], mol, False if name.endswith("cartesian") else None)
    primitive, C_kp = decontract(orbital)
    assert primitive.nbf == functions
    S_kl = integrals.overlap(primitive, backend="cpu")
    assert np.abs(C_kp.T @ S_kl @ C_kp - integrals.overlap(orbital, backend="cpu")).max() < 1e-13
    s_and_p = [k for shell, k in zip(primitive.shells, primitive.offsets, strict=True) if shell.l < 2]
    assert np.diagonal(S_kl)[s_and_p] == pytest.approx(1.0)
    momenta = [shell.l for shell in primitive.shells]
    assert momenta == sorted(momenta)


def test_a_primitive_shared_by_two_shells_appears_once() -> None:
    mol, _ = water(name="sto-3g")
    orbital = basis("cc-pvdz", mol)
    twice = cuanto.Basis.from_shells([*orbital.shells, orbital.shells[0]], mol.R_ax)
    assert decontract(twice)[0].nbf == decontract(orbital)[0].nbf
