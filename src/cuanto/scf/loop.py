"""The SCF as a generator of states: Fock matrix, error, next orbitals, until energy and gradient are converged.

Restricted open shells: C. C. J. Roothaan, Rev. Mod. Phys. 32, 179 (1960), doi:10.1103/RevModPhys.32.179; diagonal
blocks as M. F. Guest and V. R. Saunders, Mol. Phys. 28, 819 (1974), doi:10.1080/00268977400102171.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cuanto.arrays import Array
from cuanto.log import Timings
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.degeneracy import order_degenerate
from cuanto.scf.diagonalise import Diagonaliser, Full, diagonalise_blocks, eigenvectors, stack
from cuanto.scf.fixed_point import iterations
from cuanto.scf.occupations import NEGLIGIBLE_OCCUPATION, Occupations
from cuanto.scf.orthogonal import Device, Frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.state import State
from cuanto.terms.base import Term

SAME_LEVEL = 1e-6
"""Hartree by which an occupied orbital may lie above an empty one (degenerate levels)."""
SAME_DENSITY = 1e-9
"""Largest change of a density, relative to its largest element, when orbitals are made canonical: rounding only."""
MAX_CORRECTIONS = 3
"""Attempts to leave a converged state that violates the aufbau principle."""


@dataclass(frozen=True)
class Problem:
    """Terms, orthonormal basis and occupations of an SCF; `shared`: both spins have the same orbitals (ROHF).

    `suspect`: an SCF of this molecule may well converge to a saddle point.
    """

    terms: Sequence[Term]
    frame: Frame
    occupations: Occupations
    shared: bool = False
    timings: Timings = field(default_factory=Timings)
    suspect: bool = False

    def effective(self, F_sjk: Any, C_sjm: Any, n_sm: Array) -> Any:
        """The matrices whose eigenvectors are the orbitals, from the Fock matrices of the spins."""
        return open_shell_fock(F_sjk, C_sjm, n_sm) if self.shared else F_sjk

    def occupy(self, eps_sm: Any) -> tuple[Array, float]:
        """Occupations of orbitals with these energies, and the energy -T S."""
        return self.occupations(None if self.occupations.integer else self.frame.to_host(eps_sm))

    def orbital_occupations(self, n_sm: Array) -> Array:
        """Occupations n_km of each set k of orbitals: those of each spin, or their sum if the spins share orbitals."""
        return n_sm.sum(axis=0, keepdims=True) if self.shared else n_sm


@dataclass(frozen=True)
class Density:
    """A density on the backend's device.

    `C_spi`: occupied orbitals times the square roots of their occupations. `first_step`: fraction of the first change
    of the Fock matrix that is applied when an SCF starts from it.
    """

    D_spq: Any
    C_spi: Any
    first_step: float = 1.0

    @classmethod
    def of(cls, C_spi: Any, device: Device) -> Density:
        """D_s = C_s C_s^T, spin by spin: products of single matrices start faster than those of stacks."""
        return cls(stack([device.linalg.product(C_pi, C_pi.T) for C_pi in C_spi], device.xp), C_spi)


Point = tuple[Any, Any, str]
"""Orbitals in the orthonormal basis, their energies, and the name of the step that made them."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A state, data that its step keeps, and (if convergence was tested) the proposal for the next state."""

    state: State
    kept: Any
    proposal: Any = None
    stationary: bool = False

    @property
    def converged(self) -> bool:
        """Whether the state is converged."""
        return self.state.converged


class Step(Protocol):
    """Makes a density from orbitals, and the next orbitals from a Fock matrix."""

    def density(self, C_sjm: Any, n_sm: Array) -> tuple[Any, Density]:
        """Orbitals and density on the backend's device."""

    def measure(
        self, C_sjm: Any, n_sm: Array, density: Density, F_spq: Any, scalars: list[Any]
    ) -> tuple[float, list[Any], Any]:
        """The gradient, the scalars on the host (read in the same transfer), and data to keep."""

    def propose(self, current: Evaluation) -> Any:
        """The proposal for the next orbitals."""

    def changes(self, current: Evaluation, previous: Evaluation) -> tuple[Any, Any]:
        """Changes of the density (or its dipole moment, as the criteria expect) in the proposed and the last step."""

    def finish(self, current: Evaluation) -> State:
        """A stationary state with canonical orbitals, converged if it is valid."""

    def follow(self, current: Evaluation) -> Point | None:
        """The next orbitals: the proposed ones, or others after an invalid stationary state; None to give up."""


