"""One-electron energy: kinetic energy, attraction to nuclei and point charges, external operators such as a field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.integrals.batches import BraBatch
from cuanto.system import Molecule
from cuanto.terms.base import Term
from cuanto.terms.external import Surroundings


class CoreHamiltonian(Term):
    """E = sum_pq h_pq D_pq, h = T - sum_a Z_a/|r - R_a| + external operators; the overlap S is computed along with
    it."""

    name = "core"

    def __init__(
        self,
        molecule: Molecule,
        basis: Basis,
        surroundings: Surroundings,
        backend: Backend,
        pairs: Sequence[BraBatch] | None = None,
    ) -> None:
        Z = np.concatenate([molecule.nuclei.charges, surroundings.charges])
        R = np.concatenate([molecule.R_ax, surroundings.positions])
        self._basis, self._backend, self._surroundings = basis, backend, surroundings
        self._charges = Z.astype(float), R
        self.S_pq, T_pq = integrals.overlap_and_kinetic(basis, backend=backend)
        h_pq = T_pq + integrals.nuclear(basis, charges=Z, positions=R, backend=backend, pairs=pairs)
        for operator, weights in surroundings.weighted_operators():
            M_xpq = integrals.one_electron(basis, operator.integrals, len(weights), backend=backend)
            for x, weight in enumerate(weights):
                h_pq = h_pq + weight * M_xpq[x]
        self.h_pq = h_pq

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Linear in the density."""
        return D_spq.sum(axis=0).reshape(-1) @ self.h_pq.reshape(-1), self.h_pq[None]

    def sources(self, D_spq: Any) -> Sources:
        """Nuclei, point charges, kinetic energy and external operators."""
        operators: dict[str, Any] = {}
        for operator, factors in self._surroundings.weighted_operators():
            known = operators.get(operator.integrals, [0.0] * len(factors))
            operators[operator.integrals] = [x + y for x, y in zip(known, factors, strict=True)]
        return Sources(points=self._charges, kinetic=True, operators=operators or None)

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """Derivative with respect to basis functions, nuclei and point charges."""
        return electronic_gradient(self._basis, D_spq.sum(axis=0), self.sources(D_spq), self._backend)
