"""Block rotations at the smallest cost in matrix products, for thousands of orbitals.

The equations are those of `cuanto.scf.rotations`: X_ia = F_ia/(e_i - e_a), C_o + C_v X^T and C_v - C_o X, which are
orthogonal to each other exactly, so that only the Gram matrices 1 + X X^T and 1 + X^T X are left to be removed, here by
Cholesky's factors. While F_ov is large, X is refined once: F between the unnormalised rotated blocks is the residual
of the exact decoupling. Once it is small, F is multiplied with the smaller one of the two blocks only; diagonal
elements of the other follow from the rotations to second order, and their mean from the trace of F, for as denominators
they need not be exact. While F_ov is large the products may be made in single precision; orthonormality is then
restored in double. Small rotations need no factors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.scf.diagonalise import Full

START = 0.2
"""Largest |F_ov| (Hartree) from which rotations may begin."""
FIRST = 0.04
"""The same for the first step, where canonical orbitals are wanted."""
LARGEST_ROTATION = 0.3
LARGEST_NORM = 20.0
"""Of all rotations together; they are as many as the square of the system's size."""
SMALLEST_GAP = 0.01
STALLED = 5
"""Iterations in which |F_ov| must drop by a tenth."""
RISE = 1e-3
"""Hartree by which the energy may rise."""
REPAIR = 10
"""Rotations after which rounding errors of the orthonormality are removed."""
SETTLED = 1e-4
"""|F_ov| below which orbital energies hardly change any more."""
THRIFTY = 300
"""Orbitals from which products are saved at the price of a cycle now and then."""
SINGLE = 1e-3
"""|F_ov| above which single precision is good enough."""
SLIGHT = 2e-3
"""Norm of rotations whose fourth power does not matter: (1 + X X^T)^(-1/2) = 1 - X X^T/2."""
SINGLE_ROTATION = 1e-4
"""Largest rotation that may be applied in single precision: it is right to 1e-11 then."""


