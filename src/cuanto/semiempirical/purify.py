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
from cuanto.semiempirical.rotations import divider

LARGEST = 100
"""Most products of one purification."""
IDEMPOTENT = 1e-11
"""|tr(X) - tr(X^2)| per orbital at which rounding takes over."""
DEPENDENT = 1e-3
"""Smallest diagonal element of a Cholesky factor of projected orbitals; below, they are dependent."""


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
    """A `Diagonaliser` that turns orbitals into those of SP2's projector.

    The density needs no orbitals, but the common loop asks for them: those at hand are projected and made orthonormal.
    Where the occupied space turns too far for that (some orbital is nearly orthogonal to the new space), eigenvectors.
    """

    def __init__(self, xp: Any, to_host: Callable[[Any], NDArray[np.float64]] = np.asarray) -> None:
        self.xp, self.to_host, self.full, self.divide = xp, to_host, Full(xp), divider(xp)
        self.products = self.full_steps = 0

    def restart(self) -> None:
        """Nothing is remembered but what it has cost."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Orbitals that span the projector, occupied ones first."""
        turned, energies = [], []
        known = () if C_sjm is None or len(C_sjm) != len(n_sm) else zip(F_sjk, C_sjm, n_sm, strict=True)
        for F_jk, C_jm, n_m in known:
            C = self._projected(F_jk, C_jm, int(np.count_nonzero(n_m)))
            if C is None:
                break
            turned.append(C)
            energies.append(((F_jk @ C) * C).sum(axis=0))
        if len(turned) < len(F_sjk):
            self.full_steps += 1
            return self.full(F_sjk, C_sjm, n_sm, energy)
        return self.xp.stack(turned), self.xp.stack(energies), "sp2"

    def _projected(self, F_jk: Any, C_jm: Any, o: int) -> Any | None:
        P, products = project(F_jk, o, self.xp, self.to_host)
        self.products += products
        C = C_jm.copy()
        C[:, :o] = P @ C_jm[:, :o]
        C[:, o:] -= P @ C_jm[:, o:]
        for part in (C[:, :o], C[:, o:]):
            if part.shape[1] and not self._orthonormal(part):
                return None
        return C

    def _orthonormal(self, C: Any) -> bool:
        """In place by Cholesky's factors, twice, since projected orbitals may be far from orthonormal at first; whether
        they are independent (a GPU's factor is not finite where they are not, LAPACK's an error)."""
        for _ in range(2):
            try:
                L = self.xp.linalg.cholesky(C.T @ C)
            except np.linalg.LinAlgError:
                return False
            if not float(L.diagonal().min()) > DEPENDENT:  # also where it is not a number
                return False
            self.divide(C, L)
        return True
