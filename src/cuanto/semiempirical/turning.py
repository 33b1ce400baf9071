"""The SCF by rotations alone, for thousands of orbitals: besides density and Fock matrix all arrays are blocks o x v.

The commutator of Fock and density matrix is F_ov, which rotations need anyway. Elements between orbitals that turn keep
their meaning from one iteration to the next (to second order in the rotations: it is how tangent vectors are carried
along; A. Edelman, T. A. Arias and S. T. Smith, SIAM J. Matrix Anal. Appl. 20, 303 (1998),
doi:10.1137/S0895479895290954), so that DIIS can combine rotations instead of Fock matrices, as it does with geometries
(P. Csaszar and P. Pulay, J. Mol. Struct. 114, 31 (1984), doi:10.1016/S0022-2860(84)87198-7):

    X = sum_n c_n (x_n + X_n) - x,   with the c_n that make sum_n c_n F_ov,n smallest,

where x_n are the rotations that had led to iteration n, X_n those that it asked for. That saves a matrix product, and
half of what the others cost, in every iteration. Where rotations are not safe, it is left to the common loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.options import ScfOptions
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import within_blocks
from cuanto.scf.diis import History
from cuanto.scf.loop import SAME_DENSITY, SAME_LEVEL, Density, Problem, fock
from cuanto.scf.state import State
from cuanto.semiempirical.rotations import LARGEST_NORM, LARGEST_ROTATION, RISE, THRIFTY, BlockRotations, Coupling
from cuanto.semiempirical.terms import Moment

Array = NDArray[np.float64]
Rotations = list[tuple[Any, float]]
"""Of every spin, with their norms."""


@dataclass(frozen=True)
class Turning:
    """What stays the same during the iterations; `moment` is that of the criteria."""

    problem: Problem
    turns: BlockRotations
    criteria: Criteria
    moment: Moment
    history: int

    def states(self, start: tuple[Any, Any], max_iterations: int) -> Iterator[State]:
        """States until one is stationary, converged if it is aufbau, or until rotations are not safe."""
        problem, turns, xp = self.problem, self.turns, self.problem.frame.xp
        n_sm, _ = problem.occupations(None)
        filled = [int(np.count_nonzero(n_m)) for n_m in n_sm]
        C_sjm, eps_sm = start
        trail = Trail(History(self.history, xp, turns.to_host, problem.frame.free), xp, turns.to_host)
        previous, before, step = np.inf, np.full(3, np.inf), "guess"
        watched = replace(self.criteria, displacement=float)  # of moments, not of densities
        for iteration in range(1, max_iterations + 1):
            density = Density(projectors(C_sjm, filled, float(n_sm.max()), xp), None)
            energies, F_spq = fock(problem, density)
            with problem.timings.measure("diagonalisation"):
                parts, numbers = turns.couple(F_spq, C_sjm, filled)
                moment = self.moment.at(density.D_spq)
            with problem.timings.measure("extrapolation"):  # and all numbers of an iteration in one transfer
                wanted = [numbers, moment, trail.push(parts), *map(xp.asarray, energies)]
                numbers, moment, products, *values = problem.frame.backend.download(wanted)
            gradient = float(n_sm.max()) * np.sqrt(2.0) * trail.history.absorb(products)
            named = {term.name: float(value) for term, value in zip(problem.terms, values, strict=True)}
            energy, moved = sum(named.values()), float(np.abs(moment - before).max())
            change, previous, before = energy - previous, energy, moment
            about = (iteration, energy, named, change, gradient, False, step)
            state = State(*about, C_spm=C_sjm, eps_sm=eps_sm, n_sm=n_sm, D_spq=density.D_spq, F_spq=F_spq)
            rotations, stationary = None, False
            if self.criteria.met(change, gradient, energy=energy) and density.D_spq.dtype == np.float64:
                rotations = trail.next(parts)
                stationary = watched.settled(self._ahead(parts, rotations, n_sm), moved)
                if stationary:
                    with problem.timings.measure("diagonalisation"):
                        state = self._canonical(state, filled)
            yield state
            if stationary or not turns.safe(numbers) or change > RISE + turns.noise(F_spq):
                return
            with problem.timings.measure("diagonalisation"):
                rotations = trail.next(parts) if rotations is None else rotations
                C_sjm, eps_sm = turns.apply(F_spq, parts, rotations, float(numbers[:, 0].max()))
                step = f"{trail.made}, block"
                if turns.anew:  # elements between other orbitals
                    trail.clear()

    def _ahead(self, parts: list[Coupling], rotations: Rotations, n_sm: Array) -> float:
        """By which rotations will change the dipole moment, to first order."""
        halves = [
            (part.C[:, : part.o] @ (float(n_m.max()) * X), part.C[:, part.o :])
            for part, (X, _), n_m in zip(parts, rotations, n_sm, strict=True)
        ]
        return self.moment.of_change(halves)

    def _canonical(self, state: State, filled: list[int]) -> State:
        """Orbitals that diagonalise F among the occupied and among the empty ones; converged if that leaves the density
        as it is, and no empty orbital lies below an occupied one."""
        xp, orbitals, energies, sound = self.problem.frame.xp, [], [], True
        for F, C, D, n_m, o in zip(state.F_spq, state.C_spm, state.D_spq, state.n_sm, filled, strict=True):
            turned, (below, above) = within_blocks(F, C, (0, o, len(n_m)), xp)
            occupied = float(np.sqrt(n_m.max())) * turned[:, :o]
            sound = sound and float(abs(occupied @ occupied.T - D).max()) < SAME_DENSITY * n_m.max()
            sound = sound and float(below[-1]) < float(above[0]) + SAME_LEVEL
            orbitals.append(turned)
            energies.append(xp.concatenate([below, above]))
        return replace(state, converged=sound, C_spm=xp.stack(orbitals), eps_sm=xp.stack(energies))


class Trail:
    """Rotations so far, and what DIIS makes of them; all spins in one row."""

    def __init__(self, history: History, xp: Any, to_host: Any) -> None:
        self.history, self.xp, self.to_host = history, xp, to_host
        self._position: Any = 0.0
        self.made = ""

    def clear(self) -> None:
        """Forget everything."""
        self.history.clear()

    def push(self, parts: list[Coupling]) -> Any:
        """Keep what belongs together; numbers for the history to absorb, still on the device."""
        wanted = self._position + self._row([part.X for part in parts])
        row = self._row([part.F_ov for part in parts])
        return self.history.push(wanted, self.xp.zeros(1), row)

    def next(self, parts: list[Coupling]) -> Rotations:
        """Rotations of every spin with their norms: DIIS's, or those asked for last where they are too large."""
        own, self.made = [part.X for part in parts], "plain"
        if len(self.history) > 1:
            row = self.history.combine(self.history.diis()) - self._position
            mixed, begin = [], 0
            for X in own:
                mixed.append(row[begin : begin + X.size].reshape(X.shape).astype(X.dtype, copy=False))
                begin += X.size
            measured = self._measured(mixed)
            if (measured[:, 0] < LARGEST_ROTATION).all() and (measured[:, 1] < LARGEST_NORM).all():
                self._position, self.made = self._position + row, "diis"
                return list(zip(mixed, measured[:, 1].tolist(), strict=True))
            self.clear()
        self._position = self._position + self._row(own)
        return list(zip(own, self._measured(own)[:, 1].tolist(), strict=True))

    def _measured(self, X_s: list[Any]) -> Array:
        values = [value for X in X_s for value in (abs(X).max(), self.xp.sqrt((X * X).sum()))]
        return np.asarray(self.to_host(self.xp.stack(values)), dtype=np.float64).reshape(-1, 2)

    def _row(self, blocks: list[Any]) -> Any:
        rows = [block.reshape(-1) for block in blocks]
        return (rows[0] if len(rows) == 1 else self.xp.concatenate(rows)).astype(np.float64, copy=False)


