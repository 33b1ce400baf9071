"""The gradient of exact exchange without density fitting, from quartets of shells.

The four functions of an integral are equivalent in E = -1/2 sum_pqrt D_pr D_qt (pq|rt) of one spin, hence dE/dR is
four times the derivative with respect to the first function. The derivative of a function is a sum over monomials k of
shells of higher and lower angular momentum (`integrals.derivative`): the kernels of K give K'_kr = sum_qt (kq|rt) D_qt,
which is contracted with D. Integrals are digested like those of K (`quartets`) and not stored. GPUs contract Hermite
integrals with densities instead (`exchange_forces_cuda`).

A quartet adds at most Q_kb Q_cd max |D_ac D_bd| to a force (Schwarz; k is a derivative of a function of shell a);
quartets below the threshold are neglected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.coulomb.base import DirectOptions
from cuanto.coulomb.digest_cpu import CpuDigest, Window
from cuanto.coulomb.exchange_forces_cuda import CudaExchangeForces
from cuanto.coulomb.pair_classes import derivative_pair_classes, pair_classes
from cuanto.coulomb.quartets import (
    PRIMITIVE_SHARE,
    SIZE_SHARE,
    QuartetEngine,
    largest_by_segments,
    round_to_single,
    windows,
)
from cuanto.integrals.derivative import DerivativeShells, derivative_shells
from cuanto.kernels.direct import cpu_forces
from cuanto.memory import Budget

THRESHOLD = 1e-11
"""Largest neglected contribution of an integral to a force, in Hartree/Bohr: a total error of 1e-9 for naphthalene."""


class DerivativeDigest(CpuDigest):
    """Contracts K' of the kets of each SIMD vector with D."""

    storable = False
    calls = 1
    digest_source = staticmethod(cpu_forces)

    def forces(self, D_npq: Array, largest: Array, window: Window, basis: Basis, shells: DerivativeShells) -> Array:
        """Sums over r of K'_kr D_pr for all derivatives, [atom, axis]."""
        gradient, quartets = np.zeros((len(basis.R_ax), 3)), np.zeros(self.chunks, dtype=np.int64)
        densities = self.densities(D_npq, largest, window, 0, True, rows=shells.size, products=1)
        values = {"function": shells.function, "parent": shells.p, "weight": shells.weight, "terms": len(shells.p)}
        target = 3 * basis.function_atoms[shells.p] + shells.x
        values |= {"target": target, "quartets": quartets, "gradient": gradient}
        self.run(self._digest, densities, values, sums="gradient")
        return gradient


class CpuExchangeForces:
    """Forces of exact exchange by integrals of derivatives, which are set up in each call."""

    def __init__(self, basis: Basis, budget: Budget, options: DirectOptions, engine: QuartetEngine | None) -> None:
        """`engine` (of K) is not used here: its pairs consist of functions, not of their derivatives."""
        self.basis, self.budget, self.options = basis, budget, options

    def __call__(self, D_npq: Array) -> Array:
        """d/dR of -1/2 sum_n sum_pq D_npq K_npq, [atom, axis]."""
        shells = derivative_shells(self.basis)
        largest = largest_by_segments(self.basis, D_npq, self.budget.backend)
        gradient = np.zeros((len(self.basis.R_ax), 3))
        for digest, window in self._parts(shells):
            gradient += digest.forces(D_npq, largest, window, self.basis, shells)
        # A function moves with its atom: d/dR = -d/dr; the factor is 4 times -1/2.
        return 2.0 * gradient

    def _parts(self, shells: DerivativeShells) -> list[tuple[DerivativeDigest, Window]]:
        """The digest of each precision, with the window of bounds of its quartets."""
        basis, budget, options = self.basis, self.budget, self.options
        threshold, omega, algorithm = options.threshold, options.omega, options.algorithm
        cutoff, primitive = threshold * SIZE_SHARE, threshold * PRIMITIVE_SHARE
        bras, kets = derivative_pair_classes(basis, shells, primitive, omega), pair_classes(basis, primitive, omega)
        digests = {"float64": DerivativeDigest(budget, kets, algorithm, np.float64, cutoff, bras)}
        if options.precision != "double":
            given = digests["float64"].bra_pairs, digests["float64"].pairs
            bras, kets = ([round_to_single(pair) for pair in pairs] for pairs in given)
            digests["float32"] = DerivativeDigest(budget, kets, algorithm, np.float32, cutoff, bras)
        return [(digests[name], window) for name, window in windows(options.precision, threshold).items()]


Forces = CpuExchangeForces | CudaExchangeForces
FORCES: dict[str, type[CpuExchangeForces] | type[CudaExchangeForces]] = {
    "cpu": CpuExchangeForces,
    "cuda": CudaExchangeForces,
}
"""The class for each kernel language."""


def threshold_of(basis: Basis) -> float:
    """The threshold of a basis, smaller beyond d functions.

    Quartets of high momenta have many integrals that add up: with 1e-11 for all, the error of HF in cc-pVQZ is 7e-9.
    """
    highest = max(shell.l for shell in basis.shells)
    return float(THRESHOLD * 0.1 ** max(0, highest - 2))


def exchange_forces(
    basis: Basis,
    budget: Budget,
    *,
    threshold: float | None = None,
    omega: float | None = None,
    precision: str = "double",
    engine: QuartetEngine | None = None,
) -> Forces:
    """Forces of exact exchange of a geometry, for any number of densities.

    `threshold`: largest neglected contribution of an integral to a force; that of `threshold_of` if None. `omega`,
    `precision`: as in `DirectOptions`. `engine`: quartets of K of the same basis and omega, whose pairs may be used.
    """
    threshold = threshold_of(basis) if threshold is None else threshold
    options = DirectOptions(threshold=threshold, omega=omega, precision=precision)
    return FORCES[budget.backend.traits.language](basis, budget, options, engine)


def exchange_gradient(basis: Basis, D_spq: Any, forces: Forces) -> Array:
    """dE/dR of E = -1/2 sum_s sum_pq D_spq K_spq[D_s] at fixed symmetric D_spq, [atom, axis]; on the host.

    With a single D of both spins, E is half of that.
    """
    D_npq = forces.budget.backend.xp.asarray(D_spq, dtype=np.float64).reshape(-1, basis.nbf, basis.nbf)
    gradient = forces(D_npq)
    return 0.5 * gradient if len(D_npq) == 1 else gradient
