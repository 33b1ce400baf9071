"""The factorised metric V_PQ = (P|Q) of a fitting basis, also if it is singular to working precision.

Plain Cholesky is tried first, on the device. If a pivot is lost in rounding (linearly dependent or very diffuse
functions), the metric is factorised by the method of Cheng and Higham, SIAM J. Matrix Anal. Appl. 19, 1097 (1998),
doi:10.1137/S0895479896302898: P V P^T = L B L^T by Bunch and Kaufman's pivoting, and eigenvalues of the 1 x 1 and
2 x 2 blocks of B below delta are raised to delta. V + E = M M^T is then safely positive; E is reported.

Eigenvalues of these blocks are not smaller than those of V: diagonal blocks of Schur complements interlace. If the
smallest eigenvalue of V is safely above delta, none would be raised, and plain Cholesky gives the same.

The metric is first scaled to a unit diagonal, so that delta means the same for tight and for diffuse functions.

To an attenuated operator all functions much narrower than 1/omega look alike, and so many eigenvalues are lost
that raising them would perturb the rest (|E| = 840 for benzene with omega = 0.1). There, and wherever E would be large,
functions are left out instead: pivoted Cholesky takes them one by one until all others depend on them to within delta
(H. Harbrecht, M. Peters and R. Schneider, Appl. Numer. Math. 62, 428 (2012), doi:10.1016/j.apnum.2011.10.001).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.backends.blas import scipy_linalg
from cuanto.errors import InputError

ROUNDING = float(np.finfo(np.float64).eps)
SAFE_PIVOT = 1e3
"""Smallest pivot of plain Cholesky, in units of delta: three digits of it are then correct."""
SAFE_EIGENVALUE = 10.0
"""Smallest eigenvalue, in units of delta, that makes plain Cholesky safe as well."""
ITERATIONS = 30
"""Iterations for that eigenvalue (valinomycin with def2-universal-jkfit: 13 % too large after 8, 0.1 % after 16)."""
ATTENUATED_DELTA = 3e-10
"""Smallest bound for the attenuated operator, whose metric has eigenvalues of any size.

With the bound of rounding errors alone, 1.4e-11, those of integrals and sums, magnified by V^-1, changed the gradient
of benzene (wB97X/def2-SVP) by 1e-6 Hartree/Bohr where integrals were recomputed. 1e-10 leaves 5e-8; 1e-9 leaves 5e-9,
but changes the energy by 1e-9 Hartree.
"""
MAX_PERTURBATION = 1e-4
"""Norm of E, for a unit diagonal, above which functions are left out instead."""


@dataclass(frozen=True)
class MetricReport:
    """The factorisation of a metric, scaled to a unit diagonal.

    `method`: `cholesky`, `modified cholesky` or `pivoted cholesky`; `smallest`: pivot, or eigenvalue of a block, before
    it was raised; `raised`: number of eigenvalues that were raised to `delta`; `perturbation`: Frobenius norm of E;
    `left_out`: linearly dependent functions.
    """

    method: str
    delta: float
    smallest: float
    raised: int = 0
    perturbation: float = 0.0
    left_out: int = 0

    def __str__(self) -> str:
        if self.left_out:
            return f"{self.method}, {self.left_out} functions left out as linearly dependent to within {self.delta:.1e}"
        if not self.raised:
            return f"{self.method}, smallest pivot {self.smallest:.1e}"
        return f"{self.method}, {self.raised} eigenvalues raised to {self.delta:.1e}, norm of E {self.perturbation:.1e}"


@dataclass(frozen=True)
class ModifiedFactor:
    """A + E = M M^T with M = P^T L U sqrt(Lambda): the unit triangle, and the eigenpairs of the blocks."""

    L: Array
    permutation: Ints
    U: Array
    eigenvalues: Array
    report: MetricReport

    def inverse_factor(self) -> Array:
        """M^-1 = Lambda^-1/2 U^T L^-1 P"""
        L_inverse = scipy_linalg().solve_triangular(self.L, np.eye(len(self.L)), lower=True, unit_diagonal=True)
        inverse: Array = np.empty_like(self.L)
        inverse[:, self.permutation] = self.U.T @ L_inverse
        inverse /= np.sqrt(self.eigenvalues)[:, None]
        return inverse


def default_delta(A: Any) -> float:
    """Bound of the rounding errors of a factorisation."""
    flat = A.ravel(order="A")  # a view, whichever index is contiguous
    return ROUNDING * len(A) * sqrt(float(flat @ flat))


def modified_cholesky(A: Array, delta: float | None = None) -> ModifiedFactor:
    """Cheng and Higham's factorisation of a symmetric matrix; E = 0 where A is safely positive."""
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
        raise InputError(f"a metric is a square matrix of finite numbers, shape {A.shape} was given")
    delta = default_delta(A) if delta is None else delta
    lower, blocks, permutation = scipy_linalg().ldl(A, lower=True)
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
    """M^-1 with rows of zeros at the end for functions that are left out; A is overwritten."""
    lapack = scipy_linalg().lapack
    # Rows of C are columns of Fortran: the upper triangle there is the lower one here.
    factor, pivots, rank, _ = lapack.dpstrf(A.T, lower=0, tol=delta, overwrite_a=1)
    L = np.tril(factor.T[:rank, :rank])
    smallest = float(np.diagonal(L).min()) ** 2
    inverse: Array = np.zeros_like(A)
    inverse[:rank, pivots[:rank] - 1] = lapack.dtrtri(L.T, lower=0, overwrite_c=1)[0].T
    return inverse, MetricReport("pivoted cholesky", delta, smallest, left_out=len(A) - int(rank))


