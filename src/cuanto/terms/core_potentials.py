"""Energy of the electrons in effective core potentials."""

from __future__ import annotations

from typing import Any

from cuanto import core_potentials
from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.memory import Budget
from cuanto.terms.base import Term


class CorePotentials(Term):
    """E = sum_pq V_pq D_pq of the core potentials of a basis, which replace the inner electrons of atoms."""

    name, linear = "core potentials", True

    def __init__(self, basis: Basis, backend: Backend, budget: Budget | None = None) -> None:
        self._basis, self._backend = basis, backend
        self.V_pq = core_potentials.matrix(basis, backend=backend, budget=budget)

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, which is linear in the density, and V_pq."""
        return D_spq.sum(axis=0).reshape(-1) @ self.V_pq.reshape(-1), self.V_pq[None]

    def gradient(self, D_spq: Any, C_spi: Any | None) -> Array:
        """Gradient from the motion of basis functions and core potentials."""
        return core_potentials.gradient(self._basis, D_spq.sum(axis=0), backend=self._backend)
