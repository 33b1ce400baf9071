"""The gradient of exact exchange without density fitting, from quartets of shells.

All four functions are alike in E = -1/2 sum_pqrt D_pr D_qt (pq|rt) of a spin, hence dE/dR is four times what moving
the first one does. Its derivative is made of monomials a' of shells of higher and lower momentum
(`integrals.derivative`), so that ordinary kernels give K'_a'r = sum_qt (a'q|rt) D_qt, which is contracted with D.
Integrals are digested as those of K are (`quartets`), and never kept.

A quartet adds at most Q_a'b Q_cd max |D_ac D_bd| to a force (Schwarz); those below the threshold are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.digest_cpu import CpuDigest
from cuanto.coulomb.digest_cuda import CudaDigest
from cuanto.coulomb.pair_classes import derivative_pair_classes, pair_classes
from cuanto.coulomb.quartets import PRIMITIVE_SHARE, SIZE_SHARE, largest_by_segments
from cuanto.errors import InputError
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.derivative import DerivativeShells, derivative_shells
from cuanto.integrals.segments import Array, Indices
from cuanto.kernels.listed import cpu_forces

THRESHOLD = 1e-11
"""What a quartet of shells may add to a force and be left out, in Hartree/Bohr."""


@dataclass(frozen=True)
class Forces:
    """What a digest returns: sum_r K'_kr D_pr for every term of the derivatives, by atom and axis; and its quartets."""

    gradient: Array
    quartets: int


class CpuForces(CpuDigest):
    """K' of a vector of kets is contracted with D as soon as it is complete."""

    digest_source = staticmethod(cpu_forces)
    calls = 1

    def forces(
        self, D_npq: Array, largest: Array, threshold: float, shells: DerivativeShells, atoms: Indices
    ) -> Forces:
        """Sums of all quartets; `atoms`: of every function."""
        gradient, quartets = np.zeros((int(atoms.max()) + 1, 3)), np.zeros(self.chunks, dtype=np.int64)
        more = {"rows": shells.size, "products": 1}
        densities = self.densities(D_npq, largest, (threshold, np.inf), False, True, **more)
        terms = {"function": shells.function, "parent": shells.p, "weight": shells.weight, "terms": len(shells.p)}
        terms |= {"target": 3 * atoms[shells.p] + shells.x, "quartets": quartets, "gradient": gradient}
        self.run(self._digest, densities, terms, sums="gradient")
        return Forces(gradient, int(quartets.sum()))


class CudaForces(CudaDigest):
    """K' is a matrix."""

    one_sided = True

    def forces(self, D_npq: Any, largest: Any, threshold: float, shells: DerivativeShells, atoms: Indices) -> Forces:
        """Sums of all quartets; `atoms`: of every function."""
        backend = self.backend
        K_nkr = backend.zeros((len(D_npq), shells.size, D_npq.shape[1]), np.float64)
        quartets = self.digest(D_npq, largest, (threshold, np.inf), (None, K_nkr), float(largest.max()) ** 2)
        gradient, place = np.zeros((int(atoms.max()) + 1, 3)), backend.upload({"k": shells.function, "p": shells.p})
        for K_kr, D_rp in zip(K_nkr, D_npq, strict=True):
            values = backend.to_host(backend.linalg.product(K_kr, D_rp)[place["k"], place["p"]])
            np.add.at(gradient, (atoms[shells.p], shells.x), shells.weight * values)
        return Forces(gradient, int(quartets))


FORCES: dict[str, type[CpuForces] | type[CudaForces]] = {"cpu": CpuForces, "cuda": CudaForces}
"""By the language of kernels."""


def exchange_gradient(
    basis: Basis, D_spq: Any, backend: Backend, threshold: float = THRESHOLD, omega: float | None = None
) -> Array:
    """dE/dR of E = -1/2 sum_s sum_pq D_spq K_spq[D_s] at fixed symmetric D_spq, [atom, axis]; on the host.

    With one spin, whose density holds both electrons, E is half of that. `omega`: of erf(omega r)/r in place of 1/r.
    """
    if not 0.0 < threshold < 1.0:
        raise InputError(f"threshold is {threshold}; give a positive number such as {THRESHOLD:.0e}")
    smearing(omega)  # refuses what is no omega
    shells = derivative_shells(basis)
    primitive = threshold * PRIMITIVE_SHARE
    bras, kets = derivative_pair_classes(basis, shells, primitive, omega), pair_classes(basis, primitive, omega)
    digest = FORCES[backend.traits.language](backend, kets, "auto", np.float64, threshold * SIZE_SHARE, bras)
    D_npq = backend.xp.asarray(D_spq, dtype=np.float64).reshape(-1, basis.nbf, basis.nbf)
    atoms = np.repeat([shell.atom for shell in basis.shells], np.diff([*basis.offsets, basis.nbf]))
    made = digest.forces(D_npq, largest_by_segments(basis, D_npq, backend), threshold, shells, atoms)
    # A function moves with its atom: d/dR = -d/dr. Four of them, each with -1/2, or with -1/4 where D has both spins.
    gradient = np.zeros((len(basis.R_ax), 3))
    gradient[: len(made.gradient)] = (1.0 if len(D_npq) == 1 else 2.0) * made.gradient
    return gradient
