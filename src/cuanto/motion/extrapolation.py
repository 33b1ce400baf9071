"""Start orbitals at the next geometry, extrapolated from the last ones.

The projector on the occupied orbitals is extrapolated by a polynomial through the last points and applied to the last
orbitals: J. VandeVondele et al., Comput. Phys. Commun. 167, 103 (2005), doi:10.1016/j.cpc.2004.12.014, eq. 29. Their
damped weights (J. Kolafa, J. Comput. Chem. 25, 335 (2004), doi:10.1002/jcc.10385) are for SCFs that are not iterated to
convergence; ours are, and start better without damping.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import comb

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.methods import GaussianResult
from cuanto.scf.secants import Secants
from cuanto.scf.state import Orbitals


def extrapolation_weights(points: int) -> Array:
    """Weights of equidistant points, the newest first, of the polynomial through them at the next point."""
    return np.array([(-1.0) ** (k + 1) * comb(points, k) for k in range(1, points + 1)])


@dataclass(frozen=True, eq=False)
class _Step:
    """Occupied orbitals of each set, and their products with the overlap matrix."""

    orbitals: list[Array]
    products: list[Array]


class Extrapolation:
    """Extrapolates occupied orbitals from the last `points` geometries; functions move with their atoms."""

    def __init__(self, points: int) -> None:
        self._steps: deque[_Step] = deque(maxlen=points)
        self._occupations: Array | None = None
        self._secants = Secants()
        self._partition: tuple[float, float] | None = None

    def add(self, result: GaussianResult) -> None:
        """Add the orbitals of a geometry; geometries with other occupations are forgotten."""
        n_sm, C_spm = result.occupations, result.coefficients
        if self._occupations is None or not np.array_equal(n_sm > 0, self._occupations > 0):
            self._steps.clear()
        self._occupations = n_sm
        used = n_sm if len(C_spm) == len(n_sm) else n_sm.sum(axis=0, keepdims=True)
        orbitals = [C_pm[:, n_m > 0] for C_pm, n_m in zip(C_spm, used, strict=True)]
        self._steps.appendleft(_Step(orbitals, [result.overlap @ C_pi for C_pi in orbitals]))
        self._partition = result.partition

    def predict(self, basis: Basis) -> Orbitals | None:
        """Orbitals in the basis of the next geometry; None without an earlier one."""
        if not self._steps or self._occupations is None:
            return None
        weights, last = extrapolation_weights(len(self._steps)), self._steps[0].orbitals
        n_sm = self._occupations
        C_spm = np.zeros((len(last), basis.nbf, n_sm.shape[1]))
        for s, C_pi in enumerate(last):
            occupied = n_sm[s] > 0 if len(last) == len(n_sm) else n_sm.sum(axis=0) > 0
            C_spm[s][:, occupied] = sum(
                weight * step.orbitals[s] @ (step.products[s].T @ C_pi)
                for weight, step in zip(weights, self._steps, strict=True)
            )
        return Orbitals(basis, C_spm, n_sm, self._secants, self._partition)
