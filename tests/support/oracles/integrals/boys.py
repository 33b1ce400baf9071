"""Boys function F_m(T) = integral_0^1 u^(2m) exp(-T u^2) du in double precision.

S. F. Boys, Proc. R. Soc. A 200, 542 (1950), doi:10.1098/rspa.1950.0036; expansions and recursions: HJO 9.8.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf

LARGE_T = 40.0  # from here on exp(-T) is so small that the upward recursion loses nothing for m <= 30


def boys(m_max: int, T: ArrayLike) -> NDArray[np.float64]:
    """F_0 ... F_{m_max} of every T >= 0, shape (m_max + 1, *T.shape)."""
    T = np.asarray(T, dtype=np.float64)
    F_m = np.empty((m_max + 1, *T.shape))
    # the upward recursion subtracts: it is safe only where T exceeds the orders it passes through
    large = max(LARGE_T, 1.3 * m_max) <= T
    F_m[:, large] = _upward(m_max, T[large])
    F_m[:, ~large] = _downward(m_max, T[~large])
    return F_m


def _upward(m_max: int, T: NDArray[np.float64]) -> NDArray[np.float64]:
    """F_0 = sqrt(pi/T) erf(sqrt T) / 2, then F_{m+1} = ((2m+1) F_m - exp(-T)) / 2T (HJO 9.8)."""
    F_m = np.empty((m_max + 1, *T.shape))
    F_m[0] = 0.5 * np.sqrt(np.pi / T) * erf(np.sqrt(T))
    for m in range(m_max):
        F_m[m + 1] = ((2 * m + 1) * F_m[m] - np.exp(-T)) / (2.0 * T)
    return F_m


def _downward(m_max: int, T: NDArray[np.float64]) -> NDArray[np.float64]:
    """Top order by its series of positive terms, the others by F_m = (2T F_{m+1} + exp(-T)) / (2m+1)."""
    F_m = np.empty((m_max + 1, *T.shape))
    # F_m = exp(-T) sum_i (2T)^i / ((2m+1)(2m+3)...(2m+2i+1)); the terms fall once 2m+2i+1 exceeds 2T
    term = np.full(T.shape, 1.0 / (2 * m_max + 1))
    total = term.copy()
    i = 0
    while np.any(term > 1e-17 * total):
        i += 1
        term = term * (2.0 * T / (2 * m_max + 2 * i + 1))
        total += term
    F_m[m_max] = np.exp(-T) * total
    for m in range(m_max - 1, -1, -1):
        F_m[m] = (2.0 * T * F_m[m + 1] + np.exp(-T)) / (2 * m + 1)
    return F_m
