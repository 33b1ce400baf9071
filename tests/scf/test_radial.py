"""Radial integrals of atoms, against integrals over all components of their functions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cuanto import Basis
from cuanto.basis import Shell
from cuanto.scf.radial import RadialFunctions, repulsion, three_j_squared
from oracles import integrals as reference

CENTRE = [[0.0, 0.0, 0.0]]


def shells_of(l: int) -> list[Shell]:
    """Two shells that share an exponent; the first one has two columns."""
    rng = np.random.default_rng(l)
    first = Shell.from_table(0, l, [3.0, 0.9, 0.4], rng.normal(size=(3, 2)), True)
    return [first, Shell.from_table(0, l, [0.9], [[1.0]], True)]


@pytest.mark.parametrize("l", [0, 1, 2, 3])
def test_one_electron_integrals(l: int) -> None:
    shells = shells_of(l)
    basis, functions = Basis.from_shells(shells, CENTRE), RadialFunctions.of(l, shells)
    first = np.arange(3) * (2 * l + 1)
    charge = (np.array([2.5]), np.zeros((1, 3)))
    for got, full in (
        (functions.overlap(), reference.overlap_matrix(basis)),
        (functions.kinetic(), reference.kinetic_matrix(basis)),
        (functions.attraction(2.5), reference.nuclear_matrix(basis, *charge)),
    ):
        np.testing.assert_allclose(got, full[np.ix_(first, first)], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("l, k", [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)])
def test_repulsion_averaged_over_components(l: int, k: int) -> None:
    """J: 1/(2l+1) 1/(2k+1) sum_mn (am bm|cn dn), and K: (am cn|bm dn)."""
    one, other = shells_of(l), shells_of(k)
    basis = Basis.from_shells([*one, *other], CENTRE)
    p = np.arange(3 * (2 * l + 1)).reshape(3, -1)
    q = p.size + np.arange(3 * (2 * k + 1)).reshape(3, -1)
    I = reference.eri_4c_tensor(basis)
    exact = np.zeros((2, 3, 3, 3, 3))
    for m in range(2 * l + 1):
        for n in range(2 * k + 1):
            a, c = p[:, m], q[:, n]
            exact += I[np.ix_(a, a, c, c)], I[np.ix_(a, c, a, c)].transpose(0, 2, 1, 3)
    exact /= (2 * l + 1) * (2 * k + 1)
    got = repulsion(RadialFunctions.of(l, one), RadialFunctions.of(k, other))
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


def test_squares_of_3j_symbols() -> None:
    known = {(0, 0, 0): 1, (1, 1, 0): Fraction(1, 3), (1, 2, 1): Fraction(2, 15), (2, 2, 2): Fraction(2, 35)}
    known |= {(2, 4, 2): Fraction(2, 35), (3, 1, 2): Fraction(3, 35), (3, 3, 2): Fraction(4, 105)}
    for symbol, square in known.items():
        assert three_j_squared(*symbol) == pytest.approx(float(square), rel=1e-14)
