"""The metric V_PQ = (P|Q) of a fitting basis in factors, also where it is singular to working precision.

Plain Cholesky is tried first, on the device. Where a pivot is lost in rounding (functions that repeat each other, very
diffuse ones) the metric is factorised as Cheng and Higham do, SIAM J. Matrix Anal. Appl. 19, 1097 (1998),
doi:10.1137/S0895479896302898: P V P^T = L B L^T by Bunch and Kaufman's pivoting, and eigenvalues of the 1 x 1 and
2 x 2 blocks of B below delta are raised to delta. V + E = M M^T is then safely positive; E is reported.

The metric is first scaled to a unit diagonal, so that delta means the same for tight and for diffuse functions.

Under an attenuated operator all functions that are tight beside 1/omega look alike, and so many eigenvalues are lost
that raising them would perturb the rest (E of 840 for benzene with omega = 0.1). There, and wherever E would not be
small, functions are left out instead: Cholesky with pivots takes them one by one until all others are repetitions to
within delta (H. Harbrecht, M. Peters and R. Schneider, Appl. Numer. Math. 62, 428 (2012),
doi:10.1016/j.apnum.2011.10.001).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.errors import InputError

Array = NDArray[np.float64]

SAFE_PIVOT = 1e3
"""Smallest pivot, in units of delta, with which plain Cholesky is trusted: three digits of it are then right."""
LARGEST_PERTURBATION = 1e-4
"""Norm of E, beside a unit diagonal, from which functions are left out instead."""
ROWS_AT_ONCE = 4096
"""Rows multiplied by an inverse factor at once, so that the copy stays small beside the whole."""
PANEL = 1024
"""Columns of a product on a GPU."""
ALONE = 3e8
"""Operations on the host that one thread has done before several have begun: some milliseconds."""


@dataclass(frozen=True)
class MetricReport:
    """How a metric was factorised; all numbers refer to the metric with a unit diagonal.

    `method`: `cholesky`, `modified cholesky` or `pivoted cholesky`; `smallest`: pivot, or eigenvalue of a block, before
    it was raised; `raised`: how many eigenvalues were raised to `delta`; `perturbation`: Frobenius norm of E;
    `left_out`: functions that repeat others.
    """

    method: str
    delta: float
    smallest: float
    raised: int = 0
    perturbation: float = 0.0
    left_out: int = 0

    def __str__(self) -> str:
        if self.left_out:
            return f"{self.method}, {self.left_out} functions left out that repeat others to {self.delta:.1e}"
        if not self.raised:
            return f"{self.method}, smallest pivot {self.smallest:.1e}"
        return f"{self.method}, {self.raised} eigenvalues raised to {self.delta:.1e}, norm of E {self.perturbation:.1e}"


@dataclass(frozen=True)
class ModifiedFactor:
    """A + E = M M^T with M = P^T L U sqrt(Lambda): the unit triangle, and the eigenpairs of the blocks."""

    L: Array
    permutation: NDArray[np.int64]
    U: Array
    eigenvalues: Array
    report: MetricReport

    def factor(self) -> Array:
        """M"""
        M = np.empty_like(self.L)
        M[self.permutation] = (self.L @ self.U) * np.sqrt(self.eigenvalues)
        return M

    def inverse_factor(self) -> Array:
        """M^-1 = Lambda^-1/2 U^T L^-1 P"""
        from scipy.linalg import solve_triangular

        L_inverse = solve_triangular(self.L, np.eye(len(self.L)), lower=True, unit_diagonal=True)
        inverse: Array = np.empty_like(self.L)
        inverse[:, self.permutation] = self.U.T @ L_inverse
        inverse /= np.sqrt(self.eigenvalues)[:, None]
        return inverse


def default_delta(A: Any) -> float:
    """Bound of the rounding of a factorisation: what is smaller is not known from zero."""
    return float(len(A) * np.finfo(np.float64).eps * abs(A * A).sum() ** 0.5)


def modified_cholesky(A: Array, delta: float | None = None) -> ModifiedFactor:
    """Cheng and Higham's factorisation of a symmetric matrix; E = 0 where A is safely positive."""
    from scipy.linalg import ldl

    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
        raise InputError(f"a metric is a square matrix of finite numbers, shape {A.shape} was given")
    delta = default_delta(A) if delta is None else delta
    lower, blocks, permutation = ldl(A, lower=True)
    U, eigenvalues = _eigen_blocks(blocks)
    raised = np.maximum(eigenvalues, delta)
    L = lower[permutation]
    # E = P^T L U (raised - eigenvalues) U^T L^T P, of which only the columns that changed are needed.
    changed = np.flatnonzero(raised > eigenvalues)
    columns = (L @ U[:, changed]) * np.sqrt(raised - eigenvalues)[changed]
    perturbation = float(np.linalg.norm(columns.T @ columns))
    report = MetricReport("modified cholesky", delta, float(eigenvalues.min()), len(changed), perturbation)
    return ModifiedFactor(L, permutation, U, raised, report)


