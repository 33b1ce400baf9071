"""Gradients of fitted J and K, for which the fits are stationary: only integrals and metric are differentiated.

K: E = k sum_ij (ij|ij) with (ij|ij) = sum_PQ (ij|P) V^-1_PQ (Q|ij). With Y_ij = V^-1 (.|ij), for which E is stationary,
dE = k (2 sum_ijP Y_ijP d(ij|P) - sum_ijPQ Y_ijP Y_ijQ d(P|Q)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array, inverse_permutation
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import FittedTensor, portions
from cuanto.coulomb.forces import electron_density, fitted_density, interaction_gradient
from cuanto.coulomb.metric import FittingMetric
from cuanto.coulomb.three_centre_forces import Part, ThreeCentreForces
from cuanto.integrals.derivative import two_centre_gradient
from cuanto.memory import Budget

SHARE = 0.4
"""Part of the available memory for Y_ijP, and for the integrals of a pass."""


def fitted_coulomb_gradient(basis: Basis, aux: Basis, D_pq: Any, c_P: Any, backend: Backend) -> Array:
    """dE_J/dR of E_J = sum_P c_P (P|D) - (c|c)/2, with the coefficients c of the fitted density."""
    density, fit = electron_density(basis, D_pq, backend), fitted_density(aux, c_P, backend)
    return (
        interaction_gradient(density, fit, backend)
        + interaction_gradient(fit, density, backend)
        - interaction_gradient(fit, fit, backend)
    )


def fitted_exchange_gradient(
    tensor: FittedTensor, metric: FittingMetric, C_spi: Sequence[Any], budget: Budget
) -> Array:
    """d/dR of the fitted sum_sij (ij|ij), with each orbital multiplied by the square root of its occupation.

    Y_ijP of as many orbitals i at a time as fit into the `budget` of the calculation.
    """
    integrals, backend = tensor.integrals, tensor.integrals.backend
    room = SHARE * budget.available()
    forces = ThreeCentreForces(integrals, room)
    width, naux = forces.width, len(forces.order)
    inverse_QP = backend.zeros((naux, width), np.float64)
    inverse_QP[:, :naux] = metric.inverse[:, backend.to_device(forces.order)]
    gamma_PQ = backend.zeros((width, width), np.float64)
    parts: list[Part] = []
    whole = sum(8 * C_pi.shape[1] ** 2 * width for C_pi in C_spi) <= room
    for C_pi in C_spi:
        for some in portions(C_pi.shape[1], max(1, int(room / (8 * C_pi.shape[1] * width)))):
            Y_ijP = _coefficients(tensor, inverse_QP, C_pi, some)
            rows = Y_ijP.reshape(-1, width)
            gamma_PQ += backend.linalg.product(rows.T, rows)
            parts.append((C_pi[:, some], C_pi, Y_ijP))
            del Y_ijP, rows
            if not whole:
                forces.add(parts)
                parts.clear()
    if parts:
        forces.add(parts)
    place = backend.to_device(inverse_permutation(forces.order))
    weights = {"coulomb": gamma_PQ[place[:, None], place]}
    two_centre = two_centre_gradient(integrals.aux, weights, backend, integrals.omega)
    return 2.0 * forces.gradient() - two_centre  # in this order: the device works while the host prepares the metric's


def _coefficients(tensor: FittedTensor, inverse_QP: Any, C_pi: Any, some: slice) -> Any:
    """Y_ijP = sum_Q (ij|Q) V^-1_QP of some orbitals i with all j, in the columns of `inverse_QP`."""
    xp, backend = tensor.integrals.backend.xp, tensor.integrals.backend
    C_jp = xp.ascontiguousarray(C_pi[backend.to_device(tensor.order)].T)
    Y_ijP = xp.empty((some.stop - some.start, len(C_jp), inverse_QP.shape[1]))
    first = 0
    for X_ipP in tensor.half_transformed(C_pi[:, some]):
        X_ijP = backend.linalg.product(C_jp, X_ipP)
        rows = X_ijP.reshape(-1, X_ijP.shape[2])
        Y_ijP[first : first + len(X_ijP)] = backend.linalg.product(rows, inverse_QP).reshape(len(X_ijP), len(C_jp), -1)
        first += len(X_ijP)
    return Y_ijP
