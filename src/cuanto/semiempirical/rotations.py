"""Block rotations at the smallest cost in matrix products, for thousands of orbitals.

The equations are those of `cuanto.scf.rotations`: X_ia = F_ia/(e_i - e_a), C_o + C_v X^T and C_v - C_o X, which are
orthogonal to each other exactly, so that only the Gram matrices 1 + X X^T and 1 + X^T X are left to be removed, here by
Cholesky's factors. While F_ov is large, X is refined once: F between the unnormalised rotated blocks is the residual
of the exact decoupling. Once it is small, F is multiplied with the smaller one of the two blocks only; diagonal
elements of the other follow from the rotations to second order, and their mean from the trace of F, for as denominators
they need not be exact. Small rotations need no factors.

While F_ov is large, orbitals may be in single precision, and with them the density and all products of the iteration
(the Fock matrix and the energy are made in double always). The last step of that kind ends with orbitals that are
orthonormal in double; it changes the energy by about SETTLED^2, far from any convergence. Steps after it are double
altogether.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.scf.diagonalise import Full, eigenvectors, within_blocks
from cuanto.scf.orthogonal import Frame

START = 0.2
"""Largest |F_ov| (Hartree) from which rotations may begin."""
CANONICAL = 0.04
"""|F_ov| of the first step above which canonical orbitals pay."""
LARGEST_ROTATION = 0.3
LARGEST_NORM = 20.0
"""Of all rotations together; they are as many as the square of the system's size."""
SMALLEST_GAP = 0.01
WIDE = 0.1
"""Gap (Hartree) from which energies of orbitals need not be exact."""
DISTANT_GAP = 0.1
"""Hartree: what is least taken for the distance of levels where molecules are computed in each other's field."""
POLARISED = 5e-3
"""|F_ov| (Hartree) from which levels of distant molecules must have found their places."""
STALLED = 5
"""Iterations in which |F_ov| must drop by a tenth."""
RISE = 1e-3
"""Hartree by which the energy may rise."""
NOISE = 1e-6
"""The same per orbital of densities in single precision."""
REPAIR = 10
"""Rotations after which rounding errors of the orthonormality are removed."""
SETTLED = 1e-4
"""|F_ov| (Hartree) below which orbital energies hardly change any more; above it single precision is good enough."""
REFINED = 1e-3
"""|F_ov| (Hartree) above which the second order of rotations is worth its products."""
THRIFTY = 300
"""Orbitals from which products are saved at the price of a cycle now and then."""
SLIGHT = 2e-3
"""Norm of rotations whose fourth power does not matter: (1 + X X^T)^(-1/2) = 1 - X X^T/2."""


@dataclass(frozen=True)
class Coupling:
    """Orbitals of one spin, the first `o` of them occupied; F_ov among them, rotations that remove it, energies."""

    C: Any
    F_ov: Any
    X: Any
    eps: Any
    o: int


