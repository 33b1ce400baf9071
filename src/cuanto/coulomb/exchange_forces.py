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
from cuanto.coulomb.quartets import PRIMITIVE_SHARE, SIZE_SHARE, in_single, largest_by_segments
from cuanto.errors import InputError
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.derivative import DerivativeShells, derivative_shells
from cuanto.integrals.segments import Array, Indices
from cuanto.kernels.listed import cpu_forces
from cuanto.options import PRECISIONS

THRESHOLD = 1e-11
"""What a quartet of shells may add to a force and be left out, in Hartree/Bohr: 1e-9 in all for naphthalene."""
SINGLE_BOUND = 1e-5
"""Quartets that add less may be evaluated in single precision, when precision is mixed."""
CHUNK_NUMBERS = 4_000_000
"""Products of K' and D that are there at once, before they are added up."""
Window = tuple[float, float]
"""Bounds of the quartets that are wanted, from .. to."""


@dataclass(frozen=True)
class Terms:
    """The derivatives of all functions, made of functions of other shells, and the atom of each function."""

    shells: DerivativeShells
    atom_p: Indices
    atoms: int


class CpuForces(CpuDigest):
    """K' of a vector of kets is contracted with D as soon as it is complete."""

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
    """K' is a matrix, of three to four times as many numbers as K."""

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
"""By the language of kernels."""


def exchange_gradient(
    basis: Basis,
    D_spq: Any,
    backend: Backend,
    threshold: float = THRESHOLD,
    omega: float | None = None,
    precision: str = "double",
) -> Array:
    """dE/dR of E = -1/2 sum_s sum_pq D_spq K_spq[D_s] at fixed symmetric D_spq, [atom, axis]; on the host.

    With one spin, whose density holds both electrons, E is half of that. `omega`: of erf(omega r)/r in place of 1/r.
    `precision`: as in `DirectJK`.
    """
    if not 0.0 < threshold < 1.0:
        raise InputError(f"threshold is {threshold}; give a positive number such as {THRESHOLD:.0e}")
    if precision not in PRECISIONS:
        raise InputError(f"unknown precision {precision!r}: choose {', '.join(PRECISIONS)}")
    smearing(omega)  # refuses what is no omega
    shells = derivative_shells(basis)
    atom_p = np.repeat([shell.atom for shell in basis.shells], np.diff([*basis.offsets, basis.nbf]))
    terms = Terms(shells, atom_p, len(basis.R_ax))
    D_npq = backend.xp.asarray(D_spq, dtype=np.float64).reshape(-1, basis.nbf, basis.nbf)
    largest = largest_by_segments(basis, D_npq, backend)
    gradient = np.zeros((terms.atoms, 3))
    for digest, window in _parts(basis, shells, backend, threshold, omega, precision):
        gradient += digest.forces(D_npq, largest, window, terms)
    # A function moves with its atom: d/dR = -d/dr. Four of them, each with -1/2, or with -1/4 where D has both spins.
    return gradient if len(D_npq) == 1 else 2.0 * gradient


def _parts(
    basis: Basis, shells: DerivativeShells, backend: Backend, threshold: float, omega: float | None, precision: str
) -> list[tuple[CpuForces | CudaForces, Window]]:
    """In which precision quartets are evaluated, by their bounds."""
    make, cutoff, primitive = FORCES[backend.traits.language], threshold * SIZE_SHARE, threshold * PRIMITIVE_SHARE
    bras, kets = derivative_pair_classes(basis, shells, primitive, omega), pair_classes(basis, primitive, omega)
    double = make(backend, kets, "auto", np.float64, cutoff, bras)
    if precision == "double":
        return [(double, (threshold, np.inf))]
    bras, kets = ([in_single(pair) for pair in pairs] for pairs in (double.bras_alone, double.pairs))
    single = make(backend, kets, "auto", np.float32, cutoff, bras)
    split = SINGLE_BOUND if precision == "mixed" else np.inf
    return [(single, (threshold, split)), (double, (split, np.inf))][: 1 + (precision == "mixed")]
