"""Fitted J without three-centre integrals: both sums over (pq|P) by the J engine.

x_P = sum_pq (P|pq) D_pq is the potential of the Hermite densities of all pairs, contracted with the fitting functions;
J_pq = sum_P (pq|P) c_P is the potential of the fitted density, contracted with the pairs (White and Head-Gordon,
J. Chem. Phys. 104, 2620 (1996), doi:10.1063/1.471011). A fitting function is a pair with the function 1, so the kernels
are those of the J engine. Memory: the expansions of the pairs, nothing with three indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting_blocks import BlockTensor, keep_blocks
from cuanto.coulomb.fitting_layout import Layout
from cuanto.coulomb.hermite_pairs import (
    CHUNK_NUMBERS,
    NEGLIGIBLE,
    candidates,
    pair_blocks,
    primitives,
    single_blocks,
)
from cuanto.coulomb.j_engine import DENSITIES, Distributions, Potentials, Statistics
from cuanto.coulomb.j_launch import chunks_of_kets
from cuanto.coulomb.j_steps import Contraction
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import FittingMetric
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

THRESHOLD = 1e-13
"""What screening may do to a bra: the metric's inverse magnifies errors of x."""
GEOMETRY_NUMBERS = 40
"""Numbers that are kept of a pair whatever its order: geometry, as bra and as ket, and indices."""
STEP_COPIES = 6
"""Copies of the Hermite densities between two steps."""
MATRIX_COPIES = 4
"""Matrices over the primitive functions, beside densities and potentials."""
EXPANSION_COPIES, CANDIDATE_COPIES = 5, 12
"""Temporary copies while expansions are made, and while pairs are looked for."""


class DirectFit:
    """Sums over three-centre integrals of a basis and a fitting basis that are never made."""

    def __init__(
        self, basis: Basis, aux: Basis, backend: Backend, threshold: float = THRESHOLD, omega: float | None = None
    ) -> None:
        self.backend = backend
        groups, contraction = primitives(basis)
        single, own_contraction = primitives(aux)
        self._C_pk, self._C_Pk = (Contraction(C, backend) for C in (contraction, own_contraction))
        pairs = Distributions.of(pair_blocks(groups, threshold, backend), contraction.shape[1], backend, omega)
        fitting = Distributions.of(single_blocks(single, backend), 1, backend, omega)
        self._to_fit = Potentials(fitting, pairs, backend, threshold, "double")
        self._to_pairs = Potentials(pairs, fitting, backend, threshold, "double")

    def fit(self, D_npq: Any) -> Any:
        """x_nP = sum_pq (pq|P) D_pq of symmetric densities."""
        xp = self.backend.xp
        self._to_fit.begin()

        def some(D_npq: Any) -> Any:
            x_nk = xp.zeros((len(D_npq), self._C_Pk.shape[1]))
            self._to_fit(self._C_pk.density(D_npq), x_nk)
            return 2.0 * self._C_Pk.gather(x_nk)  # `Potentials` makes half

        return self._in_parts(some, D_npq)

    def potential(self, c_nP: Any) -> Any:
        """J_npq = sum_P (pq|P) c_P"""
        xp, functions = self.backend.xp, self._C_pk.shape[1]
        self._to_pairs.begin()

        def some(c_nP: Any) -> Any:
            J_nkl = xp.zeros((len(c_nP), functions, functions))
            self._to_pairs(self._C_Pk.spread(c_nP), J_nkl)
            return self._C_pk.matrix(J_nkl)

        return self._in_parts(some, c_nP)

    def _in_parts(self, make: Callable[[Any], Any], arrays: Any) -> Any:
        """So many densities at once as the kernels treat."""
        parts = [make(arrays[n : n + DENSITIES]) for n in range(0, len(arrays), DENSITIES)]
        return self.backend.xp.concatenate(parts)

    @property
    def statistics(self) -> tuple[Statistics, Statistics]:
        """What the last `fit` and the last `potential` did."""
        return self._to_fit.statistics, self._to_pairs.statistics


class DirectTensor(BlockTensor):
    """J by the J engine, K from blocks of which some may be kept."""

    def __init__(
        self, integrals: ThreeCentre, metric: FittingMetric, plan: Plan, layout: Layout, engine: DirectFit
    ) -> None:
        super().__init__(integrals, metric, plan, layout, keep_blocks(integrals, metric, layout, plan.kept))
        self._engine = engine

    def fit(self, D_spq: Any) -> Any:
        """x_sP = sum_pq B_pqP D_spq"""
        return self._metric.half_solve(self._engine.fit(D_spq))

    def potential(self, x_sP: Any) -> Any:
        """J_spq = sum_P B_pqP x_sP"""
        return self._engine.potential(self._metric.back_solve(x_sP))


def direct_fit_bytes(basis: Basis, aux: Basis, backend: Backend, threshold: float = THRESHOLD) -> int:
    """Memory that a `DirectFit` will take at most, from the number of pairs."""
    (groups, contraction), (single, _) = primitives(basis), primitives(aux)
    size = int(contraction.shape[1])
    kinds = [
        (a, b, len(candidates(a, b, NEGLIGIBLE * threshold)[0])) for i, a in enumerate(groups) for b in groups[: i + 1]
    ]
    pairs, fitting = Counter[int](), Counter[int]()
    kept = made = searched = 0
    for a, b, count in kinds:
        order, functions = a.order + b.order, a.functions * b.functions
        pairs[order] += count
        expansion = count * functions * hermite_count(order)
        kept += expansion + count * (functions + GEOMETRY_NUMBERS)
        made = max(made, min(CHUNK_NUMBERS, expansion))
        searched = max(searched, min(CHUNK_NUMBERS, a.count * b.count))
    for a in single:
        fitting[a.order] += a.count
        kept += a.count * (a.functions * (hermite_count(a.order) + 1) + GEOMETRY_NUMBERS)
    matrices = (2 * DENSITIES + MATRIX_COPIES) * size**2
    sums = max(_sums(fitting, pairs, backend), _sums(pairs, fitting, backend))
    temporary = max(EXPANSION_COPIES * made, CANDIDATE_COPIES * searched, matrices + sums)
    return 8 * (kept + temporary)


def _sums(bras: Counter[int], kets: Counter[int], backend: Backend) -> int:
    """Numbers of the steps and of the sums of all jobs, before these are added up."""
    total = 0
    for order, count in bras.items():
        parts = 1 + sum(chunks_of_kets(backend, count, k) for k in kets.values() if k)
        total += count * parts * DENSITIES * hermite_count(order)
    steps = max((count * hermite_count(order) for order, count in (bras | kets).items()), default=0)
    return total + STEP_COPIES * DENSITIES * steps
