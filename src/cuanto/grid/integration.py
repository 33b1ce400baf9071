"""Energy, electrons and Kohn-Sham matrix of a density, in one precision or in two.

Mixed precision: density and matrix are linear, so a pass may add the change since the last one, in single precision, to
the last result in double precision. The error is a rounding error of the change: if n electrons have moved since the
last pass in double precision, at most about 2^-24 times a few n Hartree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.functionals import XCPotential
from cuanto.grid.base import Quadrature

MAX_MOVED_ELECTRONS = 0.2
"""Number of electrons that may move in single-precision passes: errors of a few 1e-9 Hartree, 2e-8 at worst."""

RESPONSE_STEP = 2e-3
"""Relative change of the density at a point in the finite difference of potentials; the error is of second order."""
NO_DENSITY = 1e-14
"""Density of a spin (electrons per cubic Bohr) below which potentials do not respond."""


class Integration:
    """Integration by one quadrature, in one precision.

    `density`: computed from `orbitals`, from the `matrix`, or from what is predicted to be cheaper (`auto`).
    """

    def __init__(self, evaluate: XCPotential, quadrature: Quadrature, w_g: Any, density: str = "auto") -> None:
        self.evaluate, self.quadrature, self.w_g, self.density = evaluate, quadrature, w_g, density

    def __call__(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any, Any]:
        """Energy, electrons, matrices."""
        return self.of_density(self.rho(D_spq, C_spi))

    def of_density(self, rho_scg: Any) -> tuple[Any, Any, Any]:
        """Energy, electrons, matrices of densities at the points."""
        energy, electrons, potential_scg = self.integrate(rho_scg)
        return energy, electrons, self.quadrature.matrix(potential_scg)

    def integrate(self, rho_scg: Any) -> tuple[Any, Any, Any]:
        """Energy, electrons, and potentials [spin, component, point] of densities."""
        rho_scg = rho_scg.astype(np.float64, copy=False)
        e_g, potential_scg = self.evaluate(rho_scg, self.w_g)
        return self.w_g @ e_g, self.w_g @ rho_scg[:, 0].sum(axis=0), potential_scg

    def response(self, rho_scg: Any, change_scg: Any) -> Any:
        """Change of the potentials to first order, by central differences with a different step at every point.

        A common step would make densities negative where the changed orbitals decay more slowly than the density.
        """
        xp = self.evaluate.backend.xp
        rho_scg, change_scg = (array.astype(np.float64, copy=False) for array in (rho_scg, change_scg))
        rho_sg = xp.maximum(rho_scg[:, 0], NO_DENSITY)
        scales = [(rho_sg, abs(change_scg[:, 0]))]
        if rho_scg.shape[1] > 1:
            steepness, moved = (xp.sqrt((array[:, 1:4] * array[:, 1:4]).sum(axis=1)) for array in (rho_scg, change_scg))
            scales.append((steepness + xp.power(rho_sg, 4 / 3), moved))
        if rho_scg.shape[1] > 4:
            scales.append((xp.maximum(rho_scg[:, 4], NO_DENSITY), abs(change_scg[:, 4])))
        slowest = xp.stack([(size / xp.maximum(moved, RESPONSE_STEP * size)).min(axis=0) for size, moved in scales])
        h_g = RESPONSE_STEP * slowest.min(axis=0)
        ahead, behind = (self.evaluate(rho_scg + sign * h_g * change_scg, self.w_g)[1] for sign in (1.0, -1.0))
        responds = xp.greater(rho_scg[:, :1], NO_DENSITY) & xp.greater(rho_scg[:, 0].sum(axis=0), NO_DENSITY)
        return xp.where(responds, (ahead - behind) / (2.0 * h_g), 0.0)

    def rho(self, D_spq: Any, C_spi: Any | None) -> Any:
        """Densities at the points."""
        return self.quadrature.density(D_spq, self._orbitals(C_spi))

    def gradient(self, D_spq: Any, C_spi: Any | None, potential_scg: Any, moving: bool) -> Any:
        """dE/dR [atom, axis] on the device at fixed weights; `moving`: points move with their atoms."""
        return self.quadrature.gradient(D_spq, self._orbitals(C_spi, "gradient"), potential_scg, moving)

    def _orbitals(self, C_spi: Any | None, step: str | None = None) -> Any | None:
        """The orbitals if the density, or another step, is to be computed from them."""
        if C_spi is None or self.density == "matrix":
            return None
        wanted = self.density == "orbitals" or self.quadrature.prefers_orbitals(C_spi.shape[2], step)
        return C_spi if wanted else None


@dataclass(frozen=True, eq=False)
class _LastPass:
    """The last pass: density matrix, densities and potentials at the points, Kohn-Sham matrix."""

    D_spq: Any
    rho_scg: Any
    potential_scg: Any
    F_spq: Any


class MixedIntegration:
    """Passes in double precision while the density changes a lot, then changes in single precision."""

    def __init__(self, double: Integration, single: Quadrature) -> None:
        self.double, self.single = double, single
        self._known: _LastPass | None = None
        self._moved = 0.0
        self._per_change = 0.0
        self.passes = {"double": 0, "single": 0}

    def __call__(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any, Any]:
        """Energy, electrons, matrices."""
        known, double = self._known, self.double
        change = 0.0 if known is None else float(abs(D_spq - known.D_spq).max())
        expected = self._moved + self._per_change * change
        if known is not None and self._per_change > 0 and expected <= MAX_MOVED_ELECTRONS:
            rho_scg = known.rho_scg + self.single.density(D_spq - known.D_spq, None)
            energy, electrons, potential_scg = double.integrate(rho_scg)
            F_spq = known.F_spq + self.single.matrix(potential_scg - known.potential_scg)
            self._moved += self._electrons_moved(rho_scg, known, change)
            self.passes["single"] += 1
        else:
            rho_scg = double.rho(D_spq, C_spi)
            energy, electrons, potential_scg = double.integrate(rho_scg)
            F_spq = double.quadrature.matrix(potential_scg)
            if known is not None:
                self._electrons_moved(rho_scg, known, change)
            self._moved = 0.0
            self.passes["double"] += 1
        self._known = _LastPass(D_spq, rho_scg, potential_scg, F_spq)
        return energy, electrons, F_spq

    def _electrons_moved(self, rho_scg: Any, known: _LastPass, change: float) -> float:
        """int |rho - rho_known|; also updates its ratio to the change of the density matrix."""
        moved = float((abs(rho_scg[:, 0] - known.rho_scg[:, 0]) @ abs(self.double.w_g)).sum())
        if change > 0:
            self._per_change = max(moved / change, 1e-300)
        return moved
