"""One-electron energy: kinetic energy, attraction to nuclei and point charges, external operators such as a field.

With scalar relativity (`terms.x2c`) kinetic energy and attraction to nuclei become the X2C Hamiltonian; point charges
and external operators are the same as without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.basis.advice import LAST_LIGHT_ELEMENT, sets_for
from cuanto.coulomb.forces import POINT_EXPONENT, Sources, electronic_gradient
from cuanto.integrals.batches import BraBatch
from cuanto.system import Molecule
from cuanto.terms.base import Term
from cuanto.terms.external import Surroundings
from cuanto.terms.suitability import elements_contracted_without_relativity, elements_without_core
from cuanto.terms.x2c import NONRELATIVISTIC, X2C, Nuclei, OneElectronModel


class CoreHamiltonian(Term):
    """E = sum_pq h_pq D_pq, h = T - sum_a Z_a/|r - R_a| + external operators; the overlap S is computed as well.

    `model`: relativity, and the shape of the nuclei.
    """

    name, linear = "core", True

    def __init__(
        self,
        molecule: Molecule,
        basis: Basis,
        surroundings: Surroundings,
        backend: Backend,
        pairs: Sequence[BraBatch] | None = None,
        model: OneElectronModel = NONRELATIVISTIC,
    ) -> None:
        self._basis, self._backend, self._surroundings = basis, backend, surroundings
        self._molecule, self._model = molecule, model
        self.S_pq, T_pq = integrals.overlap_and_kinetic(basis, backend=backend)
        nuclei = Nuclei(molecule.nuclei.charges.astype(float), molecule.R_ax, model.exponents(molecule.nuclei.protons))
        self._x2c = None if model.c is None else X2C(basis, nuclei, model.c, backend)
        self._charges = self._all_charges(nuclei)
        h_pq = T_pq if self._x2c is None else self._x2c.h_pq
        if self._charges is not None:
            h_pq = h_pq + self._charges.attraction(basis, backend, pairs)
        for operator, weights in surroundings.weighted_operators():
            M_xpq = integrals.one_electron(basis, operator.integrals, len(weights), backend=backend)
            for x, weight in enumerate(weights):
                h_pq = h_pq + weight * M_xpq[x]
        self.h_pq = h_pq

    def _all_charges(self, nuclei: Nuclei) -> Nuclei | None:
        """Nuclei, without charge if X2C includes them, followed by the point charges; None if nothing is left."""
        q, R_x = self._surroundings.charges, self._surroundings.positions
        Z_a, eta_a = nuclei.Z_a, nuclei.exponents
        if self._x2c is not None:
            if not len(q):
                return None
            Z_a, eta_a = np.zeros_like(Z_a), None
        if eta_a is not None:
            eta_a = np.concatenate([eta_a, np.full(len(q), POINT_EXPONENT)])
        return Nuclei(np.concatenate([Z_a, q]), np.concatenate([nuclei.R_ax, R_x]), eta_a)

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, linear in the density, and h."""
        return D_spq.sum(axis=0).reshape(-1) @ self.h_pq.reshape(-1), self.h_pq[None]

    def sources(self, D_spq: Any) -> Sources | None:
        """Nuclei, point charges, kinetic energy, external operators; None with X2C, whose gradient has more parts."""
        return None if self._x2c is not None else self._sources(kinetic=True)

    def _sources(self, kinetic: bool | None) -> Sources:
        operators: dict[str, Any] = {}
        for operator, factors in self._surroundings.weighted_operators():
            known = operators.get(operator.integrals, [0.0] * len(factors))
            operators[operator.integrals] = [x + y for x, y in zip(known, factors, strict=True)]
        charges = Sources() if self._charges is None else self._charges.sources
        return charges + Sources(kinetic=kinetic, operators=operators or None)

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """dE/dR of the atoms, with which basis functions and nuclei move, and of the point charges."""
        D_pq = D_spq.sum(axis=0)
        if self._x2c is None:
            return electronic_gradient(self._basis, D_pq, self._sources(kinetic=True), self._backend)
        found = self._x2c.gradient(D_pq)
        outside = self._sources(kinetic=None)
        if outside == Sources():
            return found
        total = electronic_gradient(self._basis, D_pq, outside, self._backend)
        total[: len(found)] += found
        return total

    def notes(self) -> Sequence[str]:
        """A note on X2C if it is used, and warnings about functions that do not suit the Hamiltonian."""
        molecule, model, notes = self._molecule, self._model, []
        if self._x2c is not None:
            notes.append(f"relativity: {self._x2c}, {'Gaussian' if model.gaussian_nuclei else 'point'} nuclei")
        if valence := elements_without_core(molecule, self._basis):
            notes.append(
                f"WARNING: the basis of {', '.join(valence)} is for valence electrons and lacks its core potential: "
                f"give a file with its ECP section, or use {_advised(molecule, self._x2c is not None)}"
            )
        if model.c is not None:
            wrong = [
                s for s in elements_contracted_without_relativity(molecule, self._basis, model.c) if s not in valence
            ]
            if wrong:
                notes.append(
                    f"WARNING: the basis of {', '.join(wrong)} is not contracted for X2C, and energies with "
                    f"relativity='x2c' are wrong: use {_advised(molecule, True)}"
                )
            return notes
        nuclei = molecule.nuclei
        heavy = (nuclei.protons > LAST_LIGHT_ELEMENT) & (nuclei.core_electrons == 0)
        if elements := [s for s in dict.fromkeys(np.array(molecule.elements)[heavy].tolist()) if s not in valence]:
            notes.append(
                f"WARNING: {', '.join(elements)} without relativity: use relativity='x2c' with "
                f"{_advised(molecule, True)}, or core potentials, for example {_advised(molecule, False)}"
            )
        return notes


def _advised(molecule: Molecule, relativistic: bool) -> str:
    """Names of sets that suit the molecule, for messages."""
    found = sets_for(molecule.elements, relativistic)
    return " or ".join(found[:2]) or ("a basis for X2C" if relativistic else "a basis with core potentials")
