"""Stability of a converged determinant: the lowest curvature of its energy under real rotations of its own orbitals.

R. Seeger and J. A. Pople, J. Chem. Phys. 66, 3045 (1977), doi:10.1063/1.434318. The lowest eigenvector is found by
E. R. Davidson's method, J. Comput. Phys. 17, 87 (1975), doi:10.1016/0021-9991(75)90065-0; the response of the Fock
matrix to a rotation is a difference of two Fock matrices, exact for Hartree-Fock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.loop import Density, Problem, fock
from cuanto.scf.rotations import join_blocks, rotate_spins, split_angles, splits
from cuanto.scf.state import State

UNSTABLE_CURVATURE = -5e-6
"""Hartree: curvatures above this count as zero within their errors, like those of rotations of the whole molecule."""
CLEARLY_UNSTABLE = -1e-4
"""Hartree: a negative curvature that no error explains."""
TOLERANCE = 1e-3
"""Residual of the eigenvector: its direction matters, not its digits."""
TOLERANCE_NEAR_ZERO = 1e-4
"""The same for a curvature near zero, whose error is the residual squared over the distance to the next curvature."""
TOLERANCE_FLAT = 1e-5
"""The same for flat valleys, where a slightly wrong direction would dominate the slope."""
FLAT_CURVATURE = 2e-6
"""Hartree: smaller curvatures are those of rotations of the whole molecule, along which there is nothing to gain."""
MAX_VECTORS = 40
ESCAPE_NORM = 0.3
"""Norm of the rotations by which an unstable state is left."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Lowest curvature (Hartree) and its direction: angles of all splits as one vector, of norm 1.

    `newton`: angles to the lowest energy in the space that was examined, by its slopes and positive curvatures;
    `gain`: how much lower that is (Hartree); `change_spq`: the density's change on the way there, on the backend. In a
    flat valley both are larger than a small gradient suggests.
    """

    curvature: float
    direction: Array
    newton: Array
    gain: float
    change_spq: Any

    @property
    def stable(self) -> bool:
        """No rotation lowers the energy."""
        return self.curvature > UNSTABLE_CURVATURE


def stability_note(curvature: float) -> str:
    """Note for a result about the stability of a state with this lowest curvature (Hartree)."""
    verdict = "stable" if curvature > UNSTABLE_CURVATURE else "NOT a minimum"
    return f"internal stability: {verdict}, lowest curvature {curvature:.4f} Hartree"


class _Hessian:
    """Products of the orbital Hessian with vectors of angles on the host, in units of 2 `capacity`."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        to_host = problem.frame.backend.to_host
        self.C_s = np.broadcast_to(to_host(state.C_spm), (len(state.n_sm), *state.C_spm.shape[1:]))
        self.F_spq = to_host(state.F_spq)
        self.F_mm = [C.T @ F @ C for C, F in zip(self.C_s, self.F_spq, strict=True)]
        self.levels = problem.levels(state.n_sm)
        self.capacity = float(self.levels.max())
        eps_sm = problem.frame.to_host(state.eps_sm)
        gaps = [_differences(n_m) * -_differences(eps_m) for n_m, eps_m in zip(self.levels, eps_sm, strict=False)]
        self.diagonal = join_blocks(gaps, self.levels) / self.capacity

    def slope(self) -> Array:
        """sum_s (n_sp - n_sq) F_pq, zero at a stationary point; `__call__` is its derivative."""
        return self._project(self.F_mm)

    def _project(self, M_smm: Sequence[Array]) -> Array:
        """sum_s (n_sp - n_sq) M_spq between the orbitals of all splits."""
        G_kmm = np.zeros((len(self.levels), *M_smm[0].shape))
        for s, (M_mm, n_m) in enumerate(zip(M_smm, self.state.n_sm, strict=True)):
            G_kmm[min(s, len(G_kmm) - 1)] += _differences(n_m) * M_mm
        return join_blocks(G_kmm, self.levels) / self.capacity

    def _generators(self, x: Array) -> Array:
        """T = -T^T of every spin, whose exponential rotates the orbitals."""
        M, angles = self.C_s.shape[2], iter(split_angles(x, self.levels))
        T_kmm = np.zeros((len(self.levels), M, M))
        for T_mm, n_m in zip(T_kmm, self.levels, strict=True):
            for mid, end in splits(n_m):
                T_mm[:mid, mid:end] -= next(angles)
            T_mm -= T_mm.T
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
        D_spq = self.state.D_spq + self.change(x)
        dF_s = self.problem.frame.backend.to_host(fock(self.problem, Density(D_spq, None))[1]) - self.F_spq
        spins = zip(self.C_s, self._generators(x), self.F_mm, dF_s, strict=True)
        return self._project([F @ T - T @ F + C.T @ dF @ C for C, T, F, dF in spins])


def _differences(x_m: Array) -> Array:
    """x_p - x_q of all pairs."""
    return np.asarray(x_m[:, None] - x_m[None, :])


def lowest_mode(problem: Problem, state: State) -> Mode | None:
    """Find the rotation along which the energy of a converged state has the lowest curvature; None if nothing can be
    rotated."""
    hessian = _Hessian(problem, state)
    size = len(hessian.diagonal)
    if size == 0:
        return None
    rng = np.random.default_rng(0)
    start = np.argsort(hessian.diagonal)[: min(3, size)]
    # Start from a mixture: an unstable direction may differ in symmetry from the smallest gaps.
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
        enough = (
            TOLERANCE
            if abs(values[0]) > TOLERANCE
            else TOLERANCE_NEAR_ZERO
            if abs(values[0]) > -CLEARLY_UNSTABLE
            else TOLERANCE_FLAT
        )
        if np.linalg.norm(residual) < enough or len(V) >= min(MAX_VECTORS, size):
            return _mode(hessian, values, U.T @ V)
        shift = hessian.diagonal - values[0]
        trial = [residual / np.where(np.abs(shift) > 0.05, shift, 0.05)]


def _mode(hessian: _Hessian, values: Array, vectors: Array) -> Mode:
    """The lowest of approximate eigenvectors, and the minimum of the energy, 2 capacity (g x + x H x/2), in them."""
    slopes, steep = vectors @ hessian.slope(), values > FLAT_CURVATURE
    steps = np.where(steep, -slopes / np.where(steep, values, 1.0), 0.0)
    direction, newton = vectors[0] / np.linalg.norm(vectors[0]), steps @ vectors
    gain = -hessian.capacity * float(slopes @ steps)
    return Mode(float(values[0]), direction, newton, gain, hessian.change(newton))


def leave(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """Orbitals (in the orthonormal basis) rotated along a mode, and their former energies: a new start."""
    return _rotate(problem, state, ESCAPE_NORM * mode.direction, S_pq)


def improve(problem: Problem, state: State, mode: Mode, S_pq: Any) -> tuple[Any, Any]:
    """The same for orbitals rotated to the minimum that slopes and curvatures predict."""
    shorter = min(1.0, ESCAPE_NORM / max(float(np.linalg.norm(mode.newton)), 1e-300))
    return _rotate(problem, state, shorter * mode.newton, S_pq)


def _rotate(problem: Problem, state: State, x: Array, S_pq: Any) -> tuple[Any, Any]:
    C_sjm, levels = problem.frame.coefficients(state.C_spm, S_pq), problem.levels(state.n_sm)
    return rotate_spins(C_sjm, levels, split_angles(x, levels), problem.frame.xp), state.eps_sm
