"""The electrostatic potential of nuclei and electrons.

The potential of the electrons is that of the Hermite densities of all pairs of primitives, as in the J engine; a point
is a Gaussian charge so narrow that it equals a point charge in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.forces import POINT_EXPONENT
from cuanto.coulomb.hermite_pairs import Primitives, pair_blocks, primitives, single_blocks
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.coulomb.j_steps import Contraction
from cuanto.properties.volume import Box
from cuanto.system import Molecule

THRESHOLD = 1e-12
"""Pairs of primitives are neglected below this."""
POINTS_AT_ONCE = 1 << 16
HEIGHT = (POINT_EXPONENT / np.pi) ** 1.5
"""Value at the centre of the narrow Gaussian of charge 1 that replaces a point charge."""


def potential_on_grid(molecule: Molecule, basis: Basis, D_pq: Any, box: Box, backend: Backend) -> Array:
    """Electrostatic potential in Hartree/e, values [x, y, z]; infinite at a nucleus."""
    r_gx = np.stack(np.meshgrid(*box.axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return potential_at(molecule, basis, D_pq, r_gx, backend).reshape(box.shape)


def potential_at(molecule: Molecule, basis: Basis, D_pq: Any, r_gx: Array, backend: Backend) -> Array:
    """Electrostatic potential of a molecule with this density matrix at any points (Bohr), in Hartree/e.

    sum_a Z_a / |r - R_a| - sum_pq D_pq <p| 1 / |r - r'| |q>
    """
    electrons, V_g = _electrons(basis, D_pq, backend), np.empty(len(r_gx))
    for first in range(0, len(r_gx), POINTS_AT_ONCE):
        r_x = r_gx[first : first + POINTS_AT_ONCE]
        V_g[first : first + len(r_x)] = _nuclei(molecule, r_x) - electrons(r_x)
    return V_g


def _nuclei(molecule: Molecule, r_gx: Array) -> Array:
    V_g = np.zeros(len(r_gx))
    with np.errstate(divide="ignore"):
        for Z, R_x in zip(molecule.nuclei.charges, molecule.R_ax, strict=True):
            if Z:
                V_g += Z / np.sqrt(((r_gx - R_x) ** 2).sum(axis=1))
    return V_g


def _electrons(basis: Basis, D_pq: Any, backend: Backend) -> Callable[[Array], Array]:
    """A function that returns the potential of the density, without the sign of its charge, at points."""
    groups, C_pk = primitives(basis)
    pairs = Distributions.of(pair_blocks(groups, THRESHOLD, backend), backend)
    density, D_npq = Contraction(C_pk, backend).density, backend.xp.asarray(D_pq)[None]

    def at(r_gx: Array) -> Array:
        n = len(r_gx)
        points = Primitives.of(((0, True),), 0, np.full(n, POINT_EXPONENT), r_gx, np.full((n, 1), HEIGHT), np.arange(n))
        bras = Distributions.of(single_blocks([points], backend), backend)
        # `Potentials` returns half of every potential.
        half_g = Potentials(bras, pairs, THRESHOLD)(D_npq, density, (n,), lambda V_ng: V_ng)[0]
        return np.asarray(2.0 * HEIGHT * backend.to_host(half_g))

    return at
