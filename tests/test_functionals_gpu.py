"""Functionals on a real GPU: every kernel against the NumPy twin."""

from __future__ import annotations

import pytest

from cuanto.backends.base import get_backend
from cuanto.functionals import functional_names, get_functional
from cuanto.functionals.twin import numpy_values
from functional_cases import by_kernel, ordinary, require_equal, sizes, tiny

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", functional_names())
@pytest.mark.parametrize("spins", [1, 2])
def test_kernels_are_their_twins(name: str, spins: int) -> None:
    functional, cuda = get_functional(name), get_backend("cuda")
    for points in (ordinary(spins, 20_003), tiny(spins)):
        expected = numpy_values(functional, points.rows(functional.family))
        require_equal(by_kernel(functional, cuda, points), expected, sizes(functional, points))
