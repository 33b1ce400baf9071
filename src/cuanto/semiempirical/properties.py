"""Charges, dipole moment and bond orders of a density over orthonormal orbitals."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element
from cuanto.system.masses import dipole_origin

T = 1.0 / sqrt(3.0)
P_WITH_D = {
    0: {(3, 5): 1.0, (1, 4): 1.0, (2, 8): 1.0, (1, 6): -T},
    1: {(3, 7): 1.0, (2, 4): -1.0, (1, 8): 1.0, (2, 6): -T},
    2: {(1, 5): 1.0, (2, 7): 1.0, (3, 6): 2.0 * T},
}
"""Dipole moments of products of a p and a d orbital for each axis, in units of the charge separation."""


def charges(layout: Layout, D_pq: Array) -> Array:
    """Net charge of every atom; `D_pq` is the sum of the spins."""
    populations = np.bincount(layout.atom_of_orbital, weights=np.diagonal(D_pq), minlength=len(layout.symbols))
    return np.asarray(layout.core_charges - populations)


def dipole_vectors(layout: Layout, R_ax: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Rows, columns and weights[axis] of the elements of D that make up the dipole moment of the electrons."""
    rows = columns = np.arange(layout.orbitals)
    weights = -R_ax[layout.atom_of_orbital]
    names = np.array(layout.symbols)
    for symbol in dict.fromkeys(layout.symbols):
        pairs, hybrids = _hybrids(layout.parameters.element(symbol))
        first = layout.first[:-1][names == symbol].astype(np.int64)[:, None]
        rows, columns = (np.append(known, first + own) for known, own in zip((rows, columns), pairs, strict=True))
        weights = np.concatenate([weights, np.tile(hybrids, (len(first), 1))])
    return rows, columns, weights.T


def _hybrids(element: Element) -> tuple[NDArray[np.int64], Array]:
    """Pairs of an atom's orbitals with a dipole moment, and their weights (for both triangles of D)."""
    found = [] if element.orbitals == 1 else [((0, 1 + x), x, element.D["sp"]) for x in range(3)]
    if element.orbitals == 9:
        found += [(pair, x, element.D["pd"] * c) for x, table in P_WITH_D.items() for pair, c in table.items()]
    pairs = np.array([pair for pair, _, _ in found], dtype=np.int64).reshape(-1, 2).T
    return pairs, np.array([-2.0 * D * np.eye(3)[x] for _, x, D in found]).reshape(-1, 3)


def dipole(layout: Layout, R_ax: Array, D_pq: Array, charge: int, mass_a: Array) -> Array:
    """Dipole moment, e Bohr; of an ion about the centre of mass."""
    shifted = R_ax - dipole_origin(mass_a, R_ax, charge)
    rows, columns, weights = dipole_vectors(layout, shifted)
    return np.asarray(layout.core_charges @ shifted + weights @ D_pq[rows, columns])


def bond_orders(layout: Layout, D_spq: Array) -> Array:
    """Wiberg's bond orders between atoms, K. B. Wiberg, Tetrahedron 24, 1083 (1968), doi:10.1016/0040-4020(68)88057-3.

    The diagonal has the valences.
    """
    squares = (2.0 if len(D_spq) == 2 else 1.0) * (D_spq**2).sum(axis=0)
    starts = layout.first[:-1]
    orders = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
    np.fill_diagonal(orders, 0.0)
    np.fill_diagonal(orders, orders.sum(axis=1))
    return np.asarray(orders)
