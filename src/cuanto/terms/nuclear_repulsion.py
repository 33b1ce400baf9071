"""Interaction of nuclei with each other, with point charges and external operators; constant during the SCF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError
from cuanto.system import Molecule
from cuanto.terms.base import Term
from cuanto.terms.external import Surroundings

MIN_DISTANCE = 0.1
"""Smallest distance of a point charge from a nucleus, Bohr. Closer ones are in other units, or belong to that atom."""
PAIRS_AT_ONCE = 2**18
"""Pairs of a nucleus and another charge whose forces are computed at once."""


class NuclearRepulsion(Term):
    """sum_a<b Z_a Z_b / R_ab + sum_aq Z_a q / R_aq + the energy in external operators (-sum_a Z_a R_a . field)."""

    name, linear = "nuclear repulsion", True

    def __init__(self, molecule: Molecule, surroundings: Surroundings) -> None:
        self._molecule, self._surroundings = molecule, surroundings
        Z_a = molecule.nuclei.charges.astype(float)
        atoms = np.flatnonzero(Z_a)  # a point charge may sit on a ghost
        self.energy = molecule.nuclear_repulsion() + surroundings.nuclear_energy(Z_a, molecule.R_ax)
        for a in atoms if len(surroundings.charges) else ():
            distances = np.linalg.norm(surroundings.positions - molecule.R_ax[a], axis=1)
            if (near := np.flatnonzero(distances < MIN_DISTANCE)).size:
                q = int(near[0])
                raise InputError(
                    f"the point charge at {surroundings.positions[q].tolist()} Bohr is {distances[q]:.2g} Bohr from "
                    f"atom {a + 1} ({molecule.symbols[a]}): leave it out, or move it to at least {MIN_DISTANCE:g} Bohr"
                )
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
        atoms = np.flatnonzero(Z_a)
        step = max(1, PAIRS_AT_ONCE // len(q_c))
        for some in (atoms[begin : begin + step] for begin in range(0, len(atoms), step)):
            d_acx = molecule.R_ax[some, None] - R_cx
            r_ac = np.sqrt((d_acx**2).sum(axis=2))
            q_ac = np.multiply.outer(Z_a[some], q_c)
            interacting = (r_ac > 0.0) & (q_ac != 0.0)
            force_acx = np.divide(q_ac, r_ac**3, out=np.zeros_like(r_ac), where=interacting)[:, :, None] * d_acx
            found[some] -= force_acx.sum(axis=1)
            found[len(Z_a) :] += force_acx[:, len(Z_a) :].sum(axis=0)
        found[: len(Z_a)] += surroundings.nuclear_gradient(Z_a, molecule.R_ax)
        return found
