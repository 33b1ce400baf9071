"""Gradient of fitted K, for which the fit is stationary: only integrals and metric are differentiated.

K: E = k sum_ij (ij|ij) with (ij|ij) = sum_PQ (ij|P) V^-1_PQ (Q|ij). With Y_ij = V^-1 (.|ij), for which E is stationary,
dE = k (2 sum_ijP Y_ijP d(ij|P) - sum_ijPQ Y_ijP Y_ijQ d(P|Q)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.coulomb.fitted_tensor import FittedTensor, portions
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.three_centre_forces import Part, ThreeCentreForces
from cuanto.integrals.derivative import two_centre_gradient
from cuanto.memory import Budget

ORBITALS_AT_ONCE = 32
"""Smallest number of orbitals i processed at a time: enough to be worth the calls."""
MEMORY_SHARE = 0.4
"""Fraction of the available memory for Y_ijP, and for the integrals of a pass."""


def fitted_exchange_gradient(
    tensor: FittedTensor, metric: FittingMetric, C_spi: Sequence[Any], budget: Budget
) -> Array:
    """d/dR of the fitted sum_sij (ij|ij), with each orbital multiplied by the square root of its occupation.

    Y_ijP of as many orbitals i at a time as fit into the `budget` of the calculation.
    """
    integrals, backend = tensor.integrals, tensor.integrals.backend
    room = MEMORY_SHARE * budget.available()
    forces = ThreeCentreForces(integrals, room)
    width, naux = forces.width, len(forces.order)
    inverse_QP = backend.zeros((naux, width), np.float64)
    inverse_QP[:, :naux] = metric.inverse[:, backend.to_device(forces.order)]
    gamma_PQ = backend.zeros((width, width), np.float64)
    parts: list[Part] = []
    whole = sum(8 * C_pi.shape[1] ** 2 * width for C_pi in C_spi) <= room
    for C_pi in C_spi:
        for some in portions(C_pi.shape[1], max(1, int(room / (8 * C_pi.shape[1] * width)))):
            parts.append((C_pi[:, some], C_pi, _coefficients(tensor, inverse_QP, C_pi, some, gamma_PQ)))
            if not whole:
                forces.add(parts)
                parts.clear()
    if parts:
        forces.add(parts)
    position = backend.to_device(np.argsort(forces.order))
    weights = {"coulomb": gamma_PQ[position[:, None], position]}
    two_centre = two_centre_gradient(integrals.aux, weights, backend, integrals.omega)
    # In this order, the device works while the host prepares the gradient of the metric.
    return 2.0 * forces.gradient() - two_centre


def _coefficients(tensor: FittedTensor, inverse_QP: Any, C_pi: Any, some: slice, gamma_PQ: Any) -> Any:
    """Y_ijP = sum_Q (ij|Q) V^-1_QP of some orbitals i with all j, in the columns of `inverse_QP`.

    sum_ij Y_ijP Y_ijQ is added to gamma_PQ. If i runs over all orbitals, only the rows with j <= i are computed.
    """
    xp, linalg = tensor.integrals.backend.xp, tensor.integrals.backend.linalg
    C_jp = xp.ascontiguousarray(C_pi[tensor.integrals.backend.to_device(tensor.order)].T)
    count, n_orbitals = some.stop - some.start, len(C_jp)
    Y_ijP = xp.empty((count, n_orbitals, inverse_QP.shape[1]))
    first = 0
    for X_ipP in tensor.half_transform(C_pi[:, some]):
        for mine in portions(len(X_ipP), max(ORBITALS_AT_ONCE, n_orbitals // 8)):
            last = first + mine.stop - mine.start
            below, end = (first, last) if count == n_orbitals else (0, n_orbitals)
            X_ijP = linalg.product(C_jp[:end], X_ipP[mine])
            rows = linalg.product(X_ijP.reshape(-1, X_ijP.shape[2]), inverse_QP)
            mine_ijP = rows.reshape(last - first, end, -1)
            Y_ijP[first:last, :end] = mine_ijP
            Y_ijP[:below, first:last] = mine_ijP[:, :below].transpose(1, 0, 2)
            mine_ijP[:, :below] *= 2.0**0.5  # for (i, j) and (j, i)
            gamma_PQ += linalg.gram(rows.T)
            first = last
    return Y_ijP
