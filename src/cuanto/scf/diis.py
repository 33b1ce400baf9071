"""Extrapolation of Fock matrices.

DIIS: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413. ADIIS, for Hartree-Fock the same as EDIIS:
X. Hu and W. Yang, J. Chem. Phys. 132, 054109 (2010), doi:10.1063/1.3304922.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.log import logger

Array = NDArray[np.float64]

FACES = 8
"""Densities that ADIIS interpolates between at most: it tries all of their combinations."""
LARGE = 2.0**30
"""Bytes of a history from which it is asked what memory has room for."""
BESIDE = 8
"""Matrices beside the history while an iteration lasts, most of them of the eigensolver."""
LEAST = 2
"""Entries without which there is nothing to extrapolate."""


class History:
    """The last Fock matrices, densities and errors; scalar products of the errors are on the host.

    `size` of them, or as many as the bytes that are `free` have room for.
    """

    def __init__(
        self,
        size: int,
        xp: Any,
        to_host: Callable[[Any], Array] = np.asarray,
        free: Callable[[], float] = lambda: np.inf,
    ) -> None:
        self.size, self.xp, self.to_host, self._free = size, xp, to_host, free
        self._slots: list[int] = []
        self._densities: list[int] = []
        self._stacks: tuple[Any, ...] | None = None
        self._errors_nn = np.zeros((size, size))

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Forget everything."""
        self._slots, self._densities = [], []

    def push(self, F: Any, D: Any, e: Any) -> Any:
        """Keep them; <e_n|e> with everything kept, on the device, for `absorb`."""
        if self._stacks is None:
            self.size = self._affordable(8 * F.size, 8 * (F.size + D.size + e.size))
        few = min(self.size, FACES)
        if self._stacks is None:
            self._stacks = tuple(self.xp.zeros((n, a.size)) for n, a in ((self.size, F), (few, D), (self.size, e)))
            self._shape = F.shape
        assert self._stacks is not None
        slot, density = _place(self._slots, self.size), _place(self._densities, few)
        for stack, place, array in zip(self._stacks, (slot, density, slot), (F, D, e), strict=True):
            stack[place] = array.reshape(-1)
        e_n = self._stacks[2]
        return e_n[: max(self._slots) + 1] @ e_n[slot]

    def _affordable(self, matrix: int, entry: int) -> int:
        """Entries that memory has room for, beside what else an iteration needs."""
        if self.size * entry < LARGE:
            return self.size
        room = self._free() - BESIDE * matrix
        size = self.size if room > self.size * entry else max(LEAST, int(room // entry))
        if size < self.size:
            logger.warning("DIIS keeps %d instead of %d matrices: memory has no room for more", size, self.size)
        if (missing := size * entry - room) > 0:
            logger.warning("memory is short by %.1f GB, and the system may end this program", missing / 1e9)
        return size

    def absorb(self, products: Array) -> float:
        """Take the products of the last `push`; returns the norm of the last error."""
        slot, count = self._slots[-1], len(products)
        self._errors_nn[slot, :count] = self._errors_nn[:count, slot] = products
        return float(np.sqrt(max(products[slot], 0.0)))

    def diis(self) -> Array:
        """Coefficients, oldest first, that make the combined error smallest."""
        B_nn = self._errors_nn[np.ix_(self._slots, self._slots)]
        n = len(B_nn)
        # Errors shrink by orders of magnitude: in units of their own size the equations stay well conditioned.
        size_n = np.sqrt(np.maximum(np.diag(B_nn), 1e-300))
        M = np.zeros((n + 1, n + 1))
        M[:n, :n] = B_nn / np.outer(size_n, size_n)
        M[:n, n] = M[n, :n] = size_n.min() / size_n
        right = np.zeros(n + 1)
        right[n] = 1.0
        values, vectors = np.linalg.eigh(M)
        kept = np.abs(values) > 1e-13
        c_n = (vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept]))[:n] / size_n
        total = float(c_n.sum())
        if not np.isfinite(total) or total == 0.0:
            return np.asarray(np.eye(n)[-1])
        return np.asarray(c_n / total)

    def adiis(self) -> Array:
        """Coefficients of the last matrices, oldest first, none negative, that make the model of the energy smallest.

        f(c) = 2 sum_n c_n <D_n - D|F> + sum_nm c_n c_m <D_n - D|F_m - F>, D and F the last ones (Hu and Yang, eq. 8).
        """
        assert self._stacks is not None
        F_n, D_n, _ = self._stacks
        # <D_n|F_m>; few calculations get here
        T_nm = self.to_host(D_n @ F_n.T)[np.ix_(self._densities, self._slots[-len(self._densities) :])]
        linear_n = T_nm[:, -1] - T_nm[-1, -1]
        quadratic = T_nm - T_nm[-1][None, :] - T_nm[:, -1][:, None] + T_nm[-1, -1]
        return smallest_on_simplex(2.0 * linear_n, quadratic + quadratic.T)

    def combine(self, c_n: Array) -> Any:
        """sum_n c_n F_n of the last matrices."""
        assert self._stacks is not None
        weights = np.zeros(self.size)
        weights[self._slots[-len(c_n) :]] = c_n
        return (self.xp.asarray(weights) @ self._stacks[0]).reshape(self._shape)


def _place(slots: list[int], size: int) -> int:
    """Where the next entry goes: a free place, else that of the oldest; noted as the last."""
    free = [slot for slot in range(size) if slot not in slots]
    slots.append(free[0] if free else slots.pop(0))
    return slots[-1]


def smallest_on_simplex(g_n: Array, H_nn: Array) -> Array:
    """The c with c_n >= 0 and sum c = 1 that makes g.c + c.H.c/2 smallest, by trying every face.

    Exact also where H is not positive; 2^n small systems, n at most a dozen.
    """
    n = len(g_n)
    best, lowest = np.eye(n)[-1], np.inf
    for size in range(1, n + 1):
        for face in combinations(range(n), size):
            c_n = np.zeros(n)
            c_n[list(face)] = _stationary(g_n[list(face)], H_nn[np.ix_(face, face)])
            if (c_n < -1e-12).any() or not np.isfinite(c_n).all():
                continue
            value = float(g_n @ c_n + 0.5 * c_n @ H_nn @ c_n)
            if value < lowest - 1e-14 * abs(value):
                best, lowest = np.maximum(c_n, 0.0), value
    return np.asarray(best / best.sum())


def _stationary(g_n: Array, H_nn: Array) -> Array:
    """Stationary point of g.c + c.H.c/2 with sum c = 1; not a number where there is none."""
    n = len(g_n)
    if n == 1:
        return np.ones(1)
    M = np.ones((n + 1, n + 1))
    M[:n, :n], M[n, n] = H_nn, 0.0
    try:
        return np.asarray(np.linalg.solve(M, np.append(-g_n, 1.0))[:n])
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