def _eigen_blocks(blocks: Array) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a matrix of 1 x 1 and 2 x 2 blocks on the diagonal."""
    U, eigenvalues = np.eye(len(blocks)), np.diag(blocks).copy()
    for k in np.flatnonzero(np.diag(blocks, -1)):
        pair = slice(k, k + 2)
        eigenvalues[pair], U[pair, pair] = np.linalg.eigh(blocks[pair, pair])
    return U, eigenvalues


def pivoted_inverse(A: Array, delta: float) -> tuple[Array, MetricReport]:
    """M^-1 of a matrix that is overwritten, with rows of zeros at the end for functions that are left out."""
    from scipy.linalg.lapack import dpstrf, dtrtri

    # Rows of C are columns of Fortran: the upper triangle there is the lower one here.
    factor, pivots, rank, _ = dpstrf(A.T, lower=0, tol=delta, overwrite_a=1)
    L = np.tril(factor.T[:rank, :rank])
    smallest = float(np.diagonal(L).min()) ** 2
    inverse: Array = np.zeros_like(A)
    inverse[:rank, pivots[:rank] - 1] = dtrtri(L.T, lower=0, overwrite_c=1)[0].T
    return inverse, MetricReport("pivoted cholesky", delta, smallest, left_out=len(A) - int(rank))


def _inverse_of_singular(A: Array, delta: float, attenuated: bool) -> tuple[Array, MetricReport]:
    """M^-1 of a matrix that plain Cholesky cannot be trusted with; the matrix is overwritten."""
    if not attenuated:
        modified = modified_cholesky(A, delta)
        if modified.report.perturbation <= LARGEST_PERTURBATION:
            return modified.inverse_factor(), modified.report
        del modified
    return pivoted_inverse(A, delta)


class FittingMetric:
    """Solves with the metric of a fitting basis: c = V^-1 x, and B = A M^-T for rows A, so that B B^T = A V^-1 A^T.

    M^-1 is kept and multiplied with. Where it is a triangle the host does half the operations, in place; a GPU does so
    by panels of large ones, the triangular product of its library being slower than a full one (4.0 against 3.4 ms
    for 20,000 rows of octadecane's, H200). `attenuated`: of erf(omega r)/r.
    """

    def __init__(self, V_PQ: Any, backend: Backend, delta: float | None = None, attenuated: bool = False) -> None:
        xp = backend.xp
        scale_P = 1.0 / xp.sqrt(xp.diagonal(V_PQ))
        A_PQ = _scaled(V_PQ, scale_P)
        given = default_delta(A_PQ) if delta is None else delta
        inverse, smallest = _inverse_in_place(A_PQ) if xp is np else _inverse_by_products(A_PQ, backend)
        safe = smallest >= SAFE_PIVOT * given
        self._times: Callable[[Any, Any], None] = _times_full
        if safe:
            self._times = _times_triangle if xp is np else _times_panels
        if safe:
            self.report = MetricReport("cholesky", given, smallest)
        else:
            del inverse, A_PQ  # before others are made
            host, self.report = _inverse_of_singular(backend.to_host(_scaled(V_PQ, scale_P)), given, attenuated)
            inverse = backend.to_device(host)
        inverse *= scale_P
        self._inverse = inverse

    def half_solve(self, rows: Any) -> Any:
        """rows [n, P] M^-T; the rows are overwritten and returned."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            self._times(rows[start : start + ROWS_AT_ONCE], self._inverse)
        return rows

    def back_solve(self, x: Any) -> Any:
        """x [n, P] M^-1: the second half of V^-1."""
        return x @ self._inverse

    def solve(self, x: Any) -> Any:
        """x [n, P] V^-1"""
        return self.back_solve(self.half_solve(x.copy()))


def _times_full(rows: Any, M: Any) -> None:
    """rows M^T, written over the rows."""
    rows[...] = rows @ M.T


def _times_panels(rows: Any, L: Any) -> None:
    """rows L^T in place by panels of columns, the last ones first: a column needs none behind it."""
    if len(L) < 4 * PANEL:
        _times_full(rows, L)
        return
    for end in range(len(L), 0, -PANEL):
        begin = max(0, end - PANEL)
        rows[:, begin:end] = rows[:, :end] @ L[begin:end, :end].T


def _times_triangle(rows: Array, L: Array) -> None:
    """rows L^T in place, with a lower triangle L: half the operations of a product, no copy."""
    from scipy.linalg.blas import dtrmm

    # Rows of C are columns of Fortran, and L is an upper triangle there.
    with _threads(rows.size * len(L)):
        product = dtrmm(1.0, L.T, rows.T, lower=0, trans_a=1, overwrite_b=1)
    if not np.may_share_memory(product, rows):  # rows that do not lie together were copied
        rows[...] = product.T


def _threads(operations: float) -> AbstractContextManager[None]:
    """One thread for little work."""
    return one_thread if operations < ALONE else nullcontext()


def _scaled(V_PQ: Any, scale_P: Any) -> Any:
    """A copy with a unit diagonal."""
    A_PQ = V_PQ * scale_P
    A_PQ *= scale_P[:, None]
    return A_PQ


def _inverse_in_place(A: Array) -> tuple[Array, float]:
    """L^-1 of A = L L^T, written over A, and the smallest pivot; -1 where the matrix is not positive definite."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    # Rows of C are columns of Fortran: the upper triangle there is the lower one here.
    with _threads(len(A) ** 3):
        _, failed = dpotrf(A.T, lower=0, clean=1, overwrite_a=1)
        if failed:
            return A, -1.0
        smallest = float(np.diagonal(A).min()) ** 2
        dtrtri(A.T, lower=0, overwrite_c=1)
    return A, smallest


def _inverse_by_products(A: Any, backend: Backend) -> tuple[Any, float]:
    """The same on a GPU, where products are faster than LAPACK's routines."""
    try:
        L = backend.xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None, -1.0
    smallest = float(backend.xp.diagonal(L).min())  # nan where there is no factor
    if not smallest > 0.0:
        return None, -1.0
    return backend.xp.ascontiguousarray(inverse_triangle(L, backend.xp)), smallest**2


def inverse_triangle(L: Any, xp: Any, block: int = 96) -> Any:
    """Inverse of a lower triangle: blocks on the diagonal first, then [[A, 0], [C, D]] by products, level by level."""
    n = len(L)
    count = 1 << max(0, -(-n // block) - 1).bit_length()
    block = -(-n // count)  # as little padding as possible
    size = count * block
    padded = xp.eye(size)
    padded[:n, :n] = xp.tril(L)
    diagonal = xp.arange(count)
    blocks = padded.reshape(count, block, count, block)[diagonal, :, diagonal]
    inverse = xp.linalg.inv(blocks)  # [block, row, column]
    while len(inverse) > 1:
        width = inverse.shape[1]
        pairs = xp.arange(len(inverse) // 2)
        C = padded.reshape(2 * len(pairs), width, 2 * len(pairs), width)[2 * pairs + 1, :, 2 * pairs]
        upper, lower = inverse[0::2], inverse[1::2]
        joined = xp.zeros((len(pairs), 2 * width, 2 * width))
        joined[:, :width, :width], joined[:, width:, width:] = upper, lower
        joined[:, width:, :width] = -(lower @ (C @ upper))
        inverse = joined
    return inverse[0, :n, :n]
