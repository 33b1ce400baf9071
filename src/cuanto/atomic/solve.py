"""The self-consistent field of an atom: density -> potential -> effective Fock matrix -> spinors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.atom import Atom, AtomIteration, AtomResult, ScfSettings
from cuanto.atomic.fock import Extrapolation, effective, error
from cuanto.atomic.guess import SavedSpinors, guess
from cuanto.atomic.one_electron import Core, core
from cuanto.atomic.properties import parts_of, spinor_table, virial_of
from cuanto.atomic.repulsion import Repulsion
from cuanto.atomic.rotate import SpinorRotations
from cuanto.atomic.species import SPECIES
from cuanto.backends.base import Backend
from cuanto.errors import CuantoError, InputError
from cuanto.log import Timings
from cuanto.scf.fixed_point import iterations

Array = NDArray[np.float64]
SHIFT_ABOVE = 1e-2
"""Hartree: levels are shifted while the largest element between occupied and empty spinors is above it."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Results of a set of spinors: densities, potentials (None: no open shell there), effective Fock matrices and their
    errors; in an SCF, also what it reports of the iteration."""

    U_i: Sequence[Array]
    D_i: list[Array]
    D_open: list[Array]
    P_i: list[Array]
    Q_i: list[Array | None]
    F_i: list[Array]
    e_i: list[Array]
    step: AtomIteration | None = None
    converged: bool = False


def solve(
    atom: Atom,
    settings: ScfSettings | None = None,
    backend: str | Backend = "auto",
    start: AtomResult | SavedSpinors | None = None,
    repulsion: Repulsion | None = None,
    on_iteration: Callable[[AtomIteration], None] | None = None,
    at_rest: Callable[[AtomIteration], bool] | None = None,
) -> AtomResult:
    """Solve the Dirac-Hartree-Fock equations (or, without relativity, Hartree-Fock's) of an atom.

    `start`: begin with these spinors, whatever their exponents, nucleus and c; else with those of the bare nucleus.
    `repulsion`: integrals made before for the same exponents; then `backend` is theirs. `at_rest`: whether an
    iteration is the last one; else the thresholds of the settings decide.
    """
    settings = settings or ScfSettings()
    timings = Timings()
    repulsion = repulsion or Repulsion(atom.basis, backend, settings.relativistic)
    _check(atom, settings, repulsion)
    timings.seconds["integrals"] = repulsion.timings.seconds.get("integrals", 0.0)
    with timings.measure("one-electron integrals"):
        cores = [
            core(species, z, atom.nucleus, settings.c, settings.relativistic)
            for species, z in zip(SPECIES, atom.basis.exponents, strict=False)
        ]
        U_i = guess(atom, settings, cores, start)
    scf = _Scf(atom, settings, cores, repulsion, timings, at_rest or (lambda step: _at_rest(step, settings)))
    return scf.run(U_i, on_iteration)


def _check(atom: Atom, settings: ScfSettings, repulsion: Repulsion) -> None:
    if repulsion.relativistic != settings.relativistic:
        raise InputError(
            "the integrals given are with small components and the settings without, or the other way round"
        )
    if not repulsion.basis.same_as(atom.basis):
        raise InputError("the integrals given belong to other exponents than the atom's: make new ones")


class _Scf:
    """The fixed-point map of an atom: from occupied spinors of every symmetry to the next ones."""

    def __init__(
        self,
        atom: Atom,
        settings: ScfSettings,
        cores: list[Core],
        repulsion: Repulsion,
        timings: Timings,
        at_rest: Callable[[AtomIteration], bool],
    ) -> None:
        self.atom, self.settings, self.cores = atom, settings, cores
        self.repulsion, self.timings, self.at_rest = repulsion, timings, at_rest
        self.extrapolation = Extrapolation(settings.accelerator, settings.damping, settings.history)
        self.occupation = atom.occupation
        self.open = self.occupation.open_symmetries
        self.A_lm = self.occupation.coupling()
        self.mean = dict(zip(self.open, self.occupation.mean_occupations, strict=True))
        rotated = range(len(cores)) if settings.diagonaliser == "pseudo" else ()
        self.rotations = {i: self._rotations(i) for i in rotated if self.occupation.shells(i)}

    def run(self, U_i: Sequence[Array], on_iteration: Callable[[AtomIteration], None] | None) -> AtomResult:
        """All iterations."""
        history: list[AtomIteration] = []
        for fields in iterations(self, U_i, self.settings.max_iterations):
            assert fields.step is not None
            history.append(fields.step)
            if on_iteration is not None:
                on_iteration(fields.step)
            if not np.isfinite(fields.step.energy):
                raise CuantoError(f"the energy is not a number in iteration {len(history)}: use other exponents")
        return self._result(fields, fields.converged, history)

    def evaluate(self, U_i: Sequence[Array], iteration: int, before: Fields | None) -> Fields:
        """Fields of spinors; converged where nothing changes, and rotated spinors are the lowest."""
        fields = self.fields(U_i)
        step = self._step(fields, iteration, before)
        converged = before is not None and self.at_rest(step) and self._sound(fields)
        return replace(fields, step=step, converged=converged)

    def advance(self, made: Fields) -> list[Array]:
        """Spinors of extrapolated Fock matrices."""
        assert made.step is not None
        with self.timings.measure("linear algebra"):
            F_i = self.extrapolation(made.F_i, made.e_i)
            # Near the end a shift would only shorten the steps.
            shift = self.settings.level_shift if made.step.error > SHIFT_ABOVE else 0.0
            return [self._diagonalise(i, F, made.U_i[i], shift) for i, F in enumerate(F_i)]

    def fields(self, U_i: Sequence[Array]) -> Fields:
        """Densities, potentials and Fock matrices of occupied spinors in orthonormal functions."""
        with self.timings.measure("linear algebra"):
            D_closed = [
                SPECIES[i].capacity * _square(core.X @ self._closed(i, U_i)) for i, core in enumerate(self.cores)
            ]
            D_open = [
                self.mean.get(i, 0.0) * _square(core.X @ self._opened(i, U_i)) for i, core in enumerate(self.cores)
            ]
            D_i = [one + other for one, other in zip(D_closed, D_open, strict=True)]
        with self.timings.measure("P and Q"):
            Q_i: list[Array | None] = [None] * len(D_i)
            if self.open:
                P_i, found = self.repulsion.both(D_i, D_open, self.open, self.A_lm)
                for i, one_Q in zip(self.open, found, strict=True):
                    Q_i[i] = one_Q
            else:
                P_i = self.repulsion.potential(D_i)
        with self.timings.measure("linear algebra"):
            F_i, e_i = [], []
            for i, (one, P, Q) in enumerate(zip(self.cores, P_i, Q_i, strict=True)):
                C_c, C_o = self._closed(i, U_i), self._opened(i, U_i)
                filling = self.mean.get(i, 0.0) / SPECIES[i].capacity
                Q_x = None if Q is None else one.X.T @ Q @ one.X
                F_i.append(effective(one.X.T @ (one.h + P) @ one.X, Q_x, C_c, C_o, filling))
                e_i.append(error(F_i[-1], C_c, C_o))
        return Fields(U_i, D_i, D_open, P_i, Q_i, F_i, e_i)

    def _closed(self, i: int, U_i: Sequence[Array]) -> Array:
        return U_i[i][:, : self.occupation.closed[i]]

    def _opened(self, i: int, U_i: Sequence[Array]) -> Array:
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
        return lowest(F, one.negative, count, self.settings.c, SPECIES[i].label)

    def _rotations(self, i: int) -> SpinorRotations:
        one, count = self.cores[i], self.occupation.shells(i)
        spinors = partial(lowest_first, negative=one.negative, count=count, c=self.settings.c, label=SPECIES[i].label)
        return SpinorRotations(spinors, self.occupation.closed[i], count, one.negative)

    def _sound(self, fields: Fields) -> bool:
        """Check that spinors that were rotated are those of the lowest positive energies."""
        return all(one.sound(fields.F_i[i], fields.U_i[i]) for i, one in self.rotations.items())

    def _step(self, fields: Fields, iteration: int, before: Fields | None) -> AtomIteration:
        energy = sum(parts_of(self.cores, fields.D_i, fields.D_open, fields.P_i, fields.Q_i)[key] for key in TOTAL)
        changes = {"LL": np.inf, "SL": np.inf, "SS": np.inf}
        if before is not None:
            differences = [np.abs(new - old) for new, old in zip(fields.D_i, before.D_i, strict=True)]
            changes = block_maxima(differences, self.atom.basis.sizes, self.settings.relativistic)
        last = 0.0 if before is None or before.step is None else before.step.energy
        return AtomIteration(
            iteration=iteration,
            energy=energy,
            energy_change=energy - last,
            change_LL=changes["LL"],
            change_SL=changes["SL"],
            change_SS=changes["SS"],
            error=max((float(np.abs(e).max(initial=0.0)) for e in fields.e_i), default=0.0),
        )

    def _result(self, fields: Fields, converged: bool, history: list[AtomIteration]) -> AtomResult:
        parts = parts_of(self.cores, fields.D_i, fields.D_open, fields.P_i, fields.Q_i)
        with self.timings.measure("properties"):
            spinors, coefficients = spinor_table(self.atom, self.cores, fields.U_i, fields.P_i, fields.Q_i)
        return AtomResult(
            atom=self.atom,
            settings=self.settings,
            energy=history[-1].energy,
            converged=converged,
            iterations=len(history),
            parts=parts,
            virial=virial_of(parts),
            spinors=spinors,
            coefficients=coefficients,
            history=tuple(history),
            timings=dict(self.timings.seconds),
        )


TOTAL = ("one_electron", "two_electron")


def _square(C: Array) -> Array:
    return np.asarray(C @ C.T)


def _at_rest(step: AtomIteration, settings: ScfSettings) -> bool:
    return (
        step.change_LL < settings.threshold_LL
        and step.change_SL < settings.threshold_SL
        and step.change_SS < settings.threshold_SS
    )


def block_maxima(matrices: Sequence[Array], sizes: Sequence[int], relativistic: bool) -> dict[str, float]:
    """Largest elements by block, over all symmetries."""
    found = {"LL": 0.0, "SL": 0.0, "SS": 0.0}
    for one, n in zip(matrices, sizes, strict=True):
        blocks = {"LL": one[:n, :n], "SL": one[n:, :n], "SS": one[n:, n:]} if relativistic else {"LL": one}
        for name, block in blocks.items():
            found[name] = max(found[name], float(block.max(initial=0.0)))
    return found


def spectrum(F: Array, negative: int, c: float, label: str) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors; those of negative energy must be where the theory has them."""
    eps, V = np.linalg.eigh(F)
    if negative and not (eps[negative - 1] < -c * c < eps[negative]):
        raise CuantoError(
            f"spinors {label} of negative and positive energy cannot be told apart ({eps[negative - 1]:.6g} and "
            f"{eps[negative]:.6g} Hartree around {-c * c:.6g}): other exponents or a level shift may help"
        )
    return eps, V


def lowest(F: Array, negative: int, count: int, c: float, label: str) -> Array:
    """The lowest eigenvectors of positive energy."""
    return refined(F, *spectrum(F, negative, c, label), slice(negative, negative + count))


def lowest_first(F: Array, negative: int, count: int, c: float, label: str) -> Array:
    """All eigenvectors: the lowest of positive energy, those of negative energy, the rest."""
    eps, V = spectrum(F, negative, c, label)
    chosen = slice(negative, negative + count)
    U, others = refined(F, eps, V, chosen), np.delete(V, chosen, axis=1)
    return np.concatenate([U, others - U @ (U.T @ others)], axis=1)


def refined(F: Array, eps_m: Array, V_pm: Array, chosen: slice) -> Array:
    """The chosen eigenvectors, improved by first-order perturbation theory from their residuals.

    A solver's error is a rounding of the largest elements of F, those of tight functions (1e7 Hartree in heavy atoms).
    Residuals of occupied spinors, which hardly contain these, are exact to far more digits.
    """
    U = V_pm[:, chosen]
    FU = F @ U
    H = U.T @ FU
    W = V_pm.T @ (FU - U @ H)
    gaps = np.diag(H)[None, :] - eps_m[:, None]
    gaps[chosen] = np.inf
    gaps[gaps == 0.0] = np.inf
    return np.asarray(np.linalg.qr(U + V_pm @ (W / gaps))[0])
