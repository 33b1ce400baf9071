"""Functionals on a real GPU: every kernel against NumPy."""

from __future__ import annotations

import pytest

from cuanto.backends.base import get_backend
from cuanto.functionals import functional_names, get_functional
from functional_cases import (
    MINORITY_FRACTIONS,
    by_kernel,
    majority_results,
    ordinary,
    outside_tolerance,
    polarised,
    require_equal,
    sizes,
    tiny,
)
from oracles.functionals import numpy_values

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", functional_names())
@pytest.mark.parametrize("spins", [1, 2])
def test_kernels_agree_with_numpy(name: str, spins: int) -> None:
    functional, cuda = get_functional(name), get_backend("cuda")
    for points in (ordinary(spins, 20_003), tiny(spins)):
        expected = numpy_values(functional, points.rows(functional.family))
        require_equal(by_kernel(functional, cuda, points), expected, sizes(functional, points))


@pytest.mark.parametrize("name", functional_names())
def test_kernels_agree_with_numpy_at_full_polarisation(name: str) -> None:
    """Densities from 1e-9 electrons per Bohr^3 on; derivatives with respect to an empty spin must only be finite."""
    functional, cuda = get_functional(name), get_backend("cuda")
    for points in (polarised(2003, -9.0, MINORITY_FRACTIONS), polarised(2003, -9.0)):
        expected = numpy_values(functional, points.rows(functional.family))
        found = by_kernel(functional, cuda, points)
        positions = outside_tolerance(found, expected, sizes(functional, points))
        if not points.rho_sg.all():
            positions = [(k, g) for k, g in positions if k in majority_results(functional.family, points, g)]
        assert not positions
