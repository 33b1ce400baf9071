"""The orthonormal basis of the SCF, and the device on which its linear algebra runs.

Canonical and symmetric orthogonalisation: P.-O. Loewdin, Adv. Quantum Chem. 5, 185 (1970),
doi:10.1016/S0065-3276(08)60339-1.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends.base import Backend, Linalg, get_backend
from cuanto.backends.blas import one_thread

HOST_FUNCTIONS = tuning.size("cuda", "scf.host_functions")


@dataclass(frozen=True, eq=False)
class Frame:
    """X_pm with X^T S X = 1. Linear algebra runs on `device`, which may be the host even if the terms are on a GPU.

    `dropped` combinations of functions had an overlap eigenvalue below `threshold`; `smallest` is the smallest of all.
    `symmetric`: its functions are those nearest to the normalised basis functions, and follow them smoothly if atoms
    move.
    """

    backend: Backend
    device: Backend
    X_pm: Any
    threshold: float
    smallest: float
    dropped: int
    symmetric: bool = False

    @property
    def size(self) -> int:
        """Number of orbitals."""
        return int(self.X_pm.shape[1])

    @property
    def xp(self) -> Any:
        """The array module of `device`."""
        return self.device.xp

    @property
    def linalg(self) -> Linalg:
        """The linear algebra of `device`."""
        return self.device.linalg

    @property
    def blas_threads(self) -> AbstractContextManager[None]:
        """Context for linear algebra: one thread for small matrices of a GPU that are processed on the host."""
        return one_thread if self.algebra_on_host else self.linalg.threads(len(self.X_pm))

    def to_algebra(self, array: Any) -> Any:
        """Copy from the backend to `device`."""
        return self.backend.to_host(array) if self.algebra_on_host else array

    def to_terms(self, *arrays: Any) -> list[Any]:
        """Copy from `device` to the backend, in one transfer."""
        if not self.algebra_on_host:
            return list(arrays)
        return list(self.backend.upload({str(k): array for k, array in enumerate(arrays)}).values())

    def to_host(self, array: Any) -> Array:
        """Copy to main memory; waits for the device."""
        return self.device.to_host(array)

    def free(self) -> float:
        """Free bytes on `device`; unlimited for small matrices processed on the host."""
        return np.inf if self.algebra_on_host else float(self.backend.memory()[0])

    def matrix(self, F_spq: Any) -> Any:
        """X^T F X of a matrix of the backend."""
        return self.transformed(self.to_algebra(F_spq))

    def transformed(self, F_spq: Any) -> Any:
        """X^T F X of a matrix on `device`."""
        return self.linalg.product(self.linalg.product(self.X_pm.T, F_spq), self.X_pm)

    def products(
        self, F_sjk: Any, spin_orbitals_sji: Any, all_orbitals_sji: Any, C_sij: Any, D_spq: Any
    ) -> tuple[Any, Any]:
        """D and F D in this basis.

        `spin_orbitals_sji`: occupied orbitals times their occupations; `all_orbitals_sji`: times those of both spins if
        the spins share orbitals; `C_sij`: the orbitals, transposed. `D_spq`, D on the backend, is used by bases that
        are orthonormal by themselves.
        """
        product = self.linalg.product
        return product(spin_orbitals_sji, C_sij), product(product(F_sjk, all_orbitals_sji), C_sij)

    def coefficients(self, C_spm: Any, S_pq: Any) -> Any:
        """Orbitals of the backend in the orthonormal basis."""
        return self.X_pm.T @ self.to_algebra(S_pq) @ self.to_algebra(C_spm)

    @property
    def algebra_on_host(self) -> bool:
        """Whether linear algebra runs on the host while the terms are on a device."""
        return self.device is not self.backend


def algebra_device(size: int, backend: Backend) -> Backend:
    """The backend for matrices of this size: the host for small ones."""
    return get_backend("cpu") if size <= HOST_FUNCTIONS and not backend.traits.unified_memory else backend


Device = Frame | Backend
"""A location of arrays: an object with an array module (`xp`) and copies to main memory (`to_host`)."""


def make_frame(S_pq: Any, threshold: float, backend: Backend, symmetric: bool = False) -> Frame:
    """The basis that diagonalises the overlap of normalised functions, without nearly dependent combinations; with
    `symmetric`, symmetric orthogonalisation instead, unless a combination had to be dropped."""
    device = algebra_device(len(S_pq), backend)
    xp, S_pq = device.xp, S_pq if device is backend else backend.to_host(S_pq)
    # Not all Cartesian functions are normalised; the threshold should not depend on that.
    scale_p = 1.0 / xp.sqrt(xp.diagonal(S_pq))
    with one_thread if device is not backend else backend.linalg.threads(len(S_pq)):
        s_m, U_pm = device.linalg.eigh(S_pq * scale_p[:, None] * scale_p)
        s_host = device.to_host(s_m)
        dropped = int(np.count_nonzero(s_host < threshold))
        X_pm = scale_p[:, None] * U_pm[:, dropped:] / xp.sqrt(s_m[dropped:])
        symmetric = symmetric and not dropped
        if symmetric:
            X_pm = device.linalg.product(X_pm, U_pm.T)
    return Frame(backend, device, X_pm, threshold, float(s_host[0]), dropped, symmetric)
