"""The orbital Hessian: curvatures of the energy of a determinant under rotations of its orbitals.

The response of the Fock matrix to a rotation comes from the terms of the energy. `Subspace` is the space of vectors on
which the Hessian has acted, as in E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975),
doi:10.1016/0021-9991(75)90065-0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.diagonalise import stack
from cuanto.scf.loop import Problem
from cuanto.scf.rotations import join_blocks, split_angles, splits
from cuanto.scf.state import State
from cuanto.terms.base import Term

MIN_CURVATURE = 0.05
"""Hartree: smallest curvature assumed in approximate inverses of the Hessian."""
FLAT_CURVATURE = 2e-6
"""Hartree: smaller curvatures belong to rotations between degenerate states, such as a rotation of all electrons of an
atom, which do not change the energy."""
FIRST_VECTORS = 16
"""Vectors for which memory is reserved at first."""
DEPENDENT = 1e-6
"""A unit vector is linearly dependent if the norm of its part outside of the space of others is smaller than this."""


class Hessian:
    """Products of the orbital Hessian with vectors of angles on the host, in units of 2 `capacity`, the highest
    occupation. Orbitals of a spin are full or empty: `filled_s` of them are full, and angles X change the density by
    capacity (C_o X C_v^T + C_v X^T C_o^T). `kind`: precision of matrix products and stored vectors."""

    def __init__(self, problem: Problem, state: State, kind: type[np.floating[Any]] = np.float64) -> None:
        self.problem, self.state, self.kind, frame = problem, state, kind, problem.frame
        C_spm = frame.to_algebra(state.C_spm).astype(kind, copy=False)
        self.C_s = [C_spm[min(s, len(C_spm) - 1)] for s in range(len(state.n_sm))]
        self.n_km = problem.orbital_occupations(state.n_sm)
        self.capacity = float(self.n_km.max())
        self.filled_s = np.count_nonzero(state.n_sm, axis=1).tolist()
        eps_sm = frame.to_host(state.eps_sm)
        gaps = [_differences(n_m) * -_differences(eps_m) for n_m, eps_m in zip(self.n_km, eps_sm, strict=False)]
        self.diagonal = join_blocks(gaps, self.n_km) / self.capacity
        self.error = max((term.curvature_error for term in problem.terms), default=0.0)

    def slope(self) -> Array:
        """sum_s (n_sp - n_sq) F_pq, zero at a stationary point; `__call__` is its derivative."""
        return self._project(self.problem.frame.to_algebra(self.state.F_spq))

    def random(self, seed: int) -> Array:
        """A random direction. In orthonormal functions, as in semiempirical methods, angles are independent and
        normally distributed.

        It comes from an antisymmetric matrix in the basis functions, so that signs of orbitals and the choice among
        degenerate ones, which depend on rounding errors, do not matter. It has no symmetry.
        """
        rng, parts, frame = np.random.default_rng(seed), [], self.problem.frame
        product = frame.linalg.product
        for C, n_m in zip(self.C_s, self.n_km, strict=False):
            A_pq = rng.normal(size=(len(C), len(C)))
            A_pq = frame.xp.asarray((A_pq - A_pq.T).astype(self.kind, copy=False))
            with frame.blas_threads:
                parts.append(frame.to_host(product(product(C[:, : np.count_nonzero(n_m)].T, A_pq), C)))
        return join_blocks(parts, self.n_km)

    def trial(self, seed: int) -> Array:
        """A random direction of small curvature."""
        lowest = self.diagonal.min(initial=np.inf)
        return np.asarray(self.random(seed) / (self.diagonal - lowest + MIN_CURVATURE) ** 2)

    def _project(self, M_spq: Any) -> Array:
        """sum_s (n_sp - n_sq) (C^T M_s C)_pq of the orbitals of all `splits`, as one vector; M may be the same for both
        spins."""
        frame, blocks = self.problem.frame, []
        product = frame.linalg.product
        with frame.blas_threads:
            for s, (C, o) in enumerate(zip(self.C_s, self.filled_s, strict=True)):
                M_pq = M_spq[min(s, len(M_spq) - 1)].astype(self.kind, copy=False)
                blocks.append(frame.to_host(product(product(C[:, :o].T, M_pq), C[:, o:])))
        return self._join(blocks)

    def _join(self, M_sov: Sequence[Array]) -> Array:
        """sum_s (n_sp - n_sq) M_spq, from the blocks between full and empty orbitals of every spin, as one vector."""
        rows_k = [np.zeros((np.count_nonzero(n_m), len(n_m))) for n_m in self.n_km]
        for s, (M_ov, n_m, o) in enumerate(zip(M_sov, self.state.n_sm, self.filled_s, strict=True)):
            rows_k[min(s, len(rows_k) - 1)][:o, o:] += (n_m.max() / self.capacity) * M_ov
        return join_blocks(rows_k, self.n_km)

    def _angles(self, x: Array) -> list[Array]:
        """Angles between the orbitals of every spin; rows are the orbitals of a set that are not empty."""
        rows_k, angles = [np.zeros((np.count_nonzero(n_m), len(n_m))) for n_m in self.n_km], split_angles(x, self.n_km)
        pairs = [(X, split) for X, n_m in zip(rows_k, self.n_km, strict=True) for split in splits(n_m)]
        for (X, (mid, end)), own in zip(pairs, angles, strict=True):
            X[:mid, mid:end] = own
        return [rows_k[min(s, len(rows_k) - 1)] for s in range(len(self.C_s))]

    def change(self, x: Array) -> Any:
        """dD = capacity (C_o X C_v^T + C_v X^T C_o^T) of every spin, on the backend."""
        frame, changes = self.problem.frame, []
        product = frame.linalg.product
        with frame.blas_threads:
            for C, X_om, n_m, o in zip(self.C_s, self._angles(x), self.state.n_sm, self.filled_s, strict=True):
                X_ov = frame.xp.asarray((float(n_m.max()) * X_om[:o, o:]).astype(self.kind, copy=False))
                half = product(C[:, :o], product(X_ov, C[:, o:].T))
                changes.append((half + half.T).astype(np.float64, copy=False))
            return frame.to_terms(stack(changes, frame.xp))[0]

    def __call__(self, x: Array) -> Array:
        """sum_s (n_sp - n_sq) (F T - T F + C^T dF C)_pq with C (1 + T) the rotated orbitals, T_qp = X_pq = -T_pq.

        dF is the response to dD.
        """
        dF_spq = response(self.problem.terms, self.state.D_spq, self.change(x))
        return self._of_fixed_fock(x) + self._project(self.problem.frame.to_algebra(dF_spq))

    def _of_fixed_fock(self, x: Array) -> Array:
        """sum_s (n_sp - n_sq) (F T - T F)_pq: a diagonal matrix, unless spins share orbitals, whose matrices F are not
        diagonal."""
        if not self.problem.shared:
            return np.asarray(self.diagonal * x)
        T_mm = np.zeros((self.n_km.shape[1],) * 2)
        X_om = self._angles(x)[0]
        T_mm[: len(X_om)] -= X_om
        T_mm -= T_mm.T
        return self._join(
            [F[:o] @ T_mm[:, o:] - T_mm[:o] @ F[:, o:] for F, o in zip(self._F_mm, self.filled_s, strict=True)]
        )

    @cached_property
    def _F_mm(self) -> list[Array]:
        """Fock matrices of the spins between orbitals."""
        frame = self.problem.frame
        F_spq = frame.to_algebra(self.state.F_spq)
        return [frame.to_host(C.T @ F_pq @ C) for C, F_pq in zip(self.C_s, F_spq, strict=True)]


class Subspace:
    """Orthonormal vectors V, the products W of the Hessian with them, and the Hessian H in their space, from which
    approximate eigenvectors follow."""

    def __init__(self, hessian: Hessian) -> None:
        self.hessian = hessian
        self._rows = np.empty((2, FIRST_VECTORS, len(hessian.diagonal)), hessian.kind)
        self.H = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.H)

    @property
    def V(self) -> Array:
        """The vectors."""
        return np.asarray(self._rows[0, : len(self)])

    @property
    def W(self) -> Array:
        """The products of the Hessian with them."""
        return np.asarray(self._rows[1, : len(self)])

    def add(self, x: Array) -> bool:
        """Multiply the Hessian with the part of a vector outside of the space; False if nothing is left of it."""
        x = (x / max(float(np.linalg.norm(x)), 1e-300)).astype(self.hessian.kind, copy=False)
        for _ in range(2):
            x = self.outside(x)
        if (norm := float(np.linalg.norm(x))) < DEPENDENT:
            return False
        if len(self) == self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)], axis=1)
        x = x / norm
        self._rows[:, len(self)] = x, self.hessian(x)
        self.H = np.pad(self.H, (0, 1))
        self.H[-1] = self.H[:, -1] = 0.5 * (self.V @ self.W[-1] + self.W @ self.V[-1])
        return True

    def add_trials(self, count: int) -> None:
        """Add the first trial directions of the Hessian."""
        for seed in range(min(count, len(self.hessian.diagonal))):
            self.add(self.hessian.trial(seed))

    def eigenvectors(self) -> tuple[Array, Array, Array]:
        """Curvatures in ascending order, the vectors, and the products of the Hessian with them."""
        values, U = np.linalg.eigh(self.H)
        return values, U.T @ self.V, U.T @ self.W

    def lowest(self) -> tuple[float, Array, Array]:
        """The lowest curvature, its vector, and the product of the Hessian with it."""
        values, U = np.linalg.eigh(self.H)
        return float(values[0]), U[:, 0] @ self.V, U[:, 0] @ self.W

    def outside(self, x: Array) -> Array:
        """The part of a vector outside of the space."""
        return np.asarray(x - self.V.T @ (self.V @ x))


def response(terms: Sequence[Term], D_spq: Any, change_spq: Any) -> Any:
    """Change of the Fock matrices of the spins, or of the same matrix of both, to first order in a change of the
    density."""
    dF_spq = None
    for term in [term for term in terms if not term.linear]:
        part = term.response(D_spq, change_spq)
        if part is None:  # a term whose energy is at most quadratic in the density
            after, before = (term.fock(D, None)[1] for D in (D_spq + change_spq, D_spq))
            part = None if after is None else after - before
        if part is not None:
            dF_spq = part if dF_spq is None else dF_spq + part
    return 0.0 * change_spq if dF_spq is None else dF_spq


def _differences(x_m: Array) -> Array:
    """x_p - x_q of all pairs."""
    return np.asarray(x_m[:, None] - x_m[None, :])
