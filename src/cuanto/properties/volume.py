"""Orbitals and densities on a regular grid of points, for pictures and cube files, and at any points.

On axes that are parallel to x, y and z every Gaussian is a product f(x) g(y) h(z), so that an orbital is, plane by
plane, one product of matrices: sum_n [f_n(x) g_n(y)] h_n(z), n over primitives and their monomials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.errors import require

MAX_POINTS = 100_000_000
"""Corresponds to a cube file of 1.3 GB; larger requests are assumed to be mistakes."""
NEGLIGIBLE = 1e-15
"""Primitives that are smaller in a whole plane of the grid are neglected there."""


@dataclass(frozen=True, eq=False)
class Box:
    """A regular grid: `shape` points along x, y, z from `origin`, `spacing` apart (Bohr)."""

    origin: tuple[float, float, float]
    spacing: float
    shape: tuple[int, int, int]

    @classmethod
    def around(cls, R_ax: ArrayLike, spacing: float = 0.2, margin: float = 5.0) -> Box:
        """Make a box around all atoms with a `margin`, centred on them."""
        R = np.asarray(R_ax, dtype=float).reshape(-1, 3)
        good = np.isfinite(spacing) and spacing > 0 and np.isfinite(margin) and margin >= 0
        require(good, f"a grid needs a spacing above 0 and a margin, {spacing:g} and {margin:g} were given")
        low, high = R.min(axis=0) - margin, R.max(axis=0) + margin
        steps = np.maximum(np.ceil((high - low) / spacing - 1e-9), 1.0)
        points = np.prod(steps + 1)
        require(points <= MAX_POINTS, f"a grid of {points:.2g} points is too large: take a wider spacing")
        start = (low + high - steps * spacing) / 2
        nx, ny, nz = (int(n) + 1 for n in steps)
        return cls((float(start[0]), float(start[1]), float(start[2])), float(spacing), (nx, ny, nz))

    @property
    def axes(self) -> tuple[Array, Array, Array]:
        """Coordinates along x, y and z."""
        x, y, z = (np.arange(n) * self.spacing + o for o, n in zip(self.origin, self.shape, strict=True))
        return np.asarray(x), np.asarray(y), np.asarray(z)

    def part(self, first: tuple[int, int, int], last: tuple[int, int, int]) -> Box:
        """Points first .. last - 1 along each axis."""
        x, y, z = (o + self.spacing * i for o, i in zip(self.origin, first, strict=True))
        nx, ny, nz = (b - a for a, b in zip(first, last, strict=True))
        return Box((x, y, z), self.spacing, (nx, ny, nz))


def orbital_on_grid(basis: Basis, C_p: Array, box: Box) -> Array:
    """One orbital, values [x, y, z]."""
    return _Products(basis, box).values(np.asarray(C_p, dtype=float))


def density_on_grid(basis: Basis, C_spm: Array, n_sm: Array, box: Box, signs: Sequence[float] = (1.0, 1.0)) -> Array:
    """sum n |psi|^2 over spins and orbitals, values [x, y, z]; `signs` (1, -1) give the spin density."""
    products = _Products(basis, box)
    total = np.zeros(box.shape)
    for C_pm, n_m, sign in zip(C_spm, n_sm, signs, strict=False):
        for m in np.flatnonzero(n_m):
            total += sign * n_m[m] * products.values(C_pm[:, m]) ** 2
    return total


def density_at(basis: Basis, D_spq: Array, r_gx: Array) -> Array:
    """Density of every spin at any points, rho_sg."""
    chi_gp = functions_at(basis, r_gx)
    return np.stack([np.einsum("gp,gp->g", chi_gp @ D_pq, chi_gp) for D_pq in D_spq])


def functions_at(basis: Basis, r_gx: Array) -> Array:
    """Values of all basis functions at any points, chi_gp."""
    chi_pg, last = np.empty((basis.nbf, len(r_gx))), None
    for shell, first in zip(basis.shells, basis.offsets, strict=True):
        if shell.atom != last:
            d_xg, last = (r_gx - basis.R_ax[shell.atom]).T, shell.atom
            r2_g, monomials = (d_xg**2).sum(axis=0), {(0, 0, 0): np.ones(len(r_gx))}
        radial_ng = shell.coefficients.T @ np.exp(np.outer(-shell.exponents, r2_g))
        for powers in cartesian_powers(shell.l):
            if powers not in monomials:
                monomials[powers] = np.prod([d_g**k for d_g, k in zip(d_xg, powers, strict=True) if k], axis=0)
        angular_mg = shell_matrix(shell.l, shell.pure) @ np.stack([monomials[c] for c in cartesian_powers(shell.l)])
        values_nmg = radial_ng[:, None, :] * angular_mg
        chi_pg[first : first + shell.nbf] = values_nmg.reshape(-1, len(r_gx))
    return chi_pg.T


class _Products:
    """Factors f, g, h of every primitive monomial at the points of each axis."""

    def __init__(self, basis: Basis, box: Box) -> None:
        self.basis, self.box = basis, box
        self.factors = [self._along(x, points) for x, points in enumerate(box.axes)]

    def _along(self, x: int, points: Array) -> Array:
        """[point, primitive monomial]."""
        columns = []
        for shell in self.basis.shells:
            d_g = points - self.basis.R_ax[shell.atom, x]
            e_gk = np.exp(-np.outer(d_g**2, shell.exponents))
            power_gc = d_g[:, None] ** np.array([powers[x] for powers in cartesian_powers(shell.l)])
            columns.append((e_gk[:, :, None] * power_gc[:, None, :]).reshape(len(points), -1))
        return np.concatenate(columns, axis=1)

    def values(self, C_p: Array) -> Array:
        f_xn, g_yn, h_zn = self.factors
        f_xn = f_xn * self._weights(C_p)
        largest_n = np.abs(g_yn).max(axis=0) * np.abs(h_zn).max(axis=0)
        planes = []
        for f_n in f_xn:
            near = np.flatnonzero(np.abs(f_n) * largest_n > NEGLIGIBLE)
            planes.append((g_yn[:, near] * f_n[near]) @ h_zn[:, near].T)
        return np.stack(planes)

    def _weights(self, C_p: Array) -> Array:
        """Weight of every primitive monomial in the orbital."""
        weights = []
        for shell, first in zip(self.basis.shells, self.basis.offsets, strict=True):
            C_qm = C_p[first : first + shell.nbf].reshape(shell.ncol, -1)
            weights.append((shell.coefficients @ C_qm @ shell_matrix(shell.l, shell.pure)).reshape(-1))
        return np.concatenate(weights)
