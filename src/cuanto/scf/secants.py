"""Secants: changes of Fock matrices and of their errors in earlier SCFs, reused at nearby geometries.

DIIS has to learn from its own iterations how the error FD - DF follows the Fock matrix. At the next step of a
trajectory this has hardly changed, if functions move with their atoms and matrices are in the symmetrically
orthonormalised basis, which depends smoothly on the geometry. With the differences of earlier iterations, the first
extrapolation is already as good as one after many iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.orthogonal import Frame

SIZE = 100
"""Largest number of pairs that are kept."""
BYTES = 2.0**29
"""Largest memory for them, bytes."""
INDEPENDENT = 0.05
"""Smallest part of a pair's error that is independent of newer ones; less is dominated by the change of geometry."""
SMALLEST = 1e-10
"""Norm of a difference of errors (Hartree) that is dominated by rounding."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Differences of Fock matrices and of their errors, one pair in each row; the errors are orthonormal."""

    F_n: Any
    e_n: Any

    def __len__(self) -> int:
        return len(self.e_n)


class Secants:
    """Pairs of the last SCFs, the newest first; every SCF that starts with them takes them over and adds its own."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self._pairs: tuple[Any, Any] | None = None  # replaced at once: threads may share an object

    def __len__(self) -> int:
        return 0 if self._pairs is None else len(self._pairs[0])

    def carried(self, frame: Frame, S_pq: Any) -> Carried | None:
        """The pairs in the orthonormal basis of another geometry; None if there are none."""
        pairs = self._pairs
        if pairs is None or pairs[0].shape[-1] != len(S_pq):
            return None
        F, e = pairs
        if not frame.symmetric:
            with frame.blas_threads:
                U_pj = smooth_directions(frame, S_pq)
                F, e = (_rotate(one, U_pj, frame) for one in pairs)
        return Carried(F.reshape(len(F), -1), e.reshape(len(e), -1))

    def add(self, differences: tuple[Any, Any], frame: Frame, S_pq: Any) -> None:
        """Add differences of an SCF, the newest first; nearly dependent and surplus older ones are dropped."""
        xp, pairs, (F, e) = frame.xp, self._pairs, differences
        with frame.blas_threads:
            if not frame.symmetric:
                U_pj = smooth_directions(frame, S_pq)
                F, e = (_rotate(one, U_pj.T, frame) for one in differences)
            if pairs is not None and pairs[0].shape[1:] == F.shape[1:]:
                F, e = (xp.concatenate([new, old]) for new, old in zip((F, e), pairs, strict=True))
            flat = e.reshape(len(e), -1)
            T_mn = independent(frame.to_host(flat @ flat.T), INDEPENDENT)
            T_mn = xp.asarray(T_mn[: min(self.size, int(BYTES / (8.0 * (F[0].size + e[0].size))))])
            F, e = ((T_mn @ one.reshape(len(one), -1)).reshape(-1, *one.shape[1:]) for one in (F, e))
            self._pairs = F, e


def smooth_directions(frame: Frame, S_pq: Any) -> Any:
    """The symmetrically orthonormalised functions in the orthonormal basis, U_pj: matrices there are U F U^T.

    X = s^(-1/2) U sigma^(-1/2) with the norms s of the functions, and eigenvalues sigma and eigenvectors U of the
    overlap of normalised functions.
    """
    norm_p = frame.xp.sqrt(frame.to_algebra(frame.backend.xp.diagonal(S_pq)))
    U_pj = norm_p[:, None] * frame.X_pm
    return U_pj / frame.xp.sqrt((U_pj**2).sum(axis=0))


def independent(G_nn: Array, smallest: float) -> Array:
    """Combinations T_mn of vectors with scalar products G that are orthonormal; earlier vectors have precedence.

    A vector is left out if less than the part `smallest` of it is independent.
    """
    T_mn, count = np.zeros_like(G_nn), 0
    for n, size in enumerate(np.sqrt(np.maximum(np.diagonal(G_nn), 0.0)).tolist()):
        if size < SMALLEST:
            continue
        known_mn, t_n = T_mn[:count], np.zeros(len(G_nn))
        t_n[n] = 1.0 / size
        for _ in range(2):  # the second time removes the rounding errors of the first
            t_n = t_n - (known_mn @ (G_nn @ t_n)) @ known_mn
        left = max(float(t_n @ (G_nn @ t_n)), 0.0) ** 0.5
        if left > smallest:
            T_mn[count] = t_n / left
            count += 1
    return T_mn[:count]


def _rotate(F_nspq: Any, U_pj: Any, frame: Frame) -> Any:
    """U^T F U of every matrix."""
    return frame.xp.matmul(frame.xp.matmul(U_pj.T, F_nspq), U_pj)
