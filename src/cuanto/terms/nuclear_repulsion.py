"""Interaction of nuclei with each other, with point charges and external operators; constant during the SCF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError
from cuanto.system import Molecule
from cuanto.terms.base import Term
from cuanto.terms.external import Surroundings

MIN_DISTANCE = 1e-6
"""Smallest distance of a point charge from a nucleus, Bohr."""


class NuclearRepulsion(Term):
    """sum_a<b Z_a Z_b / R_ab + sum_aq Z_a q / R_aq + the energy in external operators (-sum_a Z_a R_a . field)."""

    name = "nuclear repulsion"

    def __init__(self, molecule: Molecule, surroundings: Surroundings) -> None:
        self._molecule, self._surroundings = molecule, surroundings
        Z_a = molecule.nuclei.charges.astype(float)
        atoms = np.flatnonzero(Z_a)  # a point charge may sit on a ghost
        self.energy = molecule.nuclear_repulsion() + surroundings.nuclear_energy(Z_a, molecule.R_ax)
        for a in atoms:
            distances = np.linalg.norm(surroundings.positions - molecule.R_ax[a], axis=1)
            if (near := np.flatnonzero(distances < MIN_DISTANCE)).size:
                R_x = surroundings.positions[near[0]]
                raise InputError(f"the point charge at {R_x.tolist()} Bohr coincides with atom {a + 1}: move it away")
            self.energy += float(Z_a[a] * np.sum(surroundings.charges / distances))

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[float, None]:
        """The constant energy, without a Fock matrix."""
        return self.energy, None

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """dE/dR_ax of the atoms, followed by that of the point charges."""
        molecule, surroundings = self._molecule, self._surroundings
        Z_a = molecule.nuclei.charges.astype(float)
        R_cx = np.concatenate([molecule.R_ax, surroundings.positions])
        q_c = np.concatenate([Z_a, surroundings.charges])
        found = np.zeros_like(R_cx)
        for a in np.flatnonzero(Z_a):  # atom by atom, because there may be many point charges
            d_cx = molecule.R_ax[a] - R_cx
            r_c = np.linalg.norm(d_cx, axis=1)
            interacting = (r_c > 0.0) & (q_c != 0.0)
            pulls_cx = np.divide(Z_a[a] * q_c, r_c**3, out=np.zeros_like(r_c), where=interacting)[:, None] * d_cx
            found[a] -= pulls_cx.sum(axis=0)
            found[len(Z_a) :] += pulls_cx[len(Z_a) :]
        found[: len(Z_a)] += surroundings.nuclear_gradient(Z_a, molecule.R_ax)
        return found
