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
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.integrals import overlap
from cuanto.methods import GaussianResult
from cuanto.scf.orthogonal import algebra_device
from cuanto.scf.secants import SIZE, TRAJECTORY_SIZE, Secants
from cuanto.scf.state import Orbitals


def extrapolation_weights(points: int) -> Array:
    """Weights of equidistant points, the newest first, of the polynomial through them at the next point."""
    return np.array([(-1.0) ** (k + 1) * comb(points, k) for k in range(1, points + 1)])


@dataclass(frozen=True, eq=False)
class _Step:
    """Occupied orbitals of each set, and their products with the overlap matrix, on `device`."""

    device: Backend
    orbitals: list[Any]
    products: list[Any]

    @classmethod
    def of(cls, result: GaussianResult, columns: list[Ints]) -> _Step:
        """The orbitals in some columns of each set."""
        backend, device = result.backend, algebra_device(result.basis.nbf, result.backend)
        S_pq = overlap(result.basis, backend=backend) if result.S_pq is None else result.S_pq
        matrices = [S_pq, *result.state.C_spm]
        S_pq, *sets = matrices if device is backend else backend.download(matrices)
        orbitals = [C_pm[:, device.to_device(chosen)] for C_pm, chosen in zip(sets, columns, strict=True)]
        return cls(device, orbitals, [device.linalg.product(S_pq, C_pi) for C_pi in orbitals])


class Extrapolation:
    """Extrapolates occupied orbitals from the last `points` geometries; functions move with their atoms."""

    def __init__(self, points: int) -> None:
        self._steps: deque[_Step] = deque(maxlen=points)
        self._occupations: Array | None = None
        self._secants = Secants(SIZE if points == 1 else TRAJECTORY_SIZE)
        self._partition: tuple[float, float] | None = None

    def add(self, result: GaussianResult) -> None:
        """Add the orbitals of a geometry; geometries with other occupations are forgotten."""
        n_sm = result.occupations
        if self._occupations is None or not np.array_equal(n_sm > 0, self._occupations > 0):
            self._steps.clear()
        self._occupations = n_sm
        shared = len(result.state.C_spm) < len(n_sm)
        used = n_sm.sum(axis=0, keepdims=True) if shared else n_sm
        self._steps.appendleft(_Step.of(result, [np.flatnonzero(n_m > 0) for n_m in used]))
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
            device = self._steps[0].device
            product = device.linalg.product
            parts = (
                float(weight) * product(step.orbitals[s], product(step.products[s].T, C_pi))
                for weight, step in zip(weights, self._steps, strict=True)
            )
            C_spm[s][:, occupied] = device.to_host(sum(parts))
        return Orbitals(basis, C_spm, n_sm, self._secants, self._partition)
