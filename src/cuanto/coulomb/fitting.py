"""J and K by density fitting: (pq|rt) = sum_PQ (pq|P) (P|Q)^-1 (Q|rt).

Coulomb: x_P = sum_pq (pq|P) D_pq, c = V^-1 x, J_pq = sum_P (pq|P) c_P (Whitten, J. Chem. Phys. 58, 4496 (1973),
doi:10.1063/1.1679012; Dunlap et al., 71, 3396 (1979), doi:10.1063/1.438728). Exchange, from occupied orbitals times the
square roots of their occupations: X_ipP = sum_q B_qpP C_qi with B = (qp|.) M^-T, V = M M^T, K_pq = sum_iP X_ipP X_iqP
(Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p). Both steps of K are matrix products.

A `FittedTensor`, chosen by `fitting_plan`, has these sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.fitted_tensor import FittedTensor, ThreeCentre
from cuanto.coulomb.fitting_plan import make_tensor, plan_tensor
from cuanto.coulomb.memory import Plan
from cuanto.coulomb.metric import MetricReport
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import check_basis, resolve
from cuanto.log import Timings, logger
from cuanto.memory import Budget

KINDS = ("jk", "j")
EMPTY = 1e-14
"""Orbitals of a density with a smaller occupation are neglected, relative to the largest."""


class FittedJK(JKBuilder):
    """J and K of a basis with a fitting basis; `kind` "j" computes J only and stores half as much.

    `budget` of the calculation, from which the memory of the integrals is reserved; all that is free by default.
    `pairs`: those of `integrals.api.uploaded_pairs`, if they exist. `omega`: in 1/Bohr, of the attenuated operator
    erf(omega r)/r in place of 1/r, also in the metric.
    `plan`: what is stored; `metric`: how (P|Q) was factorised; `timings` of the set-up; `tensor`: the sums over the
    integrals.
    """

    def __init__(
        self,
        basis: Basis,
        aux: Basis,
        *,
        backend: str | Backend = "auto",
        kind: str = "jk",
        omega: float | None = None,
        budget: Budget | None = None,
        pairs: Sequence[BraBatch] | None = None,
        timings: Timings | None = None,
    ) -> None:
        check_basis(basis)
        check_basis(aux, "aux")
        if kind not in KINDS:
            raise InputError(f"unknown kind of fitting {kind!r}: choose {', '.join(KINDS)}")
        self.basis, self.aux, self.kind, self.omega = basis, aux, kind, omega
        self.backend = resolve(backend)
        self.timings = Timings() if timings is None else timings
        budget = Budget(self.backend) if budget is None else budget
        budget.require_room()
        integrals = ThreeCentre(basis, aux, self.backend, omega, pairs)
        with self.timings.measure("plan"):
            choice = plan_tensor(integrals, kind == "jk", budget.available())
            self.plan: Plan = choice.memory
            name = "fitted integrals" if omega is None else "fitted integrals at long range"
            budget.reserve(name, self.plan.expected)
        logger.info("density fitting: %s", self.plan)
        with self.timings.measure("metric"):
            metric = integrals.metric()
        self.metric: MetricReport = metric.report
        logger.info("fitting metric: %s", self.metric)
        self.tensor: FittedTensor = make_tensor(integrals, metric, choice, self.timings)

    def __call__(
        self, D_spq: Any, C_spi: Any | None = None, want_j: bool = True, want_k: bool = True
    ) -> tuple[Any, Any]:
        """J_spq and K_spq (None where not wanted) of symmetric densities; faster with C_spi, D_s = C_s C_s^T."""
        xp, n = self.backend.xp, self.basis.nbf
        if want_k and self.kind == "j":
            raise InputError("this fit is for J only: use FittedJK(..., kind='jk') for K")
        D_spq = xp.asarray(D_spq, dtype=np.float64)
        if D_spq.ndim != 3 or D_spq.shape[1:] != (n, n):
            raise InputError(f"densities are [s, {n}, {n}] here, an array of shape {D_spq.shape} was given")
        J_spq = self.tensor.potential(self.tensor.fit(D_spq)) if want_j else None
        if not want_k:
            return J_spq, None
        if C_spi is None:
            return J_spq, xp.stack([self._exchange_of_density(D_pq) for D_pq in D_spq])
        return J_spq, xp.stack([self.tensor.exchange(xp.asarray(C_pi)) for C_pi in C_spi])

    def notes(self) -> Sequence[str]:
        """The memory plan, and the treatment of a nearly singular metric."""
        where = "" if self.omega is None else " at long range"
        notes = [] if where else [f"density fitting: {self.plan}"]
        if self.metric.raised or self.metric.left_out:
            notes.append(f"fitting metric{where}: {self.metric}")
        return notes

    def _exchange_of_density(self, D_pq: Any) -> Any:
        """K of a density without orbitals, from its eigenvectors with positive and with negative weights."""
        xp = self.backend.xp
        weights, U = self.backend.linalg.eigh(0.5 * (D_pq + D_pq.T))
        weights_host = self.backend.to_host(weights)
        smallest = EMPTY * float(np.abs(weights_host).max())
        K_pq = xp.zeros_like(D_pq)
        for sign in (1.0, -1.0):
            mine = np.flatnonzero(sign * weights_host > smallest)
            if len(mine):
                C_pi = U[:, mine[0] : mine[-1] + 1] * xp.sqrt(abs(weights[mine[0] : mine[-1] + 1]))
                K_pq += sign * self.tensor.exchange(C_pi)
        return K_pq
