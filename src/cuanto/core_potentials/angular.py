"""Coupling numbers: projections of polynomials times Gaussians on spherical harmonics about another centre.

About the centre C, with r = |r - C|, directions Omega and d = A - C, a function of a shell at A is a polynomial in
r Omega - d times a Gaussian. With exp(2 a r d.Omega) = 4 pi sum_n i_n(2 a r d) sum_m Y_nm(d) Y_nm(Omega) its projection
is <Y_lm|f> = exp(-a (r^2 + d^2)) sum_kn X_lmf,kn r^k i_n(2 a r d): McMurchie and Davidson, J. Comput. Phys. 44,
289 (1981), doi:10.1016/0021-9991(81)90053-X.
"""

from __future__ import annotations

from functools import cache
from math import comb, pi, prod

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix, solid_harmonic_matrix
from cuanto.kernels.core_potential import coupled_terms
from cuanto.kernels.recurrences.components import shift_power


def monomials(degree: int, r_gx: Array) -> Array:
    """All monomials of a degree at points, [point, monomial]."""
    powers = np.array(cartesian_powers(degree))
    return np.asarray(np.prod(r_gx[:, None, :] ** powers, axis=2))


def harmonics(l: int, unit_gx: Array) -> Array:
    """Real spherical harmonics in directions, [direction, m]."""
    return np.asarray(monomials(l, unit_gx) @ solid_harmonic_matrix(l).T)


@cache
def _sphere(degree: int) -> tuple[Array, Array]:
    """Directions and weights of a product quadrature that is exact to a degree."""
    cosine, weight = np.polynomial.legendre.leggauss(degree // 2 + 1)
    angles = 2 * pi * np.arange(degree + 1) / (degree + 1)
    sine = np.sqrt(1 - cosine**2)
    unit = [np.outer(sine, np.cos(angles)), np.outer(sine, np.sin(angles)), np.repeat(cosine[:, None], degree + 1, 1)]
    weights = np.repeat(weight[:, None], degree + 1, 1) * 2 * pi / (degree + 1)
    return np.stack([x.reshape(-1) for x in unit], axis=1), weights.reshape(-1)


@cache
def _integrals(l: int, k: int, n: int) -> Array:
    """4 pi int Y_lm Omega^k Y_nm' dOmega, [m', monomial of degree k and m]."""
    unit_gx, weight_g = _sphere(l + k + n)
    both = (harmonics(l, unit_gx)[:, :, None] * monomials(k, unit_gx)[:, None, :]).reshape(len(unit_gx), -1)
    return np.asarray(4 * pi * (harmonics(n, unit_gx) * weight_g[:, None]).T @ both)


@cache
def _binomials(degree: int, k: int) -> tuple[Array, Ints]:
    """Monomials of `degree` in x - d by monomials of degree k in x: factors, and powers of d."""
    above, below = np.array(cartesian_powers(degree)), np.array(cartesian_powers(k))
    left = above[:, None, :] - below
    factors = [[prod(comb(a, b) for a, b in zip(i, j, strict=True)) for j in below.tolist()] for i in above.tolist()]
    sign = (-1.0) ** (degree - k)
    return sign * np.array(factors, dtype=float), np.maximum(left, 0)


class Directions:
    """Displacements of several atoms from a centre, with angular integrals that all their shells share."""

    def __init__(self, d_ax: Array) -> None:
        self.d_ax = d_ax
        self.distances = np.linalg.norm(d_ax, axis=1)
        safe = np.where(self.distances > 0, self.distances, 1.0)
        self._unit_ax = np.where(self.distances[:, None] > 0, d_ax / safe[:, None], [0.0, 0.0, 1.0])
        self._known: dict[tuple[int, int, int], Array] = {}

    def _projected(self, l: int, k: int, n: int) -> Array:
        """int Y_lm Omega^k exp(2 a r d.Omega) dOmega / i_n, [atom, m, monomial]."""
        if (l, k, n) not in self._known:
            found = harmonics(n, self._unit_ax) @ _integrals(l, k, n)
            self._known[l, k, n] = found.reshape(len(found), 2 * l + 1, -1)
        return self._known[l, k, n]

    def _shifted(self, polynomials: Array, degree: int, k: int, atoms: Ints) -> Array:
        """Parts of degree k of polynomials [function, monomial] about the atoms, [atom, monomial, function]."""
        factors, powers = _binomials(degree, k)
        d = self.d_ax[atoms]
        moved = factors * np.prod(d[:, None, None, :] ** powers, axis=3)
        return np.asarray(moved.swapaxes(1, 2) @ polynomials.T)

    def coupling(self, polynomials: Array, degree: int, l: int, atoms: Ints) -> Array:
        """Coupling numbers of homogeneous polynomials and a momentum, [atom, m, function, term of `coupled_terms`]."""
        parts = [self._shifted(polynomials, degree, k, atoms) for k in range(degree + 1)]
        terms = [self._projected(l, k, n)[atoms] @ parts[k] for k, n in coupled_terms(l, degree)]
        shape = (len(atoms), 2 * l + 1, len(polynomials), 0)
        return np.stack(terms, axis=3) if terms else np.zeros(shape)

    def value_coupling(self, shell: tuple[int, bool], momenta: int, atoms: Ints) -> Array:
        """X of the functions of a shell (angular momentum, pure), [atom, number]."""
        polynomials = shell_matrix(*shell)
        parts = [self.coupling(polynomials, shell[0], l, atoms).reshape(len(atoms), -1) for l in range(momenta)]
        return np.concatenate(parts, axis=1)

    def derivative_coupling(self, shell: tuple[int, bool], momenta: int, atoms: Ints) -> Array:
        """X of the derivatives with respect to the shell's centre, [atom, number]: raised, then lowered polynomials."""
        higher, lower = derivative_polynomials(*shell)
        parts = []
        for l in range(momenta):
            size = (len(atoms), 2 * l + 1, len(higher) // 3, 3, -1)
            terms = [self.coupling(higher, shell[0] + 1, l, atoms).reshape(size)]
            if shell[0]:
                terms.append(self.coupling(lower, shell[0] - 1, l, atoms).reshape(size))
            parts.append(np.concatenate(terms, axis=4).reshape(len(atoms), -1))
        return np.concatenate(parts, axis=1)


@cache
def derivative_polynomials(l: int, pure: bool) -> tuple[Array, Array]:
    """x S, to be multiplied by 2 a, and -dS/dx of the polynomials S of a shell, [function and axis, monomial]."""
    S = shell_matrix(l, pure)
    up = {powers: i for i, powers in enumerate(cartesian_powers(l + 1))}
    down = {powers: i for i, powers in enumerate(cartesian_powers(l - 1))} if l else {}
    higher, lower = np.zeros((len(S), 3, len(up))), np.zeros((len(S), 3, len(down)))
    for i, powers in enumerate(cartesian_powers(l)):
        for x in range(3):
            higher[:, x, up[shift_power(powers, x)]] += S[:, i]
            if powers[x]:
                lower[:, x, down[shift_power(powers, x, -1)]] -= powers[x] * S[:, i]
    return higher.reshape(3 * len(S), -1), lower.reshape(3 * len(S), len(down))
