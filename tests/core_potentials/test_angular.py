"""Coupling numbers of projections against quadrature over directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import spherical_in

from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.core_potentials.angular import Directions, derivative_polynomials, harmonics, monomials
from cuanto.kernels.core_potential import coupled_terms
from oracles.core_potential import sphere

RELATIVE = 1e-12


@pytest.mark.parametrize("shell", [(0, True), (1, True), (2, False), (4, True)])
@pytest.mark.parametrize("d_x", [(0.0, 0.0, 0.0), (0.0, 0.0, 0.4), (-0.3, 0.5, 0.2)])
def test_projections_of_a_shell(shell: tuple[int, bool], d_x: tuple[float, float, float]) -> None:
    a, r, momenta = 0.8, 1.1, 6
    theta, phi, weight = sphere(50)
    unit = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)
    d = np.array(d_x)
    moved = r * unit - d
    values = monomials(shell[0], moved) @ shell_matrix(*shell).T * np.exp(-a * (moved**2).sum(axis=1))[:, None]
    directions, atoms = Directions(d[None]), np.zeros(1, dtype=np.int64)
    X = directions.value_coupling(shell, momenta, atoms)[0]
    for l in range(momenta):
        terms = coupled_terms(l, shell[0])
        own, X = np.split(X, [(2 * l + 1) * values.shape[1] * len(terms)])
        radial = [r**k * spherical_in(n, 2 * a * r * np.linalg.norm(d)) for k, n in terms]
        found = own.reshape(2 * l + 1, -1, len(terms)) @ radial * np.exp(-a * (r**2 + d @ d))
        expected = (harmonics(l, unit) * weight[:, None]).T @ values
        np.testing.assert_allclose(found, expected, rtol=0, atol=RELATIVE * abs(values).max())
    assert not X.size


@pytest.mark.parametrize(("l", "pure"), [(0, True), (1, True), (2, False), (3, True)])
def test_derivatives_of_polynomials(l: int, pure: bool) -> None:
    """-d/dx [S exp(-a r^2)] is 2 a x S - dS/dx times the exponential."""
    a, step, r = 0.7, 1e-4, np.array([[0.3, -0.8, 0.5]])
    higher, lower = derivative_polynomials(l, pure)

    def function(at: np.ndarray) -> np.ndarray:
        return np.asarray(shell_matrix(l, pure) @ monomials(l, at)[0] * np.exp(-a * (at**2).sum()))

    found = 2 * a * higher @ monomials(l + 1, r)[0]
    if l:
        found = found + lower @ monomials(l - 1, r)[0]
    found = found.reshape(-1, 3) * np.exp(-a * (r**2).sum())
    for x in range(3):
        shift = step * np.eye(3)[x]
        np.testing.assert_allclose(found[:, x], (function(r - shift) - function(r + shift)) / (2 * step), atol=1e-7)
    assert higher.shape == (3 * len(shell_matrix(l, pure)), len(cartesian_powers(l + 1)))
