"""Fitted J without stored integrals: both sums over (pq|P) by the J engine.

x_P = sum_pq (P|pq) D_pq is the potential of the Hermite densities of all pairs, contracted with the fitting functions;
J_pq = sum_P (pq|P) c_P is the potential of the fitted density, contracted with the pairs (White and Head-Gordon,
J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011). A fitting function is a pair with the function 1, so the kernels
are those of the J engine. Only the expansions of the pairs are stored, nothing with three indices.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from cuanto.backends.base import Backend
from cuanto.backends.tiers import ITERATIONS
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import CoulombSums
from cuanto.coulomb.hermite_pairs import CHUNK_NUMBERS, pair_blocks, pair_counts, primitives, single_blocks
from cuanto.coulomb.j_engine import DENSITIES, Distributions, Potentials, Statistics
from cuanto.coulomb.j_steps import Contraction, chunks_of_kets
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

THRESHOLD = 1e-13
"""Screening error of a bra; small, because the inverse metric magnifies errors of x."""
GEOMETRY_NUMBERS = 40
"""Numbers stored for a pair whatever its Hermite order: geometry, as bra and as ket, and indices."""
STEP_COPIES = 6
"""Copies of the Hermite densities between two steps."""
MATRIX_COPIES = 4
"""Matrices over the primitive functions, besides densities and potentials."""
EXPANSION_COPIES, CANDIDATE_COPIES = 5, 12
"""Temporary copies during the expansion of pairs, and during their selection."""


class DirectFit(CoulombSums):
    """Sums over the three-centre integrals of a basis and a fitting basis, without these integrals."""

    def __init__(self, basis: Basis, aux: Basis, backend: Backend, omega: float | None = None) -> None:
        self.raw, self.backend = True, backend
        groups, contraction = primitives(basis)
        single, own_contraction = primitives(aux)
        self._C_pk, self._C_Pk = (Contraction(C, backend) for C in (contraction, own_contraction))
        pairs = Distributions.of(pair_blocks(groups, THRESHOLD, backend), backend)
        fitting = Distributions.of(single_blocks(single, backend), backend)
        self._to_fit = Potentials(fitting, pairs, THRESHOLD, omega=omega)
        self._to_pairs = Potentials(pairs, fitting, THRESHOLD, omega=omega)
        for potentials in (self._to_fit, self._to_pairs):
            potentials.expect_calls(ITERATIONS)

    def fit(self, D_npq: Any) -> Any:
        """x_nP = sum_pq (pq|P) D_pq of symmetric densities."""
        # `Potentials` computes half.
        return 2.0 * self._to_fit(D_npq, self._C_pk.density, (self._C_Pk.shape[1],), self._C_Pk.gather)

    def potential(self, c_nP: Any) -> Any:
        """J_npq = sum_P (pq|P) c_P"""
        size = self._C_pk.shape[1]
        return self._to_pairs(c_nP, self._C_Pk.spread, (size, size), self._C_pk.matrix)

    @property
    def statistics(self) -> tuple[Statistics, Statistics]:
        """Statistics of the last `fit` and the last `potential`."""
        return self._to_fit.statistics, self._to_pairs.statistics


def direct_fit_bytes(basis: Basis, aux: Basis, backend: Backend) -> int:
    """Upper bound of the memory of a `DirectFit`, from the number of pairs."""
    (groups, contraction), (single, _) = primitives(basis), primitives(aux)
    size = int(contraction.shape[1])
    kinds = [(a, b) for i, a in enumerate(groups) for b in groups[: i + 1]]
    pairs, fitting = Counter[int](), Counter[int]()
    stored = expanded = searched = 0
    for (a, b), count in zip(kinds, pair_counts(groups, THRESHOLD, backend), strict=True):
        order, functions = a.order + b.order, a.functions * b.functions
        pairs[order] += count
        expansion = count * functions * hermite_count(order)
        stored += expansion + count * (functions + GEOMETRY_NUMBERS)
        expanded = max(expanded, min(CHUNK_NUMBERS, expansion))
        searched = max(searched, min(CHUNK_NUMBERS, a.count * b.count))
    for a in single:
        fitting[a.order] += a.count
        stored += a.count * (a.functions * (hermite_count(a.order) + 1) + GEOMETRY_NUMBERS)
    matrices = (2 * DENSITIES + MATRIX_COPIES) * size**2
    sums = max(_sums(fitting, pairs, backend), _sums(pairs, fitting, backend))
    temporary = max(EXPANSION_COPIES * expanded, CANDIDATE_COPIES * searched, matrices + sums)
    return 8 * (stored + temporary)


def _sums(bras: Counter[int], kets: Counter[int], backend: Backend) -> int:
    """Numbers in the steps and in the partial sums of all launches."""
    total = 0
    for order, count in bras.items():
        parts = 1 + sum(chunks_of_kets(backend, count, k) for k in kets.values() if k)
        total += count * parts * DENSITIES * hermite_count(order)
    steps = max((count * hermite_count(order) for order, count in (bras | kets).items()), default=0)
    return total + STEP_COPIES * DENSITIES * steps
