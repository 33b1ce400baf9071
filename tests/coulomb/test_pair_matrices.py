"""Four-centre integrals by products of matrices, through J and K, against the NumPy reference."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuanto import Basis
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK
from cuanto.coulomb.digest_cpu import CpuDigest
from direct_reference import Array, close, densities
from oracles import integrals as reference

AWAY = ([0.0, 0.0, 0.0], [0.3, -1.1, 0.7], [-0.9, 0.2, 0.4])
LINEAR = ([0.0, 0.0, 0.0], [0.0, 0.0, 1.3], [0.0, 0.0, -1.1])
CONTRACTED = ([4.1, 1.3, 0.4], [[0.3, -0.1], [0.6, 0.2], [0.4, 0.9]])
"""Exponents and coefficients of two columns."""

NAMES = ("atom", "contracted bras", "contracted kets", "long kets", "cartesian", "high momenta")


@cache
def basis_of(name: str) -> Basis:
    exponents, columns = CONTRACTED
    if name == "atom":  # all pairs have one centre
        shells = [(0, 4, [0.9], [[1.0]], True), (0, 3, [0.7], [[1.0]], True), (0, 1, exponents, columns, True)]
        return Basis.from_shells([Shell.from_table(*shell) for shell in shells], AWAY[:1])
    if name == "contracted bras":
        shells = [(0, 3, exponents, columns, True), (1, 0, [0.5], [[1.0]], True), (2, 0, [0.8], [[1.0]], True)]
    elif name == "contracted kets":
        shells = [(0, 4, [0.9], [[1.0]], True), (1, 1, exponents, columns, True), (2, 0, *CONTRACTED, True)]
    elif name == "long kets":  # one ket has many more primitives than the others of its vector
        exponents, column = [40.0, 11.0, 4.0, 1.6, 0.7, 0.3], [[0.1], [0.2], [0.3], [0.4], [0.3], [0.1]]
        shells = [(0, 2, [0.9], [[1.0]], True), (1, 0, exponents, column, True), (2, 0, [0.8], [[1.0]], True)]
    elif name == "cartesian":
        shells = [(0, 3, [0.9], [[1.0]], False), (1, 2, [1.1], [[1.0]], False), (2, 0, [0.8], [[1.0]], True)]
    else:  # high angular momenta
        shells = [(0, 5, [0.9], [[1.0]], True), (1, 4, [1.2], [[1.0]], True)]
    centres = LINEAR if name == "contracted kets" else AWAY
    return Basis.from_shells([Shell.from_table(*shell) for shell in shells], centres[: 1 + shells[-1][0]])


@cache
def tensor(name: str) -> Array:
    return reference.eri_4c_tensor(basis_of(name))


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", NAMES)
def test_j_and_k(name: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without straight-line kernels every class is evaluated by products of matrices."""
    monkeypatch.setattr(CpuDigest, "_repays_compiling", lambda *given: False)
    basis = basis_of(name)
    D = densities(basis.nbf)["symmetric"]
    direct = DirectJK(basis, backend="cpu", threshold=1e-14, one_pass=True, precision=precision)
    J, K = direct(D)
    tolerance = 1e-12 if precision == "double" else 2e-5
    close(J, np.einsum("pqrt,rt->pq", tensor(name), D), tolerance)
    close(K, np.einsum("prqt,rt->pq", tensor(name), D), tolerance)
