"""Is a converged determinant a minimum? The lowest curvature of its energy under real rotations of its own orbitals.

R. Seeger and J. A. Pople, J. Chem. Phys. 66, 3045 (1977), doi:10.1063/1.434318. The lowest eigenvector is found by
E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975), doi:10.1016/0021-9991(75)90065-0; the response of the Fock
matrix to a rotation is a difference of two Fock matrices, exact for Hartree-Fock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf import rotations
from cuanto.scf.loop import Density, Problem, fock
from cuanto.scf.state import State

UNSTABLE = -5e-6
"""Hartree: curvatures above this are zero within their errors, as those of rotations of the whole molecule."""
CLEARLY = -1e-4
"""Hartree: so far from zero that no error explains it."""
TOLERANCE = 1e-3
"""Residual of the eigenvector: its direction matters, not its digits."""
FINE = 1e-4
"""The same for curvatures near zero, whose error is its square over their distance to the next one."""
FINEST = 1e-5
"""The same for flat valleys, along which slopes are small beside those that a wrong direction has."""
FLATTEST = 2e-6
"""Hartree: smaller curvatures are those of rotations of the whole molecule, along which there is nothing to gain."""
MAX_VECTORS = 40
STEP = 0.3
"""Angle (norm of all rotations) by which an unstable state is left."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Lowest curvature (Hartree) and the rotations X_ov of every split that belong to it, their norm 1.

    `newton`: rotations to the lowest energy among those that were examined, by their slopes and positive curvatures;
    `gain`: how much lower that is (Hartree); `change_spq`: of the density on the way there, on the backend. In a flat
    valley both are more than a small gradient suggests.
    """

    curvature: float
    X_ov: list[Array]
    newton: list[Array]
    gain: float
    change_spq: Any

    @property
    def stable(self) -> bool:
        """No rotation lowers the energy."""
        return self.curvature > UNSTABLE


class _Hessian:
    """Products of the orbital Hessian with rotations, all of which are kept as one vector on the host."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        to_host = problem.frame.backend.to_host
        spins = len(state.n_sm)
        self.C_s = np.broadcast_to(to_host(state.C_spm), (spins, *state.C_spm.shape[1:]))
        self.F_spq = to_host(state.F_spq)
        self.F_mm = [C.T @ F @ C for C, F in zip(self.C_s, self.F_spq, strict=True)]
        self.levels = problem.levels(state.n_sm)
        self.capacity = float(self.levels.max())
        eps_sm = problem.frame.to_host(state.eps_sm)
        self.splits = [(k, mid, end) for k, n_m in enumerate(self.levels) for mid, end in rotations.splits(n_m)]
        gaps = [
            (n_m[:mid, None] - n_m[None, mid:end]) * (eps_m[None, mid:end] - eps_m[:mid, None])
            for k, mid, end in self.splits
            for n_m, eps_m in [(self.levels[k], eps_sm[k])]
        ]
        self.diagonal = np.concatenate([np.zeros(0), *(gap.reshape(-1) / self.capacity for gap in gaps)])

    def slope(self) -> Array:
        """What `__call__` is the derivative of: sum_s (n_sp - n_sq) F_pq, zero at a stationary point."""
        G_kmm = np.zeros((len(self.levels), *self.F_mm[0].shape))
        for s, (F, n) in enumerate(zip(self.F_mm, self.state.n_sm, strict=True)):
            G_kmm[min(s, len(G_kmm) - 1)] += (n[:, None] - n[None, :]) * F
        return np.concatenate([G_kmm[k, :mid, mid:end].reshape(-1) for k, mid, end in self.splits]) / self.capacity

    def _generators(self, x: Array) -> Array:
        """T = -T^T of every spin, whose exponential rotates the orbitals."""
        M = self.C_s.shape[2]
        T_kmm = np.zeros((len(self.levels), M, M))
        for (k, mid, end), X in zip(self.splits, rotations.split_angles(x, self.levels), strict=True):
            T_kmm[k, mid:end, :mid] += X.T
            T_kmm[k, :mid, mid:end] -= X
        return np.broadcast_to(T_kmm, (len(self.C_s), M, M))

    def change(self, x: Array) -> Any:
        """dD = C (T n - n T) C^T of every spin, on the backend."""
        spins = zip(self.C_s, self._generators(x), self.state.n_sm, strict=True)
        changes = [C @ (T * n[None, :] - n[:, None] * T) @ C.T for C, T, n in spins]
        return self.problem.frame.backend.to_device(np.stack(changes))

    def __call__(self, x: Array) -> Array:
        """sum_s (n_sp - n_sq) (F T - T F + C^T dF C)_pq with C (1 + T) the rotated orbitals, T_qp = X_pq = -T_pq.

        dF is the response to dD = C (T n - n T) C^T.
        """
        T_s, n_sm = self._generators(x), self.state.n_sm
        D_spq = self.state.D_spq + self.change(x)
        dF_s = self.problem.frame.backend.to_host(fock(self.problem, Density(D_spq, None))[1]) - self.F_spq
        G_kmm = np.zeros((len(self.levels), *T_s.shape[1:]))
        for s, (C, T, F, dF, n) in enumerate(zip(self.C_s, T_s, self.F_mm, dF_s, n_sm, strict=True)):
            G_kmm[min(s, len(G_kmm) - 1)] += (n[:, None] - n[None, :]) * (F @ T - T @ F + C.T @ dF @ C)
        parts = [G_kmm[k, :mid, mid:end].reshape(-1) for k, mid, end in self.splits]
        return np.concatenate(parts) / self.capacity


