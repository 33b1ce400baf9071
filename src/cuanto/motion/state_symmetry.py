"""The symmetry of a converged state: operations of the nuclei that also preserve its density.

Open shells and broken symmetries may have less symmetry than the nuclei: the unpaired electron of NO is in one of two
equivalent orbitals, and bending the molecule towards it differs from bending it to the side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuanto.arrays import Array
from cuanto.methods import GaussianResult, Result, SemiempiricalResult
from cuanto.properties.volume import density_at
from cuanto.system.symmetry import Operation, find_operations

POINTS_PER_ATOM = 4
"""Points around each atom at which densities are compared."""
MIN_RADIUS, MAX_RADIUS = 0.6, 2.0
"""Distances of these points from the atom, Bohr."""
MAX_DIFFERENCE = 1e-3
"""Largest relative difference of equal densities: a geometry within the tolerance of the symmetry gives 1e-4."""


def state_operations(result: Result) -> list[Operation]:
    """Operations that map nuclei and density onto themselves."""
    molecule = result.molecule
    operations = find_operations(molecule.symbols, molecule.R_ax)
    if isinstance(result, GaussianResult):
        return _preserving_density(result, operations)
    if isinstance(result, SemiempiricalResult) and len(result.density) == 1:
        return _preserving_bonds(result, operations)
    return operations[:1]


def _preserving_density(result: GaussianResult, operations: Sequence[Operation]) -> list[Operation]:
    """Compare total densities and absolute spin densities (the spins may be exchanged) at points around atoms."""
    R_ax = result.molecule.R_ax
    centre_x, random = R_ax.mean(axis=0), np.random.default_rng(0)
    offsets = random.normal(size=(len(R_ax), POINTS_PER_ATOM, 3))
    offsets *= (
        random.uniform(MIN_RADIUS, MAX_RADIUS, (len(R_ax), POINTS_PER_ATOM, 1))
        / np.linalg.norm(offsets, axis=2)[..., None]
    )
    r_gx = (R_ax[:, None, :] + offsets).reshape(-1, 3) - centre_x

    def invariants(points_gx: Array) -> Array:
        rho_sg = density_at(result.basis, result.density, points_gx + centre_x)
        return np.stack([rho_sg.sum(axis=0), np.abs(rho_sg[0] - rho_sg[-1])])

    here = invariants(r_gx)
    limit = MAX_DIFFERENCE * here[0]
    return [one for one in operations if (np.abs(invariants(r_gx @ one.R_xy.T) - here) <= limit).all()]


def _preserving_bonds(result: SemiempiricalResult, operations: Sequence[Operation]) -> list[Operation]:
    """Compare charges and bond orders of equivalent atoms."""
    bonds_ab = result.bond_orders
    preserved = []
    for one in operations:
        image = one.image_a
        same = np.abs(bonds_ab[np.ix_(image, image)] - bonds_ab).max() < MAX_DIFFERENCE
        if same and np.abs(result.charges[image] - result.charges).max() < MAX_DIFFERENCE:
            preserved.append(one)
    return preserved
