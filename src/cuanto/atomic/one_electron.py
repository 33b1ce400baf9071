"""Matrices of one symmetry: overlap, kinetic coupling of large and small functions, nuclear attraction, powers of r."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, gamma

import numpy as np
from scipy.special import gammainc, gammaincc

from cuanto.arrays import Array
from cuanto.atomic.nucleus import Nucleus
from cuanto.atomic.species import Species


def large_norms(species: Species, z_p: Array) -> Array:
    """Normalisation of r^(l+1) exp(-z r^2)."""
    power = species.l + 1.5
    return np.asarray(np.sqrt(2.0 * (2.0 * z_p) ** power / gamma(power)))


def small_functions(species: Species, z_p: Array) -> tuple[Array, Array]:
    """Norm and v of the normalised small functions norm r^(lbar+1) (1 - v r^2) exp(-z r^2).

    They are proportional, by restricted kinetic balance, to (d/dr + kappa/r) r^(l+1) exp(-z r^2).
    """
    norm_p = large_norms(species, z_p) / np.sqrt((2 * species.l + 3) * z_p)
    if species.kappa < 0:
        return -2.0 * z_p * norm_p, np.zeros_like(z_p)
    return (2 * species.l + 1) * norm_p, 2.0 * z_p / (2 * species.l + 1)


def overlap(species: Species, z_p: Array, y_p: Array | None = None) -> tuple[Array, Array]:
    """Large-large and small-small overlaps of normalised functions, optionally with those of other exponents."""
    y_p = z_p if y_p is None else y_p
    ratio = 2.0 * np.sqrt(np.outer(z_p, y_p)) / np.add.outer(z_p, y_p)
    return ratio ** (species.l + 1.5), ratio ** (species.l + 2.5)


def balance(species: Species, z_p: Array) -> Array:
    """sqrt((2l+3) z): norm of (d/dr + kappa/r) applied to a large function, which gives the small one."""
    return np.asarray(np.sqrt((2 * species.l + 3) * z_p))


def _operator_matrices(species: Species, z_p: Array, integral: dict[int, Array]) -> tuple[Array, Array]:
    """LL and SS matrices of an operator from its integrals with r^m exp(-a r^2), by m."""
    L_p = large_norms(species, z_p)
    S_p, v_p = small_functions(species, z_p)
    l, lbar = species.l, species.lbar
    LL = np.outer(L_p, L_p) * integral[2 * l + 2]
    SS = integral[2 * lbar + 2].copy()
    if species.kappa > 0:  # (1 - v_p r^2)(1 - v_q r^2)
        SS += np.outer(v_p, v_p) * integral[2 * lbar + 6] - np.add.outer(v_p, v_p) * integral[2 * lbar + 4]
    return LL, np.outer(S_p, S_p) * SS


def _powers(species: Species) -> list[int]:
    """Powers of r in products of two functions."""
    return [2 * species.l + 2, *(2 * species.lbar + 2 + 2 * i for i in range(3 if species.kappa > 0 else 1))]


def moments(species: Species, z_p: Array, power: int) -> tuple[Array, Array]:
    """<p|r^power|q> of large and of small functions."""
    a = np.add.outer(z_p, z_p)

    def integral(m: int) -> Array:
        return np.asarray(gamma((m + 1) / 2) / (2.0 * a ** ((m + 1) / 2)))

    return _operator_matrices(species, z_p, {m: integral(m + power) for m in _powers(species)})


def attraction(species: Species, z_p: Array, nucleus: Nucleus) -> tuple[Array, Array]:
    """Nuclear attraction, LL and SS."""
    a = np.add.outer(z_p, z_p)
    return _operator_matrices(
        species, z_p, {m: -nucleus.charge * potential_integral(nucleus, m // 2 - 1, a) for m in _powers(species)}
    )


def potential_integral(nucleus: Nucleus, n: int, a: Array) -> Array:
    """Integral of r^(2n+2) exp(-a r^2) times the potential of a unit charge of this shape, without cancellation."""
    point = factorial(n) / (2.0 * a ** (n + 1))
    if nucleus.model == "point":
        return np.asarray(point)
    size = nucleus.size
    assert size is not None
    if nucleus.model == "gaussian":
        x = a / (a + size)
        total = term = np.ones_like(a)
        for i in range(1, n + 1):
            term = term * x * ((i - 0.5) / i)
            total = total + term
        return np.asarray(point * np.sqrt(size / (a + size)) * total)
    x = a * size * size
    within = 0.75 / size * gamma(n + 1.5) * gammainc(n + 1.5, x) / a ** (n + 1.5)
    within -= 0.25 / size**3 * gamma(n + 2.5) * gammainc(n + 2.5, x) / a ** (n + 2.5)
    return np.asarray(within + point * gammaincc(n + 1, x))


@dataclass(frozen=True, eq=False)
class Core:
    """Matrices of one symmetry that are constant in an SCF, with large functions first.

    Overlap `S`; nuclear attraction `V`, kinetic energy `T`, rest mass `M` and their sum `h`.
    `X` makes functions orthonormal (X^T S X = 1): first the columns of large functions, then `negative` columns of
    small ones.
    """

    S: Array
    h: Array
    V: Array
    T: Array
    M: Array
    X: Array
    negative: int


def core(species: Species, z_p: Array, nucleus: Nucleus, c: float, relativistic: bool) -> Core:
    """One-electron matrices of h = V + c alpha.p + (beta - 1) c^2, or of V + p^2/2."""
    n = len(z_p)
    S_LL, S_SS = overlap(species, z_p)
    V_LL, V_SS = attraction(species, z_p, nucleus)
    b_p = balance(species, z_p)
    if not relativistic:
        T = 0.5 * np.outer(b_p, b_p) * S_SS
        X = orthonormaliser([S_LL])[0]
        return Core(S_LL, V_LL + T, V_LL, T, np.zeros_like(T), X, 0)
    zero = np.zeros((n, n))
    Pi = c * S_SS * b_p
    S = np.block([[S_LL, zero], [zero, S_SS]])
    V = np.block([[V_LL, zero], [zero, V_SS]])
    T = np.block([[zero, Pi.T], [Pi, zero]])
    M = np.block([[zero, zero], [zero, -2.0 * c * c * S_SS]])
    X_L, X_S = orthonormaliser([S_LL, S_SS])
    X = np.zeros((2 * n, X_L.shape[1] + X_S.shape[1]))
    X[:n, : X_L.shape[1]], X[n:, X_L.shape[1] :] = X_L, X_S
    return Core(S, V + T + M, V, T, M, X, X_S.shape[1])


DEPENDENCE_LIMIT = 1e-11
"""Overlap eigenvalues of normalised functions below this count as linear dependence."""


def orthonormaliser(S: list[Array]) -> list[Array]:
    """Return X with X^T S X = 1 for every S.

    X comes from Cholesky factors or, if functions are linearly dependent, from canonical orthogonalisation, which drops
    the same number of directions for every S.
    """
    if not len(S[0]):
        return [np.zeros((0, 0)) for _ in S]
    solved = [np.linalg.eigh(one) for one in S]
    dropped = max(int((values < DEPENDENCE_LIMIT).sum()) for values, _ in solved)
    if dropped:
        return [vectors[:, dropped:] / np.sqrt(values[dropped:]) for values, vectors in solved]
    return [np.asarray(np.linalg.inv(np.linalg.cholesky(one)).T) for one in S]