def lowest_mode(problem: Problem, state: State) -> Mode | None:
    """The rotation along which the energy of a converged state curves least; None where nothing can be rotated."""
    hessian = _Hessian(problem, state)
    size = len(hessian.diagonal)
    if size == 0:
        return None
    rng = np.random.default_rng(0)
    start = np.argsort(hessian.diagonal)[: min(3, size)]
    # A little of everything: an unstable direction may have another symmetry than the smallest gaps.
    trial = [np.eye(1, size, int(k))[0] + 1e-2 * rng.normal(size=size) for k in start]
    V, W = np.zeros((0, size)), np.zeros((0, size))
    while True:
        for t in trial:
            t = t - V.T @ (V @ t)
            t = t - V.T @ (V @ t)
            V = np.vstack([V, t / np.linalg.norm(t)])
            W = np.vstack([W, hessian(V[-1])])
        values, U = np.linalg.eigh(0.5 * (V @ W.T + W @ V.T))
        residual = U[:, 0] @ W - values[0] * (U[:, 0] @ V)
        enough = TOLERANCE if abs(values[0]) > TOLERANCE else FINE if abs(values[0]) > -CLEARLY else FINEST
        if np.linalg.norm(residual) < enough or len(V) >= min(MAX_VECTORS, size):
            return _mode(hessian, values, U.T @ V)
        shift = hessian.diagonal - values[0]
        trial = [residual / np.where(np.abs(shift) > 0.05, shift, 0.05)]


def _mode(hessian: _Hessian, values: Array, vectors: Array) -> Mode:
    """The lowest of some (nearly) eigenvectors, and the minimum of the energy, 2 capacity (g x + x H x/2), in them."""
    slopes, steep = vectors @ hessian.slope(), values > FLATTEST
    steps = np.where(steep, -slopes / np.where(steep, values, 1.0), 0.0)
    lowest = vectors[0] / np.linalg.norm(vectors[0])
    gain = -hessian.capacity * float(slopes @ steps)
    newton = steps @ vectors
    X_ov, newton_ov = (rotations.split_angles(x, hessian.levels) for x in (lowest, newton))
    return Mode(float(values[0]), X_ov, newton_ov, gain, hessian.change(newton))


def leave(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """Orbitals (in the orthonormal basis) rotated along a mode, and their former energies: where to start again."""
    return _rotate(problem, state, [STEP * X for X in mode.X_ov], S_pq)


def improve(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """The same for orbitals rotated to the minimum that slopes and curvatures predict."""
    norm = float(np.sqrt(sum(float(np.sum(X**2)) for X in mode.newton)))
    return _rotate(problem, state, [X * min(1.0, STEP / max(norm, 1e-300)) for X in mode.newton], S_pq)


def _rotate(problem: Problem, state: State, X_ov: list[Array], S_pq: Any) -> tuple[Any, Any]:
    C_sjm, levels = problem.frame.coefficients(state.C_spm, S_pq), problem.levels(state.n_sm)
    return rotations.rotate_spins(C_sjm, levels, X_ov, problem.frame.xp), state.eps_sm