def suits(options: ScfOptions, problem: Problem) -> bool:
    """Nothing is asked for that only the common loop has, and there are orbitals enough to gain from it."""
    if not problem.occupations.integer or problem.frame.algebra_on_host or problem.frame.size < THRIFTY:
        return False
    filled_s = np.count_nonzero(problem.occupations(None)[0], axis=1)
    plain = options.accelerator in ("auto", "diis") and not (options.damping or options.level_shift)
    plain = plain and options.stability == "none" and not options.guess_mixing
    return plain and bool(((filled_s > 0) & (filled_s < problem.frame.size)).all())


def projectors(C_sjm: Any, filled: list[int], capacity: float, xp: Any) -> Any:
    """Densities by the smaller block: with n orbitals in all, C_o C_o^T = 1 - C_v C_v^T."""
    made = []
    for C, o in zip(C_sjm, filled, strict=True):
        few = 2 * o <= len(C)
        block = (C[:, :o] if few else C[:, o:]) * C.dtype.type(np.sqrt(capacity))
        D = block @ block.T
        if not few:
            D *= D.dtype.type(-1.0)
            D.reshape(-1)[:: len(C) + 1] += D.dtype.type(capacity)
        made.append(D)
    return made[0][None] if len(made) == 1 else xp.stack(made)
