"""SCF steps that only rotate orbitals, for thousands of orbitals.

All arrays but the density and the Fock matrix are occupied-virtual (o x v) blocks.

The commutator of Fock and density matrix is F_ov, which rotations need anyway. Elements between rotating orbitals stay
comparable from one iteration to the next (to second order in the rotations, which transport tangent vectors;
A. Edelman, T. A. Arias and S. T. Smith, SIAM J. Matrix Anal. Appl. 20, 303 (1998),
doi:10.1137/S0895479895290954), so that DIIS can combine rotations instead of Fock matrices, as it does with geometries
(P. Csaszar and P. Pulay, J. Mol. Struct. 114, 31 (1984), doi:10.1016/S0022-2860(84)87198-7):

    X = sum_n c_n (x_n + X_n) - x,   with the c_n that make sum_n c_n F_ov,n smallest,

where x_n are the rotations that led to iteration n and X_n those that it proposed. Every iteration saves a matrix
product and half the cost of the others. Where rotations are not safe, the step of other SCFs (`scf.loop`) takes over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.linalg import add_to_diagonal
from cuanto.options import ScfOptions
from cuanto.scf import rotations
from cuanto.scf.diagonalise import stack
from cuanto.scf.diis import History, flatten, unflatten
from cuanto.scf.loop import Density, Evaluation, Point, Problem, canonical
from cuanto.scf.orthogonal import Device
from cuanto.scf.pseudodiagonalise import MANY_ORBITALS, MAX_RISE, Coupling, Pseudo
from cuanto.scf.rotations import Limits
from cuanto.scf.state import State
from cuanto.semiempirical.terms import DipoleMoment

Angles = list[tuple[Any, float]]
"""Angles of every spin, with their norms."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What an iteration keeps for the next: couplings, the `numbers` that tell whether rotations are safe, and the
    dipole moment of the electrons."""

    parts: list[Coupling]
    numbers: Array
    moment: Array


class RotationStep:
    """A `Step` that rotates orbitals by angles extrapolated by DIIS with `history` entries."""

    def __init__(self, problem: Problem, pseudo: Pseudo, moment: DipoleMoment, history: int) -> None:
        self.problem, self.pseudo, self.moment = problem, pseudo, moment
        frame = problem.frame
        self.angles = AngleHistory(History(history, frame, frame.free), frame, pseudo.variant.limits)

    def density(self, C_sjm: Any, n_sm: Array) -> tuple[Any, Density]:
        """The orbitals, unchanged, and their density from the smaller of the occupied and virtual blocks."""
        filled = np.count_nonzero(n_sm, axis=1).tolist()
        return C_sjm, Density(projectors(C_sjm, filled, float(n_sm.max()), self.problem.frame), None)

    def measure(
        self, C_sjm: Any, n_sm: Array, density: Density, F_spq: Any, scalars: list[Any]
    ) -> tuple[float, list[Any], Kept]:
        """The norm of FD - DF from F_ov, the `scalars` on the host, and what the next iteration needs."""
        problem = self.problem
        with problem.timings.measure("diagonalisation"), problem.frame.blas_threads:
            splits = tuple(rotations.splits(n_m)[0] for n_m in n_sm)
            parts, numbers = self.pseudo.couple(F_spq, C_sjm, n_sm, splits)
            moment = self.moment.at(density.D_spq)
        with problem.timings.measure("extrapolation"), problem.frame.blas_threads:
            wanted = [numbers, moment, self.angles.push(parts), *scalars]
            numbers, moment, products, *read = problem.frame.backend.download(wanted)
        gradient = float(n_sm.max()) * np.sqrt(2.0) * float(self.angles.history.absorb(products))
        return gradient, read, Kept(parts, numbers, moment)

    def propose(self, current: Evaluation) -> Angles:
        """Extrapolated angles."""
        with self.problem.timings.measure("diagonalisation"), self.problem.frame.blas_threads:
            return self.angles.next(current.kept.parts)

    def changes(self, current: Evaluation, previous: Evaluation) -> tuple[float, float]:
        """Changes of the dipole moment: by the rotations, to first order, and by the last step."""
        halves = []
        for part, (X, _), n_m in zip(current.kept.parts, current.proposal, current.state.n_sm, strict=True):
            mid = part.split[0]
            occupied = self.problem.frame.linalg.product(part.C[:, :mid], float(n_m.max()) * X)
            halves.append((occupied, part.C[:, mid:]))
        return self.moment.of_change(halves), float(np.abs(current.kept.moment - previous.kept.moment).max())

    def finish(self, current: Evaluation) -> State:
        """Canonical orbitals, converged if they are valid."""
        state = current.state
        with self.problem.timings.measure("diagonalisation"), self.problem.frame.blas_threads:
            C_sjm, eps_sm, *tests = canonical(self.problem, state.F_spq, state.C_spm, state.n_sm, state.D_spq)
        return replace(state, converged=all(tests), C_spm=C_sjm, eps_sm=eps_sm)

    def follow(self, current: Evaluation) -> Point | None:
        """Rotated orbitals, None if that is not safe."""
        pseudo, F_spq, numbers = self.pseudo, current.state.F_spq, current.kept.numbers
        if (
            current.stationary
            or not pseudo.safe(numbers)
            or current.state.energy_change > MAX_RISE + pseudo.noise(F_spq)
        ):
            return None
        with self.problem.timings.measure("diagonalisation"), self.problem.frame.blas_threads:
            C_sjm, eps_sm = pseudo.apply(F_spq, current.kept.parts, current.proposal, float(numbers[:, 0].max()))
        if pseudo.canonicalised:
            self.angles.history.clear()
        return C_sjm, eps_sm, f"{self.angles.method}, {pseudo.variant.name}"


class AngleHistory:
    """Rotations so far, all spins in one row, and their DIIS extrapolation.

    `method`: how the last angles were obtained, `plain` or `diis`.
    """

    def __init__(self, history: History, device: Device, limits: Limits) -> None:
        self.history, self.device, self.xp, self.limits = history, device, device.xp, limits
        self._position: Any = 0.0
        self.method = ""

    def push(self, parts: list[Coupling]) -> Any:
        """Add an entry; returns the products for the history to absorb, still on the device."""
        return self.history.push(self._position + self._row(part.X for part in parts), self._row(p.F_ov for p in parts))

    def next(self, parts: list[Coupling]) -> Angles:
        """Angles of every spin with their norms: from DIIS, or from the couplings if those of DIIS are too large."""
        own, self.method = [part.X for part in parts], "plain"
        if len(self.history) > 1:
            row = self.history.extrapolate() - self._position
            mixed = unflatten(row, own)
            measured = self._measure(mixed)
            if (measured < (self.limits.angle, self.limits.norm)).all():
                self._position, self.method = self._position + row, "diis"
                return list(zip(mixed, measured[:, 1].tolist(), strict=True))
            self.history.clear()
        self._position = self._position + self._row(own)
        return list(zip(own, self._measure(own)[:, 1].tolist(), strict=True))

    def _measure(self, X_s: list[Any]) -> Array:
        """Largest angle and norm of every spin."""
        values = [value for X in X_s for value in (abs(X).max(), self.xp.sqrt((X * X).sum()))]
        return np.asarray(self.device.to_host(self.xp.stack(values)), dtype=np.float64).reshape(-1, 2)

    def _row(self, blocks: Iterable[Any]) -> Any:
        return flatten(list(blocks), self.xp).astype(np.float64, copy=False)


def rotations_suffice(options: ScfOptions, problem: Problem) -> bool:
    """Whether these steps apply: no option needs the step of other SCFs, and there are enough orbitals to gain."""
    if not problem.occupations.integer or problem.frame.algebra_on_host or problem.frame.size < MANY_ORBITALS:
        return False
    filled_s = np.count_nonzero(problem.occupations(None)[0], axis=1)
    plain = options.accelerator in ("auto", "diis") and not (options.damping or options.level_shift)
    plain = plain and not options.guess_mixing
    return plain and bool(((filled_s > 0) & (filled_s < problem.frame.size)).all())


def projectors(C_sjm: Any, filled: list[int], capacity: float, device: Device) -> Any:
    """Densities from the smaller of the occupied and virtual blocks: C_o C_o^T = 1 - C_v C_v^T."""
    found = []
    for C, o in zip(C_sjm, filled, strict=True):
        few = 2 * o <= len(C)
        block = capacity**0.5 * (C[:, :o] if few else C[:, o:])
        D = device.linalg.product(block, block.T)
        if not few:
            D *= -1.0
            add_to_diagonal(D, capacity)
        found.append(D)
    return stack(found, device.xp)
