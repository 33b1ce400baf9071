"""Pseudodiagonalisation: spinors of one symmetry rotated from one Fock matrix to the next (`cuanto.scf.rotations`).

Rotations mix closed and open spinors with the rest, which contains those of negative energy: their gaps have the other
sign, for which the equations hold as well. If a rotation is too large or levels cross, F is diagonalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import get_backend
from cuanto.scf import rotations

MAX_SWEEPS = 8
"""Many, because blocks are never diagonalised again, and products of matrices this small are cheap."""
MAX_ANGLE, MAX_NORM = 0.1, 1.0
"""Limits of a single rotation, to first order, and of the norm of all."""
MIN_GAP = 1e-3
"""Smallest gap between levels, Hartree."""
SAME_SPACE = 1e-4
"""Largest sine of the angle between the occupied spinors and the lowest eigenvectors of the same state."""


@dataclass
class SpinorRotations:
    """Spinors of a symmetry, in this order: closed, open, of negative energy, the rest.

    Numbers of spinors: `closed`, `shells` (closed and open) and `negative`. `eigenvectors` diagonalises F; `steps`
    counts the rotations that replaced it.
    """

    eigenvectors: Callable[[Array], Array]
    closed: int
    shells: int
    negative: int
    steps: int = 0
    _V: Array | None = None

    def __call__(self, F: Array) -> Array:
        """The next occupied spinors."""
        rotated = None if self._V is None else self._rotate(F, self._V)
        if rotated is None:
            rotated = self.eigenvectors(F)
        else:
            self.steps += 1
        self._V = rotated
        return rotated[:, : self.shells]

    def check(self, F: Array, U: Array) -> bool:
        """Whether occupied spinors U are the lowest of F with positive energy; if not, the next call diagonalises."""
        lowest = self.eigenvectors(F)[:, : self.shells]
        deviation = float(np.abs(U - lowest @ (lowest.T @ U)).max(initial=0.0))
        if deviation > SAME_SPACE:
            self._V = None
        return deviation <= SAME_SPACE

    def _rotate(self, F: Array, V: Array) -> Array | None:
        o, empty = self.shells, len(V) - self.shells
        FV, _, eps = rotations.couple(F, V, o)
        rest = eps[o + self.negative :]
        order = [eps[o : o + self.negative], eps[: self.closed], eps[self.closed : o], rest]
        levels = [level for level in order if len(level)]
        if any(low.max() + MIN_GAP > high.min() for low, high in pairwise(levels)):
            return None
        angles, occupations = [], np.repeat([2.0, 1.0, 0.0], [self.closed, o - self.closed, empty])
        for mid, end in rotations.splits(occupations):
            gaps = rotations.gaps(eps[:end], mid)
            X = V[:, :mid].T @ FV[:, mid:end] / gaps
            if np.abs(X).max(initial=0.0) > MAX_ANGLE:
                return None
            angles.append(rotations.refine(X, V[:, :end], FV[:, :end], gaps, MAX_SWEEPS))
            if not np.linalg.norm(angles[-1]) < MAX_NORM:
                return None
        linalg = get_backend("cpu").linalg
        return np.asarray(rotations.rotate_spins(V[None], occupations[None], angles, np, linalg)[0])
