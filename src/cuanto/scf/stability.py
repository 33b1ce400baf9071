"""Is a converged determinant a minimum? The lowest curvature of its energy under real rotations of its own orbitals.

R. Seeger and J. A. Pople, J. Chem. Phys. 66, 3045 (1977), doi:10.1063/1.434318. The lowest eigenvector is found by
E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975), doi:10.1016/0021-9991(75)90065-0; the response of the Fock
matrix to a rotation is a difference of two Fock matrices, exact for Hartree-Fock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.scf import rotations
from cuanto.scf.loop import Density, Problem, fock
from cuanto.scf.state import Array, State

UNSTABLE = -5e-6
"""Hartree: curvatures above this are zero within their errors, as those of rotations of the whole molecule."""
CLEARLY = -1e-4
"""Hartree: so far from zero that no error explains it."""
TOLERANCE = 1e-3
"""Residual of the eigenvector: its direction matters, not its digits."""
FINE = 1e-4
"""The same for curvatures near zero, whose error is its square over their distance to the next one."""
MAX_VECTORS = 40
STEP = 0.3
"""Angle (norm of all rotations) by which an unstable state is left."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Lowest curvature (Hartree) and the rotations X_ov of every split that belong to it, their norm 1."""

    curvature: float
    X_ov: list[Array]

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
        self.shapes = [gap.shape for gap in gaps]
        self.diagonal = np.concatenate([np.zeros(0), *(gap.reshape(-1) / self.capacity for gap in gaps)])

    def split(self, x: Array) -> list[Array]:
        """The rotations of each split of each set of orbitals."""
        ends = np.cumsum([a * b for a, b in self.shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(x, ends[:-1]), self.shapes, strict=True)]

    def __call__(self, x: Array) -> Array:
        """sum_s (n_sp - n_sq) (F T - T F + C^T dF C)_pq with C (1 + T) the turned orbitals, T_qp = X_pq = -T_pq.

        dF is the response to dD = C (T n - n T) C^T.
        """
        M = self.C_s.shape[2]
        T_kmm = np.zeros((len(self.levels), M, M))
        for (k, mid, end), X in zip(self.splits, self.split(x), strict=True):
            T_kmm[k, mid:end, :mid] += X.T
            T_kmm[k, :mid, mid:end] -= X
        T_s = np.broadcast_to(T_kmm, (len(self.C_s), M, M))
        n_sm = self.state.n_sm
        changes = [C @ (T * n[None, :] - n[:, None] * T) @ C.T for C, T, n in zip(self.C_s, T_s, n_sm, strict=True)]
        backend = self.problem.frame.backend
        D_spq = self.state.D_spq + backend.to_device(np.stack(changes))
        dF_s = backend.to_host(fock(self.problem, Density(D_spq, None))[1]) - self.F_spq
        G_kmm = np.zeros_like(T_kmm)
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
        x = U[:, 0] @ V
        residual = U[:, 0] @ W - values[0] * x
        enough = FINE if abs(values[0]) < TOLERANCE else TOLERANCE
        if np.linalg.norm(residual) < enough or len(V) >= min(MAX_VECTORS, size):
            return Mode(float(values[0]), hessian.split(x / np.linalg.norm(x)))
        shift = hessian.diagonal - values[0]
        trial = [residual / np.where(np.abs(shift) > 0.05, shift, 0.05)]


def leave(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """Orbitals (in the orthonormal basis) turned along a mode, and their former energies: where to start again."""
    frame, left = problem.frame, list(mode.X_ov)
    turned = []
    for C_jm, n_m in zip(frame.coefficients(state.C_spm, S_pq), problem.levels(state.n_sm), strict=True):
        parts = [(split, frame.xp.asarray(STEP * left.pop(0)), STEP) for split in rotations.splits(n_m)]
        turned.append(rotations.turn(C_jm, parts, frame.xp))
    return frame.xp.stack(turned), state.eps_sm
