"""Next orbitals by rotating the ones at hand, with full diagonalisation where that is not safe.

The density depends on the space of the occupied orbitals only, so it is enough to remove F_ov (see `rotations`). Full
diagonalisation comes first (unless the orbitals at hand are eigenvectors already, as of a guess), whenever rotations
would be large or levels cross, and when F_ov does not shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.scf import rotations
from cuanto.scf.diagonalise import Full

START = {"refined": 0.2, "block": 0.2, "two-kernel": 0.01, "jacobi": 0.01}
"""Largest |F_ov| (Hartree) from which a variant may begin; those with energies frozen since the last full
diagonalisation must begin late."""
LARGEST_ROTATION = 0.3
LARGEST_NORM = 2.0
SMALLEST_GAP = 0.01
STALLED = 5
"""Iterations in which |F_ov| must drop by a tenth."""
RISE = 1e-3
"""Hartree by which the energy may rise."""
REPAIR = 10
"""Rotations after which rounding errors of the orthonormality are removed."""


class Pseudo:
    """Rotations, falling back to `Full`; occupied orbitals stand first, in restricted open shells closed ones."""

    def __init__(
        self,
        xp: Any,
        to_host: Callable[[Any], NDArray[np.float64]] = np.asarray,
        variant: str = "refined",
        level_shift: float = 0.0,
    ) -> None:
        self.xp, self.to_host, self.variant, self.level_shift = xp, to_host, variant, level_shift
        self.full = Full(xp, level_shift)
        self.full_steps = 0
        self.restart()

    def restart(self) -> None:
        """The next call diagonalises fully."""
        self._frozen: Any = None
        self._rotations, self._smallest, self._since, self._energy = 0, np.inf, 0, np.inf

    def begin(self, eps_sm: Any) -> None:
        """The orbitals of the next call are eigenvectors with these energies, of a matrix that may be near to its."""
        self._frozen = eps_sm

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Rotated orbitals where it is safe, else eigenvectors."""
        rises, self._energy = energy > self._energy + RISE, energy
        if C_sjm is not None and self._frozen is not None and not rises:
            # Spins that share their orbitals: closed, open and empty ones.
            levels = n_sm if len(n_sm) == len(C_sjm) else n_sm.sum(axis=0, keepdims=True)
            rotated = self._rotate(F_sjk, C_sjm, levels)
            if rotated is not None:
                return (*rotated, "pseudo")
        C_sjm, eps_sm, step = self.full(F_sjk, C_sjm, n_sm, energy)
        self.full_steps += 1
        self._frozen, self._rotations, self._smallest, self._since = eps_sm, 0, np.inf, 0
        return C_sjm, eps_sm, step

    def _rotate(self, F_sjk: Any, C_sjm: Any, levels: NDArray[np.float64]) -> tuple[Any, Any] | None:
        """Rotated orbitals and their energies, or None when that is not safe. One read of the device for each split."""
        splits_s = [rotations.splits(n_m) for n_m in levels]
        if min(len(splits) for splits in splits_s) == 0:
            return None
        eps_sm, largest = None, 0.0
        for splits in zip(*splits_s, strict=True):
            blocks = [
                _Block(F_jk, C_jm, split, n_m, frozen_m, self)
                for F_jk, C_jm, split, n_m, frozen_m in zip(F_sjk, C_sjm, splits, levels, self._frozen, strict=True)
            ]
            values = self.xp.stack([value for block in blocks for value in block.numbers(self.xp)])
            numbers = self.to_host(values).reshape(-1, 4)
            if not self._safe(numbers):
                return None
            largest = max(largest, float(numbers[:, 0].max()))
            apply = self._jacobi if self.variant == "jacobi" else self._at_once
            C_sjm = self.xp.stack(
                [apply(b, C_jm, norm) for b, C_jm, norm in zip(blocks, C_sjm, numbers[:, 3], strict=True)]
            )
            eps_sm = self.xp.stack([block.eps_m for block in blocks]) if eps_sm is None else eps_sm
        if not self._shrinks(largest):
            return None
        self._rotations += 1
        if self._rotations % REPAIR == 0:  # a Newton-Schulz step, at the cost of two products
            C_sjm = 1.5 * C_sjm - 0.5 * C_sjm @ (C_sjm.transpose(0, 2, 1) @ C_sjm)
        return C_sjm, eps_sm

    def _at_once(self, block: _Block, C_jm: Any, norm: float) -> Any:
        return rotations.turn(C_jm, [(block.split, block.X_ov, float(norm))], self.xp)

    def _jacobi(self, block: _Block, C_jm: Any, norm: float) -> Any:
        C_jm, F_ov, frozen_m = (self.to_host(array) for array in (C_jm, block.F_ov, block.frozen_m))
        mid, end = block.split
        rotated = rotations.jacobi(C_jm[:, :mid], C_jm[:, mid:end], F_ov, frozen_m[:mid], frozen_m[mid:end])
        return self.xp.asarray(np.concatenate([*rotated, C_jm[:, end:]], axis=1))

    def _safe(self, numbers: NDArray[np.float64]) -> bool:
        """By the largest |F_ov|, the smallest gap, the largest angle and the norm of the angles, of each spin."""
        largest_F, gap, angle, norm = numbers[:, 0].max(), numbers[:, 1].min(), numbers[:, 2].max(), numbers[:, 3].max()
        fine = np.isfinite(numbers).all() and largest_F < START[self.variant]
        return bool(fine and gap > SMALLEST_GAP and angle < LARGEST_ROTATION and norm < LARGEST_NORM)

    def _shrinks(self, largest_F: float) -> bool:
        """|F_ov| is on its way to zero."""
        self._since = 0 if largest_F < 0.9 * self._smallest else self._since + 1
        self._smallest = min(self._smallest, largest_F)
        return self._since < STALLED


class _Block:
    """F of one set of orbitals in their basis, and the angles of a variant, for one split."""

    def __init__(
        self, F_jk: Any, C_jm: Any, split: rotations.Split, n_m: NDArray[np.float64], frozen_m: Any, of: Pseudo
    ) -> None:
        mid, end = self.split = split
        F_mm = C_jm[:, :end].T @ F_jk @ C_jm[:, :end]
        self.frozen_m, self.eps_m, self.F_ov = frozen_m, F_mm.diagonal(), F_mm[:mid, mid:]
        energies = self.eps_m if of.variant in ("refined", "block") else frozen_m
        self.gap_ov = energies[:mid, None] - energies[None, mid:end]
        if of.level_shift:
            share = (n_m[:mid, None] - n_m[None, mid:end]) / n_m.max()
            self.gap_ov = self.gap_ov - of.level_shift * of.xp.asarray(share)
        if of.variant == "refined":
            self.X_ov = rotations.refined_angles(self.F_ov, F_mm[:mid, :mid], F_mm[mid:, mid:], self.gap_ov)
        else:
            self.X_ov = rotations.angles(self.F_ov, self.gap_ov)

    def numbers(self, xp: Any) -> list[Any]:
        """Largest |F_ov|, smallest gap, largest angle, norm of the angles."""
        return [abs(self.F_ov).max(), -self.gap_ov.max(), abs(self.X_ov).max(), xp.sqrt((self.X_ov**2).sum())]
