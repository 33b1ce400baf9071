"""The SCF as a generator of states: Fock matrix, error, next orbitals, until energy and gradient stand still."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.coupling import open_shell, spin_orbitals
from cuanto.scf.diagonalise import Diagonaliser, Full, eigenvectors, within_blocks
from cuanto.scf.occupations import NEGLIGIBLE, Occupations
from cuanto.scf.orthogonal import Frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.state import Array, State
from cuanto.terms.base import Term

SAME_LEVEL = 1e-6
"""Hartree by which an occupied orbital may lie above an empty one: degenerate levels."""
SAME_DENSITY = 1e-9
"""Largest change of a density, relative to its largest element, when orbitals are made canonical: rounding only."""
CORRECTIONS = 3
"""How often a converged state that is not aufbau is left."""


@dataclass(frozen=True)
class Problem:
    """What is to be made self-consistent; `shared`: both spins have the same orbitals (restricted open shell)."""

    terms: Sequence[Term]
    frame: Frame
    occupations: Occupations
    shared: bool = False
    timings: Timings = field(default_factory=Timings)

    @property
    def effective(self) -> Callable[[Any, Any, Array], Any]:
        """From the Fock matrices of the spins to those of the orbitals."""
        return open_shell if self.shared else spin_orbitals

    def levels(self, n_sm: Array) -> Array:
        """Occupations of every set of orbitals: both spins together where they share them."""
        return n_sm.sum(axis=0, keepdims=True) if self.shared else n_sm


@dataclass(frozen=True)
class Density:
    """A density on the backend's device; `C_spi` as for builders of J and K.

    `first_step`: share of the first change of the Fock matrix that is taken where an SCF begins from it.
    """

    D_spq: Any
    C_spi: Any
    first_step: float = 1.0

    @classmethod
    def of(cls, C_spi: Any, xp: Any) -> Density:
        """D_s = C_s C_s^T, one after the other: a product of two matrices starts sooner than one of stacks."""
        if len(C_spi) == 1:
            return cls((C_spi[0] @ C_spi[0].T)[None], C_spi)
        return cls(xp.stack([C_pi @ C_pi.T for C_pi in C_spi]), C_spi)


def iterate(
    problem: Problem,
    start: Density | tuple[Any, Any],
    accelerator: Accelerator,
    diagonaliser: Diagonaliser,
    criteria: Criteria,
    max_iterations: int,
) -> Iterator[State]:
    """States until convergence, the last iteration, or until the accelerator is lost.

    `start`: a density (which need not come from orbitals, as that of superposed atoms), or orbitals with their energies
    in the orthonormal basis. The last state has canonical orbitals of the density that it reports.
    """
    C_sjm, eps_sm = _first(problem, start, accelerator, diagonaliser)
    previous, before, corrections, step = np.inf, None, 0, "guess"
    for iteration in range(1, max_iterations + 1):
        state, F_sjk, F_eff = evaluate(problem, C_sjm, eps_sm, accelerator)
        change, previous = state.energy - previous, state.energy
        state = replace(state, iteration=iteration, energy_change=change, step=step)
        following = None
        converged = criteria.met(change, state.gradient, state.energy)
        if converged and criteria.displacement is not None:
            following = _following(problem, state, F_sjk, C_sjm, accelerator, diagonaliser)
            converged = criteria.settled(_ahead(problem, following, state), state.D_spq - before)
        before = state.D_spq
        if converged:
            C_sjm, eps_sm, sound = _canonical_same(problem, F_eff, C_sjm, state.n_sm)
            if sound or corrections == CORRECTIONS:
                C_spm = problem.frame.to_terms(problem.frame.X_pm @ C_sjm)
                yield replace(state, converged=sound, C_spm=C_spm, eps_sm=eps_sm)
                return
        yield state
        if converged:  # but an empty orbital lies below an occupied one: begin anew from there
            corrections += 1
            accelerator.restart()
            diagonaliser.restart()
            with problem.timings.measure("diagonalisation"), problem.frame.single_threaded_blas:
                following = Full(problem.frame.xp)(F_eff, None, state.n_sm, state.energy)
        elif following is None:
            following = _following(problem, state, F_sjk, C_sjm, accelerator, diagonaliser)
        if accelerator.lost:
            return
        C_sjm, eps_sm, step = following


def _following(
    problem: Problem, state: State, F_sjk: Any, C_sjm: Any, accelerator: Accelerator, diagonaliser: Diagonaliser
) -> tuple[Any, Any, str]:
    """The next orbitals, their energies, and how they were made."""
    with problem.timings.measure("diagonalisation"), problem.frame.single_threaded_blas:
        F_next, mixing = accelerator.next(F_sjk, state.energy, state.gradient)
        F_next = problem.effective(F_next, C_sjm, state.n_sm)
        C_sjm, eps_sm, step = diagonaliser(F_next, C_sjm, state.n_sm, state.energy)
        return C_sjm, eps_sm, f"{mixing}, {step}"


def _ahead(problem: Problem, following: tuple[Any, Any, str], state: State) -> Any:
    """What the next orbitals change of the density: [s, p, q] on the backend."""
    frame, (C_sjm, eps_sm, _) = problem.frame, following
    n_sm, _ = problem.occupations(None if problem.occupations.integer else frame.to_host(eps_sm))
    with frame.single_threaded_blas:
        return density_of(problem, frame.X_pm @ C_sjm, n_sm)[1].D_spq - state.D_spq


def _first(
    problem: Problem, start: Density | tuple[Any, Any], accelerator: Accelerator, diagonaliser: Diagonaliser
) -> tuple[Any, Any]:
    """Orbitals to begin with; rotations need no full diagonalisation where they are eigenvectors of the guess."""
    if not isinstance(start, Density):
        return start
    C_sjm, eps_sm = first_orbitals(problem, start, accelerator)
    if isinstance(diagonaliser, Pseudo):
        diagonaliser.begin(eps_sm)
    return C_sjm, eps_sm


def first_orbitals(problem: Problem, start: Density, accelerator: Accelerator | None = None) -> tuple[Any, Any]:
    """Orbitals of the Fock matrix of a density; both spins have the mean of theirs where they share orbitals.

    After a `first_step` that is only a part, which the accelerator may know of: it has seen where the whole one leads.
    """
    F_spq = fock(problem, start)[1]
    with problem.frame.single_threaded_blas:
        F_sjk = problem.frame.matrix(F_spq)
        if problem.shared:
            F_sjk = F_sjk.mean(axis=0, keepdims=True)
        C_sjm, eps_sm = eigenvectors(F_sjk, problem.frame.xp)
    if start.first_step == 1.0 or problem.shared:
        return C_sjm, eps_sm
    told = accelerator or Accelerator(ScfOptions(history=2), problem.frame.xp)
    with problem.timings.measure("guess"):
        _, whole_sjk, _ = evaluate(replace(problem, timings=Timings()), C_sjm, eps_sm, told)
    with problem.frame.single_threaded_blas:
        return eigenvectors(F_sjk + start.first_step * (whole_sjk - F_sjk), problem.frame.xp)


def fock(problem: Problem, density: Density) -> tuple[list[Any], Any]:
    """Energies of all terms (numbers or device scalars) and the Fock matrices of the spins."""
    energies, F_spq = [], None
    with problem.frame.single_threaded_terms:
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


def weighted(C_sjm: Any, n_si: Array, xp: Any) -> Any:
    """The first orbitals, each times its number; one factor for all where they have the same."""
    C_sji = C_sjm[:, :, : n_si.shape[1]]
    first = float(n_si[0, 0])
    if len(C_sjm) == len(n_si) and (n_si == first).all():
        return C_sji * first
    return C_sji * xp.asarray(n_si[:, None, :])


def occupied(n_sm: Array) -> Array:
    """Occupations up to the last that matters."""
    return n_sm[:, : 1 + int(np.flatnonzero(n_sm.max(axis=0) > NEGLIGIBLE).max(initial=0))]


def density_of(problem: Problem, C_spm: Any, n_sm: Array) -> tuple[Any, Density]:
    """Orbitals, and D_spq = sum_m n_sm C_spm C_sqm, on the backend's device; C_spm is where the algebra is done."""
    frame = problem.frame
    C_spm, C_spi = frame.all_to_terms(C_spm, weighted(C_spm, np.sqrt(occupied(n_sm)), frame.xp))
    return C_spm, Density.of(C_spi, frame.backend.xp)


