"""The orbital Hessian: curvatures of the energy of a determinant under rotations of its orbitals.

The response of the Fock matrix to a rotation comes from the terms of the energy. `Subspace` is the space of vectors on
which the Hessian has acted, as in E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975),
doi:10.1016/0021-9991(75)90065-0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.loop import Problem
from cuanto.scf.rotations import join_blocks, split_angles, splits
from cuanto.scf.state import State
from cuanto.terms.base import Term

MIN_CURVATURE = 0.05
"""Hartree: smallest curvature assumed in approximate inverses of the Hessian."""
DEPENDENT = 1e-6
"""A unit vector is linearly dependent if the norm of its part outside of the space of others is smaller than this."""


class Hessian:
    """Products of the orbital Hessian with vectors of angles on the host, in units of 2 `capacity`, the highest
    occupation. Every rotation mixes one of the first `occupied` orbitals, so that matrices need only these rows."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        to_host = problem.frame.backend.to_host
        self.C_s = np.broadcast_to(to_host(state.C_spm), (len(state.n_sm), *state.C_spm.shape[1:]))
        self.F_spq = to_host(state.F_spq)
        self.F_mm = [C.T @ F @ C for C, F in zip(self.C_s, self.F_spq, strict=True)]
        self.n_km = problem.orbital_occupations(state.n_sm)
        self.capacity = float(self.n_km.max())
        self.occupied = max((splits(n_m)[0][0] for n_m in self.n_km if splits(n_m)), default=0)
        eps_sm = problem.frame.to_host(state.eps_sm)
        gaps = [_differences(n_m) * -_differences(eps_m) for n_m, eps_m in zip(self.n_km, eps_sm, strict=False)]
        self.diagonal = join_blocks(gaps, self.n_km) / self.capacity
        self.error = max((term.curvature_error for term in problem.terms), default=0.0)

    def slope(self) -> Array:
        """sum_s (n_sp - n_sq) F_pq, zero at a stationary point; `__call__` is its derivative."""
        return self._project(self.F_mm)

    def trial(self, seed: int) -> Array:
        """A random direction of small curvature.

        It comes from an antisymmetric matrix in the basis functions, so that signs of orbitals and the choice among
        degenerate ones, which depend on rounding errors, do not matter. It has no symmetry.
        """
        rng, parts = np.random.default_rng(seed), []
        for C in self.C_s[: len(self.n_km)]:
            A_pq = rng.normal(size=(len(C), len(C)))
            parts.append(C.T @ (A_pq - A_pq.T) @ C)
        x, lowest = join_blocks(parts, self.n_km), self.diagonal.min(initial=np.inf)
        return np.asarray(x / (self.diagonal - lowest + MIN_CURVATURE) ** 2)

    def _project(self, M_smm: Sequence[Array]) -> Array:
        """sum_s (n_sp - n_sq) M_spq between the orbitals of all `splits`, as one vector; M has the rows of `occupied`
        orbitals, or all."""
        G_kmm = np.zeros((len(self.n_km), *M_smm[0].shape))
        for s, (M_mm, n_m) in enumerate(zip(M_smm, self.state.n_sm, strict=True)):
            G_kmm[min(s, len(G_kmm) - 1)] += _differences(n_m)[: len(M_mm)] * M_mm
        return join_blocks(G_kmm, self.n_km) / self.capacity

    def _generators(self, x: Array) -> Array:
        """T = -T^T of every spin, whose exponential rotates the orbitals."""
        M, angles = self.C_s.shape[2], iter(split_angles(x, self.n_km))
        T_kmm = np.zeros((len(self.n_km), M, M))
        for T_mm, n_m in zip(T_kmm, self.n_km, strict=True):
            for mid, end in splits(n_m):
                T_mm[:mid, mid:end] -= next(angles)
            T_mm -= T_mm.T
        return np.broadcast_to(T_kmm, (len(self.C_s), M, M))

    def change(self, x: Array) -> Any:
        """dD = C (T n - n T) C^T of every spin, on the backend."""
        changes, o = [], self.occupied
        for C, T, n in zip(self.C_s, self._generators(x), self.state.n_sm, strict=True):
            A_om = T[:o] * n - n[:o, None] * T[:o]  # the matrix is symmetric, and zero beyond these rows and columns
            A_om[:, :o] *= 0.5
            half = C[:, :o] @ (A_om @ C.T)
            changes.append(half + half.T)
        return self.problem.frame.backend.to_device(np.stack(changes))

    def __call__(self, x: Array) -> Array:
        """sum_s (n_sp - n_sq) (F T - T F + C^T dF C)_pq with C (1 + T) the rotated orbitals, T_qp = X_pq = -T_pq.

        dF is the response to dD = C (T n - n T) C^T.
        """
        dF_s = self.problem.frame.backend.to_host(response(self.problem.terms, self.state.D_spq, self.change(x)))
        spins, o = zip(self.C_s, self._generators(x), self.F_mm, dF_s, strict=True), self.occupied
        return self._project([F[:o] @ T - T[:o] @ F + C[:, :o].T @ dF @ C for C, T, F, dF in spins])


class Subspace:
    """Orthonormal vectors V, the products W of the Hessian with them, and the Hessian H in their space, from which
    approximate eigenvectors follow."""

    def __init__(self, hessian: Hessian) -> None:
        self.hessian = hessian
        self.V = self.W = np.zeros((0, len(hessian.diagonal)))
        self.H = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.V)

    def add(self, x: Array) -> bool:
        """Multiply the Hessian with the part of a vector outside of the space; False if nothing is left of it."""
        x = x / max(float(np.linalg.norm(x)), 1e-300)
        for _ in range(2):
            x = x - self.V.T @ (self.V @ x)
        if (norm := float(np.linalg.norm(x))) < DEPENDENT:
            return False
        self.V = np.vstack([self.V, x / norm])
        self.W = np.vstack([self.W, self.hessian(self.V[-1])])
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
    """Change of the Fock matrices of the spins to first order in a change of the density."""
    dF_spq = 0.0 * change_spq
    for term in terms:
        part = term.response(D_spq, change_spq)
        if part is None:  # a term whose energy is at most quadratic in the density
            after, before = (term.fock(D, None)[1] for D in (D_spq + change_spq, D_spq))
            part = None if after is None else after - before
        if part is not None:
            dF_spq = dF_spq + part
    return dF_spq


def _differences(x_m: Array) -> Array:
    """x_p - x_q of all pairs."""
    return np.asarray(x_m[:, None] - x_m[None, :])
