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
PAIRS = 12
"""Steps that are remembered."""
SMALLEST_GAP = 0.1
"""Hartree; curvatures are at least taken for this."""


def descend(problem: Problem, start: tuple[Any, Any], max_iterations: int) -> Iterator[State]:
    """States of falling energy (trial steps that rise are yielded too, and taken back) until the gradient is small.

    The last state is the lowest. For integer occupations and orbitals of their own for each spin.
    """
    C_sjm, eps_sm = start
    memory: list[tuple[Array, Array]] = []
    best: State | None = None
    X, slope = np.zeros(0), 0.0
    kept: tuple[Any, Array, Array] | None = None
    for iteration in range(1, max_iterations + 1):
        state, F_sjk, _ = evaluate(problem, C_sjm, eps_sm, Accelerator(ScfOptions(history=2), problem.frame.xp))
        change = np.inf if best is None else state.energy - best.energy
        state = replace(state, iteration=iteration, energy_change=change, step="descent")
        if best is not None and kept is not None and change > 1e-4 * slope:
            # Too long a step: the parabola through both energies and the slope has its minimum here.
            shorter = min(0.5, max(0.1, -0.5 * slope / max(change - slope, 1e-300)))
            X, slope = shorter * X, shorter * slope
            yield state
            C_sjm = _turn(problem, kept[0], X, state.n_sm)
            continue
        gradient, gaps = _gradient(problem, F_sjk, C_sjm, state.n_sm)
        if kept is not None and X @ (gradient - kept[1]) > 1e-12:
            memory = [*memory, (X, gradient - kept[1])][-PAIRS:]
        best, kept = state, (C_sjm, gradient, gaps)
        yield state
        if state.gradient < HANDOVER:
            return
        X = _direction(gradient, gaps, memory)
        if X @ gradient > -1e-3 * np.linalg.norm(X) * np.linalg.norm(gradient):
            memory, X = [], -gradient / gaps
        X = X * min(1.0, LONGEST / float(np.linalg.norm(X)))
        slope = float(X @ gradient)
        C_sjm = _turn(problem, C_sjm, X, state.n_sm)


def _gradient(problem: Problem, F_sjk: Any, C_sjm: Any, n_sm: Array) -> tuple[Array, Array]:
    """dE/dX_ia = 2 n F_ia of all spins, and an estimate of the curvatures, 2 n (e_a - e_i)."""
    slopes, curvatures = [], []
    for F_jk, C_jm, n_m in zip(F_sjk, C_sjm, n_sm, strict=True):
        o = int(np.count_nonzero(n_m))
        F_mm = problem.frame.to_host(C_jm.T @ F_jk @ C_jm)
        eps_m = F_mm.diagonal()
        gap = np.maximum(eps_m[None, o:] - eps_m[:o, None], SMALLEST_GAP)
        slopes.append((2.0 * n_m[0] * F_mm[:o, o:]).reshape(-1))
        curvatures.append((2.0 * n_m[0] * gap).reshape(-1))
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
    """Orbitals turned by the rotations of all spins."""
    xp, turned, begin = problem.frame.xp, [], 0
    for C_jm, n_m in zip(C_sjm, n_sm, strict=True):
        o = int(np.count_nonzero(n_m))
        size = o * (C_jm.shape[1] - o)
        part = x[begin : begin + size].reshape(o, -1)
        begin += size
        X_ov = xp.asarray(part)
        rotated = rotations.rotate(C_jm[:, :o], C_jm[:, o:], X_ov)
        pair = rotations.orthonormalise(*rotated, X_ov, float(np.linalg.norm(part)), xp) if size else rotated
        turned.append(xp.concatenate(pair, axis=1))
    return xp.stack(turned)
