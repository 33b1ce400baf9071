"""Initial guess: neutral atoms, or the orbitals of the molecules of a cluster, each computed separately.

In a large cluster the levels of a guess from neutral atoms are not in the order of the converged state, and filling the
lowest ones moves electrons from one end to the other. A guess from converged molecules leaves their electrons in place;
the SCF only has to polarise them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.log import logger
from cuanto.memory import Budget
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem
from cuanto.scf.loop import fock as fock_matrix
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.semiempirical import batch
from cuanto.semiempirical.constants import BOHR
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.rotation_steps import projectors
from cuanto.semiempirical.terms import start_density
from cuanto.system.covalent_radii import RADII
from cuanto.system.distances import close_pairs

Atoms = NDArray[np.int64]

MIN_CLUSTER_ORBITALS = tuning.size("cpu", "semiempirical.fragment_orbitals")
"""Smallest number of orbitals of a cluster that starts from the orbitals of its molecules."""
BOND_FACTOR = 1.3
"""Atoms are bonded if their distance is below this multiple of the sum of their radii."""
MAX_FRAGMENT_ORBITALS = tuning.size("cpu", "semiempirical.largest_fragment")
"""Largest number of orbitals of a molecule of the cluster."""
FRAGMENT_TOLERANCES = (1e-6, 1e-4)
"""Tolerances for energies (Hartree) and gradients of the molecules. Neighbours will change them by more, but with a
gradient of 1e-2 it would not be certain that the lowest orbitals are occupied."""


def begin(
    problem: Problem,
    layout: Layout,
    R_ax: Array,
    electrons: tuple[int, int],
    spins: int,
    diagonaliser: Diagonaliser,
    given: Density | None,
    budget: Budget,
) -> Density | tuple[Any, Any]:
    """The starting point of the SCF: the `given` density or an initial guess.

    Economical rotations start from orbitals and their energies instead: those of the molecules of a neutral cluster,
    or the eigenvectors of the first Fock matrix.
    """
    frame, timings, start = problem.frame, problem.timings, given
    rotations = diagonaliser if isinstance(diagonaliser, Pseudo) and diagonaliser.variant.economical else None
    neutral = electrons[0] == electrons[1] and sum(electrons) == int(layout.core_charges.sum())
    if start is None and neutral and layout.orbitals >= MIN_CLUSTER_ORBITALS:
        with timings.measure("guess"):
            found = fragment_orbitals(layout, R_ax, budget)
        if found is not None:
            C_sjm, eps_sm = (frame.backend.xp.stack([array] * spins) for array in found)
            if rotations is not None:
                return rotations.begin(C_sjm, eps_sm, distant=True)
            start = Density(projectors(C_sjm, list(electrons)[:spins], 2.0 / spins, frame.backend), None)
    if start is None:
        start = start_density(layout, electrons, spins, frame.backend)
    if rotations is None:
        return start
    F_sjk = frame.matrix(fock_matrix(problem, start)[1])
    with timings.measure("diagonalisation"), frame.blas_threads:
        return rotations.first(F_sjk)


def find_molecules(symbols: Sequence[str], R_ax: Array) -> list[Atoms]:
    """Atoms of each molecule, found from distances (`R_ax` in Angstrom), in the order of their first atoms."""
    from scipy.sparse import coo_array  # imported here, because they are slow to import
    from scipy.sparse.csgraph import connected_components

    radius_a = np.array([RADII[symbol] for symbol in symbols])
    r_k, a, b = close_pairs(R_ax, 2.0 * BOND_FACTOR * float(radius_a.max()))
    near = r_k < BOND_FACTOR * (radius_a[a] + radius_a[b])
    graph = coo_array((np.ones(int(near.sum())), (a[near], b[near])), shape=(len(symbols), len(symbols)))
    count, label_a = connected_components(graph, directed=False)
    return [np.flatnonzero(label_a == k) for k in range(count)]


def fragment_orbitals(layout: Layout, R_ax: Array, budget: Budget) -> tuple[Any, Any] | None:
    """Orbitals C_jm and energies eps_m of all molecules of a neutral cluster, occupied orbitals first.

    None if there is only one molecule, or if any is too large, is a radical or does not converge separately. `R_ax` in
    Bohr (see `BOHR`).
    """
    parts = find_molecules(layout.symbols, R_ax * BOHR)
    groups: dict[tuple[str, ...], list[Atoms]] = {}
    for atoms in parts:
        groups.setdefault(tuple(layout.symbols[a] for a in atoms), []).append(atoms)
    layouts = {symbols: Layout(layout.parameters, symbols) for symbols in groups}
    odd = any(int(one.core_charges.sum()) % 2 for one in layouts.values())
    if len(parts) == 1 or odd or max(one.orbitals for one in layouts.values()) > MAX_FRAGMENT_ORBITALS:
        return None
    n, backend = layout.orbitals, budget.backend
    C_jm, eps_m = backend.zeros((n, n), np.float64), backend.zeros((n,), np.float64)
    filled, empty = 0, int(layout.core_charges.sum()) // 2
    for symbols, members in groups.items():
        own = layouts[symbols]
        o, v = int(own.core_charges.sum()) // 2, own.orbitals - int(own.core_charges.sum()) // 2
        size = batch.batch_size(own, budget, len(members))
        for begin in range(0, len(members), size):
            atoms_ba = np.stack(members[begin : begin + size])
            solved = batch.solve(own, R_ax[atoms_ba], (o, o), backend, 1, FRAGMENT_TOLERANCES)
            if not solved.converged_b.all():
                budget.release(batch.BATCH)
                logger.info("guess: neutral atoms, because a molecule of the cluster does not converge separately")
                return None
            first = np.arange(len(atoms_ba))[:, None]
            columns = np.concatenate([filled + o * first + np.arange(o), empty + v * first + np.arange(v)], axis=1)
            indices = backend.upload({"rows": _orbitals_of(layout, atoms_ba), "columns": columns})
            C_jm[indices["rows"][:, :, None], indices["columns"][:, None, :]] = solved.C_bsjm[:, 0]
            eps_m[indices["columns"]] = solved.eps_bsm[:, 0]
            filled, empty = filled + o * len(atoms_ba), empty + v * len(atoms_ba)
    budget.release(batch.BATCH)
    return C_jm, eps_m


def _orbitals_of(layout: Layout, atoms_ba: Atoms) -> Atoms:
    """Indices of the orbitals of molecules with the same composition."""
    begin, end = layout.first[atoms_ba], layout.first[atoms_ba + 1]
    return np.stack(
        [np.concatenate([np.arange(i, j) for i, j in zip(*row, strict=True)]) for row in zip(begin, end, strict=True)]
    ).astype(np.int64)
