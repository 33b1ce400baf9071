"""Panels of the radial quadrature, and which shells they concern."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from cuanto import Basis
from cuanto.basis import Shell
from cuanto.basis.core_potential import RadialTerm
from cuanto.core_potentials.radial import PANEL, potential, radial_grid, significant_entries
from cuanto.core_potentials.shells import contracted_shells

TERMS = (RadialTerm(0, 300.0, 3.0), RadialTerm(1, 12.0, 20.0), RadialTerm(2, 0.7, -4.0))


def basis_with(*exponents: float, l: int = 0, distance: float = 0.0) -> Basis:
    shells = [Shell.from_table(0, l, [a], [[1.0]], True) for a in exponents]
    return Basis.from_shells(shells, [[0.0, 0.0, distance]])


def distances(basis: Basis) -> np.ndarray:
    return contracted_shells(basis).distances(basis.R_ax, np.zeros(3))


@pytest.mark.parametrize("exponents", [(0.02,), (1e5,), (4000.0, 0.1)])
def test_radial_integrals(exponents: tuple[float, ...]) -> None:
    basis = basis_with(*exponents)
    grid = radial_grid([TERMS, TERMS[2:]], contracted_shells(basis), distances(basis))
    assert grid is not None and len(grid.r) % PANEL == 0
    a = sum(exponents)
    for terms, weights, reach in zip([TERMS, TERMS[2:]], grid.weights, grid.reach, strict=True):
        exact = quad(lambda r, t=terms: potential(t, np.array([r]))[0] * np.exp(-a * r**2), 0, 9, points=(0.01, 0.1, 1))
        assert weights @ np.exp(-a * grid.r[:reach] ** 2) == pytest.approx(exact[0], rel=1e-9)


def test_panels_are_narrow_only_where_tight_functions_are() -> None:
    near, far = (
        radial_grid([TERMS], contracted_shells(basis), distances(basis))
        for basis in (basis_with(2e4, 0.5, distance=2.0), basis_with(0.5, distance=2.0))
    )
    assert near is not None and far is not None
    between = np.diff(near.r)
    assert len(near.r) > len(far.r)
    assert between[abs(near.r[1:] - 2.0) < 0.01].max() < 0.01 < between[near.r[1:] > 2.5].max()


def test_far_functions_are_left_out() -> None:
    shells = contracted_shells(basis_with(0.2, 60.0, distance=7.0))
    distance_s = distances(basis_with(0.2, 60.0, distance=7.0))
    assert significant_entries(TERMS[:2], shells, distance_s).tolist() == [0]
    assert significant_entries((), shells, distance_s).tolist() == []
    grid = radial_grid([TERMS[:2]], shells, distance_s)
    assert grid is not None and grid.entries.tolist() == [0]
    assert radial_grid([TERMS[:1]], shells, distance_s + 40.0) is None
    assert radial_grid([()], shells, distance_s) is None


def test_bounds_hold() -> None:
    """No projection on a sphere exceeds its bound."""
    for l in range(4):
        basis = basis_with(0.3, 5.0, l=l, distance=1.5)
        shells = contracted_shells(basis)
        bounds = shells.bounds(distances(basis), 0.9, 1.1)
        r = np.linspace(0.4, 2.6, 100)  # distances from the function of points on spheres of radius 0.9 to 1.1
        largest = [
            np.abs(c) * np.sqrt(2 * l + 1) * (r**l * np.exp(-a * r**2)).max()
            for a, c in zip(shells.exponents, shells.coefficients, strict=True)
        ]
        assert (bounds >= np.array(largest) * (1 - 1e-12)).all()