def _inverse_of_singular(A: Array, delta: float, attenuated: bool) -> tuple[Array, MetricReport]:
    """M^-1 of a matrix that is nearly singular; A is overwritten."""
    if not attenuated:
        modified = modified_cholesky(A, delta)
        if modified.report.perturbation <= MAX_PERTURBATION:
            return modified.inverse_factor(), modified.report
        del modified
    return pivoted_inverse(A, max(delta, ATTENUATED_DELTA) if attenuated else delta)


def smallest_eigenvalue(inverse: Any, backend: Backend) -> float:
    """The smallest eigenvalue of M M^T from M^-1, by iteration with (M M^T)^-1; converges from above."""
    x = backend.to_device(np.random.default_rng(len(inverse)).normal(size=len(inverse)))
    for _ in range(ITERATIONS):
        x = inverse.T @ (inverse @ (x / backend.xp.linalg.norm(x)))
    return 1.0 / float(backend.xp.linalg.norm(x))


class FittingMetric:
    """Solves with the metric of a fitting basis: c = V^-1 x, and B = A M^-T for rows A, so that B B^T = A V^-1 A^T.

    M^-1 is stored; with `keep` also V, so that `solve` can correct its result by the residual. Rounding errors of M^-1
    grow with the condition of V: 3e-9 Hartree of the Coulomb energy (taxol, def2-universal-jkfit), 1e-11 with a
    correction. `attenuated`: the metric of erf(omega r)/r.
    """

    def __init__(self, V_PQ: Any, backend: Backend, attenuated: bool = False, keep: bool = False) -> None:
        xp = backend.xp
        scale_P = 1.0 / xp.sqrt(xp.diagonal(V_PQ))
        A_PQ = _scale_metric(V_PQ, scale_P)
        delta = default_delta(A_PQ)
        self._linalg = backend.linalg
        inverse, smallest = backend.linalg.inverse_factor(A_PQ)
        self.triangular = smallest >= SAFE_PIVOT * delta or (
            smallest >= SAFE_EIGENVALUE * delta and smallest_eigenvalue(inverse, backend) >= SAFE_EIGENVALUE * delta
        )
        if self.triangular:
            self.report = MetricReport("cholesky", delta, smallest)
        else:
            del inverse, A_PQ  # before others are allocated
            A = backend.to_host(_scale_metric(V_PQ, scale_P))
            with backend.linalg.host_threads(len(A)):
                host, self.report = _inverse_of_singular(A, delta, attenuated)
            inverse = backend.to_device(host)
        inverse *= scale_P
        self.inverse = inverse
        # M M^T differs from V where eigenvalues were raised.
        self._V_PQ = V_PQ if keep and self.triangular else None

    def half_solve(self, rows: Any, work: Any = None) -> Any:
        """rows [n, P] M^-T; the rows are overwritten and returned. `work`: memory for a part of the result."""
        self._linalg.times_transpose(rows, self.inverse, self.triangular, work)
        return rows

    def half_solve_to(self, rows: Any, one: Any, other: Any) -> None:
        """Set rows[one] and rows[other] to rows[one] M^-T."""
        self._linalg.times_transpose_to(rows, one, other, self.inverse, self.triangular)

    def back_solve(self, x: Any) -> Any:
        """x [n, P] M^-1: the second half of V^-1."""
        return x @ self.inverse

    def solve(self, x: Any) -> Any:
        """x [n, P] V^-1 of a few densities."""
        c = self.back_solve(x @ self.inverse.T)
        if self._V_PQ is not None:
            c += self.back_solve((x - c @ self._V_PQ) @ self.inverse.T)
        return c


def _scale_metric(V_PQ: Any, scale_P: Any) -> Any:
    """A copy with a unit diagonal."""
    A_PQ = V_PQ * scale_P
    A_PQ *= scale_P[:, None]
    return A_PQ
