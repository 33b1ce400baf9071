"""Semiempirical energies and gradients of many molecules; those of one composition are computed together."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.log import Timings, logger
from cuanto.methods.hints import with_hints, with_hints_of_all
from cuanto.methods.semiempirical import Semiempirical, SemiempiricalResult
from cuanto.scf.loop import Density
from cuanto.scf.state import State
from cuanto.semiempirical import batch, properties
from cuanto.semiempirical.constants import RESCALE
from cuanto.semiempirical.diagonalisers import settings
from cuanto.semiempirical.layout import positions
from cuanto.system import Molecule

BATCH_OPTIONS = ("energy_tolerance", "gradient_tolerance")
"""Options with which molecules can be computed together."""
MIN_GAP = 0.1
"""HOMO-LUMO gap, Hartree, below which a molecule is computed again, alone: a single calculation, which has further
safeguards, may find another state."""
MAX_ITERATIONS = 18
"""Iterations after which it is, too."""
EARLY, EARLY_GAP = 6, 0.3
"""Iterations below which it is if the gap (Hartree) is below this: symmetric molecules, perhaps at a saddle point."""


def semiempirical_energies(
    molecules: Sequence[Molecule], method: str, backend: Backend, gradient: bool = False, **options: Any
) -> list[SemiempiricalResult]:
    """Results of many molecules in the order given; those of one composition are computed together.

    Matrices are small: on a CPU every thread works on different molecules, with linear algebra on one thread.
    Results of molecules computed together have no density matrix. If options other than the energy and gradient
    tolerances are given, each molecule is computed separately.
    """
    checked, diagonaliser = settings(options)
    if not options.keys() <= set(BATCH_OPTIONS):
        given = (backend, checked)
        alone = [Semiempirical(one, method.lower(), *given, diagonaliser=diagonaliser) for one in molecules]
        return [with_hints(one.run()) for one in alone]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k, molecule in enumerate(molecules):
        groups.setdefault((molecule.symbols, molecule.charge, molecule.multiplicity), []).append(k)
    threads = backend.traits.workers if backend.traits.parallel_calculations else 1
    chunks: list[tuple[Semiempirical, list[int]]] = []
    for members in groups.values():
        first = Semiempirical(molecules[members[0]], method.lower(), backend, checked, diagonaliser=diagonaliser)
        for warning in first.warnings:
            logger.warning("%s: %s", first.molecule.name or "".join(first.molecule.symbols), warning)
        first.engine.prepare()  # before several threads need the same kernels
        size = batch.batch_size(first.layout, first.budget, len(members), threads)
        chunks += [(first, members[begin : begin + size]) for begin in range(0, len(members), size)]

    def solve(chunk: tuple[Semiempirical, list[int]]) -> list[SemiempiricalResult]:
        return with_hints_of_all(_solve_batch([molecules[k] for k in chunk[1]], chunk[0], gradient))

    with one_thread, ThreadPoolExecutor(threads) as pool:
        solved = list((map if threads == 1 else pool.map)(solve, chunks))
    order = [k for _, chunk in chunks for k in chunk]
    found = dict(zip(order, (result for results in solved for result in results), strict=True))
    return [found[k] for k in range(len(molecules))]


def _solve_batch(molecules: Sequence[Molecule], model: Semiempirical, gradient: bool) -> list[SemiempiricalResult]:
    """Molecules of one composition; those that do not converge together, or perhaps to another state than alone, are
    computed one by one, and so are open shells: their tests of stability take as long as the rest."""
    if model.spins == 2 and model.scf.stability != "none":
        return [replace(model, molecule=molecule, timings=Timings()).run() for molecule in molecules]
    layout, options, backend = model.layout, model.options, model.backend
    electrons = layout.electrons(model.molecule.charge, model.molecule.multiplicity)
    tolerances = (options.energy_tolerance, options.gradient_tolerance)
    R_bax = positions(molecules)
    solved = batch.solve(layout, R_bax, electrons, backend, model.spins, tolerances)
    slopes_bax = backend.to_host(solved.engine.gradient(solved.D_bspq)) if gradient else None
    D_bpq, eps_bsm = backend.to_host(solved.D_bspq.sum(axis=1)), backend.to_host(solved.eps_bsm)
    filled = (sum(electrons) // 2,) if model.spins == 1 else electrons
    safe_b = solved.converged_b & ~_doubtful(solved.iterations_b, eps_bsm, filled)
    n_sm = np.array([(3.0 - model.spins) * (np.arange(layout.orbitals) < n) for n in filled])
    results = []
    for b, molecule in enumerate(molecules):
        alone = replace(model, molecule=molecule, timings=Timings())
        if not safe_b[b] or model.scf.stability != "none":
            start = Density(solved.D_bspq[b], None) if safe_b[b] else None
            results.append(alone.run(start=start))
            continue
        correction, correction_ax = alone.corrections
        state = State(
            iteration=int(solved.iterations_b[b]),
            energy=float(solved.energy_b[b]) + correction,
            energies={},
            gradient=float(solved.gradient_b[b]),
            eps_sm=eps_bsm[b],
            n_sm=n_sm,
        )
        magnitude = float(solved.magnitude_b[b]) + abs(correction)
        result = alone.result(state, notes=alone.warnings, magnitude=magnitude)
        charge, mass_a = molecule.charge, molecule.nuclei.masses
        vars(result)["dipole"] = properties.dipole(layout, R_bax[b], D_bpq[b], charge, mass_a)
        vars(result)["charges"] = properties.charges(layout, D_bpq[b])
        if slopes_bax is not None:
            vars(result)["gradient"] = (slopes_bax[b] + correction_ax) * RESCALE
        results.append(result)
    return results


def _doubtful(iterations_b: NDArray[np.int64], eps_bsm: Array, filled: Sequence[int]) -> NDArray[np.bool_]:
    """Mask of the molecules for which a single calculation may find another state."""
    gaps_b = np.full(len(eps_bsm), np.inf)
    for s, n in enumerate(filled):
        if 0 < n < eps_bsm.shape[-1]:
            gaps_b = np.minimum(gaps_b, eps_bsm[:, s, n] - eps_bsm[:, s, n - 1])
    early_b = (iterations_b < EARLY) & (gaps_b < EARLY_GAP)
    return early_b | (iterations_b > MAX_ITERATIONS) | (gaps_b < MIN_GAP)
