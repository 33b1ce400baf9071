"""From our order and normalisation of basis functions to those of others.

Ours is the order of PySCF and the normalisation of libcint: spherical functions and Cartesian s and p
functions have unit norm, Cartesian functions of l >= 2 share one radial factor for each shell.
"""

from math import pi, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.basis.basis_set import Basis
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers

Array = NDArray[np.float64]


def unit_norm_factors(basis: Basis) -> Array:
    """Factors (nbf,) that scale every function to unit norm; all are 1 in a spherical basis."""
    return np.concatenate([np.tile(_component_factors(shell), shell.ncol) for shell in basis.shells])


def _component_factors(shell: Shell) -> Array:
    if shell.pure or shell.l < 2:
        return np.ones(shell.ncomp)
    # int x^2a y^2b z^2c over the unit sphere = 4 pi (2a-1)!! (2b-1)!! (2c-1)!! / (2l+1)!!
    whole = 4 * pi / _double_factorial(2 * shell.l + 1)
    norms = [whole * prod(_double_factorial(2 * n - 1) for n in powers) for powers in cartesian_powers(shell.l)]
    return np.array([1 / sqrt(norm) for norm in norms])


def _double_factorial(n: int) -> int:
    return prod(range(n, 0, -2))
