"""Orbitals of a Fock matrix by full diagonalisation."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.scf.linear_algebra import eigenvectors


class Diagonaliser(Protocol):
    """Next orbitals from a Fock matrix in an orthonormal basis and the orbitals at hand (None: there are none)."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Orbitals, their energies, and what was done."""

    def restart(self) -> None:
        """Forget what earlier calls have shown."""


class Full:
    """All eigenvectors."""

    def __init__(self, xp: Any, level_shift: float = 0.0) -> None:
        self.xp, self.level_shift = xp, level_shift

    def restart(self) -> None:
        """Nothing is remembered."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Eigenvectors; virtual orbitals lie higher by the level shift while they are made."""
        if self.level_shift and C_sjm is not None:
            empty_sm = self.xp.asarray(1.0 - n_sm / n_sm.max())
            empty_sm = empty_sm if len(empty_sm) == len(C_sjm) else empty_sm.mean(axis=0, keepdims=True)
            F_sjk = F_sjk + self.level_shift * (C_sjm * empty_sm[:, None, :]) @ C_sjm.transpose(0, 2, 1)
        return (*eigenvectors(F_sjk, self.xp), "full")
