"""The gradient of Hartree-Fock and Kohn-Sham energies: gradients of all terms, and the change of the overlap.

With orbitals that stay orthonormal while atoms move, dE = sum over terms of dE at a fixed density matrix
- sum_pq W_pq dS_pq, W = 1/2 sum_s (D_s F_s S^-1 + S^-1 F_s D_s): P. Pulay, Mol. Phys. 17, 197 (1969),
doi:10.1080/00268976900100941. This holds for every energy that is stationary in the orbitals, restricted open shells
and smeared occupations (with the free energy) included.

Where linearly dependent combinations of functions are left out, the space of the orbitals moves as well. With the
overlap of normalised functions N S N = U s U^T, N constant, and eigenvectors k that are kept and d that are not,
dU_k = sum_d U_d (U_d^T N dS N U_k) / (s_k - s_d) + (terms within the kept space), which adds
2 sum_kd (U_k^T N^-1 sum_s D_s F_s N U_d) (U_d^T N dS N U_k) / (s_k - s_d) to dE. S^-1 becomes the inverse within the
kept space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.errors import ConvergenceError, InputError
from cuanto.log import Timings
from cuanto.memory import Budget
from cuanto.scf.loop import occupied
from cuanto.scf.state import State
from cuanto.terms import Term

POTENTIAL_SHARE = 0.5
"""Fraction of the available memory for the potentials of electrostatic forces."""


def energy_gradient(
    terms: Sequence[Term], basis: Basis, budget: Budget, state: State, S_pq: Any, charges: int, timings: Timings
) -> tuple[Array, Array]:
    """dE/dR of a stationary state, Hartree/Bohr, for the atoms and for the point charges (`charges` of them)."""
    atoms, backend = len(basis.R_ax), budget.backend
    parts: list[Any] = []
    C_spi = occupied_orbitals(state, backend.xp)
    sources, names = Sources(overlap=-energy_weighted_density(state, S_pq, backend)), ["overlap"]
    for term in terms:
        with timings.measure(f"gradient of {term.name}"):
            own = term.sources(state.D_spq)
            if own is not None:
                sources, names = sources + own, [*names, term.name]
                continue
            part = term.gradient(state.D_spq, C_spi)
            if part is None:
                raise InputError(f"the gradient of the term {term.name!r} is not implemented")
            parts.append(part)
    with timings.measure(f"gradient of {', '.join(names)}"):
        room = POTENTIAL_SHARE * budget.available()
        parts.append(electronic_gradient(basis, state.D_spq.sum(axis=0), sources, backend, room=room))
        gradient = np.zeros((atoms + charges, 3))
        for part in parts:  # read last: a device computes some of them while the host prepares others
            gradient[: len(part)] += backend.to_host(part)
    return gradient[:atoms], gradient[atoms:]


def require_gradient(state: State, unconverged: bool = False) -> None:
    """Raise an error for a state without orbitals or, unless `unconverged`, for one that is not converged."""
    if state.D_spq is None or state.C_spm is None or state.F_spq is None:
        raise InputError("no gradient: the file has no orbitals; repeat the calculation")
    require_converged(state, unconverged)


def require_converged(state: State, unconverged: bool) -> None:
    """Raise an error for a state that is not converged, unless its gradient is explicitly requested (`unconverged`)."""
    if not state.converged and not unconverged:
        raise ConvergenceError(
            f"no gradient: the SCF is not converged, the norm of FDS - SDF is {state.gradient:.1e}; raise "
            "max_iterations, or set unconverged_gradient to have a gradient that is not the derivative of the energy"
        )


def occupied_orbitals(state: State, xp: Any) -> Any:
    """C_spi with D_s = C_s C_s^T."""
    n_si = occupied(state.n_sm)
    shared = len(state.C_spm) < len(n_si)
    C_spm = xp.concatenate([state.C_spm] * len(n_si)) if shared else state.C_spm
    return C_spm[:, :, : n_si.shape[1]] * xp.asarray(np.sqrt(n_si)[:, None, :])


def energy_weighted_density(state: State, S_pq: Any, backend: Backend) -> Any:
    """W_pq, with S^-1 = sum_m C_pm C_qm."""
    product, xp = backend.linalg.product, backend.xp
    W_pq, DF_pq = xp.zeros_like(S_pq), xp.zeros_like(S_pq)
    for s, (D_pq, F_pq) in enumerate(zip(state.D_spq, state.F_spq, strict=True)):
        C_pm = state.C_spm[min(s, len(state.C_spm) - 1)]
        one_pq = product(D_pq, F_pq)
        half_pq = product(product(one_pq, C_pm), C_pm.T)
        W_pq += 0.5 * (half_pq + half_pq.T)
        DF_pq += one_pq
    dropped = len(S_pq) - state.C_spm.shape[2]
    return W_pq - _moving_space(DF_pq, S_pq, dropped, backend) if dropped else W_pq


def _moving_space(DF_pq: Any, S_pq: Any, dropped: int, backend: Backend) -> Any:
    """Symmetric Z_pq with dE = sum_pq Z_pq dS_pq, because the combinations that are left out change with the atoms."""
    xp, product = backend.xp, backend.linalg.product
    scale_p = 1.0 / xp.sqrt(xp.diagonal(S_pq))
    s_m, U_pm = backend.linalg.eigh(S_pq * scale_p[:, None] * scale_p)
    U_pd, U_pk = U_pm[:, :dropped], U_pm[:, dropped:]
    G_kd = product(product(U_pk.T / scale_p, DF_pq), scale_p[:, None] * U_pd)
    G_kd = 2.0 * G_kd / (s_m[dropped:, None] - s_m[:dropped])
    Z_pq = product(product(U_pk, G_kd), U_pd.T) * scale_p[:, None] * scale_p
    return 0.5 * (Z_pq + Z_pq.T)