def same_density(C_sjm: Any, other_sjm: Any, n_sm: Array, xp: Any) -> bool:
    """Two sets of orbitals have one density, but for rounding; in the orthonormal basis."""
    n_si = occupied(n_sm)
    one, other = (weighted(C, n_si, xp) @ C[:, :, : n_si.shape[1]].transpose(0, 2, 1) for C in (C_sjm, other_sjm))
    return float(abs(one - other).max()) < SAME_DENSITY * max(1.0, float(n_si.max()))


def evaluate(problem: Problem, C_sjm: Any, eps_sm: Any, accelerator: Accelerator) -> tuple[State, Any, Any]:
    """The state of orbitals, and its Fock matrices in the orthonormal basis: of the spins, and of the orbitals."""
    frame, xp = problem.frame, problem.frame.xp
    n_sm, entropy = problem.occupations(None if problem.occupations.integer else frame.to_host(eps_sm))
    with frame.single_threaded_blas:
        C_spm, density = density_of(problem, frame.X_pm @ C_sjm, n_sm)
    energies, F_spq = fock(problem, density)
    # All numbers of an iteration in one transfer: with F where the algebra is done on the host, else with the products.
    scalars = [value for value in energies if not isinstance(value, float)]
    with problem.timings.measure("extrapolation"), frame.single_threaded_blas:
        F_inside, *read = frame.backend.download([F_spq, *scalars]) if frame.algebra_on_host else (F_spq,)
        F_sjk = frame.X_pm.T @ F_inside @ frame.X_pm
        F_eff = problem.effective(F_sjk, C_sjm, n_sm)
        n_si = occupied(n_sm)
        C_i = C_sjm[:, :, : n_si.shape[1]].transpose(0, 2, 1)
        own = weighted(C_sjm, n_si, xp)
        both = weighted(C_sjm, n_si.sum(axis=0, keepdims=True), xp) if problem.shared else own
        D_sjk, FD = frame.products(F_eff, own, both, C_i, density.D_spq)
        products = accelerator.push(F_sjk, D_sjk, FD - FD.transpose(0, 2, 1))
        if not frame.algebra_on_host:
            products, *read = frame.backend.download([products, *scalars])
    rest = iter(read)
    numbers = [float(value if isinstance(value, float) else next(rest)) for value in energies]
    named = {term.name: value for term, value in zip(problem.terms, numbers, strict=True)}
    if not problem.occupations.integer:
        named["entropy"] = entropy
    state = State(
        iteration=0,
        energy=sum(named.values()),
        energies=named,
        energy_change=np.inf,
        gradient=accelerator.absorb(products),
        converged=False,
        step="",
        C_spm=C_spm,
        eps_sm=eps_sm,
        n_sm=n_sm,
        D_spq=density.D_spq,
        F_spq=F_spq,
    )
    return state, F_sjk, F_eff


