"""Gradients of fitted J and K: derivatives of three-centre integrals, computed in passes and contracted immediately.

K: E = k sum_ij (ij|ij) with (ij|ij) = sum_PQ (ij|P) V^-1_PQ (Q|ij). With Y_ij = V^-1 (.|ij), for which E is stationary,
dE = k (2 sum_ijP Y_ijP d(ij|P) - sum_ijPQ Y_ijP Y_ijQ d(P|Q)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import FittedTensor, portions
from cuanto.coulomb.forces import electron_density, fitted_density, interaction_gradient
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals.api import basis_kets
from cuanto.integrals.attenuation import attenuated
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.derivative import DerivativeShells, coupling, derivative_shells, sum_by_atom, two_centre_gradient
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import pair_batches
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.fitting_force import fit_force_source
from cuanto.memory import Budget

THRESHOLD = 1e-13
"""Primitive pairs with smaller contributions are neglected."""
PASS_BYTES = 2**28
"""Largest number of bytes of integrals in a pass."""
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


def fitted_exchange_gradient(tensor: FittedTensor, metric: FittingMetric, C_pi: Any, budget: Budget) -> Array:
    """d/dR of the fitted sum_ij (ij|ij), with each orbital multiplied by the square root of its occupation.

    Y_ijP of as many orbitals i at a time as fit into the `budget` of the calculation.
    """
    integrals, backend = tensor.integrals, tensor.integrals.backend
    basis, aux, omega = integrals.basis, integrals.aux, integrals.omega
    n_orbitals, naux = C_pi.shape[1], aux.nbf
    room = SHARE * budget.available()
    gamma_PQ = backend.zeros((naux, naux), np.float64)
    gradient = np.zeros_like(basis.R_ax)
    for some in portions(n_orbitals, max(1, int(room / (8 * n_orbitals * naux)))):
        Y_ijP = _coefficients(tensor, metric, C_pi, some)
        rows = Y_ijP.reshape(-1, naux)
        gamma_PQ += backend.linalg.product(rows.T, rows)
        gradient += 2.0 * _three_centre(basis, aux, C_pi, Y_ijP, some, backend, omega, min(PASS_BYTES, room))
        del Y_ijP, rows
    return gradient - two_centre_gradient(aux, {"coulomb": gamma_PQ}, backend, omega)


def _coefficients(tensor: FittedTensor, metric: FittingMetric, C_pi: Any, some: slice) -> Any:
    """Y_ijP = sum_Q (ij|Q) V^-1_QP of some orbitals i with all j."""
    xp, backend = tensor.integrals.backend.xp, tensor.integrals.backend
    C_jp = xp.ascontiguousarray(C_pi[backend.to_device(tensor.order)].T)
    Y_ijP = xp.empty((some.stop - some.start, len(C_jp), tensor.integrals.aux.nbf))
    first = 0
    for X_ipP in tensor.half_transformed(C_pi[:, some]):
        X_ijP = backend.linalg.product(C_jp, X_ipP)
        rows = X_ijP.reshape(-1, X_ijP.shape[2])
        Y_ijP[first : first + len(X_ijP)] = metric.back_solve(rows).reshape(X_ijP.shape)
        first += len(X_ijP)
    return Y_ijP


def _three_centre(
    basis: Basis,
    aux: Basis,
    C_pi: Any,
    Y_ijP: Any,
    some: slice,
    backend: Backend,
    omega: float | None,
    limit: float,
) -> Array:
    """sum_pqP Gamma_pqP d(pq|P)/dR, Gamma_pqP = sum_ij C_qi C_pj Y_ijP over some orbitals i.

    The derivative is with respect to p alone and is doubled, which is right once all orbitals i are added up.
    """
    naux, n = aux.nbf, basis.nbf
    shells, kets = derivative_shells(basis), basis_kets(aux, coulomb=True)
    force = _ForceKernel(basis, shells, naux, backend)
    for q_class in _parts(basis, max(1, int(limit / (8 * naux * (n + shells.size + C_pi.shape[1]))))):
        q = backend.to_device((q_class.ao[:, :, None] + np.arange(q_class.functions)).reshape(-1))
        Y_qjP = backend.linalg.product(C_pi[q, some], Y_ijP.reshape(len(Y_ijP), -1)).reshape(len(q), -1, naux)
        Gamma_qpP = backend.linalg.product(C_pi, Y_qjP)
        values = backend.zeros((len(q) * shells.size, naux), np.float64)
        bras = (attenuated(pair, omega) for pair in _derivative_pairs(shells, q_class))
        Engine(backend, values, row_stride=naux).run("coulomb", bras, kets)
        force.add(Gamma_qpP, values)
        del Gamma_qpP, values, Y_qjP
    # A function moves with its atom: d/dR = -d/dr; the factor 2 is for the second function of each pair.
    total = -2.0 * backend.to_host(force.target)
    on_aux_xP = total[: 3 * naux].reshape(3, naux)
    P, x = np.indices((naux, 3)).reshape(2, -1)
    return total[3 * naux :].reshape(-1, 3) - sum_by_atom(aux, on_aux_xP[x, P], P, x)


class _ForceKernel:
    """Adds the contributions of a pass to the forces on fitting functions, [axis, P], and on atoms, [atom, axis]."""

    def __init__(self, basis: Basis, shells: DerivativeShells, naux: int, backend: Backend) -> None:
        self.backend, self.n, self.size, self.naux = backend, basis.nbf, shells.size, naux
        self.target = backend.zeros((3 * naux + 3 * len(basis.R_ax),), np.float64)
        atom_p = basis.function_atoms
        self._groups = [
            backend.upload(_group_arrays(origin, derivatives, atom_p)) | {"shells": origin.ao.size}
            for origin, derivatives in _families(shells)
        ]
        self._program = backend.compile(fit_force_source(backend.traits.language))

    def add(self, Gamma_qpP: Any, values: Any) -> None:
        """Contract the integrals of all derivatives and some of the functions q with Gamma."""
        common = {"functions": self.n, "derivatives": self.size, "naux": self.naux}
        common |= {"Gamma": Gamma_qpP, "values": values, "target": self.target}
        launches = [
            Launch(self._program, len(Gamma_qpP) * group["shells"], {**common, **group}, sums="target")
            for group in self._groups
        ]
        self.backend.launch_all(launches)


def _families(shells: DerivativeShells) -> Iterator[tuple[SegmentClass, list[SegmentClass]]]:
    """Each class of the basis with its raised class and, unless l = 0, its lowered class."""
    families: dict[int, tuple[SegmentClass, list[SegmentClass]]] = {}
    for origin, group in zip(shells.origins, shells.classes, strict=True):
        families.setdefault(id(origin), (origin, []))[1].append(group)
    return iter(families.values())


def _group_arrays(origin: SegmentClass, derivatives: list[SegmentClass], atom_p: Ints) -> dict[str, Any]:
    """Kernel arguments: positions of the functions of a class and of its derivatives, and how they are coupled."""
    terms = []
    for which, step in enumerate((1, -1)[: len(derivatives)]):
        m, x, k, weight = coupling(origin.l, origin.pure, step)
        terms.append(np.column_stack([x, m, np.full_like(m, which), k, weight]))
    table = np.concatenate(terms)
    table = table[np.argsort(table[:, 0], kind="stable")]
    first = origin.ao.reshape(-1)
    return {
        "first_p": first,
        "first_raised": derivatives[0].ao.reshape(-1),
        "first_lowered": derivatives[-1].ao.reshape(-1),
        "atom": atom_p[first],
        "term_first": np.searchsorted(table[:, 0], np.arange(4)).astype(np.int32),
        "terms": np.ascontiguousarray(table[:, 1:4].astype(np.int32)),
        "weight": np.ascontiguousarray(table[:, 4]),
    }


def _parts(basis: Basis, functions: int) -> Iterator[SegmentClass]:
    """The shells of a basis in parts of one class, each with at most `functions` functions (but at least one shell)."""
    for group in segments(basis):
        step = max(1, functions // (group.columns * group.functions))
        for begin in range(0, group.count, step):
            end = min(begin + step, group.count)
            own = slice(int(group.first[begin]), int(group.first[end]))
            yield replace(
                group,
                first=group.first[begin : end + 1] - group.first[begin],
                exponents=group.exponents[own],
                coefficients=group.coefficients[own],
                centres=group.centres[begin:end],
                ao=group.ao[begin:end],
            )


def _derivative_pairs(shells: DerivativeShells, q_class: SegmentClass) -> Iterator[BraBatch]:
    """Pairs of derivative functions k with functions q of a class; results are rows [q, k]."""
    local = replace(q_class, ao=np.arange(q_class.ao.size).reshape(q_class.ao.shape) * q_class.functions)
    for group in reversed(shells.classes):
        if group.l >= local.l:
            yield from pair_batches(group, local, False, lambda k, q: q * shells.size + k, THRESHOLD)
        else:
            yield from pair_batches(local, group, False, lambda q, k: q * shells.size + k, THRESHOLD)
