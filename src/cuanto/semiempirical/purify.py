"""Density matrix purification by second-order spectral projection (SP2), an alternative to rotations.

A. M. N. Niklasson, Phys. Rev. B 66, 155115 (2002), doi:10.1103/PhysRevB.66.155115; on GPUs M. J. Cawkwell et al.,
J. Chem. Theory Comput. 8, 4094 (2012), doi:10.1021/ct300442w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.diagonalise import Full
from cuanto.scf.orthogonal import Device

MAX_PRODUCTS = 100
"""Maximum number of matrix products of a purification."""
IDEMPOTENCY_TOLERANCE = 1e-11
"""|tr(X) - tr(X^2)| per orbital at the level of rounding errors."""
DEPENDENCE_LIMIT = 1e-3
"""Diagonal element of a Cholesky factor below which projected orbitals are linearly dependent."""


def project(
    F_pq: Any, electrons: int, device: Device, frontier: tuple[float, float] | None = None
) -> tuple[Any, int] | None:
    """The projector on the lowest eigenvectors of F, and the number of matrix products that it took; None if all levels
    are equal, so that there is no range to map.

    X starts as F mapped to [0, 1] in reversed order (Gershgorin's bounds); X^2 moves eigenvalues down, 2 X - X^2 up:
    each step takes the one that brings the trace closer to the number of electrons. With estimates of the highest
    occupied and the lowest empty level (`frontier`), X is first scaled so that empty (occupied) levels fold onto the
    lowest (highest), which saves a third of the steps (E. H. Rubensson, J. Chem. Theory Comput. 7, 1233 (2011),
    arXiv:1101.0265). If the trace is not the number of electrons at the end, because the estimates were wrong, the
    purification is repeated without them.
    """
    n, xp = len(F_pq), device.xp
    diagonal = F_pq.diagonal()
    radius = abs(F_pq).sum(axis=1) - abs(diagonal)
    low, high = device.to_host(xp.stack([(diagonal - radius).min(), (diagonal + radius).max()])).tolist()
    if not high > low:
        return None
    X = 1.0 / (high - low) * (high * xp.eye(n) - F_pq)
    full, empty = 1.0, 0.0
    if frontier is not None and low < frontier[0] < frontier[1] < high:
        full, empty = ((high - level) / (high - low) for level in frontier)
    trace, previous = float(X.trace()), np.inf
    for products in range(1, MAX_PRODUCTS + 1):  # noqa: B007
        square = device.linalg.product(X, X.T)
        squared = float(square.trace())
        error = abs(trace - squared)
        if error < IDEMPOTENCY_TOLERANCE * n or (error >= previous and error < 1e-6 * n) or not abs(trace) < 2 * n:
            break
        previous = error
        a, b = 2.0 / (2.0 - empty), 2.0 / (1.0 + full)
        down, up = (a * a, 2.0 * a * (1.0 - a), (1.0 - a) ** 2), (-b * b, 2.0 * b, 0.0)  # coefficients of X^2, X and 1
        trace_down, trace_up = (c[0] * squared + c[1] * trace + c[2] * n for c in (down, up))
        c, trace = (down, trace_down) if abs(trace_down - electrons) < abs(trace_up - electrons) else (up, trace_up)
        full, empty = (c[0] * x * x + c[1] * x + c[2] for x in (full, empty))
        X *= c[1]
        square *= c[0]
        X += square
        X.reshape(-1)[:: n + 1] += c[2]
    if frontier is not None and not abs(trace - electrons) < 0.5:
        repeated = project(F_pq, electrons, device)
        return None if repeated is None else (repeated[0], products + repeated[1])
    return X, products


class Purification:
    """A `Diagonaliser` whose occupied orbitals span SP2's projector.

    The frontier levels of a call are the estimates of the next.

    The density needs no orbitals, but the SCF loop does: the current ones are projected and orthonormalised. If the
    occupied space changes too much (an orbital is nearly orthogonal to the new space), F is diagonalised.
    """

    def __init__(self, device: Device) -> None:
        self.device, self.xp, self.linalg, self.full = device, device.xp, device.linalg, Full(device)
        self.products = self.full_steps = 0
        self.restart()

    def restart(self) -> None:
        """Forget the frontier levels of the last call."""
        self._frontiers: list[tuple[float, float] | None] = []

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: Array, energy: float) -> tuple[Any, Any, str]:
        """Orbitals that span the projector, occupied ones first."""
        projected, energies, filled = [], [], [int(np.count_nonzero(n_m)) for n_m in n_sm]
        frontiers = self._frontiers or [None] * len(filled)
        known = () if C_sjm is None or len(C_sjm) != len(n_sm) else zip(F_sjk, C_sjm, filled, frontiers, strict=True)
        for F_jk, C_jm, o, frontier in known:
            C = self._project(F_jk, C_jm, o, frontier)
            if C is None:
                break
            projected.append(C)
            energies.append((self.linalg.product(F_jk, C) * C).sum(axis=0))
        if len(projected) < len(F_sjk):
            self.full_steps += 1
            C_sjm, eps_sm, step = self.full(F_sjk, C_sjm, n_sm, energy)
        else:
            C_sjm, eps_sm, step = self.xp.stack(projected), self.xp.stack(energies), "sp2"
        levels = zip(self.device.to_host(eps_sm), filled, strict=True)
        self._frontiers = [(eps_m[:o].max(), eps_m[o:].min()) if 0 < o < len(eps_m) else None for eps_m, o in levels]
        return C_sjm, eps_sm, step

    def _project(self, F_jk: Any, C_jm: Any, o: int, frontier: tuple[float, float] | None) -> Any | None:
        projected = project(F_jk, o, self.device, frontier)
        if projected is None:
            return None
        P, products = projected
        self.products += products
        C = C_jm.copy()
        C[:, :o] = self.linalg.product(P, C_jm[:, :o])
        C[:, o:] -= self.linalg.product(P, C_jm[:, o:])
        for part in (C[:, :o], C[:, o:]):
            if part.shape[1] and not self._orthonormal(part):
                return None
        return C

    def _orthonormal(self, C: Any) -> bool:
        """Orthonormalise in place by Cholesky factors, twice, because projected orbitals may be far from orthonormal;
        False if they are linearly dependent (a GPU's factor is NaN, LAPACK's raises)."""
        for _ in range(2):
            try:
                own = self.linalg.factor(self.linalg.lower_gram(C.T))
            except np.linalg.LinAlgError:
                return False
            if not float(own.L.diagonal().min()) > DEPENDENCE_LIMIT:  # also true for NaN
                return False
            own.divide(C)
        return True