def _canonical_same(problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array) -> tuple[Any, Any, bool]:
    """Canonical orbitals and energies, and whether they are sound.

    What is reported must belong together: these orbitals, the density of the old ones and its energy.
    """
    with problem.frame.single_threaded_blas:
        canonical_sjm, eps_sm, sound = canonical(problem, F_sjk, C_sjm, n_sm)
        return canonical_sjm, eps_sm, sound and same_density(canonical_sjm, C_sjm, n_sm, problem.frame.xp)


def canonical(problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array) -> tuple[Any, Any, bool]:
    """Orbitals that diagonalise F among those of equal occupation, their energies, and whether no empty orbital lies
    below an occupied one."""
    xp = problem.frame.xp
    orbitals, energies, aufbau = [], [], True
    for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, problem.levels(n_sm), strict=True):
        edges = [0, *(np.flatnonzero(np.diff(n_m)) + 1).tolist(), len(n_m)]
        turned, levels = within_blocks(F_jk, C_jm, edges, xp)
        orbitals.append(turned)
        energies.append(xp.concatenate(levels))
        if problem.occupations.integer and not problem.shared and len(levels) > 1:
            aufbau = aufbau and float(levels[-2][-1]) < float(levels[-1][0]) + SAME_LEVEL
    return xp.stack(orbitals), xp.stack(energies), aufbau
