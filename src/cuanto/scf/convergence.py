"""When an SCF is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis

ROUNDING = 2e-12
"""Of the energy: its terms are larger than it, and summed up in an order that may differ from run to run."""


@dataclass(frozen=True)
class Criteria:
    """Energy change (Hartree), orbital gradient and change of the dipole moment (e Bohr) that must all be reached.

    The gradient alone bounds the error of the energy (E - E* ~ |F_ov|^2/gap); the energy change guards against a point
    where the gradient is small and the energy still falls, as far as rounding lets that be seen. Properties are wrong
    by |F_ov|/gap, which a soft direction makes large: the dipole moment is watched itself, and costs no iteration where
    it stands still. It must not have moved in the last step (which knows of soft directions) nor move in the next one
    (the last may be small by chance).
    """

    energy: float
    gradient: float
    dipole: float = np.inf
    displacement: Callable[[Any], float] | None = None

    def met(
        self, energy_change: float, gradient: float, D_spq: Any = None, before: Any = None, energy: float = 0.0
    ) -> bool:
        """All are reached, by a density and the one `before`; a number that is not finite never is."""
        if not (abs(energy_change) < max(self.energy, ROUNDING * abs(energy)) and gradient < self.gradient):
            return False
        return before is None or self.calm(D_spq - before)

    def calm(self, change_spq: Any) -> bool:
        """A change of the density that moves the dipole moment by less than is allowed."""
        return self.displacement is None or self.displacement(change_spq) < self.dipole


class Displacement:
    """Largest component of the dipole moment of a change of the density; integrals are made at the first call."""

    def __init__(self, basis: Basis, backend: Backend) -> None:
        self.basis, self.backend = basis, backend
        self._r_xpq: Any = None

    def __call__(self, change_spq: Any) -> float:
        """In e Bohr."""
        if self._r_xpq is None:
            self._r_xpq = integrals.dipole(self.basis, backend=self.backend)
        change_pq = change_spq[0] if len(change_spq) == 1 else change_spq.sum(axis=0)
        moment_x = self._r_xpq.reshape(3, -1) @ change_pq.reshape(-1)
        return float(np.abs(self.backend.to_host(moment_x)).max())
