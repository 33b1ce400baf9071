"""Atoms in a molecule: Hirshfeld charges and Mayer bond orders.

F. L. Hirshfeld, Theor. Chim. Acta 44, 129 (1977), doi:10.1007/BF00549096; I. Mayer, Chem. Phys. Lett. 97, 270 (1983),
doi:10.1016/0009-2614(83)80005-0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.grid.points import atomic_points
from cuanto.grid.settings import GridSettings
from cuanto.properties.density import atom_of_function
from cuanto.properties.volume import density_at
from cuanto.scf.atoms import atom
from cuanto.system import Molecule

GRID = "fine"
CHUNK = 5000
"""Points that are treated at a time."""
SMALLEST = 1e-30
"""Density of all free atoms below which a point belongs to none of them."""


def mayer(basis: Basis, D_spq: Any, S_pq: Any) -> Array:
    """Bond orders B_ab = 2 sum_s sum_(p on a, q on b) (D_s S)_pq (D_s S)_qp; valences of closed shells on the diagonal.

    A density that is the sum of both spins counts as two equal halves.
    """
    densities = [np.asarray(D_pq) for D_pq in D_spq]
    halves = [0.5 * densities[0]] * 2 if len(densities) == 1 else densities
    PS_spq = [D_pq @ S_pq for D_pq in halves]
    belongs_ap = (atom_of_function(basis)[None, :] == np.arange(len(basis.R_ax))[:, None]).astype(float)
    products_pq = 2.0 * sum(PS_pq * PS_pq.T for PS_pq in PS_spq)
    B_ab = belongs_ap @ products_pq @ belongs_ap.T
    np.fill_diagonal(B_ab, B_ab.sum(axis=1) - np.diagonal(B_ab))
    return np.asarray(B_ab)


def hirshfeld(molecule: Molecule, basis: Basis, D_spq: Any) -> Array:
    """Number of electrons on each atom: the density is divided in the ratio of the densities of the free atoms.

    The free atoms are neutral and spherical, in the same basis. Each share is integrated on the points of its own atom,
    which resolve it best.
    """
    D_pq = np.asarray(D_spq).sum(axis=0)
    free = _FreeAtoms(molecule, basis)
    settings = GridSettings.of(GRID)
    found = np.zeros(molecule.natom)
    for a in np.flatnonzero(molecule.nuclei.charges > 0):
        r_gx, w_g, _ = atomic_points(int(molecule.numbers[a]), settings)
        for k in range(0, len(w_g), CHUNK):
            R_gx = r_gx[k : k + CHUNK] + molecule.R_ax[a]
            own_g, all_g = free.densities(int(a), R_gx)
            rho_g = density_at(basis, D_pq[None], R_gx)[0]
            share_g = np.divide(own_g, all_g, out=np.zeros_like(own_g), where=all_g > SMALLEST)
            found[a] += float(np.sum(w_g[k : k + CHUNK] * share_g * rho_g))
    return found


class _FreeAtoms:
    """Densities of the free atoms of a molecule, as functions of the distance from their nuclei."""

    def __init__(self, molecule: Molecule, basis: Basis) -> None:
        self.R_ax, self.real = molecule.R_ax, np.flatnonzero(molecule.nuclei.charges > 0)
        kinds: dict[str, Any] = {}
        for a in self.real:
            symbol = molecule.symbols[a]
            if symbol not in kinds:
                shells = tuple(shell for shell in basis.shells if shell.atom == a)
                kinds[symbol] = (shells, atom(int(molecule.numbers[a]), 0.0, shells, basis.core_potentials[a]))
        self._kinds, self._symbols = kinds, molecule.symbols

    def densities(self, a: int, R_gx: Array) -> tuple[Array, Array]:
        """Density of the free atom a, and of all free atoms, at some points."""
        values = {int(b): self._density(self._symbols[b], R_gx - self.R_ax[b]) for b in self.real}
        return values[a], np.asarray(sum(values.values()))

    def _density(self, symbol: str, d_gx: Array) -> Array:
        """sum_li n_li R_li(r)^2 / 4 pi."""
        shells, found = self._kinds[symbol]
        r2_g = (d_gx**2).sum(axis=1)
        rho_g = np.zeros(len(d_gx))
        for l, (C_ai, n_i) in enumerate(zip(found.C_lai, found.n_li, strict=True)):
            own = [shell for shell in shells if shell.l == l]
            radial_ga = np.concatenate(
                [np.exp(-np.outer(r2_g, shell.exponents)) @ shell.coefficients for shell in own], axis=1
            )
            rho_g += r2_g**l * ((radial_ga @ C_ai) ** 2 @ n_i)
        return rho_g / (4 * np.pi)
