"""Integrals over radial Gaussians r^l exp(-a r^2) of one atom, in closed form.

The interaction of two distributions r^n exp(-p r^2) and r^m exp(-q r^2) by the term r<^k / r>^(k + 1) of 1/r is a sum
of two integrals in which one of them is inside: the outer one is an incomplete gamma function of an integer, a finite
sum. All terms are positive. Averages over the components of subshells need only k = 0 for J, and the squares of 3j
symbols as weights for K (J. C. Slater, Quantum Theory of Atomic Structure, vol. 1, chapter 14, 1960).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial, gamma

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Shell
from cuanto.basis.shell import normalised_coefficients


@dataclass(frozen=True, eq=False)
class RadialFunctions:
    """Contracted radial functions of one angular momentum: exponents a_k and coefficients C_kf of r^l exp(-a r^2)."""

    l: int
    a_k: Array
    C_kf: Array

    @classmethod
    def of(cls, l: int, shells: Sequence[Shell]) -> RadialFunctions:
        """The functions of shells of angular momentum l, one after the other."""
        # Shells often share exponents.
        a_k, place = np.unique(np.concatenate([shell.exponents for shell in shells]), return_inverse=True)
        C_kf, k, f = np.zeros((len(a_k), sum(shell.ncol for shell in shells))), 0, 0
        for shell in shells:
            rows = place[k : k + len(shell.exponents)]
            np.add.at(C_kf[:, f : f + shell.ncol], rows, shell.coefficients)
            k, f = k + len(rows), f + shell.ncol
        # Coefficients refer to solid harmonics; here the angular functions have unit norm.
        unit = float(normalised_coefficients(l, np.ones(1), np.ones((1, 1)))[0, 0])
        return cls(l, a_k, C_kf / (unit * moment(2 * l + 2, 2.0) ** 0.5))

    @cached_property
    def p_kk(self) -> Array:
        """Sums of two exponents."""
        return np.add.outer(self.a_k, self.a_k)

    def overlap(self) -> Array:
        """S_fg"""
        return self._contracted(moment(2 * self.l + 2, self.p_kk))

    def kinetic(self) -> Array:
        """T_fg"""
        product = np.multiply.outer(self.a_k, self.a_k)
        return self._contracted((2 * self.l + 3) * product / self.p_kk * moment(2 * self.l + 2, self.p_kk))

    def attraction(self, charge: float) -> Array:
        """V_fg of a point charge at the origin."""
        return self._contracted(-charge * moment(2 * self.l + 1, self.p_kk))

    def _contracted(self, M_kk: Array) -> Array:
        found: Array = self.C_kf.T @ M_kk @ self.C_kf
        return found


def moment(n: int, p: Array | float) -> Array:
    """Integral of r^n exp(-p r^2) from 0 to infinity."""
    s = 0.5 * (n + 1)
    return np.asarray(0.5 * gamma(s) * np.asarray(p) ** -s)


def slater(k: int, n: int, p: Array, m: int, q: Array) -> Array:
    """Interaction of r^n exp(-p r^2) dr and r^m exp(-q r^2) dr by r<^k / r>^(k + 1), for all p and q; n - k is even."""
    p, q = p[:, None], q[None, :]
    return _one_inside(k, n, p, m, q) + _one_inside(k, m, q, n, p)


def _one_inside(k: int, n: int, p: Array, m: int, q: Array) -> Array:
    """The part in which r of the first distribution is smaller than that of the second."""
    outer = (m - k - 2) // 2  # the second one is r^(2 outer + 1) exp(-q r^2)
    total = np.zeros(np.broadcast_shapes(p.shape, q.shape))
    for j in range(outer + 1):
        factor = 0.5 * factorial(outer) / factorial(j)
        total += factor * q ** (j - outer - 1.0) * moment(n + k + 2 * j, p + q)
    return total


def repulsion(one: RadialFunctions, other: RadialFunctions) -> tuple[Array, Array]:
    """[f, g, c, d]: J and K between functions f, g of one angular momentum for a density c, d of the other.

    Averaged over the components of both; the density is that of all components together.
    """
    n, m = 2 * one.l + 2, 2 * other.l + 2
    fs, cs = one.C_kf.shape[1], other.C_kf.shape[1]
    pairs, others = np.kron(one.C_kf, one.C_kf), np.kron(other.C_kf, other.C_kf)
    J = pairs.T @ slater(0, n, one.p_kk.reshape(-1), m, other.p_kk.reshape(-1)) @ others
    mixed, p = np.kron(one.C_kf, other.C_kf), np.add.outer(one.a_k, other.a_k).reshape(-1)
    n = one.l + other.l + 2
    K = np.zeros((fs * cs, fs * cs))
    for k in range(abs(one.l - other.l), one.l + other.l + 1, 2):
        K += three_j_squared(one.l, k, other.l) * (mixed.T @ slater(k, n, p, n, p) @ mixed)
    return J.reshape(fs, fs, cs, cs), K.reshape(fs, cs, fs, cs).transpose(0, 2, 1, 3)


def three_j_squared(a: int, b: int, c: int) -> float:
    """Square of the 3j symbol of a, b and c with all projections zero; a + b + c is even."""
    g = (a + b + c) // 2
    sizes = [factorial(2 * (g - x)) / factorial(g - x) ** 2 for x in (a, b, c)]
    return float(np.prod(sizes)) * factorial(g) ** 2 / factorial(2 * g + 1)
