"""The three-centre integrals of density fitting behind one protocol, wherever they are.

All integrals may be kept, as rows of every function (`fitting_rows`) or in blocks of functions (`fitting_blocks`), or
made whenever they are needed (`fitting_direct`). Whoever uses them sees B_pqP = sum_Q (pq|Q) (M^-T)_QP, V = M M^T:
(pq|rt) = sum_P B_pqP B_rtP, J = `potential(fit(D))`, K = sum_i X_i X_i^T.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals import eri_2c
from cuanto.integrals.api import basis_kets
from cuanto.integrals.attenuation import attenuated
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.engine import Engine
from cuanto.integrals.segments import Indices


class FittedTensor(Protocol):
    """B_pqP of a basis and a fitting basis.

    `columns`: orbitals of X at once; `order`: the functions p of X, in an order that suits the storage.
    """

    integrals: ThreeCentre
    columns: int
    order: Indices

    def fit(self, D_spq: Any) -> Any:
        """x_sP = sum_pq B_pqP D_spq of symmetric densities; x M^-1 are the coefficients of the fitted densities."""

    def potential(self, x_sP: Any) -> Any:
        """J_spq = sum_P B_pqP x_sP"""

    def half_transformed(self, C_pi: Any) -> Iterator[Any]:
        """X_ipP = sum_q B_pqP C_qi, `columns` orbitals at a time, in memory that the next ones overwrite."""

    def exchange(self, C_pi: Any) -> Any:
        """K_pq = sum_iP X_ipP X_iqP, where the order of X is that of the basis."""
        n, backend = self.integrals.basis.nbf, self.integrals.backend
        K_pq = backend.xp.zeros((n, n))
        for X_ipP in self.half_transformed(C_pi):
            K_pq += backend.linalg.gram_of_stack(X_ipP)
        return K_pq


@dataclass(frozen=True, eq=False)
class ThreeCentre:
    """The integrals (pq|P) of a basis and a fitting basis.

    `omega`: in 1/Bohr, of the attenuated operator erf(omega r)/r in place of 1/r, also in the metric. `pairs`: of
    `integrals.api.uploaded_pairs`, if they are there already.
    """

    basis: Basis
    aux: Basis
    backend: Backend
    omega: float | None = None
    pairs: Sequence[BraBatch] | None = None

    def metric(self) -> FittingMetric:
        """(P|Q) in factors."""
        V_PQ = eri_2c(self.aux, backend=self.backend, omega=self.omega)
        return FittingMetric(V_PQ, self.backend, attenuated=self.omega is not None)

    def kets(self) -> list[KetBatch]:
        """All fitting functions."""
        return basis_kets(self.aux, coulomb=True)

    def fill(self, out: Any, bras: Iterable[BraBatch], kets: list[KetBatch]) -> None:
        """Integrals of some pairs with some fitting functions into the cleared rows that the pairs name."""
        Engine(self.backend, out, row_stride=out.shape[1]).run("coulomb", bras, kets)

    def attenuate(self, bras: Iterable[BraBatch]) -> Iterator[BraBatch]:
        """The same pairs for the operator of these integrals."""
        return (attenuated(bra, self.omega) for bra in bras)


class Workspace:
    """Memory that is kept from build to build: fresh pages cost more than the transformation of a few orbitals."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._array: Any = None

    def __call__(self, *shape: int) -> Any:
        """An array with any numbers in it."""
        size = prod(shape)
        if self._array is None or self._array.size < size:
            self._array = None  # before its successor is made
            self._array = self._backend.xp.empty(size)
        return self._array[:size].reshape(shape)


def portions(count: int, at_once: int) -> Iterator[slice]:
    """Slices of nearly equal length, of at most so many each."""
    step = -(-count // max(1, -(-count // at_once)))
    return (slice(start, min(start + step, count)) for start in range(0, count, max(1, step)))
