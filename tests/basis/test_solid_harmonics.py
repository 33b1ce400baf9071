"""Real solid harmonics against their definition, quadrature and PySCF."""

from math import factorial, pi, sqrt

import numpy as np
import pytest
from pyscf.gto import cart2sph
from scipy.integrate import lebedev_rule
from scipy.special import lpmv

from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix, solid_harmonic_matrix


def monomials(l: int, points: np.ndarray) -> np.ndarray:
    return np.array([np.prod(points ** np.array(powers), axis=1) for powers in cartesian_powers(l)])


def definition(l: int, m: int, points: np.ndarray) -> np.ndarray:
    """Real spherical harmonic of points on the unit sphere, from associated Legendre functions."""
    phi = np.arctan2(points[:, 1], points[:, 0])
    k = abs(m)
    legendre = (-1) ** k * lpmv(k, l, points[:, 2])  # without the Condon-Shortley sign
    norm = sqrt((2 * l + 1) / (4 * pi) * factorial(l - k) / factorial(l + k) * (2 if m else 1))
    return norm * legendre * (np.sin(k * phi) if m < 0 else np.cos(k * phi))


def test_order_of_powers() -> None:
    assert cartesian_powers(2) == [(2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]
    assert cartesian_powers(0) == [(0, 0, 0)]
    for l in range(9):
        assert len(cartesian_powers(l)) == (l + 1) * (l + 2) // 2
        assert cartesian_powers(l) == sorted(cartesian_powers(l), reverse=True)


@pytest.mark.parametrize("l", range(11))
def test_definition(l: int) -> None:
    points = np.random.default_rng(l).normal(size=(50, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    ms = [1, -1, 0] if l == 1 else range(-l, l + 1)
    expected = np.array([definition(l, m, points) for m in ms])
    assert solid_harmonic_matrix(l) @ monomials(l, points) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("l", range(9))
def test_orthonormal_on_the_sphere(l: int) -> None:
    points, weights = lebedev_rule(17)
    S_mg = solid_harmonic_matrix(l) @ monomials(l, points.T)
    assert np.einsum("mg,ng,g->mn", S_mg, S_mg, weights) == pytest.approx(np.eye(2 * l + 1), abs=1e-12)


@pytest.mark.parametrize("l", range(2, 9))
def test_against_pyscf(l: int) -> None:
    assert solid_harmonic_matrix(l) == pytest.approx(cart2sph(l, normalized="sp").T, rel=1e-13, abs=1e-13)


def test_harmonic() -> None:
    """The Laplacian of every row vanishes."""
    for l in range(2, 9):
        column = {powers: i for i, powers in enumerate(cartesian_powers(l - 2))}
        laplacian = np.zeros((len(column), len(cartesian_powers(l))))
        for i, powers in enumerate(cartesian_powers(l)):
            for x in range(3):
                lower = tuple(p - 2 * (x == y) for y, p in enumerate(powers))
                if powers[x] > 1:
                    laplacian[column[lower], i] += powers[x] * (powers[x] - 1)
        matrix = solid_harmonic_matrix(l)
        assert abs(laplacian @ matrix.T).max() < 1e-12 * abs(matrix).max() * l**2


def test_shell_matrix() -> None:
    assert shell_matrix(0, False) == pytest.approx(np.array([[sqrt(1 / (4 * pi))]]))
    assert shell_matrix(1, False) == pytest.approx(sqrt(3 / (4 * pi)) * np.eye(3))
    assert shell_matrix(1, True) is shell_matrix(1, True)
    assert np.array_equal(shell_matrix(3, False), np.eye(10))
    assert shell_matrix(3, True).shape == (7, 10)
    for matrix in (shell_matrix(2, False), shell_matrix(2, True)):
        assert not matrix.flags.writeable
