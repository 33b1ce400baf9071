"""Estimated errors of fitted Coulomb and exchange energies, from the products of functions on one atom.

Fitted repulsion integrals lack the parts of the products that are outside of the fitting basis. Most of the error comes
from products of two functions of the same atom, if they are fitted by the functions of that atom alone: products of two
atoms are fitted by the functions of both, and the density between atoms is smooth. With D = sum_i n_i c_i c_i^T of an
atom and the missing parts R_ij of products of its orbitals,

E_J - E_J(exact) = -1/2 |sum_i n_i R_ii|^2,    E_K - E_K(exact) = 1/2 sum_s sum_ij n_i n_j |R_ij|^2

in the norm of the Coulomb operator. On one centre it is diagonal in the angular momentum L and the wave number k: with
F_L(k) = int f(r) j_L(kr) r^2 dr the repulsion of f(r) Y_LM and g(r) Y_LM is 8 int F_L(k) G_L(k) dk, and

F_L(k) = sqrt(pi) k^L n! / (2^(L+2) p^(L+n+3/2)) L_n^(L+1/2)(x) exp(-x),   x = k^2 / 4p,   f = r^(L+2n) exp(-p r^2)

(I. S. Gradshteyn and I. M. Ryzhik, Table of Integrals, Series and Products, 6.631). Functions are vectors on a
logarithmic grid of k, and the missing part of a product is its distance from the span of the fitting functions.

Where diffuse functions of neighbours are nearly dependent, coefficients of an orbital are large and cancel between
atoms, so that the block of one atom describes no density. `without_redundancy` makes them small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import pi, sqrt

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix, solid_harmonic_matrix
from cuanto.grid.rules import DEGREES, lebedev

STEP = 0.2
"""Step of ln k; the integrands are smooth over a step of 1."""
LOWEST, HIGHEST = 1e-2, 12.0
"""Range of k, relative to the square roots of the smallest and the largest exponents."""
DEPENDENT = 1e-9
"""Combinations of fitting functions with smaller singular values, relative to the largest, are not used."""
EMPTY = 1e-3
"""Orbitals of an atom with fewer electrons are left out."""
MAX_FUNCTIONS = 60
"""Largest number of functions of an atom; in larger sets those of the highest momenta, nearly empty, are left out."""

MOST_ELECTRONS, SPARE_ELECTRONS = 1.3, 1.0
"""Net population of an atom, as a multiple of its effective nuclear charge and a number of electrons more (for anions
and ghosts), above which coefficients are taken to cancel between atoms."""
REDUNDANT = 0.03
"""Overlap eigenvalue of combinations of functions that keep half of their coefficients in `without_redundancy`."""
COULOMB_FACTOR, EXCHANGE_FACTOR = 0.8, 1.3
"""Actual errors relative to those of one centre: medians over 63 molecules up to krypton with def2 sets
(benchmarks/error_estimates.py), 90 % within a factor of 2.5. Products of one atom are fitted by functions of others as
well, and in exchange those of two atoms matter more."""

Radial = tuple[int, bool, bytes, bytes]
"""A contraction: angular momentum, pure or Cartesian, exponents and coefficients."""


def fit_errors(basis: Basis, aux: Basis, D_spq: Array, exchange: bool, omega: float | None) -> tuple[float, float]:
    """Errors of the fitted Coulomb energy and exchange energy (0.0 if it is not wanted) of densities, Hartree.

    `D_spq` on the host: one matrix for both spins, or one for each. `omega`: that of the attenuated operator.
    """
    coulomb_error = exchange_error = 0.0
    for atom in range(len(basis.R_ax)):
        own, fitting = basis.shells_of_atoms[atom], aux.shells_of_atoms[atom]
        if not own:
            continue
        used, kept = _largest_set(own)
        functions = np.flatnonzero(basis.function_atoms == atom)[kept]
        missing = _missing_parts(_contractions(used), _contractions(fitting), omega)
        D_sab = D_spq[:, functions[:, None], functions]
        coulomb_error -= 0.5 * _square(missing, D_sab.sum(axis=0))
        if exchange:
            factor = 0.25 if len(D_sab) == 1 else 0.5
            exchange_error += factor * sum(_exchange(missing, D_ab) for D_ab in D_sab)
    return COULOMB_FACTOR * coulomb_error, EXCHANGE_FACTOR * exchange_error


def without_redundancy(D_spq: Array, S_pq: Array, basis: Basis, charges_a: Ints) -> Array:
    """The densities themselves, or similar ones with small coefficients if theirs are large.

    T = (S + e)^-1 S divides coefficients of combinations of functions by 1 + e/s, where s is their overlap
    eigenvalue: orbitals change by a few per cent, because redundant combinations add little to them. `charges_a`:
    effective charges of the nuclei.
    """
    if (_net_populations(D_spq, S_pq, basis) <= MOST_ELECTRONS * charges_a + SPARE_ELECTRONS).all():
        return D_spq
    T = np.linalg.solve(S_pq + REDUNDANT * np.eye(len(S_pq)), S_pq)
    return np.asarray(T @ D_spq @ T.T)


def _net_populations(D_spq: Array, S_pq: Array, basis: Basis) -> Array:
    """Electrons in products of functions of the same atom, for every atom."""
    functions = [np.flatnonzero(basis.function_atoms == atom) for atom in range(len(basis.R_ax))]
    blocks = [(p[:, None], p) for p in functions]
    return np.array([(D_spq[:, *block].sum(axis=0) * S_pq[block]).sum() for block in blocks])


def _largest_set(shells: Sequence[Shell]) -> tuple[list[Shell], Ints]:
    """Shells of the lowest momenta with at most `MAX_FUNCTIONS` functions, and the positions of these functions."""
    limit = max(shell.l for shell in shells)
    while limit > 0 and sum(shell.nbf for shell in shells if shell.l <= limit) > MAX_FUNCTIONS:
        limit -= 1
    kept = np.concatenate([np.full(shell.nbf, shell.l <= limit) for shell in shells])
    return [shell for shell in shells if shell.l <= limit], np.flatnonzero(kept)


def _contractions(shells: Sequence[Shell]) -> tuple[Radial, ...]:
    """All contractions as plain data, in the order of their functions."""
    return tuple(
        (shell.l, shell.pure or shell.l < 2, shell.exponents.tobytes(), np.ascontiguousarray(column).tobytes())
        for shell in shells
        for column in shell.coefficients.T
    )


def _square(missing: Array, D_ab: Array) -> float:
    """|sum_ab D_ab R_ab|^2"""
    rows, columns = np.tril_indices(len(D_ab))
    weights = D_ab[rows, columns] * np.where(rows == columns, 1.0, 2.0)
    return float(((weights @ missing) ** 2).sum())


def _exchange(missing: Array, D_ab: Array) -> float:
    """sum_ij n_i n_j |R_ij|^2 of the orbitals of a density."""
    n_i, c_ai = np.linalg.eigh(D_ab)
    filled = abs(n_i) > EMPTY
    n_i, c_ai = n_i[filled], c_ai[:, filled]
    rows, columns = np.tril_indices(len(c_ai))
    i, j = np.tril_indices(len(n_i))
    products = c_ai[rows][:, i] * c_ai[columns][:, j] + c_ai[columns][:, i] * c_ai[rows][:, j]
    products[rows == columns] *= 0.5
    norms = ((products.T @ missing) ** 2).sum(axis=1)
    return float((n_i[i] * n_i[j] * np.where(i == j, 1.0, 2.0) * norms).sum())


@lru_cache(maxsize=64)
def _missing_parts(own: tuple[Radial, ...], fitting: tuple[Radial, ...], omega: float | None) -> Array:
    """Parts [pair of functions, component] of products that are not fitted; pairs as in `numpy.tril_indices`."""
    first = np.cumsum([0, *(_components(l, pure) for l, pure, _, _ in own)])
    n = int(first[-1])
    pair_ab = np.zeros((n, n), dtype=np.int64)
    pair_ab[np.tril_indices(n)] = np.arange(n * (n + 1) // 2)
    k = _wave_numbers([*own, *fitting])
    scale = np.sqrt(8 * STEP * k) if omega is None else np.sqrt(8 * STEP * k) * np.exp(-((k / omega) ** 2) / 8)
    highest = max(l for l, _, _, _ in own)
    parts = []
    for L in range(2 * highest + 1):
        pairs = [(a, b) for a in range(len(own)) for b in range(a + 1) if _couple(own[a][0], own[b][0], L)]
        if not pairs:
            continue
        vectors = np.array([_product(own[a], own[b], L, k) * scale for a, b in pairs])
        vectors -= _project(vectors, np.array([f * scale for f in _fitting(fitting, L, k)]))
        U, s, _ = np.linalg.svd(vectors, full_matrices=False)
        radial = (U * s)[:, s > DEPENDENT * max(float(s[0]), 1e-300)]
        part = np.zeros((n * (n + 1) // 2, 2 * L + 1, radial.shape[1]))
        for (a, b), R_k in zip(pairs, radial, strict=True):
            G_abM = _couplings(own[a][:2], own[b][:2], L)
            rows, columns = np.meshgrid(*(np.arange(first[x], first[x + 1]) for x in (a, b)), indexing="ij")
            lower = rows >= columns
            part[pair_ab[rows[lower], columns[lower]]] = G_abM[lower][:, :, None] * R_k
        parts.append(part.reshape(len(part), -1))
    return np.concatenate(parts, axis=1)


def _components(l: int, pure: bool) -> int:
    return len(shell_matrix(l, pure))


def _couple(la: int, lb: int, L: int) -> bool:
    """Whether products have a part of momentum L; small parts of Cartesian functions below |la - lb| are neglected."""
    return abs(la - lb) <= L <= la + lb and (la + lb - L) % 2 == 0


def _wave_numbers(contractions: Sequence[Radial]) -> Array:
    """The grid of k."""
    exponents = np.concatenate([np.frombuffer(a) for _, _, a, _ in contractions])
    low, high = LOWEST * sqrt(exponents.min()), HIGHEST * sqrt(2 * exponents.max())
    return np.asarray(np.exp(np.arange(np.log(low), np.log(high), STEP)))


def _transform(L: int, n: int, p_i: Array, k: Array) -> Array:
    """F_L [i, k] of r^(L + 2n) exp(-p_i r^2)."""
    x = k**2 / (4 * p_i[:, None])
    before, polynomial = np.zeros_like(x), np.ones_like(x)
    for m in range(n):  # n! times the Laguerre polynomial
        before, polynomial = polynomial, (2 * m + L + 1.5 - x) * polynomial - m * (m + L + 0.5) * before
    factor = sqrt(pi) / 2 ** (L + 2) * k**L / p_i[:, None] ** (L + n + 1.5)
    return np.asarray(factor * polynomial * np.exp(-np.minimum(x, 700.0)))


def _product(one: Radial, other: Radial, L: int, k: Array) -> Array:
    """F_L of the radial part of a product of two contractions."""
    (la, _, a, c), (lb, _, b, d) = one, other
    p = np.add.outer(np.frombuffer(a), np.frombuffer(b)).reshape(-1)
    weights = np.outer(np.frombuffer(c), np.frombuffer(d)).reshape(-1)
    return np.asarray(weights @ _transform(L, (la + lb - L) // 2, p, k))


def _fitting(contractions: Sequence[Radial], L: int, k: Array) -> list[Array]:
    """F_L of the fitting functions of momentum L, and of those that Cartesian shells of higher momenta contain."""
    return [
        np.frombuffer(c) @ _transform(L, (l - L) // 2, np.frombuffer(a), k)
        for l, pure, a, c in contractions
        if l == L or (not pure and l > L and (l - L) % 2 == 0)
    ]


def _project(vectors: Array, fitting: Array) -> Array | float:
    """Projections of vectors onto the span of others."""
    if not len(fitting):
        return 0.0
    U, s, _ = np.linalg.svd((fitting / np.linalg.norm(fitting, axis=1)[:, None]).T, full_matrices=False)
    U = U[:, s > DEPENDENT * s[0]]
    return np.asarray((vectors @ U) @ U.T)


@lru_cache(maxsize=256)
def _couplings(one: tuple[int, bool], other: tuple[int, bool], L: int) -> Array:
    """Integrals over the sphere of two angular functions times Y_LM, [a, b, M]."""
    degree = one[0] + other[0] + L
    points = next(count for count, exact in DEGREES.items() if exact >= degree)
    x_gx, w_g = lebedev(points)
    A, B = (_angular(shell_matrix(*shell), shell[0], x_gx) for shell in (one, other))
    Y_Mg = _angular(solid_harmonic_matrix(L), L, x_gx) * w_g
    return np.asarray(np.einsum("ag,bg,Mg->abM", A, B, Y_Mg, optimize=True))


def _angular(matrix: Array, l: int, x_gx: Array) -> Array:
    """Values [component, point] of polynomials at points of the unit sphere."""
    powers = np.array(cartesian_powers(l))
    return np.asarray(matrix @ np.prod(x_gx[None] ** powers[:, None, :], axis=2))
