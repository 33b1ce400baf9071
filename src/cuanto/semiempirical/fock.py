"""Fock matrices of NDDO methods.

J. A. Pople, D. P. Santry and G. A. Segal, J. Chem. Phys. 43, S129 (1965), doi:10.1063/1.1701475. Matrices have a
leading axis of molecules of one composition (index b).

Attraction and repulsion of electrons and cores in a large system are far larger than its energy (256 waters: 2e5
Hartree), so that their rounding errors would show. The potential is therefore computed from electrons and cores
together, whose charges nearly cancel on each atom before potentials are summed; the core Hamiltonian does not contain
the attraction, and the same integrals are subtracted from the core repulsion.
"""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.kernels.nddo_multipoles import products
from cuanto.semiempirical import one_centre
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element


class Packing:
    """Converts between matrices over all orbitals and packed vectors of their one-centre elements."""

    def __init__(self, layout: Layout, backend: Backend) -> None:
        rows, columns = (indices.astype(np.int64) for indices in layout.product_indices)
        self.orbitals = layout.orbitals
        arrays = {
            "upper": rows * self.orbitals + columns,
            "lower": columns * self.orbitals + rows,
            "copies": np.where(rows == columns, 1.0, 2.0),
        }
        self.arrays = backend.upload(arrays)

    def pack(self, M_pq: Any) -> Any:
        """Packed one-centre elements of symmetric matrices."""
        flat = M_pq.reshape(*M_pq.shape[:-2], -1)
        return flat[..., self.arrays["upper"]]

    def unpack(self, vector: Any, M_pq: Any) -> None:
        """Set the one-centre elements of contiguous matrices to those of a packed vector."""
        flat = M_pq.reshape(*M_pq.shape[:-2], -1)
        flat[..., self.arrays["upper"]] = vector
        flat[..., self.arrays["lower"]] = vector


class Fock:
    """Fock matrices of molecules at given geometries.

    `H_bpq`: the core Hamiltonian without the attraction to other atoms' cores that G contains; `attraction_bP`: the
    attraction of unit densities; `core_repulsion_b`: as in MOPAC; `screened_b`: the core repulsion minus the part of it
    that G contains. Both repulsions are on the host.
    """

    def __init__(self, engine: PairEngine) -> None:
        self.engine, self.layout, backend = engine, engine.layout, engine.backend
        self.xp, self.packing = backend.xp, Packing(self.layout, backend)
        self.H_bpq, self.attraction_bP, repulsion_ba = engine.core()
        unusual_bP = engine.attraction_difference()
        if unusual_bP is not None:
            self.packing.unpack(unusual_bP, self.H_bpq)
        U_p = self.layout.per_orbital(lambda element: element.per_orbital(element.U))
        diagonal = self.H_bpq.reshape(len(self.H_bpq), -1)[:, :: self.layout.orbitals + 1]
        diagonal += backend.to_device(U_p)
        self._cores = backend.to_device(self.layout.cores)
        self._one_centre = [self._element(number) for number in range(len(self.layout.distinct))]
        repulsion_ba, attraction_bP = backend.download([repulsion_ba, self.attraction_bP])
        halves_ba = -0.5 * self.layout.core_charges * attraction_bP[:, self.layout.first_product[:-1]]
        self.core_repulsion_b = np.array([fsum(row) for row in repulsion_ba])
        self.screened_b = np.array([fsum(row) for row in np.concatenate([repulsion_ba, halves_ba], axis=1)])

    def _element(self, number: int) -> tuple[Any, Any, Any]:
        """Indices of the products of an element's atoms, and its maps from densities to J and K."""
        element = self.layout.distinct[number]
        atoms = np.flatnonzero(self.layout.element_of_atom == number)
        count = element.orbitals * (element.orbitals + 1) // 2
        indices = self.layout.first_product[atoms].astype(np.int64)[:, None] + np.arange(count)
        J, K = one_centre_maps(element)
        to_device = self.engine.backend.to_device
        return to_device(indices), to_device(J.T), to_device(K.T)

    def two_electron(self, D_bspq: Any) -> tuple[Any, Any]:
        """Energies and Fock matrices: J(D) - K(D_s), or with one spin J(D) - K(D)/2; J includes other atoms' cores."""
        potential, F_bspq = self._matrices(D_bspq, self._cores)
        if len(D_bspq) > 1:
            contracted_b = (D_bspq * F_bspq).sum(axis=(1, 2, 3))
        else:
            contracted_b = self.engine.backend.linalg.scalar_product(D_bspq, F_bspq).reshape(1)
        return 0.5 * (contracted_b - potential @ self._cores), F_bspq

    def response(self, change_bspq: Any) -> Any:
        """Changes of the Fock matrices."""
        return self._matrices(change_bspq)[1]

    def _matrices(self, D_bspq: Any, cores: Any = None) -> tuple[Any, Any]:
        """The Coulomb potential between atoms, including that of cores if they are given, and the Fock matrices."""
        factor = 1.0 if D_bspq.shape[1] == 2 else 0.5
        F_bspq = self.xp.zeros_like(D_bspq)
        q_bsP = self.packing.pack(D_bspq) * self.packing.arrays["copies"]
        total_bP = q_bsP.sum(axis=1)
        charges_bP = total_bP if cores is None else total_bP - cores
        potential = self.engine.coulomb_and_exchange(charges_bP, D_bspq, F_bspq, factor)
        vector = self.xp.repeat(potential[:, None, :], D_bspq.shape[1], axis=1)
        for indices, J, K in self._one_centre:
            direct, own = total_bP[:, indices] @ J, q_bsP[:, :, indices] @ K
            vector[:, :, indices] += direct[:, None] - factor * own
        self.packing.unpack(vector, F_bspq)
        return potential, F_bspq

    def attraction(self, D_bspq: Any) -> Any:
        """Energies of the electrons in the field of other atoms' cores."""
        q_bP = self.packing.pack(D_bspq.sum(axis=1, dtype=np.float64)) * self.packing.arrays["copies"]
        return -(q_bP * self.attraction_bP).sum(axis=1)


def one_centre_maps(element: Element) -> tuple[Array, Array]:
    """Maps from packed densities (off-diagonal elements doubled) to packed J and K of one atom."""
    I_pqrt = one_centre.integrals(element)
    m, n = np.array(products(element.orbitals)).T
    J = I_pqrt[m[:, None], n[:, None], m, n]
    K = 0.5 * (I_pqrt[m[:, None], m, n[:, None], n] + I_pqrt[m[:, None], n, n[:, None], m])
    return J, K
