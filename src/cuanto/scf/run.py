"""The SCF from a guess, perhaps with random rotations, to a converged state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cuanto.options import ScfOptions
from cuanto.scf import rotations
from cuanto.scf.converge import Convergence, Start
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem, first_orbitals
from cuanto.scf.secants import Secants
from cuanto.scf.state import State


def run_scf(
    problem: Problem,
    start: Start,
    options: ScfOptions,
    diagonaliser: Diagonaliser,
    criteria: Criteria,
    S_pq: Any,
    secants: Secants | None = None,
    known: State | None = None,
    done: int = 0,
) -> Iterator[State]:
    """States until one is converged (and a minimum, if requested), or until iterations run out.

    `known`: the state of the orbitals `start`, where a descent ended, or which is converged and only to be tested.
    `done`: number of iterations before.
    """
    stages = Convergence(problem, options, criteria, S_pq, diagonaliser, done)
    yield from stages.states(mix_guess(problem, start, options), secants, known)


def mix_guess(problem: Problem, start: Start, options: ScfOptions) -> Start:
    """The start with random rotations of its occupied orbitals, whose norm is `guess_mixing`.

    They come from a random antisymmetric matrix in the basis functions, so that signs of orbitals and the choice among
    degenerate ones, which differ between machines, do not matter.
    """
    if not options.guess_mixing:
        return start
    frame, xp = problem.frame, problem.frame.xp
    C_sjm, eps_sm = first_orbitals(problem, start) if isinstance(start, Density) else start
    n_sm, _ = problem.occupations(frame.to_host(eps_sm))
    rng, angles = np.random.default_rng(int(options.seed)), []
    n_km = problem.orbital_occupations(n_sm)
    for C_jm, n_m in zip(C_sjm, n_km, strict=True):
        C_pm = frame.X_pm @ C_jm
        A_pq = rng.normal(size=(len(C_pm), len(C_pm)))
        T_mm = frame.to_host(C_pm.T @ xp.asarray(A_pq - A_pq.T) @ C_pm)
        parts = [T_mm[:mid, mid:end] for mid, end in rotations.splits(n_m)]
        norm = float(np.sqrt(sum(float(np.sum(X**2)) for X in parts))) or 1.0
        angles += [X * (options.guess_mixing / norm) for X in parts]
    return rotations.rotate_spins(C_sjm, n_km, angles, xp, frame.linalg), eps_sm
