"""Direct J and K: the Coulomb matrix by the J engine, exchange by quartets of shells, or both in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import DirectOptions, JKBuilder
from cuanto.coulomb.exchange_forces import Forces, exchange_forces, exchange_gradient
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.coulomb.j_engine import JEngine
from cuanto.coulomb.j_engine import Statistics as HermiteStatistics
from cuanto.coulomb.memory import store_limit
from cuanto.coulomb.quartets import QuartetEngine
from cuanto.coulomb.quartets import Statistics as QuartetStatistics
from cuanto.errors import InputError
from cuanto.integrals.engine import check_basis, resolve
from cuanto.log import logger
from cuanto.memory import Budget, StorePlan

SYMMETRY_TOLERANCE = 1e-12
"""Largest |D - D^T| of a symmetric density, relative to its largest element."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of the last call, of the J engine and of the quartets (None: not used)."""

    coulomb: HermiteStatistics | None
    quartets: QuartetStatistics | None


class DirectJK:
    """J_pq = sum_rs (pq|rs) D_rs and K_pq = sum_rs (pr|qs) D_rs of a basis, by default without storing integrals.

    `options`: fields of `DirectOptions` (threshold, precision, algorithm, one_pass, omega, storage). `budget` of the
    calculation, from which memory is reserved. `plan` says whether integrals are stored.
    """

    def __init__(
        self, basis: Basis, *, backend: str | Backend = "auto", budget: Budget | None = None, **options: Any
    ) -> None:
        self.basis, self.options, self.backend = check_basis(basis), DirectOptions(**options), resolve(backend)
        self.budget = Budget(self.backend) if budget is None else budget
        self.plan = self._plan(self.options.storage)

    def _plan(self, storage: str) -> StorePlan | None:
        """Store the integrals if that is wanted and they fit; returns None if it is not wanted."""
        can_store = QuartetEngine.can_store(self.backend)
        if storage == "direct" or (storage == "auto" and not can_store):
            return None
        if not can_store:
            raise InputError(f"storage='stored' needs backend='cpu', not {self.backend.name!r}: use storage='direct'")
        required = storage == "stored"
        plan = self.quartets.store(store_limit(self.budget, required))
        if plan.stored:
            self.budget.reserve("four-centre integrals", plan.needed)
        logger.info("exchange: %s", plan)
        if required:
            plan.require("storage='direct'")
        return plan

    @property
    def stored(self) -> bool:
        """Whether all integrals are stored."""
        return self.plan is not None and self.plan.stored

    @property
    def one_pass(self) -> bool:
        """Whether J and K come from one pass over quartets. In single precision the J engine is more accurate."""
        return self.options.one_pass or (self.stored and self.options.precision != "single")

    @cached_property
    def j_engine(self) -> JEngine:
        """Created when J is first needed."""
        options = self.options
        engine = JEngine(
            self.basis,
            backend=self.backend,
            threshold=options.threshold,
            precision=options.precision,
            omega=options.omega,
        )
        self.budget.record("J engine", engine.nbytes)
        return engine

    @cached_property
    def quartets(self) -> QuartetEngine:
        """Created when K is first needed."""
        return QuartetEngine(self.basis, self.budget, self.options)

    @cached_property
    def exchange_forces(self) -> Forces:
        """Created when the gradient of exchange is first needed."""
        engine, omega = vars(self).get("quartets"), self.options.omega
        precision = "double" if self.options.precision == "double" else "mixed"
        return exchange_forces(self.basis, self.budget, omega=omega, precision=precision, engine=engine)

    def __call__(self, D: Any, *, want_j: bool = True, want_k: bool = True) -> tuple[Any, Any]:
        """J and K (None where not wanted) of one density [p, q] or several [n, p, q], symmetric or not."""
        D_npq = self._validate(D)
        symmetric, odd = _symmetric_parts(D_npq)
        by_quartets = want_j and self.one_pass
        if want_k and "quartets" not in vars(self):
            QuartetEngine.begin(self.backend, self.options.precision)  # compiled while the J engine runs
        J = self.j_engine(symmetric) if want_j and not by_quartets else None
        K = None
        if want_k or by_quartets:
            J_quartets, K = self.quartets(symmetric, by_quartets, want_k)
            J = J_quartets if by_quartets else J
        K = self._add_odd(K, odd) if want_k else None
        shape, add = np.shape(D), self.backend.communicator.sum
        return (None if J is None else add(J).reshape(shape)), (None if K is None else add(K).reshape(shape))

    def total_j_and_k(self, D_spq: Any) -> tuple[Any, Any]:
        """J of the sum of densities, [1, p, q], and the K of each, from one pass over stored integrals."""
        symmetric, odd = _symmetric_parts(self._validate(D_spq))
        J, K = self.quartets.total_j_and_k(symmetric)
        add = self.backend.communicator.sum
        return add(J), add(self._add_odd(K, odd))

    def _add_odd(self, K: Any, odd: Any | None) -> Any:
        """Add the K of the antisymmetric parts of the densities, if they have any."""
        return K if odd is None else K + self.quartets(odd, False, True, antisymmetric=True)[1]

    def j(self, D: Any) -> Any:
        """J alone."""
        return self(D, want_k=False)[0]

    def k(self, D: Any) -> Any:
        """K alone."""
        return self(D, want_j=False)[1]

    def _validate(self, D: Any) -> Any:
        xp, n = self.backend.xp, self.basis.nbf
        D_npq = xp.asarray(D, dtype=np.float64)
        if D_npq.ndim not in (2, 3) or D_npq.shape[-2:] != (n, n) or not len(D_npq):
            raise InputError(f"a density is {n} x {n} here, an array of shape {D_npq.shape} was given")
        if not np.isfinite(float(D_npq.sum())):  # CuPy would compile another reduction, such as all(), for seconds
            raise InputError("the density has elements that are not finite numbers")
        return D_npq.reshape(-1, n, n)

    def finish_compiling(self) -> None:
        """Wait for all specialised kernels requested so far; general kernels are used until then."""
        self.backend.finish_compiling()

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call."""
        engines = (vars(self).get(name) for name in ("j_engine", "quartets"))
        return Statistics(*(None if engine is None else engine.statistics for engine in engines))


def _symmetric_parts(D_npq: Any) -> tuple[Any, Any | None]:
    """Symmetric and antisymmetric parts, None if the latter vanishes."""
    D_nqp = D_npq.transpose(0, 2, 1)
    if float(abs(D_npq - D_nqp).max()) <= SYMMETRY_TOLERANCE * float(abs(D_npq).max()):
        return D_npq, None
    return 0.5 * (D_npq + D_nqp), 0.5 * (D_npq - D_nqp)


class IncrementalJK(JKBuilder):
    """J and K of a sequence of densities, from the change since the last call (unless integrals are stored).

    Screening errors accumulate, so J and K are rebuilt from the whole density every `restart` calls, and whenever the
    change is not smaller than the density. Histories of calls for J, for K and for both are kept separately.
    """

    def __init__(self, direct: DirectJK, restart: int = 8) -> None:
        if restart < 1:
            raise InputError(f"restart is {restart}; give the number of calls after which J and K are rebuilt")
        self.direct, self.restart = direct, restart
        self._last: dict[tuple[bool, bool], tuple[int, Any, tuple[Any, Any]]] = {}
        self._exchange: tuple[Any, Any] | None = None

    def coulomb(self, D_spq: Any) -> Any:
        """J of the sum of densities; stored integrals give K in the same pass, which is kept for the next call."""
        if not (self.direct.stored and self.direct.one_pass):
            return super().coulomb(D_spq)
        J_pq, K_spq = self.direct.total_j_and_k(D_spq)
        self._exchange = D_spq.copy(), K_spq
        return J_pq

    def __call__(self, D: Any, C_spi: Any | None = None, want_j: bool = True, want_k: bool = True) -> tuple[Any, Any]:
        """J and K of D; `C_spi` is not used."""
        if self.direct.stored and self.direct.one_pass:
            kept, self._exchange = self._exchange, None
            if kept is not None and not want_j and np.array_equal(kept[0], D):
                return None, kept[1]
            return self.direct(D, want_j=want_j, want_k=want_k)
        D = self.direct.backend.xp.array(D, dtype=np.float64)
        age, last_D, last = self._last.get((want_j, want_k), (self.restart, None, (None, None)))
        if age < self.restart and last_D.shape == D.shape and float(abs(D - last_D).max()) < float(abs(D).max()):
            changes = self.direct(D - last_D, want_j=want_j, want_k=want_k)
            matrices = tuple(None if M is None else old + M for old, M in zip(last, changes, strict=True))
        else:
            age, matrices = 0, self.direct(D, want_j=want_j, want_k=want_k)
        self._last[want_j, want_k] = age + 1, D, (matrices[0], matrices[1])
        J, K = (None if M is None else M.copy() for M in matrices)
        return J, K

    def coulomb_sources(self, D_pq: Any) -> Sources | None:
        """The electron density itself as the source of J; None for an attenuated operator."""
        return Sources(repulsion=True) if self.direct.options.omega is None else None

    def coulomb_gradient(self, D_pq: Any) -> Array:
        """Gradient of the Coulomb energy by the J engine, one Hermite order higher."""
        direct = self.direct
        return electronic_gradient(direct.basis, D_pq, Sources(repulsion=True), direct.backend, direct.options.omega)

    def exchange_gradient(self, D_spq: Any, C_spi: Any | None) -> Array:
        """Gradient of the exchange energy by quartets of shells."""
        return exchange_gradient(self.direct.basis, D_spq, self.direct.exchange_forces)

    def notes(self) -> Sequence[str]:
        """Whether integrals are stored, and their precision; only for the operator 1/r, since the same holds for
        others."""
        direct, precision, found = self.direct, self.direct.options.precision, []
        if direct.options.omega is not None:
            return ()
        if direct.plan is not None:
            found.append(f"exchange: {direct.plan}")
        if precision != "double":
            done = direct.statistics.quartets
            error = f", about {done.error:.0e} Hartree in an element of K" if done is not None and done.error else ""
            found.append(f"{precision} precision of direct J and K{error}")
        return found

    def in_double(self) -> IncrementalJK | None:
        """A builder in double precision that stores no integrals; None if this one is in double precision."""
        direct, options = self.direct, self.direct.options
        if options.precision == "double":
            return None
        screening = {"threshold": options.threshold, "omega": options.omega}
        return IncrementalJK(DirectJK(direct.basis, backend=direct.backend, budget=direct.budget, **screening))
