"""The density without orbitals: second-order spectral projection (SP2), as a competitor of rotations.

A. M. N. Niklasson, Phys. Rev. B 66, 155115 (2002), doi:10.1103/PhysRevB.66.155115; on GPUs M. J. Cawkwell et al.,
J. Chem. Theory Comput. 8, 4094 (2012), doi:10.1021/ct300442w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.scf.diagonalise import Full

LARGEST = 100
"""Most products of one purification."""
IDEMPOTENT = 1e-11
"""|tr(X) - tr(X^2)| per orbital at which rounding takes over."""


def project(F_pq: Any, electrons: int, xp: Any, to_host: Callable[[Any], NDArray[np.float64]]) -> tuple[Any, int]:
    """The projector on the lowest eigenvectors of F, and how many products it took.

    X starts as F mapped to [0, 1] with the order turned round (Gershgorin's bounds); X^2 moves eigenvalues down,
    2 X - X^2 up: each step takes the one that brings the trace nearer to the number of electrons.
    """
    n = len(F_pq)
    diagonal = F_pq.diagonal()
    radius = abs(F_pq).sum(axis=1) - abs(diagonal)
    low, high = to_host(xp.stack([(diagonal - radius).min(), (diagonal + radius).max()])).tolist()
    X = (high * xp.eye(n) - F_pq) / (high - low)
    trace, previous = float(X.trace()), np.inf
    for products in range(1, LARGEST + 1):  # noqa: B007
        square = X @ X
        squared = float(square.trace())
        error = abs(trace - squared)
        if error < IDEMPOTENT * n or (error >= previous and error < 1e-6 * n):
            break
        previous = error
        if abs(squared - electrons) < abs(2.0 * trace - squared - electrons):
            X, trace = square, squared
        else:
            X, trace = 2.0 * X - square, 2.0 * trace - squared
    return X, products


class Purification:
    """A `Diagonaliser` that turns orbitals into those of SP2's projector; the first call diagonalises."""

    def __init__(self, xp: Any, to_host: Callable[[Any], NDArray[np.float64]] = np.asarray) -> None:
        self.xp, self.to_host, self.full = xp, to_host, Full(xp)
        self.products = 0

    def restart(self) -> None:
        """Nothing is remembered but what it has cost."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Orbitals that span the projector: those at hand, projected and made orthonormal."""
        if C_sjm is None or len(C_sjm) != len(n_sm):
            return self.full(F_sjk, C_sjm, n_sm, energy)
        turned, energies = [], []
        for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, n_sm, strict=True):
            o = int(np.count_nonzero(n_m))
            P, products = project(F_jk, o, self.xp, self.to_host)
            self.products += products
            occupied, empty = P @ C_jm[:, :o], C_jm[:, o:] - P @ C_jm[:, o:]
            C = self.xp.concatenate([self._orthonormal(part) for part in (occupied, empty)], axis=1)
            turned.append(C)
            energies.append(((F_jk @ C) * C).sum(axis=0))
        return self.xp.stack(turned), self.xp.stack(energies), "sp2"

    def _orthonormal(self, C: Any) -> Any:
        """By Cholesky's factors, twice: the projected orbitals may be far from orthonormal at first."""
        if C.shape[1] == 0:
            return C
        for _ in range(2):
            L = self.xp.linalg.cholesky(C.T @ C)
            C = self.xp.linalg.solve(L, C.T).T
        return C
