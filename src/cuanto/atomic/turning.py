"""Spinors of one symmetry that are turned from Fock matrix to Fock matrix (`cuanto.scf.rotations`).

Rotations mix closed and open spinors with the rest, which contains those of negative energy: their gaps have the other
sign, which the equations do not mind. Where a rotation is too large or levels cross, eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cuanto.scf.rotations import angles, refined_angles, splits, turn

Array = NDArray[np.float64]
SWEEPS = 8
"""Towards the exact decoupling: blocks are never diagonalised again, and products of matrices this small are cheap."""
LARGEST_ROTATION, LARGEST_NORM = 0.1, 1.0
"""Of one rotation, to first order, and of all."""
SMALLEST_GAP = 1e-3
"""Hartree."""
SAME_SPACE = 1e-4
"""Sine of the angle between the occupied spinors and the lowest eigenvectors: more is another state."""


@dataclass
class Turning:
    """All spinors of a symmetry: closed ones, open ones, those of negative energy, the rest. `eigenvectors` finds them;
    `turns`: how often it was not needed."""

    eigenvectors: Callable[[Array], Array]
    closed: int
    shells: int
    negative: int
    turns: int = 0
    _V: Array | None = None

    def __call__(self, F: Array) -> Array:
        """The next occupied spinors."""
        turned = None if self._V is None else self._turned(F, self._V)
        if turned is None:
            turned = self.eigenvectors(F)
        else:
            self.turns += 1
        self._V = turned
        return turned[:, : self.shells]

    def sound(self, F: Array, U: Array) -> bool:
        """Whether occupied spinors U are the lowest of F with positive energy; if not, the next ones will be."""
        lowest = self.eigenvectors(F)[:, : self.shells]
        apart = float(np.abs(U - lowest @ (lowest.T @ U)).max(initial=0.0))
        if apart > SAME_SPACE:
            self._V = None
        return apart <= SAME_SPACE

    def _turned(self, F: Array, V: Array) -> Array | None:
        H = V.T @ F @ V
        eps, o = np.diag(H), self.shells
        rest = eps[o + self.negative :]
        order = [eps[o : o + self.negative], eps[: self.closed], eps[self.closed : o], rest]
        levels = [level for level in order if len(level)]
        if any(low.max() + SMALLEST_GAP > high.min() for low, high in pairwise(levels)):
            return None
        parts = []
        for mid, end in splits(np.repeat([2.0, 1.0, 0.0], [self.closed, o - self.closed, len(V) - o])):
            gaps = eps[:mid, None] - eps[None, mid:end]
            if np.abs(angles(H[:mid, mid:end], gaps)).max(initial=0.0) > LARGEST_ROTATION:
                return None
            X = refined_angles(H[:mid, mid:end], H[:mid, :mid], H[mid:end, mid:end], gaps, SWEEPS)
            norm = float(np.linalg.norm(X))
            if not norm < LARGEST_NORM:
                return None
            parts.append(((mid, end), X, norm))
        return np.asarray(turn(V, parts, np))
