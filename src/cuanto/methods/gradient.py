"""The gradient of Hartree-Fock and Kohn-Sham energies: gradients of all terms, and the change of the overlap.

With orbitals that stay orthonormal while atoms move, dE = sum over terms of dE at a fixed density matrix
- sum_pq W_pq dS_pq, W = 1/2 sum_s (D_s F_s S^-1 + S^-1 F_s D_s): P. Pulay, Mol. Phys. 17, 197 (1969),
doi:10.1080/00268976900100941. This holds for every energy that is stationary in the orbitals, restricted open shells
and smeared occupations (with the free energy) included.
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
from cuanto.scf.loop import occupied
from cuanto.scf.state import State
from cuanto.terms import Term


def energy_gradient(
    terms: Sequence[Term], basis: Basis, backend: Backend, state: State, charges: int, timings: Timings
) -> tuple[Array, Array]:
    """dE/dR of a stationary state, Hartree/Bohr, for the atoms and for the point charges (`charges` of them)."""
    _check(state, basis)
    atoms = len(basis.R_ax)
    gradient = np.zeros((atoms + charges, 3))
    C_spi = _occupied_orbitals(state, backend.xp)
    sources, names = Sources(overlap=-energy_weighted_density(state, backend)), ["overlap"]
    for term in terms:
        with timings.measure(f"gradient of {term.name}"):
            own = term.sources(state.D_spq)
            if own is not None:
                sources, names = sources + own, [*names, term.name]
                continue
            part = term.gradient(state.D_spq, C_spi)
            if part is None:
                raise InputError(f"the gradient of the term {term.name!r} is not implemented")
            gradient[: len(part)] += part
    with timings.measure(f"gradient of {', '.join(names)}"):
        part = electronic_gradient(basis, state.D_spq.sum(axis=0), sources, backend)
        gradient[: len(part)] += part
    return gradient[:atoms], gradient[atoms:]


def _check(state: State, basis: Basis) -> None:
    if state.D_spq is None or state.C_spm is None or state.F_spq is None:
        raise InputError("no gradient: the file has no orbitals; repeat the calculation")
    if state.C_spm.shape[2] < basis.nbf:
        dropped = basis.nbf - state.C_spm.shape[2]
        raise InputError(f"no gradient: {dropped} linearly dependent combinations of functions were left out")
    if not state.converged:
        raise ConvergenceError(f"no gradient: the SCF is not converged, the norm of FDS - SDF is {state.gradient:.1e}")


def _occupied_orbitals(state: State, xp: Any) -> Any:
    """C_spi with D_s = C_s C_s^T."""
    n_si = occupied(state.n_sm)
    shared = len(state.C_spm) < len(n_si)
    C_spm = xp.concatenate([state.C_spm] * len(n_si)) if shared else state.C_spm
    return C_spm[:, :, : n_si.shape[1]] * xp.asarray(np.sqrt(n_si)[:, None, :])


def energy_weighted_density(state: State, backend: Backend) -> Any:
    """W_pq, with S^-1 = sum_m C_pm C_qm."""
    product, xp = backend.linalg.product, backend.xp
    W_pq = xp.zeros_like(state.D_spq[0])
    for s, (D_pq, F_pq) in enumerate(zip(state.D_spq, state.F_spq, strict=True)):
        C_pm = state.C_spm[min(s, len(state.C_spm) - 1)]
        half_pq = product(product(product(D_pq, F_pq), C_pm), C_pm.T)
        W_pq += 0.5 * (half_pq + half_pq.T)
    return W_pq
