"""The gradient of exact exchange without density fitting, from quartets of shells.

The four functions of an integral are equivalent in E = -1/2 sum_pqrt D_pr D_qt (pq|rt) of one spin, hence dE/dR is
four times the derivative with respect to the first function. The derivative of a function is a sum over monomials k of
shells of higher and lower angular momentum (`integrals.derivative`): the kernels of K give K'_kr = sum_qt (kq|rt) D_qt,
which is contracted with D. Integrals are digested like those of K (`quartets`) and not stored.

A quartet adds at most Q_kb Q_cd max |D_ac D_bd| to a force (Schwarz; k is a derivative of a function of shell a);
quartets below the threshold are neglected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import DirectOptions
from cuanto.coulomb.digest_cpu import CpuDigest
from cuanto.coulomb.digest_cuda import CudaDigest
from cuanto.coulomb.pair_classes import derivative_pair_classes, pair_classes
from cuanto.coulomb.quartets import PRIMITIVE_SHARE, SIZE_SHARE, in_single, largest_by_segments
from cuanto.integrals.derivative import DerivativeShells, derivative_shells
from cuanto.kernels.direct import cpu_forces
from cuanto.memory import Budget

THRESHOLD = 1e-11
"""Largest neglected contribution of an integral to a force, in Hartree/Bohr: a total error of 1e-9 for naphthalene."""
SINGLE_BOUND = 1e-5
"""Quartets that add less are evaluated in single precision, when precision is mixed."""
CHUNK_NUMBERS = 4_000_000
"""Products of K' and D that are in memory at once, before they are summed."""
Window = tuple[float, float]
"""Lower and upper limit of the bounds of the quartets to be evaluated."""


@dataclass(frozen=True)
class Terms:
    """The derivatives of all functions in terms of functions of other shells, and the atom of each function."""

    shells: DerivativeShells
    atom_p: Ints
    atoms: int


class CpuForces(CpuDigest):
    """Contracts K' of each vector of kets with D."""

    digest_source = staticmethod(cpu_forces)

    def forces(self, D_npq: Array, largest: Array, window: Window, terms: Terms) -> Array:
        """Sums over r of K'_kr D_pr for all terms, [atom, axis]."""
        shells = terms.shells
        gradient, quartets = np.zeros((terms.atoms, 3)), np.zeros(self.chunks, dtype=np.int64)
        densities = self.densities(D_npq, largest, window, False, True, rows=shells.size, products=1)
        values = {"function": shells.function, "parent": shells.p, "weight": shells.weight, "terms": len(shells.p)}
        values |= {"target": 3 * terms.atom_p[shells.p] + shells.x, "quartets": quartets, "gradient": gradient}
        self.run(self._digest, densities, values, sums="gradient")
        return gradient


class CudaForces(CudaDigest):
    """Computes K', which is three to four times as large as K, and then contracts it with D."""

    one_sided = True

    def forces(self, D_npq: Any, largest: Any, window: Window, terms: Terms) -> Array:
        """Sums over r of K'_kr D_pr for all terms, [atom, axis]."""
        backend, shells = self.backend, terms.shells
        K_nkr = backend.zeros((len(D_npq), shells.size, D_npq.shape[1]), np.float64)
        self.digest(D_npq, largest, window, (None, K_nkr), float(largest.max()) ** 2)
        gradient, step = np.zeros((terms.atoms, 3)), max(1, CHUNK_NUMBERS // D_npq[:, 0].size)
        for begin in range(0, len(shells.p), step):
            some = slice(begin, begin + step)
            p = shells.p[some]
            place = backend.upload({"k": shells.function[some], "p": p})
            values = (K_nkr[:, place["k"]] * D_npq[:, place["p"]]).sum(axis=(0, 2))
            np.add.at(gradient, (terms.atom_p[p], shells.x[some]), shells.weight[some] * backend.to_host(values))
        return gradient


FORCES: dict[str, type[CpuForces] | type[CudaForces]] = {"cpu": CpuForces, "cuda": CudaForces}
"""The class for each kernel language."""


def threshold_of(basis: Basis) -> float:
    """The threshold of a basis, smaller beyond d functions.

    Quartets of high momenta have many integrals that add up: with 1e-11 for all, the error of HF in cc-pVQZ is 7e-9.
    """
    highest = max(shell.l for shell in basis.shells)
    return float(THRESHOLD * 0.1 ** max(0, highest - 2))


def exchange_gradient(
    basis: Basis,
    D_spq: Any,
    backend: Backend,
    threshold: float | None = None,
    omega: float | None = None,
    precision: str = "double",
    budget: Budget | None = None,
) -> Array:
    """dE/dR of E = -1/2 sum_s sum_pq D_spq K_spq[D_s] at fixed symmetric D_spq, [atom, axis]; on the host.

    With a single D of both spins, E is half of that. `threshold`: largest neglected contribution of an integral to a
    force; that of `threshold_of` if None. `omega`, `precision`: as in `DirectOptions`. `budget` of the calculation.
    """
    threshold = threshold_of(basis) if threshold is None else threshold
    options = DirectOptions(threshold=threshold, omega=omega, precision=precision)
    shells = derivative_shells(basis)
    atom_p = basis.function_atoms
    terms = Terms(shells, atom_p, len(basis.R_ax))
    D_npq = backend.xp.asarray(D_spq, dtype=np.float64).reshape(-1, basis.nbf, basis.nbf)
    largest = largest_by_segments(basis, D_npq, backend)
    gradient = np.zeros((terms.atoms, 3))
    for digest, window in _parts(basis, shells, budget or Budget(backend), options):
        gradient += digest.forces(D_npq, largest, window, terms)
    # A function moves with its atom: d/dR = -d/dr; the factor is 4 times -1/2, or -1/4 if D holds both spins.
    return gradient if len(D_npq) == 1 else 2.0 * gradient


def _parts(
    basis: Basis, shells: DerivativeShells, budget: Budget, options: DirectOptions
) -> list[tuple[CpuForces | CudaForces, Window]]:
    """The digest of each precision, with the window of bounds of its quartets."""
    make, threshold, omega = FORCES[budget.backend.traits.language], options.threshold, options.omega
    cutoff, primitive = threshold * SIZE_SHARE, threshold * PRIMITIVE_SHARE
    bras, kets = derivative_pair_classes(basis, shells, primitive, omega), pair_classes(basis, primitive, omega)
    double = make(budget, kets, options.algorithm, np.float64, cutoff, bras)
    if options.precision == "double":
        return [(double, (threshold, np.inf))]
    bras, kets = ([in_single(pair) for pair in pairs] for pairs in (double.bra_pairs, double.pairs))
    single = make(budget, kets, options.algorithm, np.float32, cutoff, bras)
    if options.precision == "single":
        return [(single, (threshold, np.inf))]
    return [(single, (threshold, SINGLE_BOUND)), (double, (SINGLE_BOUND, np.inf))]