class BlockRotations:
    """A `Diagonaliser`: rotations where they are safe, else eigenvectors. `mixed`: early products in single precision.

    `solve_triangular(L, B)`: of a lower triangle, where there is such a thing. `canonical`: begin with eigenvectors
    where the first F_ov is large. Orbitals that are nearly canonical save a cycle then, which pays where a
    diagonalisation costs a few matrix products (a CPU), and not where it costs dozens (a GPU).
    """

    def __init__(
        self,
        xp: Any,
        to_host: Callable[[Any], NDArray[np.float64]] = np.asarray,
        level_shift: float = 0.0,
        mixed: bool = False,
        solve_triangular: Callable[[Any, Any], Any] | None = None,
        canonical: bool = False,
    ) -> None:
        self.xp, self.to_host, self.level_shift, self.mixed = xp, to_host, level_shift, mixed
        self.solve = solve_triangular or xp.linalg.solve
        self.full, self.canonical = Full(xp, level_shift), canonical
        self.full_steps = self.steps = 0
        self.restart()

    def restart(self) -> None:
        """Forget what earlier calls have shown; the next one finds orbital energies by itself."""
        self._eps_s: list[Any] = [None, None]
        self._smallest, self._since, self._energy, self._rotated, self._rough = np.inf, 0, np.inf, 0, False

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Rotated orbitals where it is safe, else eigenvectors."""
        rises, self._energy = energy > self._energy + RISE, energy
        filled = [int(np.count_nonzero(n_m)) for n_m in n_sm]
        possible = C_sjm is not None and len(C_sjm) == len(n_sm) and not rises
        if possible and all(0 < o < n_sm.shape[1] for o in filled):
            assert C_sjm is not None
            rotated = self._rotate(F_sjk, C_sjm, filled)
            if rotated is not None:
                self.steps += 1
                return (*rotated, "block")
        C_sjm, eps_sm, step = self.full(F_sjk, C_sjm, n_sm, energy)
        self.full_steps += 1
        self._smallest, self._since, self._rough = np.inf, 0, False
        return C_sjm, eps_sm, step

    def _rotate(self, F_sjk: Any, C_sjm: Any, filled: list[int]) -> tuple[Any, Any] | None:
        single = self.mixed and len(F_sjk[0]) >= THRIFTY and self._smallest > SINGLE
        if self._rough and not single:
            C_sjm = newton_schulz(C_sjm)
        parts = []
        for F, C, eps, o in zip(F_sjk, C_sjm, self._eps_s, filled, strict=False):
            if single:
                F, C = F.astype(np.float32), C.astype(np.float32)
            parts.append((C, *self.couplings(F, C, eps, o), o))
        numbers = self.to_host(self.xp.stack([value for part in parts for value in self._numbers(part)])).reshape(-1, 4)
        if not self._safe(numbers):
            return None
        turned, energies = [], []
        for (C, F_ov, X, eps, o), norm in zip(parts, numbers[:, 3].tolist(), strict=True):
            change = F_ov * X
            eps = self.xp.concatenate([eps[:o] + change.sum(axis=1), eps[o:] - change.sum(axis=0)])
            turned.append((self.turn_slightly if norm < SLIGHT else self.turn)(C, X, o).astype(np.float64))
            energies.append(eps)
        self._eps_s, self._rough = energies, single
        self._rotated += 1
        C_sjm = self.xp.stack(turned)
        if self._rotated % REPAIR == 0 and not single:
            C_sjm = newton_schulz(C_sjm)
        return C_sjm, self.xp.stack(energies)

    def couplings(self, F: Any, C: Any, eps: Any, o: int) -> tuple[Any, Any, Any]:
        """F_ov, the rotations, and orbital energies: near convergence those of the smaller block only are exact."""
        xp, v = self.xp, C.shape[1] - o
        thrifty = self._smallest <= SETTLED and len(C) >= THRIFTY
        if not thrifty:
            FC = F @ C
            F_ov, eps = C[:, :o].T @ FC[:, o:], (C * FC).sum(axis=0)
        elif v <= o:
            FC = F @ C[:, o:]
            F_ov, exact = C[:, :o].T @ FC, (C[:, o:] * FC).sum(axis=0)
            others = eps[:o] + (F.trace() - exact.sum() - eps[:o].sum()) / o
            eps = xp.concatenate([others, exact])
        else:
            FC = F @ C[:, :o]
            F_ov, exact = FC.T @ C[:, o:], (C[:, :o] * FC).sum(axis=0)
            others = eps[o:] + (F.trace() - exact.sum() - eps[o:].sum()) / v
            eps = xp.concatenate([exact, others])
        gap = eps[:o, None] - eps[None, o:] - self.level_shift
        X = (F_ov / gap).astype(C.dtype)
        if not thrifty:
            # F between the rotated blocks is what the first order leaves: the residual of the exact decoupling.
            occupied, empty = C[:, :o] + C[:, o:] @ X.T, C[:, o:] - C[:, :o] @ X
            residual = occupied.T @ (F @ empty) if v <= o else (F @ occupied).T @ empty
            X = (X + residual / gap).astype(C.dtype)
        return F_ov, X, eps

    def turn(self, C: Any, X: Any, o: int) -> Any:
        """Orthonormal orbitals turned by X."""
        occupied, empty = C[:, :o] + C[:, o:] @ X.T, C[:, o:] - C[:, :o] @ X
        parts = []
        for part, gram in ((occupied, X @ X.T), (empty, X.T @ X)):
            gram.reshape(-1)[:: len(gram) + 1] += 1.0
            parts.append(self.solve(self.xp.linalg.cholesky(gram), part.T).T)
        return self.xp.concatenate(parts, axis=1)

    def turn_slightly(self, C: Any, X: Any, o: int) -> Any:
        """The same to third order, without factors; what is added is so small that single precision will do."""
        c, x = C, X
        if self.mixed and len(C) >= THRIFTY and float(abs(X).max()) < SINGLE_ROTATION:
            c, x = C.astype(np.float32), X.astype(np.float32)
        empty, occupied = c[:, :o] @ x, c[:, o:] @ x.T
        half = x.dtype.type(0.5)
        return self.xp.concatenate(
            [C[:, :o] + (occupied - half * (empty @ x.T)), C[:, o:] - (empty + half * (occupied @ x))], axis=1
        )

    def _numbers(self, part: tuple[Any, ...]) -> list[Any]:
        """Largest |F_ov|, smallest gap, largest rotation, norm of all."""
        _, F_ov, X, eps, o = part
        values = [abs(F_ov).max(), eps[o:].min() - eps[:o].max(), abs(X).max(), self.xp.sqrt((X * X).sum())]
        return [value.astype(np.float64) for value in values]

    def _safe(self, numbers: NDArray[np.float64]) -> bool:
        largest_F, gap, angle, norm = numbers[:, 0].max(), numbers[:, 1].min(), numbers[:, 2].max(), numbers[:, 3].max()
        self._since = 0 if largest_F < 0.9 * self._smallest else self._since + 1
        self._smallest = min(self._smallest, largest_F)
        start = FIRST if self.canonical and self.full_steps + self.steps == 0 else START
        fine = np.isfinite(numbers).all() and largest_F < start and self._since < STALLED
        return bool(fine and gap > SMALLEST_GAP and angle < LARGEST_ROTATION and norm < LARGEST_NORM)


def newton_schulz(C_sjm: Any) -> Any:
    """Nearly orthonormal orbitals, orthonormal."""
    return 1.5 * C_sjm - 0.5 * C_sjm @ (C_sjm.transpose(0, 2, 1) @ C_sjm)


def triangular(xp: Any) -> Callable[[Any, Any], Any]:
    """L^-1 B of a lower triangle.

    On the CPU by NumPy's general solver: SciPy brings a BLAS with threads of its own, and those of the two get in each
    other's way for longer than the better routine saves.
    """
    if xp is np:
        general: Callable[[Any, Any], Any] = np.linalg.solve
        return general
    solve: Callable[..., Any] = import_module(f"{xp.__name__}x.scipy.linalg").solve_triangular
    return partial(solve, lower=True, check_finite=False)
