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

UNSTABLE = -1e-4
"""Hartree: curvatures above this are zero within their errors, as those of rotations of the whole molecule."""
TOLERANCE = 1e-3
"""Residual of the eigenvector: its direction matters, not its digits."""
MAX_VECTORS = 40
STEP = 0.3
"""Angle (norm of all rotations) by which an unstable state is left."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Lowest curvature (Hartree) and the rotations X_ov of each spin that belong to it, their norm 1."""

    curvature: float
    X_sov: list[Array]

    @property
    def stable(self) -> bool:
        """No rotation lowers the energy."""
        return self.curvature > UNSTABLE


class _Hessian:
    """Products of the orbital Hessian with rotations, all of which are kept as one vector on the host."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        to_host = problem.frame.backend.to_host
        self.C_s, F_s = to_host(state.C_spm), to_host(state.F_spq)
        self.o_s = [int(np.count_nonzero(n_m)) for n_m in state.n_sm]
        self.F_mm = [C.T @ F @ C for C, F in zip(self.C_s, F_s, strict=True)]
        self.F_spq = F_s
        gaps = [F.diagonal()[None, o:] - F.diagonal()[:o, None] for F, o in zip(self.F_mm, self.o_s, strict=True)]
        self.shapes = [gap.shape for gap in gaps]
        self.diagonal = np.concatenate([gap.reshape(-1) for gap in gaps])

    def split(self, x: Array) -> list[Array]:
        """The rotations of each spin."""
        ends = np.cumsum([a * b for a, b in self.shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(x, ends[:-1]), self.shapes, strict=True)]

    def __call__(self, x: Array) -> Array:
        """X F_vv - F_oo X + C_o^T dF C_v, dF the response to dD = n (C_o X C_v^T + C_v X^T C_o^T)."""
        X_sov, change = self.split(x), []
        for C, X, o, n_m in zip(self.C_s, X_sov, self.o_s, self.state.n_sm, strict=True):
            half = n_m[0] * C[:, :o] @ X @ C[:, o:].T
            change.append(half + half.T)
        backend = self.problem.frame.backend
        D_spq = self.state.D_spq + backend.to_device(np.stack(change))
        dF_s = backend.to_host(fock(self.problem, Density(D_spq, None))[1]) - self.F_spq
        parts = []
        for C, X, o, F, dF in zip(self.C_s, X_sov, self.o_s, self.F_mm, dF_s, strict=True):
            parts.append(X @ F[o:, o:] - F[:o, :o] @ X + C[:, :o].T @ dF @ C[:, o:])
        return np.concatenate([part.reshape(-1) for part in parts])


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
        if np.linalg.norm(residual) < TOLERANCE or len(V) >= min(MAX_VECTORS, size):
            return Mode(float(values[0]), hessian.split(x / np.linalg.norm(x)))
        shift = hessian.diagonal - values[0]
        trial = [residual / np.where(np.abs(shift) > 0.05, shift, 0.05)]


def leave(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """Orbitals (in the orthonormal basis) turned along a mode, and their former energies: where to start again."""
    frame = problem.frame
    turned = []
    for C_jm, X_ov, n_m in zip(frame.coefficients(state.C_spm, S_pq), mode.X_sov, state.n_sm, strict=True):
        o, X_ov = int(np.count_nonzero(n_m)), frame.xp.asarray(STEP * X_ov)
        rotated = rotations.rotate(C_jm[:, :o], C_jm[:, o:], X_ov)
        turned.append(frame.xp.concatenate(rotations.orthonormalise(*rotated, X_ov, STEP, frame.xp), axis=1))
    return frame.xp.stack(turned), state.eps_sm
