"""Interaction of nuclei with each other, with point charges and external operators; constant during the SCF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError
from cuanto.system import Molecule
from cuanto.terms.base import Term
from cuanto.terms.external import Surroundings


class NuclearRepulsion(Term):
    """sum_a<b Z_a Z_b / R_ab + sum_aq Z_a q / R_aq + the energy in external operators (-sum_a Z_a R_a . field)."""

    name = "nuclear repulsion"

    def __init__(self, molecule: Molecule, surroundings: Surroundings) -> None:
        self._molecule, self._surroundings = molecule, surroundings
        Z_a = molecule.nuclei.charges.astype(float)
        atoms = np.flatnonzero(Z_a)  # a point charge may sit on a ghost
        self.energy = molecule.nuclear_repulsion() + surroundings.nuclear_energy(Z_a, molecule.R_ax)
        for q, R_x in zip(surroundings.charges, surroundings.positions, strict=True):
            distance_a = np.linalg.norm(molecule.R_ax[atoms] - R_x, axis=1)
            if distance_a.min() < 1e-6:
                raise InputError(
                    f"the point charge at {R_x.tolist()} Bohr sits on atom {atoms[distance_a.argmin()] + 1}"
                )
            self.energy += float(q * np.sum(Z_a[atoms] / distance_a))

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[float, None]:
        """Independent of the density."""
        return self.energy, None

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """Forces between nuclei, and between nuclei and point charges."""
        molecule, surroundings = self._molecule, self._surroundings
        Z_a = molecule.nuclei.charges.astype(float)
        R_cx = np.concatenate([molecule.R_ax, surroundings.positions])
        q_c = np.concatenate([Z_a, surroundings.charges])
        d_acx = molecule.R_ax[:, None] - R_cx
        r_ac = np.linalg.norm(d_acx, axis=2)
        interacting = (r_ac > 0.0) & (Z_a[:, None] * q_c != 0.0)
        strength = np.divide(Z_a[:, None] * q_c, r_ac**3, out=np.zeros_like(r_ac), where=interacting)
        pulls_acx = strength[:, :, None] * d_acx
        found = np.zeros_like(R_cx)
        found[: len(Z_a)] = -pulls_acx.sum(axis=1)
        found[len(Z_a) :] = pulls_acx[:, len(Z_a) :].sum(axis=0)
        found[: len(Z_a)] += surroundings.nuclear_gradient(Z_a, molecule.R_ax)
        return found