class BlockRotations:
    """A `Diagonaliser`: rotations where they are safe, else eigenvectors. `mixed`: early orbitals in single precision.

    `canonical`: diagonalise F within both blocks after the first rotation, where F_ov was large. First-order rotations
    take F_oo and F_vv for diagonal, and the orbitals of a guess are far from that: it saves four of fifteen cycles of a
    cluster of 333 waters. All eigenvectors at this point would cost more, and may exchange an occupied orbital for an
    empty one far away, since potentials across a large system are not yet those of its final charges.
    """

    def __init__(
        self,
        place: Frame | Backend,
        level_shift: float = 0.0,
        mixed: bool = False,
        canonical: bool = True,
    ) -> None:
        self.xp, self.to_host, self.linalg = place.xp, place.to_host, place.linalg
        self.level_shift, self.mixed = level_shift, mixed
        self.full, self.canonical = Full(place.xp, level_shift), canonical
        self.full_steps = self.steps = 0
        self.anew = False
        self.restart()

    def restart(self) -> None:
        """Forget what earlier calls have shown; the next one finds orbital energies by itself."""
        self._eps_s: list[Any] = [None, None]
        self._distant, self._gap = False, -np.inf
        self._smallest, self._since, self._energy, self._rotated, self._settled = np.inf, 0, np.inf, 0, False

    def adopt(self, C_sjm: Any) -> Any:
        """Orbitals of molecules far from each other, to begin with.

        Levels of two of them may cross, without any coupling, until they have polarised each other: a rotation that
        goes downhill is all that is asked for meanwhile.
        """
        self._distant = True
        return C_sjm.astype(np.float32) if self._single(C_sjm) else C_sjm

    def first(self, F_sjk: Any) -> tuple[Any, Any]:
        """Orbitals to begin with, and their energies."""
        return eigenvectors(F_sjk.astype(np.float32) if self._single(F_sjk) else F_sjk, self.xp)

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: NDArray[np.float64], energy: float) -> tuple[Any, Any, str]:
        """Rotated orbitals where it is safe, else eigenvectors."""
        rises, self._energy = energy > self._energy + RISE + self.noise(F_sjk), energy
        filled = [int(np.count_nonzero(n_m)) for n_m in n_sm]
        possible = C_sjm is not None and len(C_sjm) == len(n_sm) and not rises
        if possible and all(0 < o < n_sm.shape[1] for o in filled):
            assert C_sjm is not None
            parts, measured = self.couple(F_sjk, C_sjm, filled)
            numbers = self.to_host(measured)
            if self.safe(numbers):
                own = [(part.X, norm) for part, norm in zip(parts, numbers[:, 3].tolist(), strict=True)]
                return (*self.apply(F_sjk, parts, own, float(numbers[:, 0].max())), "block")
        single = self._single(F_sjk)
        given = [array.astype(np.float32) if single and array is not None else array for array in (F_sjk, C_sjm)]
        C_sjm, eps_sm, step = self.full(given[0], given[1], n_sm, energy)
        self.full_steps += 1
        self._smallest, self._since, self._distant = np.inf, 0, False
        return C_sjm, eps_sm, step

    def noise(self, F_sjk: Any) -> float:
        """By which single precision may raise an energy, Hartree."""
        return NOISE * len(F_sjk) * len(F_sjk[0]) if self._single(F_sjk) else 0.0

    def _single(self, F_sjk: Any) -> bool:
        """Single precision is good enough for the next orbitals."""
        return self.mixed and len(F_sjk[0]) >= THRIFTY and not self._settled

    def couple(self, F_sjk: Any, C_sjm: Any, filled: list[int]) -> tuple[list[Coupling], Any]:
        """What F asks for of every spin; and for each, still on the device: largest |F_ov|, smallest gap, largest
        rotation, norm of all."""
        single, parts = self._single(F_sjk), []
        for F, C, eps, o in zip(F_sjk, C_sjm, self._eps_s, filled, strict=False):
            if single:
                F, C = F.astype(np.float32), C.astype(np.float32, copy=False)
            parts.append(Coupling(C, *self.couplings(F, C, eps, o), o))
        numbers = [value for part in parts for value in self._numbers(part)]
        return parts, self.xp.stack(numbers).reshape(-1, 4)

    def apply(
        self, F_sjk: Any, parts: list[Coupling], rotations: list[tuple[Any, float]], largest: float
    ) -> tuple[Any, Any]:
        """Orbitals turned by rotations with their norms, and energies to go on with; `largest`: |F_ov|."""
        turned, energies = [], []
        was_single = parts[0].C.dtype == np.float32
        self.anew = self.canonical and not self.steps and largest > CANONICAL
        for F, part, (X, norm) in zip(F_sjk, parts, rotations, strict=True):
            o, change = part.o, part.F_ov * part.X
            eps = self.xp.concatenate([part.eps[:o] + change.sum(axis=1), part.eps[o:] - change.sum(axis=0)])
            C = (self.turn_slightly if norm < SLIGHT else self.turn)(part.C, X, o)
            if self.anew:
                C, levels = within_blocks(F.astype(C.dtype, copy=False), C, (0, o, C.shape[1]), self.xp)
                eps = self.xp.concatenate(levels)
            turned.append(C)
            energies.append(eps)
        self._eps_s = energies
        self.steps, self._rotated = self.steps + 1, self._rotated + 1
        if (was_single and not self._single(F_sjk)) or self._rotated == REPAIR:
            turned, self._rotated = [newton_schulz(C) for C in turned], 0
        return self.xp.stack(turned), self.xp.stack(energies)

    def couplings(self, F: Any, C: Any, eps: Any, o: int) -> tuple[Any, Any, Any]:
        """F_ov, the rotations, and orbital energies: near convergence those of the smaller block only are exact."""
        xp, v = self.xp, C.shape[1] - o
        wide = self._distant or self._gap > WIDE
        thrifty = self._smallest <= REFINED and wide and len(C) >= THRIFTY
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
        if self._distant:
            gap = xp.minimum(gap, gap.dtype.type(-DISTANT_GAP))
        X = (F_ov / gap).astype(C.dtype, copy=False)
        if not thrifty:
            # F between the rotated blocks is what the first order leaves: the residual of the exact decoupling.
            residual = (C[:, :o] + C[:, o:] @ X.T).T @ (FC[:, o:] - FC[:, :o] @ X)
            X = (X + residual / gap).astype(C.dtype, copy=False)
        return F_ov, X, eps

    def turn(self, C: Any, X: Any, o: int) -> Any:
        """Orthonormal orbitals turned by X."""
        factors, turned = self.linalg.rotation_factors(X), self.xp.empty_like(C)
        self.xp.add(C[:, :o], C[:, o:] @ X.T, out=turned[:, :o])
        self.xp.subtract(C[:, o:], C[:, :o] @ X, out=turned[:, o:])
        for part, factor in zip((turned[:, :o], turned[:, o:]), factors, strict=True):
            factor.divide(part)
        return turned

    def turn_slightly(self, C: Any, X: Any, o: int) -> Any:
        """The same to third order, without factors."""
        empty, occupied = C[:, :o] @ X, C[:, o:] @ X.T
        half = X.dtype.type(0.5)
        return self.xp.concatenate(
            [C[:, :o] + (occupied - half * (empty @ X.T)), C[:, o:] - (empty + half * (occupied @ X))], axis=1
        )

    def _numbers(self, part: Coupling) -> list[Any]:
        F_ov, X, eps, o = part.F_ov, part.X, part.eps, part.o
        norm = self.xp.sqrt(self.xp.vdot(X, X))
        values = [abs(F_ov).max(), eps[o:].min() - eps[:o].max(), abs(X).max(), norm]
        return [value.astype(np.float64) for value in values]

    def safe(self, numbers: NDArray[np.float64]) -> bool:
        """Rotations with these `numbers` may be made; remembers how far |F_ov| has come down."""
        largest_F, gap, angle, norm = numbers[:, 0].max(), numbers[:, 1].min(), numbers[:, 2].max(), numbers[:, 3].max()
        self._since = 0 if largest_F < 0.9 * self._smallest else self._since + 1
        self._smallest = min(self._smallest, largest_F)
        self._settled = self._settled or self._smallest <= SETTLED
        fine = np.isfinite(numbers).all() and largest_F < START and self._since < STALLED
        self._gap = gap
        apart = gap > SMALLEST_GAP or (self._distant and largest_F > POLARISED)
        return bool(fine and apart and angle < LARGEST_ROTATION and norm < LARGEST_NORM)


def newton_schulz(C: Any) -> Any:
    """Nearly orthonormal orbitals of one spin, orthonormal in double: C (1 + E)^(-1/2) with E = C^T C - 1.

    One order more than the name says where they were in single precision: every orbital would keep E^2 of about 1e-11,
    and a thousand of them are seen in the energy. E itself is so small that products with it are good enough in the
    precision that orbitals had.
    """
    kind, C = C.dtype.type, C.astype(np.float64, copy=False)
    E = C.T @ C
    E.reshape(-1)[:: len(E) + 1] -= 1.0
    E = E.astype(kind, copy=False)
    change = kind(0.5) * E
    if kind is np.float32:
        change -= kind(0.375) * (E @ E.T)
    return C - C.astype(kind, copy=False) @ change
