"""Secants: changes of Fock matrices and of their errors in earlier SCFs, reused at nearby geometries.

DIIS has to learn from its own iterations how the error FD - DF follows the Fock matrix. At the next step of a
trajectory this has hardly changed, if functions move with their atoms and matrices are in the symmetrically
orthonormalised basis, which depends smoothly on the geometry. With the differences of earlier iterations, the first
extrapolation is already as good as one after many iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.blas import scipy_linalg
from cuanto.scf.orthogonal import Frame

SIZE = 100
"""Largest number of pairs that are kept."""
TRAJECTORY_SIZE = 300
"""The same along a trajectory, whose steps are short: for five waters 4 pairs per molecule lead to 5.5 iterations per
step, 20 pairs per molecule to 4.0 (PBE/def2-SVP)."""
BYTES, FREE_SHARE = 2.0**31, 0.05
"""Largest memory for them, bytes, and as a fraction of the free memory."""
INDEPENDENT = 0.05
"""Smallest part of a pair's error that is independent of newer ones; less is dominated by the change of geometry."""
ACCURATE = 0.01
"""Smallest independent part above which combinations are orthonormal to ten digits at once."""
MAX_ERROR = 0.5
"""Largest error of orthonormality that can be corrected; beyond it scalar products are dominated by rounding."""
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
        if pairs is None or not len(pairs[0]) or pairs[0].shape[-1] != len(S_pq):
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
            room = min(BYTES, FREE_SHARE * frame.free())
            T_mn = xp.asarray(T_mn[: min(self.size, int(room / (8.0 * (F[0].size + e[0].size))))])
            F, e = ((T_mn @ one.reshape(len(one), -1)).reshape(-1, *one.shape[1:]) for one in (F, e))
            self._pairs = F, e


def smooth_directions(frame: Frame, S_pq: Any) -> Any:
    """The symmetrically orthonormalised functions in the orthonormal basis, U_pj: matrices there are U F U^T.

    X = s^(-1/2) U sigma^(-1/2) with the norms s of the functions, and eigenvalues sigma and eigenvectors U of the
    overlap of normalised functions.
    """
    norm_p = frame.xp.sqrt(frame.to_algebra(frame.backend.xp.diagonal(S_pq)))
    U_pj = norm_p[:, None] * frame.X_pm
    return U_pj / frame.xp.sqrt((U_pj * U_pj).sum(axis=0))


def independent(G_nn: Array, smallest: float) -> Array:
    """Combinations T_mn of vectors with scalar products G that are orthonormal; earlier vectors have precedence.

    A vector is left out if less than the part `smallest` of it is independent.
    """
    size_n = np.sqrt(np.maximum(np.diagonal(G_nn), 0.0))
    scale_n = np.divide(1.0, size_n, out=np.zeros_like(size_n), where=size_n >= SMALLEST)
    A_nn = G_nn * np.outer(scale_n, scale_n)
    L_nm, kept = np.zeros_like(A_nn), list[int]()  # columns of the Cholesky factor, and their vectors
    left_n = np.diagonal(A_nn).copy()  # squares of the independent parts
    for n in range(len(A_nn)):
        if left_n[n] > smallest**2:
            m = len(kept)
            column_n = (A_nn[n] - L_nm[:, :m] @ L_nm[n, :m]) / np.sqrt(left_n[n])
            left_n -= column_n**2
            L_nm[:, m] = column_n
            kept.append(n)
    T_mn = np.zeros((len(kept), len(G_nn)))
    if not kept:
        return T_mn
    divide = partial(scipy_linalg().solve_triangular, lower=True, check_finite=False)
    T_mn[:, kept] = divide(L_nm[kept, : len(kept)], np.diag(scale_n[kept]))
    if smallest < ACCURATE:  # the second time removes the rounding errors of the first
        found_mm = T_mn @ G_nn @ T_mn.T
        if np.linalg.norm(found_mm - np.eye(len(kept))) < MAX_ERROR:
            T_mn = divide(np.linalg.cholesky(found_mm), T_mn)
    return T_mn


def _rotate(F_nspq: Any, U_pj: Any, frame: Frame) -> Any:
    """U^T F U of every matrix."""
    return frame.xp.matmul(frame.xp.matmul(U_pj.T, F_nspq), U_pj)
