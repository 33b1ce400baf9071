"""Atoms in a molecule: Hirshfeld charges and Mayer bond orders.

F. L. Hirshfeld, Theor. Chim. Acta 44, 129 (1977), doi:10.1007/BF00549096; I. Mayer, Chem. Phys. Lett. 97, 270 (1983),
doi:10.1016/0009-2614(83)80005-0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis, Shell
from cuanto.grid import GridSettings, make_grid, make_quadrature
from cuanto.grid.points import atomic_points
from cuanto.memory import Budget
from cuanto.properties.volume import density_at
from cuanto.scf.atoms import Atom, atom
from cuanto.system import Molecule

GRID = "medium"
"""The level of the grid: it adds an error of about 1e-4 to a charge."""
SMALL = 1e9
"""Largest product of the grid points and the squared number of functions of a molecule that counts as small."""
CHUNK = 4000
"""Points that NumPy treats at a time."""
REACH = 15.0
"""Bohr. Free atoms whose nuclei are farther from a whole group of points have no share in it."""
STEPS = 2000
RADII = REACH * np.linspace(0.0, 1.0, STEPS + 1) ** 2
"""Distances from a nucleus at which densities of free atoms are tabulated, Bohr."""
SMALLEST = 1e-30
"""Smallest density of a free atom that is told apart from zero."""


def mayer(basis: Basis, D_spq: Any, S_pq: Any) -> Array:
    """Bond orders B_ab = 2 sum_s sum_(p on a, q on b) (D_s S)_pq (D_s S)_qp; valences of closed shells on the diagonal.

    A density that is the sum of both spins counts as two equal halves.
    """
    densities = [np.asarray(D_pq) for D_pq in D_spq]
    halves = [0.5 * densities[0]] * 2 if len(densities) == 1 else densities
    PS_spq = [D_pq @ S_pq for D_pq in halves]
    belongs_ap = (basis.function_atoms[None, :] == np.arange(len(basis.R_ax))[:, None]).astype(float)
    products_pq = 2.0 * sum(PS_pq * PS_pq.T for PS_pq in PS_spq)
    B_ab = belongs_ap @ products_pq @ belongs_ap.T
    np.fill_diagonal(B_ab, B_ab.sum(axis=1) - np.diagonal(B_ab))
    return np.asarray(B_ab)


def hirshfeld(molecule: Molecule, basis: Basis, D_spq: Any, backend: Backend) -> Array:
    """Number of electrons on each atom: the density is divided in the ratio of the densities of the free atoms.

    The free atoms are neutral and spherical, by unrestricted Hartree-Fock with the spins of Hund's rule in the same
    basis: one electron must not repel itself. Small molecules are computed with NumPy, which does not
    have to compile kernels.
    """
    settings, free = GridSettings.of(GRID, store="recompute"), _FreeAtoms(molecule, basis)
    if settings.points(molecule.numbers) * basis.nbf**2 <= SMALL:
        return _on_atomic_grids(molecule, basis, backend.to_host(D_spq).sum(axis=0), free, settings)
    grid = make_grid(molecule, basis, settings, backend)
    quadrature, _ = make_quadrature(grid, basis, backend, "lda", settings, Budget(backend))
    rho_g = backend.to_host(quadrature.density(D_spq, None)).sum(axis=0)[0]
    R_gx, electrons_g = backend.to_host(grid.position_xg).T, grid.w_g * rho_g
    found = np.zeros(molecule.natom)
    for first, last in pairwise(grid.point_first):
        weighted = first + np.flatnonzero(grid.w_g[first:last])
        if len(weighted):
            near, share_ag = free.shares(R_gx[weighted])
            found[near] += share_ag @ electrons_g[weighted]
    return found


def _on_atomic_grids(molecule: Molecule, basis: Basis, D_pq: Array, free: _FreeAtoms, settings: GridSettings) -> Array:
    """The same with NumPy; each share is integrated on the points of its own atom."""
    found = np.zeros(molecule.natom)
    for a in np.flatnonzero(molecule.nuclei.protons > 0):
        r_gx, w_g, _ = atomic_points(int(molecule.numbers[a]), settings)
        for k in range(0, len(w_g), CHUNK):
            R_gx = r_gx[k : k + CHUNK] + molecule.R_ax[a]
            rho_g = density_at(basis, D_pq[None], R_gx)[0]
            near, share_ag = free.shares(R_gx)
            found[a] += float((share_ag[near == a] @ (w_g[k : k + CHUNK] * rho_g)).sum())
    return found


class _FreeAtoms:
    """Densities of the free atoms of a molecule, tabulated by the distance from their nuclei."""

    def __init__(self, molecule: Molecule, basis: Basis) -> None:
        self.R_ax, self._real = molecule.R_ax, np.flatnonzero(molecule.nuclei.protons > 0)
        kinds = list(dict.fromkeys(molecule.symbols[a] for a in self._real))
        self._kind_a = np.array([kinds.index(symbol) if symbol in kinds else -1 for symbol in molecule.symbols])
        rows = []
        for a in (molecule.symbols.index(symbol) for symbol in kinds):
            shells = basis.shells_of_atoms[a]
            found = atom(int(molecule.numbers[a]), 0.0, shells, basis.core_potentials[a], unrestricted=True)
            rows.append(np.log(np.maximum(_radial_density(shells, found, RADII), SMALLEST)))
        self._table = np.array(rows)

    def shares(self, R_gx: Array) -> tuple[Ints, Array]:
        """Atoms near some points, which are near each other, and the share of each of them in the density there."""
        low_x, high_x = R_gx.min(axis=0), R_gx.max(axis=0)
        away_ax = np.maximum(0.0, np.maximum(low_x - self.R_ax, self.R_ax - high_x))
        near = self._real[(away_ax[self._real] ** 2).sum(axis=1) < REACH**2]
        d2_ag = sum((R_gx[:, x] - self.R_ax[near, x, None]) ** 2 for x in range(3))
        rho_ag = np.exp(self._logarithms(near, np.sqrt(d2_ag)))
        return near, rho_ag / rho_ag.sum(axis=0)

    def _logarithms(self, atoms: Ints, r_ag: Array) -> Array:
        """Logarithms of the densities of some atoms, interpolated linearly in the square root of the distance."""
        place_ag = np.minimum(np.sqrt(r_ag / REACH), 1.0) * STEPS
        step_ag = np.minimum(place_ag.astype(np.intp), STEPS - 1)
        rest_ag = place_ag - step_ag
        step_ag += (STEPS + 1) * self._kind_a[atoms, None]
        return np.asarray(self._table.take(step_ag) * (1 - rest_ag) + self._table.take(step_ag + 1) * rest_ag)


def _radial_density(shells: Sequence[Shell], found: Atom, r_i: Array) -> Array:
    """Density of a spherical atom: sum_li n_li R_li(r)^2 / 4 pi."""
    rho_i = np.zeros(len(r_i))
    for l, (C_an, n_n) in enumerate(zip(found.C_lai, found.n_li, strict=True)):
        own = [shell for shell in shells if shell.l == l]
        if own:
            parts = [np.exp(-np.outer(r_i**2, shell.exponents)) @ shell.coefficients for shell in own]
            rho_i += r_i ** (2 * l) * ((np.concatenate(parts, axis=1) @ C_an) ** 2 @ n_n)
    return rho_i / (4 * np.pi)
