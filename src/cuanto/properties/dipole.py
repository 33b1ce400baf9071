"""Electric dipole moment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.system import Molecule
from cuanto.system.masses import dipole_origin


def dipole(molecule: Molecule, basis: Basis, D_spq: Any, backend: Backend) -> NDArray[np.float64]:
    """mu_x = sum_a Z_a R_ax - sum_pq D_pq <p|x|q> in e Bohr; of an ion about the centre of mass."""
    r_xpq = integrals.dipole(basis, backend=backend)
    electrons_x = backend.to_host((r_xpq * D_spq.sum(axis=0)).sum(axis=(1, 2)))
    origin_x = dipole_origin(molecule.nuclei.masses, molecule.R_ax, molecule.charge)
    return np.asarray(molecule.nuclei.charges @ molecule.R_ax - electrons_x - molecule.charge * origin_x)
