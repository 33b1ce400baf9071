"""Convergence acceleration: extrapolates (DIIS), interpolates (ADIIS) or damps Fock matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuanto.options import ScfOptions
from cuanto.scf.diis import History
from cuanto.scf.orthogonal import Device

HISTORY_FACTOR = 1.5
"""Factor on `history`: DIIS gains from more matrices than ADIIS can use (PBE of caffeine: 14 iterations instead of
17)."""
ADIIS_GRADIENT = 0.02
"""Gradient below which ADIIS is not used."""
DIVERGENCE_ENERGY = 1e-2
"""Hartree above the lowest energy so far at which DIIS counts as diverging."""
FIRST_STEPS = 3
"""Matrices in the history up to which DIIS is not considered divergent: the first steps of Kohn-Sham overshoot."""
STALL_ITERATIONS = 6
"""Iterations within which the smallest gradient must shrink."""
ADIIS_ITERATIONS = 12
"""Maximum number of consecutive ADIIS iterations."""
GIVE_UP_ITERATIONS = 20
"""Iterations without progress after which DIIS and ADIIS are given up."""
PROGRESS_ENERGY = 1e-3
"""Hartree by which the lowest energy must fall to count as progress if the gradient does not shrink."""
CARRIED_GAIN = 0.5
"""Factor by which each step with secants of another geometry must reduce the gradient."""
UNDAMPED_GRADIENT = 0.01
"""Gradient below which damping is switched off."""


class Accelerator:
    """DIIS, and while it diverges ADIIS, an interpolation that lowers the energy.

    `failed`: a `watched` accelerator makes no progress with either method, so that direct minimisation is needed.
    """

    def __init__(
        self, options: ScfOptions, device: Device, watched: bool = False, free: Callable[[], float] = lambda: np.inf
    ) -> None:
        self.kind, self.damping, self._watched = options.accelerator, options.damping, watched
        if self.kind == "descent":  # DIIS takes over from descent
            self.kind = "diis"
        self.history = History(int(HISTORY_FACTOR * options.history), device, free)
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.history.clear()
        self._lowest, self._smallest, self._stalled = np.inf, np.inf, 0
        self._adiis_left = 0
        self._unproductive, self._progress_energy = 0, np.inf
        self._used: Any = None

    @property
    def failed(self) -> bool:
        """Whether the last iterations made no progress."""
        return self._watched and self._unproductive >= GIVE_UP_ITERATIONS

    def next(self, F: Any, energy: float, gradient: float) -> tuple[Any, str]:
        """The matrix to diagonalise next, and the name of the method that made it."""
        if self.history.carries and not gradient < CARRIED_GAIN * self._smallest:
            self.history.carry(None)  # the geometry has changed too much
        method = self._method(energy, gradient)
        if method == "none" or (len(self.history) == 1 and not self.history.carries):
            mixed, method = F, "plain"
        elif method == "diis":
            mixed = self.history.extrapolate()
        else:
            mixed = self.history.combine(self.history.adiis())
        damped = self.damping and (self.kind == "none" or gradient > UNDAMPED_GRADIENT)
        if damped and self._used is not None:
            mixed, method = (1.0 - self.damping) * mixed + self.damping * self._used, f"{method}, damped"
        self._used = mixed if self.damping else None
        return mixed, method

    def _method(self, energy: float, gradient: float) -> str:
        progress = gradient < 0.9 * self._smallest
        self._stalled = 0 if progress else self._stalled + 1
        if progress or energy < self._progress_energy - PROGRESS_ENERGY:
            self._unproductive, self._progress_energy = 0, min(self._progress_energy, energy)
        else:
            self._unproductive += 1
        rises = energy > self._lowest + DIVERGENCE_ENERGY and len(self.history) > min(
            FIRST_STEPS, self.history.size - 1
        )
        diverges = rises or self._stalled >= STALL_ITERATIONS
        self._smallest, self._lowest = min(self._smallest, gradient), min(self._lowest, energy)
        if self.kind != "auto":
            return self.kind if self.kind != "adiis" or gradient > ADIIS_GRADIENT else "diis"
        if gradient < ADIIS_GRADIENT:
            self._adiis_left = 0
        elif self._adiis_left:
            self._adiis_left -= 1
        elif diverges:
            self._adiis_left, self._stalled = ADIIS_ITERATIONS, 0
        return "adiis" if self._adiis_left else "diis"
