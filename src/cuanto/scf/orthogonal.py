"""An orthonormal basis for the SCF, and the place where its matrices are treated.

Canonical orthogonalisation: P.-O. Loewdin, Adv. Quantum Chem. 5, 185 (1970), doi:10.1016/S0065-3276(08)60339-1.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends.base import Backend, Linalg, get_backend
from cuanto.backends.blas import one_thread

HOST_FUNCTIONS = tuning.size("cuda", "scf.host_functions")


@dataclass(frozen=True, eq=False)
class Frame:
    """X_pm with X^T S X = 1; the algebra is done at a `place`, which may be the host while terms are on
    the backend's device.

    `dropped` combinations of functions had an overlap eigenvalue below `threshold`; `smallest` is the smallest of all.
    """

    backend: Backend
    place: Backend
    X_pm: Any
    threshold: float
    smallest: float
    dropped: int

    @property
    def size(self) -> int:
        """Number of orbitals."""
        return int(self.X_pm.shape[1])

    @property
    def xp(self) -> Any:
        """The array module of the algebra."""
        return self.place.xp

    @property
    def linalg(self) -> Linalg:
        """The factors and products of the algebra."""
        return self.place.linalg

    @property
    def blas_threads(self) -> AbstractContextManager[None]:
        """Context of the algebra: one thread of the host for matrices that it has taken over from a device."""
        return one_thread if self.algebra_on_host else self.linalg.threads(len(self.X_pm))

    def to_algebra(self, array: Any) -> Any:
        """From where the terms are to where the algebra is done."""
        return self.backend.to_host(array) if self.algebra_on_host else array

    def to_terms(self, *arrays: Any) -> list[Any]:
        """From where the algebra is done to where the terms are, in one copy."""
        if not self.algebra_on_host:
            return list(arrays)
        return list(self.backend.upload({str(k): array for k, array in enumerate(arrays)}).values())

    def to_host(self, array: Any) -> NDArray[np.float64]:
        """To main memory; waits for the device."""
        return self.place.to_host(array)

    def free(self) -> float:
        """Bytes free where the algebra is done; what the host has taken over from a device is small."""
        return np.inf if self.algebra_on_host else float(self.backend.memory()[0])

    def matrix(self, F_spq: Any) -> Any:
        """X^T F X of a matrix of the backend."""
        return self.X_pm.T @ self.to_algebra(F_spq) @ self.X_pm

    def products(self, F_sjk: Any, own_sji: Any, both_sji: Any, C_sij: Any, D_spq: Any) -> tuple[Any, Any]:
        """D and F D here, of occupied orbitals times their numbers (of one spin, of both where they share them) and the
        orbitals; `D_spq` is D on the backend, which a basis that is orthonormal by itself takes as it is."""
        return own_sji @ C_sij, (F_sjk @ both_sji) @ C_sij

    def coefficients(self, C_spm: Any, S_pq: Any) -> Any:
        """Orbitals of the backend in the orthonormal basis."""
        return self.X_pm.T @ self.to_algebra(S_pq) @ self.to_algebra(C_spm)

    @property
    def algebra_on_host(self) -> bool:
        """The algebra is done in main memory, the terms on a device of their own."""
        return self.place is not self.backend


def place_of_algebra(size: int, backend: Backend) -> Backend:
    """Where matrices of this size are treated: small ones in main memory."""
    return get_backend("cpu") if size <= HOST_FUNCTIONS and not backend.traits.unified_memory else backend


Place = Frame | Backend
"""Where arrays are, with the module that computes with them (`xp`) and copies to main memory (`to_host`)."""


def make_frame(S_pq: Any, threshold: float, backend: Backend) -> Frame:
    """The basis that diagonalises the overlap of normalised functions, without what is nearly dependent."""
    place = place_of_algebra(len(S_pq), backend)
    xp, S_pq = place.xp, S_pq if place is backend else backend.to_host(S_pq)
    # Cartesian functions are not normalised one by one; a threshold should not depend on that.
    scale_p = 1.0 / xp.sqrt(xp.diagonal(S_pq))
    with one_thread if place is not backend else backend.linalg.threads(len(S_pq)):
        s_m, U_pm = xp.linalg.eigh(S_pq * scale_p[:, None] * scale_p)
    s_host = place.to_host(s_m)
    dropped = int(np.count_nonzero(s_host < threshold))
    X_pm = scale_p[:, None] * U_pm[:, dropped:] / xp.sqrt(s_m[dropped:])
    return Frame(backend, place, X_pm, threshold, float(s_host[0]), dropped)
