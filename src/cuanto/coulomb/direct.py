"""Direct J and K: the Coulomb matrix by the J engine, exchange by quartets of shells, or both in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.j_engine import JEngine
from cuanto.coulomb.j_engine import Statistics as HermiteStatistics
from cuanto.coulomb.memory import StorePlan, store_limit
from cuanto.coulomb.quartets import QuartetEngine
from cuanto.coulomb.quartets import Statistics as QuartetStatistics
from cuanto.errors import InputError
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.engine import ALGORITHMS, resolve
from cuanto.log import logger
from cuanto.memory import MIB, Budget
from cuanto.options import PRECISIONS, STORAGES

SYMMETRIC = 1e-12
"""Densities whose transposes differ by less, relative to their largest element, are symmetric."""


@dataclass(frozen=True)
class Statistics:
    """What the last call did, by the J engine and by quartets (None: not used)."""

    coulomb: HermiteStatistics | None
    quartets: QuartetStatistics | None


class DirectJK:
    """J_pq = sum_rs (pq|rs) D_rs and K_pq = sum_rs (pr|qs) D_rs of a basis, as a rule without keeping an integral.

    `threshold`: what a quartet (J engine: all that is left out for a primitive pair) may add at most and be left out.
    `precision`: `double`; `mixed` (small contributions in single precision, sums in double); `single`.
    `one_pass`: J from the quartets of K as well, instead of the J engine; for comparison.
    `omega`: in 1/Bohr, of the attenuated operator erf(omega r)/r in place of 1/r.
    `storage`: `direct`; `stored` (the CPU keeps the integrals of all quartets, and J comes from them, too, but for
    single precision); `auto`: stored where they fit into half of what is allowed. `budget`: of the calculation,
    from which their memory is reserved; `plan` says what is done.
    """

    def __init__(
        self,
        basis: Basis,
        *,
        backend: str | Backend = "auto",
        threshold: float = 1e-12,
        precision: str = "double",
        algorithm: str = "auto",
        one_pass: bool = False,
        omega: float | None = None,
        storage: str = "direct",
        budget: Budget | None = None,
    ) -> None:
        if not isinstance(basis, Basis):
            raise InputError(f"basis must be a cuanto.Basis, {type(basis).__name__} was given")
        if precision not in PRECISIONS:
            raise InputError(f"unknown precision {precision!r}: choose {', '.join(PRECISIONS)}")
        if algorithm not in ALGORITHMS:
            raise InputError(f"unknown algorithm {algorithm!r}: choose {', '.join(ALGORITHMS)}")
        if storage not in STORAGES:
            raise InputError(f"unknown storage {storage!r}: choose {', '.join(STORAGES)}")
        if not 0.0 < threshold < 1.0:
            raise InputError(f"threshold is {threshold}; give a positive number such as 1e-12")
        smearing(omega)  # refuses what is no omega
        self.basis, self.backend, self.omega = basis, resolve(backend), omega
        self.threshold, self.precision, self.algorithm, self.one_pass = threshold, precision, algorithm, one_pass
        self._j_engine: JEngine | None = None
        self._quartets: QuartetEngine | None = None
        self.plan = self._plan(storage, budget)

    def _plan(self, storage: str, budget: Budget | None) -> StorePlan | None:
        """Store the integrals where that was asked for and can be; None where it was not."""
        can_store = QuartetEngine.can_store(self.backend)
        if storage == "direct" or (storage == "auto" and not can_store):
            return None
        if not can_store:
            raise InputError(f"storage='stored' needs backend='cpu', not {self.backend.name!r}: use storage='direct'")
        asked = storage == "stored"
        budget = Budget(self.backend) if budget is None else budget
        plan = self.quartets.store(store_limit(budget, asked))
        if plan.stored:
            budget.reserve("four-centre integrals", plan.needed)
        logger.info("four-centre integrals: %s", plan)
        if asked and not plan.stored:
            needed = f"{'' if plan.complete else 'more than '}{plan.needed / MIB:.0f}"
            raise InputError(
                f"storing the four-centre integrals takes {needed} MiB, {plan.limit / MIB:.0f} MiB are allowed: "
                "raise max_memory, or use storage='direct'"
            )
        return plan

    @property
    def stored(self) -> bool:
        """Are all integrals kept?"""
        return self.plan is not None and self.plan.stored

    @property
    def j_engine(self) -> JEngine:
        """Made when it is needed first."""
        if self._j_engine is None:
            self._j_engine = JEngine(
                self.basis,
                backend=self.backend,
                threshold=self.threshold,
                precision=self.precision,
                omega=self.omega,
            )
        return self._j_engine

    @property
    def quartets(self) -> QuartetEngine:
        """Made when it is needed first."""
        if self._quartets is None:
            self._quartets = QuartetEngine(
                self.basis, self.backend, self.threshold, self.precision, self.algorithm, self.omega
            )
        return self._quartets

    def __call__(self, D: Any, *, want_j: bool = True, want_k: bool = True) -> tuple[Any, Any]:
        """J and K (None where not wanted) of one density [p, q] or several [n, p, q], symmetric or not."""
        D_npq = self._checked(D)
        symmetric, odd = self._parts(D_npq)
        # In single precision the J engine keeps more digits than quartets do.
        by_quartets = want_j and (self.one_pass or (self.stored and self.precision != "single"))
        if want_k and self._quartets is None:
            QuartetEngine.begin(self.backend, self.precision)  # while the J engine works
        J = self.j_engine(symmetric) if want_j and not by_quartets else None
        K = None
        if want_k or by_quartets:
            J_quartets, K = self.quartets(symmetric, by_quartets, want_k)
            J = J_quartets if by_quartets else J
        if want_k and odd is not None:
            K = K + self.quartets(odd, False, True, antisymmetric=True)[1]
        shape, add = np.shape(D), self.backend.communicator.sum
        return (None if J is None else add(J).reshape(shape)), (None if K is None else add(K).reshape(shape))

    def j(self, D: Any) -> Any:
        """J alone."""
        return self(D, want_k=False)[0]

    def k(self, D: Any) -> Any:
        """K alone."""
        return self(D, want_j=False)[1]

    def _checked(self, D: Any) -> Any:
        xp, n = self.backend.xp, self.basis.nbf
        D_npq = xp.asarray(D, dtype=np.float64)
        if D_npq.ndim not in (2, 3) or D_npq.shape[-2:] != (n, n) or not len(D_npq):
            raise InputError(f"a density is {n} x {n} here, an array of shape {D_npq.shape} was given")
        if not bool(xp.isfinite(D_npq).all()):
            raise InputError("the density has elements that are not finite numbers")
        return D_npq.reshape(-1, n, n)

    def _parts(self, D_npq: Any) -> tuple[Any, Any | None]:
        """Symmetric and antisymmetric parts; None when there is nothing of the latter."""
        D_nqp = D_npq.transpose(0, 2, 1)
        if float(abs(D_npq - D_nqp).max()) <= SYMMETRIC * float(abs(D_npq).max()):
            return D_npq, None
        return 0.5 * (D_npq + D_nqp), 0.5 * (D_npq - D_nqp)

    def finish_compiling(self) -> None:
        """Wait for all specialised kernels asked for so far; general ones serve until they are there."""
        self.backend.finish_compiling()

    @property
    def statistics(self) -> Statistics:
        """Of the last call."""
        return Statistics(
            self._j_engine.statistics if self._j_engine is not None else None,
            self._quartets.statistics if self._quartets is not None else None,
        )


class IncrementalJK:
    """J and K of a density that changes little from call to call: only those of the change are made.

    Errors of screening add up, so every `restart` calls, and whenever the change is not smaller than the density, all
    is made anew.
    """

    def __init__(self, direct: DirectJK, restart: int = 8) -> None:
        if restart < 1:
            raise InputError(f"restart is {restart}; give the number of calls after which all is made anew")
        self.direct, self.restart = direct, restart
        self._since = 0
        self._last: tuple[Any, Any, Any] | None = None

    def __call__(self, D: Any) -> tuple[Any, Any]:
        """J and K of D."""
        D = self.direct.backend.xp.asarray(D, dtype=np.float64)
        fresh = self._last is None or self._since >= self.restart or self._last[0].shape != D.shape
        if not fresh and self._last is not None:
            change = D - self._last[0]
            if float(abs(change).max()) < float(abs(D).max()):
                J, K = self.direct(change)
                self._since += 1
                self._last = (D.copy(), self._last[1] + J, self._last[2] + K)
                return self._last[1].copy(), self._last[2].copy()
        J, K = self.direct(D)
        self._since = 1
        self._last = (D.copy(), J, K)
        return J.copy(), K.copy()
