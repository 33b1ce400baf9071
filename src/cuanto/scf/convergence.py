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


SLOWEST = 0.5
"""Largest factor from step to step that is assumed when what is left is summed up."""
MARGIN = 1.25
"""Safety factor on the predicted remaining change of a dipole moment."""


@dataclass(frozen=True)
class Criteria:
    """Energy change (Hartree), orbital gradient and error of the dipole moment (e Bohr) that must all be reached.

    The gradient alone bounds the error of the energy (E - E* ~ |F_ov|^2/gap); the energy change guards against a point
    where the gradient is small and the energy still falls, as far as rounding lets that be seen. Properties are wrong
    by |F_ov|/gap, which a soft direction makes large: the dipole moment is watched itself.
    """

    energy: float
    gradient: float
    dipole: float = np.inf
    displacement: Callable[[Any], float] | None = None

    def met(self, energy_change: Any, gradient: Any, energy: Any = 0.0) -> Any:
        """Energy and gradient are, of one calculation or of many; a number that is not finite never is."""
        return (abs(energy_change) < np.maximum(self.energy, ROUNDING * abs(energy))) & (gradient < self.gradient)

    def calm(self, change_spq: Any) -> bool:
        """A change of the density that moves the dipole moment by less than is allowed."""
        return self.displacement is None or self.displacement(change_spq) < self.dipole

    def settled(self, ahead_spq: Any, last_spq: Any) -> bool:
        """All steps to come move the dipole moment by less than is allowed.

        The extrapolated next step is about what is missing (in 30 calculations 0.5 to 1.4 of it in nine cases of ten,
        once 2.4), unless steps hardly shrink, as in a soft direction: they are summed up as if they went on shrinking
        as from the last to the next, or halved where they shrink less.
        """
        if self.displacement is None:
            return True
        ahead, last = self.displacement(ahead_spq), self.displacement(last_spq)
        return MARGIN * ahead < self.dipole * (1.0 - min(ahead / max(last, 1e-300), SLOWEST))


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
