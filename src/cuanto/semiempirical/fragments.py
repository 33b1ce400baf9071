"""A guess for clusters: the orbitals of their molecules, each converged by itself.

Neutral atoms spread over a large cluster have levels whose order is not that of the converged state, and filling the
lowest moves electrons from one end to the other. Molecules keep theirs, and what is left to be found is how they
polarise each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends.base import Backend
from cuanto.log import logger
from cuanto.semiempirical import batch
from cuanto.semiempirical.constants import BOHR
from cuanto.semiempirical.corrections import RADII
from cuanto.semiempirical.layout import Layout

Array = NDArray[np.float64]
Atoms = NDArray[np.int64]

BONDED = 1.3
"""Times the sum of two radii: nearer atoms are of one molecule."""
LARGEST = tuning.size("cpu", "semiempirical.largest_fragment")
ROUGHLY = (1e-6, 1e-4)
"""Tolerances of the molecules' energies (Hartree) and gradients: their neighbours will change them by more, but with
a gradient of 1e-2 it cannot be said that an SCF has ended at the lowest orbitals."""


def molecules(symbols: Sequence[str], R_ax: Array) -> list[Atoms]:
    """Atoms of every molecule, by distances in Angstrom, in the order of their first ones."""
    from scipy.sparse import coo_array  # here, because they are slow to import
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    radius_a = np.array([RADII[symbol] for symbol in symbols])
    a, b = cKDTree(R_ax).query_pairs(2.0 * BONDED * float(radius_a.max()), output_type="ndarray").T
    near = np.linalg.norm(R_ax[a] - R_ax[b], axis=1) < BONDED * (radius_a[a] + radius_a[b])
    graph = coo_array((np.ones(int(near.sum())), (a[near], b[near])), shape=(len(symbols), len(symbols)))
    count, label_a = connected_components(graph, directed=False)
    return [np.flatnonzero(label_a == k) for k in range(count)]


def orbitals(layout: Layout, R_ax: Array, backend: Backend) -> tuple[Any, Any] | None:
    """C_jm and eps_m of a neutral closed shell, occupied orbitals of all molecules first; None where the guess is of no
    use: one molecule, large ones, radicals, or one that does not converge by itself. `R_ax` in these methods' Bohr."""
    parts = molecules(layout.symbols, R_ax * BOHR)
    groups: dict[tuple[str, ...], list[Atoms]] = {}
    for atoms in parts:
        groups.setdefault(tuple(layout.symbols[a] for a in atoms), []).append(atoms)
    layouts = {symbols: Layout(layout.parameters, symbols) for symbols in groups}
    odd = any(int(one.core_charges.sum()) % 2 for one in layouts.values())
    if len(parts) == 1 or odd or max(one.orbitals for one in layouts.values()) > LARGEST:
        return None
    n = layout.orbitals
    C_jm, eps_m = backend.zeros((n, n), np.float64), backend.zeros((n,), np.float64)
    filled, empty = 0, int(layout.core_charges.sum()) // 2
    for symbols, members in groups.items():
        own = layouts[symbols]
        o, v = int(own.core_charges.sum()) // 2, own.orbitals - int(own.core_charges.sum()) // 2
        size = batch.chunk(own, backend, len(members), 1)
        for begin in range(0, len(members), size):
            atoms_ba = np.stack(members[begin : begin + size])
            solved = batch.solve(own, R_ax[atoms_ba], (o, o), backend, 1, ROUGHLY)
            if not solved.converged_b.all():
                logger.info("guess: a molecule of the cluster does not converge by itself, so neutral atoms instead")
                return None
            first = np.arange(len(atoms_ba))[:, None]
            columns = np.concatenate([filled + o * first + np.arange(o), empty + v * first + np.arange(v)], axis=1)
            place = backend.upload({"rows": _orbitals_of(layout, atoms_ba), "columns": columns})
            C_jm[place["rows"][:, :, None], place["columns"][:, None, :]] = solved.C_bsjm[:, 0]
            eps_m[place["columns"]] = solved.eps_bsm[:, 0]
            filled, empty = filled + o * len(atoms_ba), empty + v * len(atoms_ba)
    return C_jm, eps_m


def _orbitals_of(layout: Layout, atoms_ba: Atoms) -> Atoms:
    """Orbitals of molecules of one composition."""
    begin, end = layout.first[atoms_ba], layout.first[atoms_ba + 1]
    return np.stack(
        [np.concatenate([np.arange(i, j) for i, j in zip(*row, strict=True)]) for row in zip(begin, end, strict=True)]
    ).astype(np.int64)
