"""Direct minimisation of the energy by rotations of the orbitals: slower than DIIS, but it goes downhill only.

T. Van Voorhis and M. Head-Gordon, Mol. Phys. 100, 1713 (2002), doi:10.1080/00268970110103642. Rotations between
occupied and virtual orbitals are written in the frame of the current orbitals, in which those of earlier steps keep
their elements while the frame turns, so that a limited-memory quasi-Newton method can use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.options import ScfOptions
from cuanto.scf import rotations
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.loop import Problem, evaluate
from cuanto.scf.state import Array, State

HANDOVER = 1e-3
"""Gradient from which DIIS is faster and stays in the valley."""
LONGEST = 0.5
"""Largest norm of a step's rotations."""
LONGER = 3.0
"""Factor of the next step where the last one led along a ridge."""
FLAT = 1e-8
"""Cosine between a step and the change of the gradient, below which its curvature says nothing."""
ROUNDING = 2e-14
"""Relative error of an energy."""
PAIRS = 12
"""Steps that are remembered."""
SMALLEST_GAP = 0.1
"""Hartree; curvatures are at least taken for this."""


def descend(
    problem: Problem, start: tuple[Any, Any], max_iterations: int, handover: float = HANDOVER
) -> Iterator[State]:
    """States of falling energy (trial steps that rise are yielded too, and taken back) until the gradient is small.

    The last state is the lowest, unless iterations run out. For integer occupations.
    """
    C_sjm, eps_sm = start
    memory: list[tuple[Array, Array]] = []
    best: State | None = None
    X, slope = np.zeros(0), 0.0
    kept: tuple[Any, Array, Array] | None = None
    for iteration in range(1, max_iterations + 1):
        state, _, F_eff = evaluate(problem, C_sjm, eps_sm, Accelerator(ScfOptions(history=2), problem.frame.xp))
        change = np.inf if best is None else state.energy - best.energy
        state = replace(state, iteration=iteration, energy_change=change, step="descent")
        if best is not None and kept is not None and change > 1e-4 * slope + ROUNDING * abs(state.energy):
            # Too long a step: the parabola through both energies and the slope has its minimum here.
            shorter = min(0.5, max(0.1, -0.5 * slope / max(change - slope, 1e-300)))
            X, slope = shorter * X, shorter * slope
            yield state
            C_sjm = _turn(problem, kept[0], X, state.n_sm)
            continue
        gradient, gaps = _gradient(problem, F_eff, C_sjm, state.n_sm)
        bends = 1.0
        if kept is not None:
            turned = gradient - kept[1]
            bends = float(X @ turned) / max(float(np.linalg.norm(X) * np.linalg.norm(turned)), 1e-300)
        if kept is not None and bends > FLAT:
            memory = [*memory, (X, turned)][-PAIRS:]
        best, kept = state, (C_sjm, gradient, gaps)
        yield state
        if state.gradient < handover:
            return
        # Where the slope grows along a step, no parabola says how far: farther.
        X = LONGER * X if bends <= FLAT else _direction(gradient, gaps, memory)
        if X @ gradient > -1e-3 * np.linalg.norm(X) * np.linalg.norm(gradient):
            memory, X = [], -gradient / gaps
        X = X * min(1.0, LONGEST / max(float(np.linalg.norm(X)), 1e-300))
        slope = float(X @ gradient)
        C_sjm = _turn(problem, C_sjm, X, state.n_sm)


def _gradient(problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array) -> tuple[Array, Array]:
    """dE/dX_pq = 2 (n_p - n_q) F_pq of all orbitals, and an estimate of the curvatures, 2 (n_p - n_q) (e_q - e_p)."""
    slopes, curvatures = [np.zeros(0)], [np.zeros(0)]
    for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, problem.levels(n_sm), strict=True):
        F_mm = problem.frame.to_host(C_jm.T @ F_jk @ C_jm)
        eps_m = F_mm.diagonal()
        for mid, end in rotations.splits(n_m):
            weight = 2.0 * (n_m[:mid, None] - n_m[None, mid:end])
            gap = np.maximum(eps_m[None, mid:end] - eps_m[:mid, None], SMALLEST_GAP)
            slopes.append((weight * F_mm[:mid, mid:end]).reshape(-1))
            curvatures.append((weight * gap).reshape(-1))
    return np.concatenate(slopes), np.concatenate(curvatures)


def _direction(gradient: Array, curvature: Array, memory: list[tuple[Array, Array]]) -> Array:
    """-H^-1 g with the inverse Hessian of limited-memory BFGS (J. Nocedal, doi:10.1090/S0025-5718-1980-0572855-7)."""
    q, factors = gradient.copy(), []
    for s, y in reversed(memory):
        factors.append(float(s @ q) / float(s @ y))
        q = q - factors[-1] * y
    q = q / curvature
    for (s, y), factor in zip(memory, reversed(factors), strict=True):
        q = q + (factor - float(y @ q) / float(s @ y)) * s
    return -q


def _turn(problem: Problem, C_sjm: Any, x: Array, n_sm: Array) -> Any:
    """Orbitals turned by the rotations of all of them, in the order of `_gradient`."""
    xp, turned, begin = problem.frame.xp, [], 0
    for C_jm, n_m in zip(C_sjm, problem.levels(n_sm), strict=True):
        parts = []
        for mid, end in rotations.splits(n_m):
            part = x[begin : begin + mid * (end - mid)].reshape(mid, -1)
            begin += part.size
            parts.append(((mid, end), xp.asarray(part), float(np.linalg.norm(part))))
        turned.append(rotations.turn(C_jm, parts, xp))
    return xp.stack(turned)
