"""The self-consistent field of an atom: density -> potential -> effective Fock matrix -> spinors.

Fock matrices, one per symmetry, are in orthonormal functions. Open shells: C. C. J. Roothaan, Rev. Mod. Phys. 32, 179
(1960), doi:10.1103/RevModPhys.32.179. Blocks of the matrix are named c (closed), o (open) and r (the rest: virtual
spinors and those of negative energy). DIIS: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import Atom, AtomIteration, AtomResult, ScfSettings
from cuanto.atomic.guess import SavedSpinors, guess
from cuanto.atomic.one_electron import Core, core
from cuanto.atomic.properties import energy_parts, spinor_table
from cuanto.atomic.repulsion import Repulsion
from cuanto.atomic.rotate import SpinorRotations
from cuanto.atomic.species import SPECIES
from cuanto.backends.base import Backend, get_backend
from cuanto.errors import CuantoError, require
from cuanto.log import Timings
from cuanto.scf.diis import History, flatten, unflatten
from cuanto.scf.fixed_point import iterations

SHIFT_ABOVE = 1e-2
"""Hartree: levels are shifted while the largest Fock element between occupied and empty spinors exceeds this."""


SQUARED_ERROR = 1e-15
"""Square of the DIIS error, relative to the energy, with which the energy is converged: see `energy_converged`."""
SETTLED, NOISE = 12, 100.0
"""Iterations with a converged energy and changes of the density below this multiple of the thresholds, after which
rounding errors of nearly dependent functions are what keeps the density from converging."""


@dataclass(frozen=True, eq=False)
class Fields:
    """One iteration: occupied spinors, their densities, potentials P and Q (None without an open shell), effective
    Fock matrices, DIIS errors and energy.

    `settled`: number of the last iterations that were converged but for such rounding errors.
    """

    U_i: Sequence[Array]
    D_i: list[Array]
    P_i: list[Array]
    Q_i: list[Array | None]
    F_i: list[Array]
    e_i: list[Array]
    parts: dict[str, float]
    step: AtomIteration
    converged: bool
    settled: int = 0


def solve(
    atom: Atom,
    settings: ScfSettings | None = None,
    backend: str | Backend = "auto",
    start: AtomResult | SavedSpinors | None = None,
    repulsion: Repulsion | None = None,
    on_iteration: Callable[[AtomIteration], None] | None = None,
    is_converged: Callable[[AtomIteration], bool] | None = None,
    max_memory: float | None = None,
) -> AtomResult:
    """Solve the Dirac-Hartree-Fock equations (or, without relativity, the Hartree-Fock equations) of an atom.

    `start`: initial spinors, of any exponents, nucleus and c; those of the bare nucleus by default. `repulsion`:
    integrals computed before for the same exponents; `backend` and `max_memory` (bytes) are then ignored.
    `is_converged`: convergence test for an iteration, in place of the thresholds of the settings.
    """
    settings = settings or ScfSettings()
    timings = Timings()
    repulsion = repulsion or Repulsion(atom.basis, backend, settings.relativistic, max_memory)
    other = "the given integrals and the settings disagree about relativity: make new integrals"
    require(repulsion.relativistic == settings.relativistic, other)
    require(repulsion.basis.same_as(atom.basis), "the integrals given belong to other exponents: make new ones")
    timings.seconds["integrals"] = repulsion.timings.seconds.get("integrals", 0.0)
    with timings.measure("one-electron integrals"):
        cores = [
            core(species, z, atom.nucleus, settings.c, settings.relativistic)
            for species, z in zip(SPECIES, atom.basis.exponents, strict=False)
        ]
        U_i = guess(atom, settings, cores, start)
    scf = _Scf(
        atom, settings, cores, repulsion, timings, is_converged or (lambda step: _within_thresholds(step, settings))
    )
    return scf.run(U_i, on_iteration)


class _Scf:
    """The fixed-point map of an atom: from occupied spinors of every symmetry to the next ones."""

    def __init__(
        self,
        atom: Atom,
        settings: ScfSettings,
        cores: list[Core],
        repulsion: Repulsion,
        timings: Timings,
        is_converged: Callable[[AtomIteration], bool],
    ) -> None:
        self.atom, self.settings, self.cores = atom, settings, cores
        self.repulsion, self.timings, self.is_converged = repulsion, timings, is_converged
        self.extrapolation = Extrapolation(settings.accelerator, settings.damping, settings.history)
        self.occupation = atom.occupation
        self.open_symmetries = self.occupation.open_symmetries
        self.A_lm = self.occupation.coupling()
        self.mean = dict(zip(self.open_symmetries, self.occupation.mean_occupations, strict=True))
        rotated = range(len(cores)) if settings.diagonaliser == "pseudo" else ()
        self.rotations = {i: self._rotations(i) for i in rotated if self.occupation.shells(i)}

    def run(self, U_i: Sequence[Array], on_iteration: Callable[[AtomIteration], None] | None) -> AtomResult:
        """Iterate to convergence."""
        history: list[AtomIteration] = []
        for fields in iterations(self, U_i, self.settings.max_iterations):
            history.append(fields.step)
            if on_iteration is not None:
                on_iteration(fields.step)
            if not np.isfinite(fields.step.energy):
                raise CuantoError(f"the energy is not a number in iteration {len(history)}: use other exponents")
        return self._result(fields, history)

    def evaluate(self, U_i: Sequence[Array], iteration: int, before: Fields | None) -> Fields:
        """Evaluate occupied spinors in orthonormal functions: densities, potentials, energy and convergence."""
        with self.timings.measure("linear algebra"):
            D_i, D_open = [], []
            for i, one in enumerate(self.cores):
                C_c, C_o = one.X @ self._closed(i, U_i), one.X @ self._open(i, U_i)
                D_open.append(self.mean.get(i, 0.0) * (C_o @ C_o.T))
                D_i.append(SPECIES[i].capacity * (C_c @ C_c.T) + D_open[-1])
        with self.timings.measure("P and Q"):
            Q_i: list[Array | None] = [None] * len(D_i)
            if self.open_symmetries:
                P_i, found = self.repulsion.potential_and_open_shell(D_i, D_open, self.open_symmetries, self.A_lm)
                for i, one_Q in zip(self.open_symmetries, found, strict=True):
                    Q_i[i] = one_Q
            else:
                P_i = self.repulsion.potential(D_i)
        with self.timings.measure("linear algebra"):
            F_i, e_i = [], []
            for i, (one, P, Q) in enumerate(zip(self.cores, P_i, Q_i, strict=True)):
                C_c, C_o = self._closed(i, U_i), self._open(i, U_i)
                filling = self.mean.get(i, 0.0) / SPECIES[i].capacity
                Q_x = None if Q is None else one.X.T @ Q @ one.X
                F_i.append(effective_fock(one.X.T @ (one.h + P) @ one.X, Q_x, C_c, C_o, filling))
                e_i.append(diis_error(F_i[-1], C_c, C_o))
        parts = energy_parts(self.cores, D_i, D_open, P_i, Q_i)
        largest = max((float(np.abs(e).max(initial=0.0)) for e in e_i), default=0.0)
        step = self._step(iteration, parts["one_electron"] + parts["two_electron"], largest, D_i, before)
        if before is None:
            return Fields(U_i, D_i, P_i, Q_i, F_i, e_i, parts, step, False)
        nearly = energy_converged(step) and _within_thresholds(step, self.settings, NOISE)
        settled = before.settled + 1 if nearly else 0
        converged = (self.is_converged(step) or settled > SETTLED) and self._lowest(F_i, U_i)
        return Fields(U_i, D_i, P_i, Q_i, F_i, e_i, parts, step, converged, settled)

    def advance(self, fields: Fields) -> list[Array]:
        """Compute the next spinors from extrapolated Fock matrices."""
        with self.timings.measure("linear algebra"):
            F_i = self.extrapolation(fields.F_i, fields.e_i)
            # A shift near convergence would only shorten the steps.
            shift = self.settings.level_shift if fields.step.error > SHIFT_ABOVE else 0.0
            return [self._diagonalise(i, F, fields.U_i[i], shift) for i, F in enumerate(F_i)]

    def _closed(self, i: int, U_i: Sequence[Array]) -> Array:
        return U_i[i][:, : self.occupation.closed[i]]

    def _open(self, i: int, U_i: Sequence[Array]) -> Array:
        return U_i[i][:, self.occupation.closed[i] : self.occupation.shells(i)]

    def _diagonalise(self, i: int, F: Array, U: Array, shift: float) -> Array:
        """The next occupied spinors."""
        one, count = self.cores[i], self.occupation.shells(i)
        if not count:
            return U
        if shift:
            F = F + shift * (np.eye(len(F)) - U @ U.T)
        if i in self.rotations:
            return self.rotations[i](F)
        return lowest_eigenvectors(F, one.negative, count, self.settings.c, SPECIES[i].label)

    def _rotations(self, i: int) -> SpinorRotations:
        one, count = self.cores[i], self.occupation.shells(i)
        c, label = self.settings.c, SPECIES[i].label
        spinors = partial(lowest_eigenvectors, negative=one.negative, count=count, c=c, label=label, rest=True)
        return SpinorRotations(spinors, self.occupation.closed[i], count, one.negative)

    def _lowest(self, F_i: list[Array], U_i: Sequence[Array]) -> bool:
        """Whether spinors that were rotated are those of the lowest positive energies."""
        return all(one.check(F_i[i], U_i[i]) for i, one in self.rotations.items())

    def _step(
        self, iteration: int, energy: float, error: float, D_i: list[Array], before: Fields | None
    ) -> AtomIteration:
        if before is None:
            return AtomIteration(iteration, energy, energy, np.inf, np.inf, np.inf, error)
        differences = [np.abs(new - old) for new, old in zip(D_i, before.D_i, strict=True)]
        changes = block_maxima(differences, self.atom.basis.sizes)
        return AtomIteration(iteration, energy, energy - before.step.energy, *changes, error)

    def _result(self, fields: Fields, history: list[AtomIteration]) -> AtomResult:
        with self.timings.measure("properties"):
            spinors, coefficients = spinor_table(self.atom, self.cores, fields.U_i, fields.P_i, fields.Q_i)
        return AtomResult(
            atom=self.atom,
            settings=self.settings,
            energy=history[-1].energy,
            converged=fields.converged,
            iterations=len(history),
            parts=fields.parts,
            spinors=spinors,
            coefficients=coefficients,
            history=tuple(history),
            timings=dict(self.timings.seconds),
        )


def energy_converged(step: AtomIteration) -> bool:
    """Whether the energy is converged to a relative error of 1e-13, judged by the square of the DIIS error.

    The error of the energy is at most eighty times the square of the largest element of the DIIS error (He to Rn).
    Converging the density as well would take one to five more iterations, in which the energy does not change.
    """
    return step.error**2 < SQUARED_ERROR * abs(step.energy)


def _within_thresholds(step: AtomIteration, settings: ScfSettings, multiple: float = 1.0) -> bool:
    return (
        step.change_LL < multiple * settings.threshold_LL
        and step.change_SL < multiple * settings.threshold_SL
        and step.change_SS < multiple * settings.threshold_SS
    )


def block_maxima(matrices: Sequence[Array], sizes: Sequence[int]) -> tuple[float, float, float]:
    """Largest elements of the blocks LL, SL and SS over all symmetries; zero for missing blocks."""
    blocks = [(one[:n, :n], one[n:, :n], one[n:, n:]) for one, n in zip(matrices, sizes, strict=True)]
    LL, SL, SS = (max(float(block.max(initial=0.0)) for block in kind) for kind in zip(*blocks, strict=True))
    return LL, SL, SS


def lowest_eigenvectors(F: Array, negative: int, count: int, c: float, label: str, rest: bool = False) -> Array:
    """The lowest eigenvectors of positive energy; with `rest` also those of negative energy, then all others."""
    eps, V = np.linalg.eigh(F)
    if negative and not (eps[negative - 1] < -c * c < eps[negative]):
        raise CuantoError(
            f"spinors {label} of negative and positive energy cannot be told apart ({eps[negative - 1]:.6g} and "
            f"{eps[negative]:.6g} Hartree around {-c * c:.6g}): other exponents or a level shift may help"
        )
    chosen = slice(negative, negative + count)
    U = refine(F, eps, V, chosen)
    if not rest:
        return U
    others = np.delete(V, chosen, axis=1)
    return np.concatenate([U, others - U @ (U.T @ others)], axis=1)


def refine(F: Array, eps_m: Array, V_pm: Array, chosen: slice) -> Array:
    """The chosen eigenvectors, improved by first-order perturbation theory from their residuals.

    The eigensolver's error is the rounding error of the largest elements of F, those of tight functions (1e7 Hartree in
    heavy atoms). Residuals of occupied spinors, which hardly contain these functions, have far more correct digits.
    """
    U = V_pm[:, chosen]
    FU = F @ U
    H = U.T @ FU
    W = V_pm.T @ (FU - U @ H)
    gaps = np.diag(H)[None, :] - eps_m[:, None]
    gaps[chosen] = np.inf
    gaps[gaps == 0.0] = np.inf
    return np.asarray(np.linalg.qr(U + V_pm @ (W / gaps))[0])


def effective_fock(F_closed: Array, Q: Array | None, C_c: Array, C_o: Array, filling: float) -> Array:
    """F_closed, with the blocks o-o and o-r replaced by those of F_open = F_closed - Q.

    The c-o block, (F_closed - filling F_open) / (1 - filling), vanishes when rotations between closed and open spinors
    no longer lower the energy; the factor 1 / (1 - filling) preserves the order of levels.
    """
    if Q is None:
        return F_closed
    P_c, P_o = C_c @ C_c.T, C_o @ C_o.T
    Q_o = Q @ P_o
    mixed = P_c @ Q_o * (1.0 + filling / (1.0 - filling)) - Q_o + 0.5 * P_o @ Q_o
    # subtracts P_o Q P_o, P_r Q P_o and its transpose; the c-o blocks have the other sign
    return F_closed + mixed + mixed.T


def diis_error(F: Array, C_c: Array, C_o: Array) -> Array:
    """[F, G] with G = 1 for closed, 1/2 for open and 0 for all other spinors: zero at self-consistency."""
    FG = F @ C_c @ C_c.T + 0.5 * (F @ C_o @ C_o.T)
    return np.asarray(FG - FG.T)


class Extrapolation:
    """DIIS over the matrices of all symmetries together, or damping."""

    def __init__(self, accelerator: str, damping: float, history: int) -> None:
        self.accelerator, self.damping = accelerator, damping
        self._history = History(history, get_backend("cpu"))
        self._used: Array | None = None

    def __call__(self, F_i: Sequence[Array], e_i: Sequence[Array]) -> list[Array]:
        """The matrices to diagonalise."""
        joined = flatten(F_i, np)
        if self.accelerator == "damping":
            mixed = joined if self._used is None else (1.0 - self.damping) * joined + self.damping * self._used
            self._used = mixed
        else:
            self._history.absorb(self._history.push(joined, flatten(e_i, np)))
            mixed = self._history.extrapolate()
        return unflatten(mixed, F_i)
