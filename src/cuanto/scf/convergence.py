"""When an SCF is done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Criteria:
    """Energy change (Hartree) and orbital gradient that must both be reached.

    The gradient alone bounds the error of the energy (E - E* ~ |F_ov|^2/gap); the energy change guards against a point
    where the gradient is small and the energy still falls.
    """

    energy: float
    gradient: float

    def met(self, energy_change: float, gradient: float) -> bool:
        """Both are reached; a number that is not finite never is."""
        return abs(energy_change) < self.energy and gradient < self.gradient
