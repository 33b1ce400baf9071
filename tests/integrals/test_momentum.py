"""<d_x p|V|d_x q> against libcint (int1e_pnucp), for points and Gaussian nuclei."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuanto import Basis, Molecule, integrals
from cuanto.basis.decontract import decontract
from cuanto.integrals.momentum import DerivativeBasis
from cuanto.terms.x2c import OneElectronModel
from oracle import random_shell
from scf_cases import oracle, water

Z_A = np.array([8.0, 1.0, 1.0])


def shells(pure: bool) -> tuple[Molecule, Basis]:
    """s to f functions on the atoms of a molecule, tight and diffuse."""
    mol, _ = water(name="sto-3g")
    rng = np.random.default_rng(3)
    made = [random_shell(rng, l, nprim=3, ncol=2, pure=pure, scale=4.0 ** (3 - l)) for l in range(4)]
    return mol, Basis.from_shells(made, mol.R_ax, symbols=mol.symbols)


@pytest.mark.parametrize("gaussian", [False, True], ids=["point", "gaussian"])
@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
def test_matrix(pure: bool, gaussian: bool) -> None:
    pytest.importorskip("pyscf")
    mol, orbital = shells(pure)
    exponents = OneElectronModel(gaussian_nuclei=gaussian).exponents(mol.nuclei.protons)
    theirs: Any = oracle(mol, orbital)
    theirs.cart = not pure
    theirs.build(False, False)
    for atom, exponent in enumerate([] if exponents is None else exponents):
        theirs.set_nuc_mod(atom, exponent)
    primitive, C_kp = decontract(orbital)
    made = DerivativeBasis(primitive)
    V_kl = integrals.nuclear(made.basis, charges=Z_A, positions=mol.R_ax, exponents=exponents, backend="cpu")
    W_pq = C_kp.T @ made.fold(V_kl, np) @ C_kp
    expected = theirs.intor("int1e_pnucp")
    assert np.abs(W_pq - expected).max() < 1e-12 * np.abs(expected).max()
    V_pq = integrals.nuclear(orbital, charges=Z_A, positions=mol.R_ax, exponents=exponents, backend="cpu")
    expected = theirs.intor("int1e_nuc")
    assert np.abs(V_pq - expected).max() < 1e-12 * np.abs(expected).max()


def test_unfold_is_the_transpose_of_fold() -> None:
    _, orbital = shells(True)
    made, rng = DerivativeBasis(decontract(orbital)[0]), np.random.default_rng(5)
    n, size = decontract(orbital)[0].nbf, made.basis.nbf
    D_pq, V_kl = rng.normal(size=(n, n)), rng.normal(size=(size, size))
    one, other = (D_pq * made.fold(V_kl, np)).sum(), (made.unfold(D_pq, np) * V_kl).sum()
    assert one == pytest.approx(other, rel=1e-12)
