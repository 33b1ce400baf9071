"""Pseudodiagonalisation: next orbitals by rotating the current ones, or by full diagonalisation if that is not safe.

The density depends only on the space of the occupied orbitals, so it is enough to remove F_ov (see `rotations`). F is
diagonalised fully at the start (unless the orbitals are eigenvectors already, as those of a guess, or the variant
starts from any orbitals), and later if rotations would be large, if levels cross, or if F_ov does not shrink.

The variant `economical` is for hundreds to thousands of orbitals. While F_ov is large, angles are refined once. Once it
is small, F is multiplied with the smaller of the two blocks only; diagonal elements of the other follow from the
rotations to second order, and their mean from the trace of F: they are only denominators and need not be exact. Small
rotations need no Cholesky factors. While F_ov is large, orbitals may be in single precision, and with them the density
and all products of the iteration (Fock matrix and energy are always in double). The last step in single precision makes
the orbitals orthonormal in double; it changes the energy by about SETTLED_COUPLING^2, far from convergence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf import rotations
from cuanto.scf.diagonalise import Full, diagonalise_blocks, eigenvectors, stack
from cuanto.scf.orthogonal import Device
from cuanto.scf.rotations import Limits, Split

STALL_ITERATIONS = 5
"""Iterations within which |F_ov| must drop by a tenth."""
MAX_RISE = 1e-3
"""Hartree by which the energy may rise."""
RISE_PER_ORBITAL = 1e-6
"""The same per orbital for densities in single precision."""
ORTHONORMALISE_EVERY = 10
"""Rotations after which orbitals are orthonormalised again."""
MANY_ORBITALS = 300
"""Number of orbitals above which saving matrix products is worth an occasional extra iteration."""
CANONICAL = 0.04
"""|F_ov| of the first step above which canonicalisation is worthwhile."""
WIDE_GAP = 0.1
"""Hartree: gap above which orbital energies need not be exact."""
DISTANT_GAP = 0.1
"""Hartree: lower bound on gaps between levels of distant molecules."""
ORDERED_COUPLING = 5e-3
"""|F_ov| (Hartree) below which levels of distant molecules must be in their final order."""
SETTLED_COUPLING = 1e-4
"""|F_ov| (Hartree) below which orbital energies hardly change; above it single precision is sufficient."""
REFINED_COUPLING = 1e-3
"""|F_ov| (Hartree) above which the second order of rotations is worth its products."""


@dataclass(frozen=True)
class Variant:
    """A way to rotate: name of its steps, limits, refinements (`sweeps`) of the angles.

    `frozen`: uses orbital energies of the last full diagonalisation, and therefore starts late. `one_by_one`: rotates
    pair after pair. `economical`: needs the fewest operations.
    """

    name: str
    limits: Limits
    sweeps: int = 0
    frozen: bool = False
    one_by_one: bool = False
    economical: bool = False


VARIANTS = {
    "refined": Variant("pseudo", Limits(), sweeps=2),
    "block": Variant("pseudo", Limits()),
    "two-kernel": Variant("pseudo", Limits(coupling=0.01), frozen=True),
    "jacobi": Variant("pseudo", Limits(coupling=0.01), frozen=True, one_by_one=True),
    "economical": Variant("block", Limits(norm=20.0), sweeps=1, economical=True),
}
"""`economical` is for large systems, which have more angles, and therefore has a larger limit on their norm."""


@dataclass(frozen=True)
class Coupling:
    """Orbitals of one spin, F_ov of a split, angles that remove it, and energies of the orbitals up to its end.

    `numbers` of `rotations.measure`, still on the device.
    """

    C: Any
    split: Split
    F_ov: Any
    X: Any
    eps: Any
    numbers: Any


class Pseudo:
    """A `Diagonaliser` by rotations with `Full` as fallback; occupied orbitals come first, in restricted open shells
    closed ones. `mixed`: early orbitals of the economical variant in single precision.

    The economical variant diagonalises F within both blocks after its first rotation if F_ov was large. First-order
    rotations assume that F_oo and F_vv are diagonal, which orbitals of a guess are far from: this saves four of fifteen
    iterations for a cluster of 333 waters. A full diagonalisation would cost more, and might exchange an occupied
    orbital with a distant empty one, because potentials across a large system are not yet converged.
    """

    def __init__(self, device: Device, variant: str = "refined", level_shift: float = 0.0, mixed: bool = False) -> None:
        self.device, self.xp, self.product = device, device.xp, device.linalg.product
        self.level_shift, self.mixed = level_shift, mixed
        self.variant, self.full = VARIANTS[variant], Full(device, level_shift)
        self.full_steps = self.steps = 0
        self.canonicalised = False
        self.restart()

    def restart(self) -> None:
        """Forget earlier calls; the next one diagonalises fully or determines orbital energies itself."""
        self._eps_s: Any = None
        self._distant, self._gap, self._settled = False, -np.inf, False
        self._smallest, self._since, self._energy, self._rotated = np.inf, 0, np.inf, 0

    def begin(self, C_sjm: Any, eps_sm: Any, distant: bool = False) -> tuple[Any, Any]:
        """Start from orbitals and energies: eigenvectors of a matrix close to that of the next call.

        `distant`: orbitals of molecules far from each other. Levels of two such molecules may cross, without any
        coupling, until they have polarised each other: until then rotations only need to lower the energy.
        """
        self._eps_s, self._distant = eps_sm, distant
        return C_sjm.astype(np.float32) if self._single(C_sjm) else C_sjm, eps_sm

    def first(self, F_sjk: Any) -> tuple[Any, Any]:
        """Start from the eigenvectors of F."""
        return self.begin(*eigenvectors(F_sjk.astype(np.float32) if self._single(F_sjk) else F_sjk, self.device))

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: Array, energy: float) -> tuple[Any, Any, str]:
        """Rotated orbitals if that is safe, else eigenvectors."""
        rises, self._energy = energy > self._energy + MAX_RISE + self.noise(F_sjk), energy
        if C_sjm is not None and (self.variant.economical or self._eps_s is not None) and not rises:
            # Spins that share orbitals: closed, open and empty ones.
            n_km = n_sm if len(n_sm) == len(C_sjm) else n_sm.sum(axis=0, keepdims=True)
            rotated = self._rotate(F_sjk, C_sjm, n_km)
            if rotated is not None:
                return (*rotated, self.variant.name)
        if self._single(F_sjk):
            F_sjk, C_sjm = (array if array is None else array.astype(np.float32) for array in (F_sjk, C_sjm))
        C_sjm, eps_sm, step = self.full(F_sjk, C_sjm, n_sm, energy)
        self.full_steps += 1
        self._smallest, self._since, self._distant, self._eps_s = np.inf, 0, False, eps_sm
        return C_sjm, eps_sm, step

    def noise(self, F_sjk: Any) -> float:
        """Hartree by which single precision may raise an energy."""
        return RISE_PER_ORBITAL * len(F_sjk) * len(F_sjk[0]) if self._single(F_sjk) else 0.0

    def _single(self, F_sjk: Any) -> bool:
        """Whether single precision is sufficient for the next orbitals."""
        return self.mixed and len(F_sjk[0]) >= MANY_ORBITALS and not self._settled

    def _rotate(self, F_sjk: Any, C_sjm: Any, n_km: Array) -> tuple[Any, Any] | None:
        """Rotated orbitals and their energies, None if that is not safe; one device read per split."""
        eps_sm = None
        for splits in zip(*(rotations.splits(n_m) for n_m in n_km), strict=False):  # empty if nothing can be rotated
            parts, measured = self.couple(F_sjk, C_sjm, n_km, splits)
            numbers = self.device.to_host(measured)
            # In restricted open shells, rotations between occupied and empty orbitals come first, and must shrink.
            if not (self.safe(numbers) if eps_sm is None else self.variant.limits.allow(numbers).all()):
                return None
            own = [(part.X, norm) for part, norm in zip(parts, numbers[:, 3].tolist(), strict=True)]
            C_sjm, energies = self.apply(F_sjk, parts, own, float(numbers[:, 0].max()))
            eps_sm = energies if eps_sm is None else eps_sm
        return None if eps_sm is None else (C_sjm, eps_sm)

    def couple(self, F_sjk: Any, C_sjm: Any, n_km: Array, splits: tuple[Split, ...]) -> tuple[list[Coupling], Any]:
        """Couplings of every spin, and their numbers [s, 4], still on the device."""
        single, parts = self._single(F_sjk), []
        known = [None] * len(C_sjm) if self._eps_s is None else self._eps_s
        for F, C, eps, n_m, split in zip(F_sjk, C_sjm, known, n_km, splits, strict=True):
            if single:
                F, C = F.astype(np.float32), C.astype(np.float32, copy=False)
            parts.append(self._coupling(F, C, eps, n_m, split))
        return parts, self.xp.stack([part.numbers for part in parts])

    def _coupling(self, F: Any, C: Any, known: Any, n_m: Array, split: Split) -> Coupling:
        mid, end = split
        front = C[:, :end]
        wide = self._distant or self._gap > WIDE_GAP
        one_block = self.variant.economical and self._smallest <= REFINED_COUPLING and wide and len(C) >= MANY_ORBITALS
        if one_block:
            F_ov, eps = self._smaller_block(F, C, known, mid)
        else:
            FC, F_ov, eps = rotations.couple(F, front, mid, self.product)
        used = known[:end] if self.variant.frozen else eps
        if self.level_shift:
            empty_m = 1.0 - n_m[:end] / n_m.max()
            used = used + self.xp.asarray(self.level_shift * empty_m).astype(used.dtype, copy=False)
        gap = rotations.gaps(used, mid)
        if self._distant:
            gap = self.xp.minimum(gap, gap.dtype.type(-DISTANT_GAP))
        X = (F_ov / gap).astype(C.dtype, copy=False)
        if self.variant.sweeps and not one_block:
            X = rotations.refine(X, front, FC, gap, self.variant.sweeps, self.product)
        return Coupling(C, split, F_ov, X, eps, rotations.measure(F_ov, used, X, self.xp))

    def _smaller_block(self, F: Any, C: Any, eps: Any, o: int) -> tuple[Any, Any]:
        """F_ov and orbital energies from the product of F with the smaller block, whose energies alone are exact."""
        virtual = C.shape[1] - o <= o
        block, others = (C[:, o:], eps[:o]) if virtual else (C[:, :o], eps[o:])
        FC = self.product(F, block)
        exact = (block * FC).sum(axis=0)
        others = others + (1.0 / len(others)) * (F.trace() - exact.sum() - others.sum())
        if virtual:
            return self.product(C[:, :o].T, FC), self.xp.concatenate([others, exact])
        return self.product(FC.T, C[:, o:]), self.xp.concatenate([exact, others])

    def apply(
        self, F_sjk: Any, parts: list[Coupling], angles: list[tuple[Any, float]], largest: float
    ) -> tuple[Any, Any]:
        """Orbitals rotated by angles with their norms, and energies to continue with; `largest`: |F_ov|.

        `canonicalised`: blocks were diagonalised, so that elements between earlier orbitals are no longer valid.
        """
        rotated, energies = [], []
        was_single = parts[0].C.dtype == np.float32
        self.canonicalised = self.variant.economical and not self.steps and largest > CANONICAL
        for s, (F, part, (X, norm)) in enumerate(zip(F_sjk, parts, angles, strict=True)):
            (mid, end), change = part.split, part.F_ov * part.X
            eps = self.xp.concatenate([part.eps[:mid] + change.sum(axis=1), part.eps[mid:] - change.sum(axis=0)])
            C = self._rotated_by(part, X, norm, s)
            if self.canonicalised:
                C, levels = diagonalise_blocks(F.astype(C.dtype, copy=False), C, (0, mid, end), self.device)
                eps = self.xp.concatenate(levels)
            rotated.append(C)
            energies.append(eps)
        if self.variant.economical:
            self._eps_s = energies
        self.steps, self._rotated = self.steps + 1, self._rotated + 1
        if (was_single and not self._single(F_sjk)) or self._rotated == ORTHONORMALISE_EVERY:
            rotated, self._rotated = [rotations.make_orthonormal(C, self.product) for C in rotated], 0
        return stack(rotated, self.xp), self.xp.stack(energies)

    def _rotated_by(self, part: Coupling, X: Any, norm: float, s: int) -> Any:
        """Rotated orthonormal orbitals of one spin."""
        end = part.split[1]
        C = part.C[:, :end]
        if self.variant.one_by_one:
            front = self.xp.asarray(rotations.jacobi(*(self.device.to_host(a) for a in (C, part.F_ov, self._eps_s[s]))))
        elif norm < (rotations.SMALL_NORM if self.variant.economical else rotations.TINY_NORM):
            front = rotations.rotate_slightly(C, X, self.xp, self.product)
        elif self.variant.economical:
            front = rotations.rotate_by_factors(C, X, self.xp, self.device.linalg)
        else:
            front = rotations.rotate_nearest(C, X, norm, self.xp, self.device.linalg)
        return front if end == part.C.shape[1] else self.xp.concatenate([front, part.C[:, end:]], axis=1)

    def safe(self, numbers: Array) -> bool:
        """Whether rotations with these `numbers` are safe; keeps track of the smallest |F_ov|."""
        largest = float(numbers[:, 0].max())
        self._since = 0 if largest < 0.9 * self._smallest else self._since + 1
        self._smallest = min(self._smallest, largest)
        self._settled = self._settled or self._smallest <= SETTLED_COUPLING
        self._gap = float(numbers[:, 1].min())
        uncoupled = self._distant and largest > ORDERED_COUPLING
        limits = replace(self.variant.limits, gap=-np.inf) if uncoupled else self.variant.limits
        return bool(limits.allow(numbers).all()) and self._since < STALL_ITERATIONS