@dataclass(frozen=True)
class Scf:
    """The fixed-point map of an SCF: evaluates the state of orbitals and takes a step to the next ones."""

    problem: Problem
    step: Step
    criteria: Criteria

    def states(self, C_sjm: Any, eps_sm: Any, max_iterations: int) -> Iterator[State]:
        """States until convergence, the last iteration, or until the step gives up."""
        for current in iterations(self, (C_sjm, eps_sm, "guess"), max_iterations):
            yield current.state

    def after(self, known: Evaluation, max_iterations: int) -> Iterator[State]:
        """States that follow a known one, until convergence, the last iteration, or until the step gives up."""
        if (start := self.advance(known)) is not None:
            for current in iterations(self, start, max_iterations, known):
                yield current.state

    def evaluate(self, point: Point, iteration: int, previous: Evaluation | None) -> Evaluation:
        """The state of orbitals, with canonical ones if it is converged."""
        current = evaluate(
            self.problem, self.step, point, iteration, np.inf if previous is None else previous.state.energy
        )
        state = current.state
        met = self.criteria.met(state.energy_change, state.gradient, state.energy)
        if previous is None or not met or state.D_spq.dtype != np.float64:
            return current
        if self.criteria.dipole_change is not None:
            current = replace(current, proposal=self.step.propose(current))
            if not self.criteria.dipole_converged(*self.step.changes(current, previous)):
                return current
        return replace(current, state=self.step.finish(current), stationary=True)

    def advance(self, current: Evaluation) -> Point | None:
        """The next orbitals."""
        ready = current.stationary or current.proposal is not None
        return self.step.follow(current if ready else replace(current, proposal=self.step.propose(current)))


def evaluate(
    problem: Problem, step: Step, point: Point, iteration: int = 0, energy_before: float = np.inf
) -> Evaluation:
    """The state of orbitals, and data that the step keeps."""
    C_sjm, eps_sm, label = point
    n_sm, entropy = problem.occupy(eps_sm)
    C_spm, density = step.density(C_sjm, n_sm)
    energies, F_spq = fock(problem, density)
    scalars = [value for value in energies if not isinstance(value, float)]
    gradient, read, kept = step.measure(C_sjm, n_sm, density, F_spq, scalars)
    rest = iter(read)
    numbers = [float(value if isinstance(value, float) else next(rest)) for value in energies]
    named = {term.name: value for term, value in zip(problem.terms, numbers, strict=True)}
    if not problem.occupations.integer:
        named["entropy"] = entropy
    energy = sum(named.values())
    fields = (iteration, energy, named, energy - energy_before, gradient, False, label)
    return Evaluation(State(*fields, C_spm, eps_sm, n_sm, density.D_spq, F_spq), kept)


