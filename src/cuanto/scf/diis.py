"""Extrapolation of Fock matrices.

DIIS: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413. ADIIS, for Hartree-Fock the same as EDIIS:
X. Hu and W. Yang, J. Chem. Phys. 132, 054109 (2010), doi:10.1063/1.3304922.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.log import logger
from cuanto.scf.orthogonal import Device
from cuanto.scf.secants import Carried, independent

MAX_INTERPOLATED = 8
"""Maximum number of densities that ADIIS interpolates: it tries all subsets."""
LARGE_HISTORY_BYTES = 2.0**30
"""Bytes of a history above which free memory is checked."""
OTHER_MATRICES = 8
"""Matrices of an iteration besides the history, most of them workspace of the eigensolver."""
MIN_OWN_PART = 1e-5
"""A difference of errors is used only if at least this part of it is independent of newer differences."""
MIN_CARRIED_PART = 0.05
"""The same for a pair of another geometry."""
MIN_ENTRIES = 2
"""Fewest entries of a history."""


class History:
    """The last Fock matrices, densities and errors of one calculation or of a batch.

    `size` entries, or as many as fit into the `free` bytes. `batched`: the first axis of all arrays counts
    calculations, each with a separate extrapolation.
    """

    def __init__(
        self, size: int, device: Device, free: Callable[[], float] = lambda: np.inf, batched: bool = False
    ) -> None:
        self.size, self.device, self.xp, self._free, self._lead = size, device, device.xp, free, int(batched)
        self._slots: list[int] = []
        self._densities: list[int] = []
        self._stacks: dict[str, Any] = {}
        self._errors_nn: Any = None
        self._carried: Carried | None = None
        self._overlaps_nm: Array = np.zeros((0, 0))  # of own errors with carried ones

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Discard all entries."""
        self._slots, self._densities, self._carried = [], [], None

    def carry(self, carried: Carried | None) -> None:
        """Extrapolate with pairs of another geometry as well; not for a batch."""
        self._carried = carried

    @property
    def carries(self) -> bool:
        """Whether there are pairs of another geometry."""
        return self._carried is not None

    def push(self, F: Any, e: Any, D: Any | None = None) -> Any:
        """Add an entry; returns <e_n|e> with all entries and carried pairs, on the device, for `absorb`.

        Only ADIIS needs D.
        """
        if not self._stacks:
            self._allocate(F, e, D)
        slot, lead = _next_slot(self._slots, self.size), F.shape[: self._lead]
        self._stacks["F"][..., slot, :] = F.reshape(*lead, -1)
        e_n = self._stacks["e"]
        e_n[..., slot, :] = e.reshape(*lead, -1)
        if D is not None:
            self._stacks["D"][_next_slot(self._densities, min(self.size, MAX_INTERPOLATED))] = D.reshape(-1)
        e_n = e_n[..., : max(self._slots) + 1, :]
        if self._lead:
            return (e_n @ e_n[..., slot, :, None])[..., 0]
        products = e_n @ e_n[slot]
        return products if self._carried is None else self.xp.concatenate([products, self._carried.e_n @ e_n[slot]])

    def _allocate(self, F: Any, e: Any, D: Any | None) -> None:
        given = {"F": F, "e": e} | ({} if D is None else {"D": D})
        self.size = self._affordable(8 * F.size, 8 * sum(array.size for array in given.values()))
        lead, self._shape = F.shape[: self._lead], F.shape
        for name, array in given.items():
            count = min(self.size, MAX_INTERPOLATED) if name == "D" else self.size
            self._stacks[name] = self.xp.zeros((*lead, count, array.reshape(*lead, -1).shape[-1]))

    def _affordable(self, matrix: int, entry: int) -> int:
        """Number of entries that fit into memory along with the other matrices of an iteration."""
        if self.size * entry < LARGE_HISTORY_BYTES:
            return self.size
        room = self._free() - OTHER_MATRICES * matrix
        size = self.size if room > self.size * entry else max(MIN_ENTRIES, int(room // entry))
        if size < self.size:
            logger.warning("DIIS keeps %d instead of %d matrices: there is too little memory", size, self.size)
        if (missing := size * entry - room) > 0:
            logger.warning("%.1f GB of memory are missing: the system may kill this process", missing / 1e9)
        return size

    def absorb(self, products: Any) -> Any:
        """Store the products of the last `push` (from the host, for a batch from the device); returns the norm of the
        last error."""
        slot, xp = self._slots[-1], self.xp if self._lead else np
        if self._carried is not None:
            if self._overlaps_nm.shape != (self.size, len(self._carried)):
                self._overlaps_nm = np.zeros((self.size, len(self._carried)))
            products, self._overlaps_nm[slot] = np.split(products, [-len(self._carried)])
        count = products.shape[-1]
        if self._errors_nn is None:
            self._errors_nn = xp.zeros((*products.shape[:-1], self.size, self.size))
        self._errors_nn[..., slot, :count] = products
        self._errors_nn[..., :count, slot] = products
        return xp.sqrt(xp.maximum(products[..., slot], 0.0))

    def diis(self) -> Any:
        """Coefficients, oldest first, that minimise the combined error."""
        xp = self.xp if self._lead else np
        slots = xp.asarray(self._slots)
        return smallest_error(self._errors_nn[..., slots[:, None], slots], xp)

    def adiis(self) -> Array:
        """Non-negative coefficients of the last matrices, oldest first, that minimise a model of the energy.

        f(c) = 2 sum_n c_n <D_n - D|F> + sum_nm c_n c_m <D_n - D|F_m - F>, D and F the last ones (Hu and Yang, eq. 8).
        """
        whole = self.device.to_host(self._stacks["D"] @ self._stacks["F"].T)  # <D_n|F_m>; rarely needed
        T_nm = whole[np.ix_(self._densities, self._slots[-len(self._densities) :])]
        linear_n = T_nm[:, -1] - T_nm[-1, -1]
        quadratic = T_nm - T_nm[-1][None, :] - T_nm[:, -1][:, None] + T_nm[-1, -1]
        return smallest_on_simplex(2.0 * linear_n, quadratic + quadratic.T)

    def combine(self, c_n: Any) -> Any:
        """sum_n c_n F_n of the last matrices."""
        slots = self._slots[-c_n.shape[-1] :]
        xp = self.xp if self._lead else np
        weights = xp.zeros((*c_n.shape[:-1], *[1] * self._lead, self.size))
        weights[..., xp.asarray(slots)] = c_n[:, None] if self._lead else c_n
        return (self.xp.asarray(weights) @ self._stacks["F"]).reshape(self._shape)

    def extrapolate(self) -> Any:
        """The DIIS combination; carried pairs are added to it, with coefficients that need not add up to one."""
        if self._carried is None:
            return self.combine(self.diis())
        c_n, d_m = self._with_carried()
        return self.combine(c_n) + (self.xp.asarray(d_m) @ self._carried.F_n).reshape(self._shape)

    def _with_carried(self) -> tuple[Array, Array]:
        """Coefficients of own entries, oldest first, and of carried pairs that minimise the combined error.

        The combined error is the last error plus orthonormalised differences of own errors plus carried ones. Carried
        directions that nearly lie in the space of the own ones are left out.
        """
        last, others = self._slots[-1], self._slots[-2::-1]
        B_nn, V_nm = self._errors_nn, self._overlaps_nm
        own_nn = B_nn[np.ix_(others, others)] - B_nn[others, last][:, None] - B_nn[others, last] + B_nn[last, last]
        T_kn = independent(own_nn, MIN_OWN_PART)
        along_k = T_kn @ (B_nn[others, last] - B_nn[last, last])
        both_km = T_kn @ (V_nm[others] - V_nm[last])
        rest_m = V_nm[last] - along_k @ both_km
        _, cosines, directions = np.linalg.svd(both_km, full_matrices=False)
        squared = 1.0 - np.minimum(cosines, 1.0) ** 2  # sines squared, of the angles between both spaces
        factor = np.where(squared > MIN_CARRIED_PART**2, 1.0 / np.maximum(squared, MIN_CARRIED_PART**2), 0.0) - 1.0
        d_m = -(rest_m + (factor * (directions @ rest_m)) @ directions)
        own = -(along_k + both_km @ d_m) @ T_kn
        return np.append(own[::-1], 1.0 - own.sum()), d_m

    def differences(self) -> tuple[Any, Any]:
        """Differences of successive Fock matrices and errors, the newest first."""
        places = self._slots[::-1]
        F_n, e_n = (self._stacks[name][self.xp.asarray(places)] for name in ("F", "e"))
        spins, n = self._shape[0], self._shape[-1]
        return (
            (F_n[:-1] - F_n[1:]).reshape(-1, spins, n, n),
            (e_n[:-1] - e_n[1:]).reshape(len(places) - 1, -1, n, n),
        )


def smallest_error(B_nn: Any, xp: Any) -> Any:
    """The c with sum c = 1 that minimises c.B.c, for a stack of matrices of scalar products of errors."""
    n = B_nn.shape[-1]
    # Errors shrink by orders of magnitude: normalised, the equations stay well conditioned.
    size_n = xp.sqrt(xp.maximum(xp.diagonal(B_nn, axis1=-2, axis2=-1), 1e-300))
    M = xp.zeros((*B_nn.shape[:-2], n + 1, n + 1))
    M[..., :n, :n] = B_nn / (size_n[..., :, None] * size_n[..., None, :])
    M[..., :n, n] = M[..., n, :n] = size_n.min(axis=-1, keepdims=True) / size_n
    values, vectors = xp.linalg.eigh(M)
    kept = abs(values) > 1e-13
    weight = xp.where(kept, vectors[..., n, :] / xp.where(kept, values, 1.0), 0.0)
    c_n = (vectors[..., :n, :] @ weight[..., None])[..., 0] / size_n
    total = c_n.sum(axis=-1, keepdims=True)
    good = xp.isfinite(total) & (total != 0.0)
    return xp.where(good, c_n / xp.where(good, total, 1.0), xp.eye(n)[-1])


def flatten(blocks: Sequence[Any], xp: Any) -> Any:
    """Matrices of any shapes in one row."""
    rows = [block.reshape(-1) for block in blocks]
    return rows[0] if len(rows) == 1 else xp.concatenate(rows)


def unflatten(row: Any, like: Sequence[Any]) -> list[Any]:
    """The matrices of a row, with shapes and types of other matrices."""
    blocks, begin = [], 0
    for block in like:
        blocks.append(row[begin : begin + block.size].reshape(block.shape).astype(block.dtype, copy=False))
        begin += block.size
    return blocks


def _next_slot(slots: list[int], size: int) -> int:
    """Slot of the next entry: a free one, else that of the oldest; appended to `slots`."""
    free = [slot for slot in range(size) if slot not in slots]
    slots.append(free[0] if free else slots.pop(0))
    return slots[-1]


def smallest_on_simplex(g_n: Array, H_nn: Array) -> Array:
    """The c with c_n >= 0 and sum c = 1 that minimises g.c + c.H.c/2, by trying every face of the simplex.

    Exact even if H is not positive definite; solves 2^n small systems, n at most a dozen.
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
    """Stationary point of g.c + c.H.c/2 with sum c = 1; NaN if there is none."""
    n = len(g_n)
    if n == 1:
        return np.ones(1)
    M = np.ones((n + 1, n + 1))
    M[:n, :n], M[n, n] = H_nn, 0.0
    try:
        return np.asarray(np.linalg.solve(M, np.append(-g_n, 1.0))[:n])
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
