"""Convergence criteria of the SCF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.basis import Basis

ENERGY_ROUNDING = 2e-12
"""Relative rounding error of the energy, a sum of terms larger than itself whose order may vary."""
MAX_RATIO = 0.5
"""Largest ratio of successive steps assumed when the remaining ones are summed up."""
DIPOLE_SAFETY = 1.25
"""Safety factor on the predicted remaining change of a dipole moment."""


@dataclass(frozen=True)
class Criteria:
    """Thresholds of the energy change (Hartree), the orbital gradient and the error of the dipole moment (e Bohr).

    The gradient bounds the error of the energy (E - E* ~ |F_ov|^2/gap); the energy change guards against a point where
    the gradient is small and the energy still falls. The error of properties is |F_ov|/gap, large in a soft direction:
    the dipole moment is therefore tested itself. `dipole_change` returns the change of the dipole moment that a change
    of the density causes.
    """

    energy: float
    gradient: float
    dipole: float = np.inf
    dipole_change: Callable[[Any], float] | None = None

    def met(self, energy_change: Any, gradient: Any, energy: Any = 0.0) -> Any:
        """Whether energy change and gradient are small enough, of one calculation or of many; never if not finite."""
        return (abs(energy_change) < np.maximum(self.energy, ENERGY_ROUNDING * abs(energy))) & (
            gradient < self.gradient
        )

    def keeps_dipole(self, change_spq: Any) -> bool:
        """Whether a change of the density changes the dipole moment by less than the threshold."""
        return self.dipole_change is None or self.dipole_change(change_spq) < self.dipole

    def dipole_converged(self, ahead_spq: Any, last_spq: Any) -> bool:
        """Whether all remaining steps together change the dipole moment by less than the threshold.

        The extrapolated next step approximates the remaining error (0.5 to 1.4 times in nine of ten cases of 30
        calculations, once 2.4), unless steps hardly shrink, as in a soft direction: they are summed as a geometric
        series with the ratio of the next step to the last, at most 1/2.
        """
        if self.dipole_change is None:
            return True
        ahead, last = self.dipole_change(ahead_spq), self.dipole_change(last_spq)
        return DIPOLE_SAFETY * ahead < self.dipole * (1.0 - min(ahead / max(last, 1e-300), MAX_RATIO))


class DipoleChange:
    """Largest component of the dipole moment of a density change; integrals are computed at the first call."""

    def __init__(self, basis: Basis, backend: Backend) -> None:
        self.basis, self.backend = basis, backend
        self._r_xpq: Any = None

    def __call__(self, change_spq: Any) -> float:
        """The largest component, e Bohr."""
        if self._r_xpq is None:
            self._r_xpq = integrals.dipole(self.basis, backend=self.backend)
        change_pq = change_spq[0] if len(change_spq) == 1 else change_spq.sum(axis=0)
        moment_x = self._r_xpq.reshape(3, -1) @ change_pq.reshape(-1)
        return float(np.abs(self.backend.to_host(moment_x)).max())