class ExtrapolationStep:
    """A step by an accelerator of Fock matrices and a diagonaliser; without an accelerator it only evaluates orbitals.

    Keeps orbitals, Fock matrices of the spins and effective Fock matrices in the orthonormal basis.
    """

    def __init__(
        self, problem: Problem, accelerator: Accelerator | None = None, diagonaliser: Diagonaliser | None = None
    ) -> None:
        self.problem, self._corrections, self._accelerator = problem, 0, accelerator
        self.diagonaliser = diagonaliser or Full(problem.frame)

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator of a step to other orbitals."""
        assert self._accelerator is not None
        return self._accelerator

    def density(self, C_sjm: Any, n_sm: Array) -> tuple[Any, Density]:
        """D_spq = sum_m n_sm C_spm C_sqm."""
        frame = self.problem.frame
        with frame.blas_threads:
            C_spm = frame.linalg.product(frame.X_pm, C_sjm)
            C_spm, C_spi = frame.to_terms(C_spm, scale_orbitals(C_spm, np.sqrt(occupied(n_sm)), frame.xp))
            return C_spm, Density.of(C_spi, frame.backend)

    def measure(
        self, C_sjm: Any, n_sm: Array, density: Density, F_spq: Any, scalars: list[Any]
    ) -> tuple[float, list[Any], tuple[Any, Any, Any]]:
        """The norm of FD - DF; scalars are transferred with F if the algebra is on the host, else with the DIIS
        products."""
        problem, frame, xp = self.problem, self.problem.frame, self.problem.frame.xp
        with problem.timings.measure("extrapolation"), frame.blas_threads:
            F_there, *read = frame.backend.download([F_spq, *scalars]) if frame.algebra_on_host else (F_spq,)
            F_sjk = frame.transformed(F_there)
            F_eff = problem.effective(F_sjk, C_sjm, n_sm)
            n_si = occupied(n_sm)
            C_i = C_sjm[:, :, : n_si.shape[1]].transpose(0, 2, 1)
            own = scale_orbitals(C_sjm, n_si, xp)
            both = scale_orbitals(C_sjm, n_si.sum(axis=0, keepdims=True), xp) if problem.shared else own
            D_sjk, FD = frame.products(F_eff, own, both, C_i, density.D_spq)
            history = None if self._accelerator is None else self._accelerator.history
            error = FD - FD.transpose(0, 2, 1)
            products = error.reshape(-1) @ error.reshape(-1) if history is None else history.push(F_sjk, error, D_sjk)
            if not frame.algebra_on_host:
                products, *read = frame.backend.download([products, *scalars])
        gradient = np.sqrt(products) if history is None else history.absorb(products)
        return float(gradient), read, (C_sjm, F_sjk, F_eff)

    def evaluation(self, C_sjm: Any, state: State) -> Evaluation:
        """The evaluation of a state, whose Fock matrix is known, with these orbitals in the orthonormal basis."""
        density = Density(state.D_spq, None)
        return Evaluation(state, self.measure(C_sjm, state.n_sm, density, state.F_spq, [])[2])

    def propose(self, current: Evaluation) -> Point:
        """Orbitals of the extrapolated Fock matrix."""
        state, (C_sjm, F_sjk, _) = current.state, current.kept
        with self.problem.timings.measure("diagonalisation"), self.problem.frame.blas_threads:
            F_next, mixing = self.accelerator.next(F_sjk, state.energy, state.gradient)
            F_next = self.problem.effective(F_next, C_sjm, state.n_sm)
            C_sjm, eps_sm, step = self.diagonaliser(F_next, C_sjm, state.n_sm, state.energy)
            return C_sjm, eps_sm, f"{mixing}, {step}"

    def changes(self, current: Evaluation, previous: Evaluation) -> tuple[Any, Any]:
        """Differences of densities."""
        C_sjm, eps_sm, _ = current.proposal
        _, ahead = self.density(C_sjm, self.problem.occupy(eps_sm)[0])
        return ahead.D_spq - current.state.D_spq, current.state.D_spq - previous.state.D_spq

    def finish(self, current: Evaluation) -> State:
        """Canonical orbitals if they are valid, or after the last correction."""
        _, state, same, lowest = canonical_state(self.problem, current)
        if not same or (not lowest and self._corrections < MAX_CORRECTIONS):
            return current.state
        return replace(state, converged=lowest)

    def follow(self, current: Evaluation) -> Point | None:
        """The proposal, unless the accelerator has failed; after an invalid stationary state (an empty orbital below an
        occupied one), eigenvectors as a new start."""
        if not current.stationary:
            return None if self.accelerator.failed else current.proposal
        if self._corrections == MAX_CORRECTIONS:
            return None
        self._corrections += 1
        self.accelerator.restart()
        self.diagonaliser.restart()
        with self.problem.timings.measure("diagonalisation"), self.problem.frame.blas_threads:
            return Full(self.problem.frame)(current.kept[2], None, current.state.n_sm, current.state.energy)


def iterate(
    problem: Problem,
    start: Density | tuple[Any, Any],
    accelerator: Accelerator,
    diagonaliser: Diagonaliser,
    criteria: Criteria,
    max_iterations: int,
    known: State | None = None,
) -> Iterator[State]:
    """States until convergence, the last iteration, or until the accelerator makes no more progress.

    `start`: a density (not necessarily of orbitals: superposed atoms), or orbitals with their energies in the
    orthonormal basis. `known`: the state of these orbitals, which is not evaluated and yielded again. A converged state
    has canonical orbitals.
    """
    step = ExtrapolationStep(problem, accelerator, diagonaliser)
    scf = Scf(problem, step, criteria)
    if isinstance(start, Density):
        start = first_orbitals(problem, start, accelerator)
        if isinstance(diagonaliser, Pseudo):  # these are eigenvectors: no full diagonalisation is needed
            start = diagonaliser.begin(*start)
    yield from (
        scf.states(*start, max_iterations)
        if known is None
        else scf.after(step.evaluation(start[0], known), max_iterations)
    )


def first_orbitals(problem: Problem, start: Density, accelerator: Accelerator | None = None) -> tuple[Any, Any]:
    """Orbitals of the Fock matrix of a density, or of the mean of both spins if they share orbitals.

    With a `first_step` below 1 the Fock matrix of these orbitals is evaluated (and added to the accelerator's history),
    and the orbitals of an interpolated matrix are returned.
    """
    F_spq = fock(problem, start)[1]
    with problem.frame.blas_threads:
        F_sjk = problem.frame.matrix(F_spq)
        if problem.shared:
            F_sjk = F_sjk.mean(axis=0, keepdims=True)
        C_sjm, eps_sm = eigenvectors(F_sjk, problem.frame)
        if problem.occupations.integer:
            C_sjm = order_degenerate(
                problem.frame, C_sjm, eps_sm, problem.orbital_occupations(problem.occupy(eps_sm)[0])
            )
    if start.first_step == 1.0 or problem.shared:
        return C_sjm, eps_sm
    silent = replace(problem, timings=Timings())
    with problem.timings.measure("guess"):
        _, whole_sjk, _ = evaluate(silent, ExtrapolationStep(silent, accelerator), (C_sjm, eps_sm, "")).kept
    with problem.frame.blas_threads:
        return eigenvectors(F_sjk + start.first_step * (whole_sjk - F_sjk), problem.frame)


def fock(problem: Problem, density: Density) -> tuple[list[Any], Any]:
    """Energies of all terms (numbers or device scalars) and the Fock matrices of the spins."""
    energies, F_spq = [], None
    for term in problem.terms:
        with problem.timings.measure(term.name):
            energy, contribution = term.fock(density.D_spq, density.C_spi)
            energies.append(energy)
            if contribution is not None:
                F_spq = contribution if F_spq is None else F_spq + contribution
    if F_spq is None or F_spq.shape != density.D_spq.shape:
        whole = problem.frame.backend.xp.zeros_like(density.D_spq)
        F_spq = whole if F_spq is None else whole + F_spq
    return energies, F_spq


def open_shell_fock(F_sjk: Any, C_sjm: Any, n_sm: Array) -> Any:
    """One matrix for both spins, whose blocks between closed, open and virtual orbitals are the orbital gradient.

    Between closed and open orbitals F_beta, between open and virtual ones F_alpha, elsewhere the mean.
    """
    closed, occupied = (int(np.count_nonzero(n_m)) for n_m in (n_sm.min(axis=0), n_sm.max(axis=0)))
    F_jk, half_jk = 0.5 * (F_sjk[0] + F_sjk[1]), 0.5 * (F_sjk[0] - F_sjk[1])
    C_c, C_o, C_v = C_sjm[0, :, :closed], C_sjm[0, :, closed:occupied], C_sjm[0, :, occupied:]
    # alpha = mean + half, beta = mean - half
    half_o = C_o.T @ half_jk
    change = C_o @ ((half_o @ C_v) @ C_v.T - (half_o @ C_c) @ C_c.T)
    return (F_jk + change + change.T)[None]


def scale_orbitals(C_sjm: Any, n_si: Array, xp: Any) -> Any:
    """The first orbitals, each scaled by its number; by one factor if all numbers are equal."""
    C_sji = C_sjm[:, :, : n_si.shape[1]]
    first = float(n_si[0, 0])
    if len(C_sjm) == len(n_si) and (n_si == first).all():
        return first * C_sji
    return C_sji * xp.asarray(n_si[:, None, :])


def occupied(n_sm: Array) -> Array:
    """Occupations up to the last that is not negligible."""
    return n_sm[:, : 1 + int(np.flatnonzero(n_sm.max(axis=0) > NEGLIGIBLE_OCCUPATION).max(initial=0))]


def canonical(
    problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array, D_sjk: Sequence[Any]
) -> tuple[Any, Any, bool, bool]:
    """Orbitals that diagonalise F among those of equal occupation, their energies, whether their density is D, and
    whether no empty orbital lies below an occupied one."""
    frame, orbitals, energies, same, lowest = problem.frame, [], [], True, True
    xp, product = frame.xp, frame.linalg.product
    for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, problem.orbital_occupations(n_sm), strict=True):
        edges = [0, *(np.flatnonzero(np.diff(n_m)) + 1).tolist(), len(n_m)]
        found_jm, levels = diagonalise_blocks(F_jk, C_jm, edges, frame)
        orbitals.append(found_jm)
        energies.append(xp.concatenate(levels))
        if problem.occupations.integer and not problem.shared and len(levels) > 1:
            lowest = lowest and float(levels[-2][-1]) < float(levels[-1][0]) + SAME_LEVEL
    found_sjm, limit = stack(orbitals, xp), SAME_DENSITY * max(1.0, float(n_sm.max()))
    for C_ji, D_jk in zip(scale_orbitals(found_sjm, np.sqrt(occupied(n_sm)), xp), D_sjk, strict=True):
        same = same and float(abs(product(C_ji, C_ji.T) - D_jk).max()) < limit
    return found_sjm, xp.stack(energies), same, lowest


def canonical_state(problem: Problem, current: Evaluation) -> tuple[Any, State, bool, bool]:
    """`canonical` orbitals of an evaluation in the orthonormal basis, its state with them, and both tests."""
    state, frame, (C_sjm, _, F_eff) = current.state, problem.frame, current.kept
    with frame.blas_threads:
        scaled = scale_orbitals(C_sjm, np.sqrt(occupied(state.n_sm)), frame.xp)
        D_sjk = [frame.linalg.product(C, C.T) for C in scaled]
        found_sjm, eps_sm, same, lowest = canonical(problem, F_eff, C_sjm, state.n_sm, D_sjk)
        (C_spm,) = frame.to_terms(frame.linalg.product(frame.X_pm, found_sjm))
    return found_sjm, replace(state, C_spm=C_spm, eps_sm=eps_sm), same, lowest
