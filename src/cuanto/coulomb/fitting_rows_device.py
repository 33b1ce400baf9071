"""Fitted J and K on a GPU with everything kept, of molecules whose blocks (`fitting_blocks`) would not fit.

As on the host (`fitting_rows`) each function p has the rows B_pqP of functions q beside it only: of taxol in def2-TZVP
48 % of all pairs, 106 instead of 222 GB. Functions of a shell have the same partners, and their products are one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.fitting_rows import Partners, integral_rows
from cuanto.coulomb.metric import FittingMetric

SUMMED_AT_ONCE = 2**17
"""Rows of one product with a vector."""


class DeviceRows:
    """B_pqP = (pq|P') M^-T of all pairs, with the builds of J and K."""

    def __init__(
        self,
        basis: Basis,
        partners: Partners,
        aux: Basis,
        metric: FittingMetric,
        backend: Backend,
        omega: float | None = None,
    ) -> None:
        self.partners, self.n, self.naux = partners, len(partners.q), aux.nbf
        self.xp, self.linalg = backend.xp, backend.linalg
        table = partners.row_table()
        self._rows: Any = integral_rows(basis, table, aux, backend, omega)
        p, q = np.nonzero(table >= 0)
        self._q, self._pair = backend.to_device(q), backend.to_device(p * self.n + q)
        edges = [p for p in range(1, self.n) if not np.array_equal(partners.q[p - 1], partners.q[p])]
        self._alike = list(pairwise([0, *edges, self.n]))
        """Functions with the same partners, as those of a shell are."""
        lower = q <= p
        one, other = table[p[lower], q[lower]], table[q[lower], p[lower]]
        metric.half_solve_to(self._rows, backend.to_device(one), backend.to_device(other))

    def _parts(self) -> Iterator[slice]:
        for start in range(0, self.partners.rows, SUMMED_AT_ONCE):
            yield slice(start, min(start + SUMMED_AT_ONCE, self.partners.rows))

    def fit(self, D_pq: Any) -> Any:
        """x_P = sum_pq B_pqP D_pq"""
        d = D_pq.take(self._pair)
        x_P = self.xp.zeros(self.naux)
        for part in self._parts():
            x_P += d[part] @ self._rows[part]
        return x_P

    def potential(self, x_P: Any) -> Any:
        """J_pq = sum_P B_pqP x_P"""
        J_pq = self.xp.zeros((self.n, self.n))
        flat = J_pq.reshape(-1)
        for part in self._parts():
            flat[self._pair[part]] = self._rows[part] @ x_P
        return J_pq

    def exchange(self, C_pi: Any, room: Any) -> Any:
        """K of some orbitals; `room` for X_piP."""
        X_piP = room.reshape(self.n, C_pi.shape[1], self.naux)
        C_ip = self.xp.ascontiguousarray(C_pi.T)
        for first, last in self._alike:
            begin, end = int(self.partners.starts[first]), int(self.partners.starts[last])
            B_pqP = self._rows[begin:end].reshape(last - first, -1, self.naux)
            C_iq = C_ip.take(self._q[begin : begin + B_pqP.shape[1]], axis=1)
            if last - first == 1:
                self.xp.matmul(C_iq, B_pqP[0], out=X_piP[first])
            else:
                self.xp.matmul(C_iq, B_pqP, out=X_piP[first:last])
        return self.linalg.gram(X_piP.reshape(self.n, -1))
