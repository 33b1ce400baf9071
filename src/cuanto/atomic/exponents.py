"""Sets of exponents made from few parameters.

Well-tempered: S. Huzinaga and M. Klobukowski, Chem. Phys. Lett. 212, 260 (1993), doi:10.1016/0009-2614(93)89323-A,
in the recursive form of D. Hennessey's thesis (Alberta, 2018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError

Array = NDArray[np.float64]


def even_tempered(smallest: float, ratio: float, count: int) -> Array:
    """smallest * ratio^i, i = 0, 1, ..."""
    if not (smallest > 0 and ratio > 1 and count > 0):
        raise InputError(f"even-tempered set ({smallest}, {ratio}, {count}): give positive numbers, ratio above 1")
    return np.asarray(smallest * ratio ** np.arange(count))


def well_tempered(
    alpha: float, beta: float, delta: float, gamma: float, last: int, first: int = 1, K: int | None = None
) -> Array:
    """zeta_first .. zeta_last of zeta_1 = alpha, zeta_k = zeta_(k-1) beta (1 + gamma (k/K)^delta).

    K is `last` if not given.
    """
    K = last if K is None else K
    if not (1 <= first <= last <= K):
        raise InputError(f"well-tempered set with indices {first} to {last} of {K}: give 1 <= first <= last <= K")
    k = np.arange(2, last + 1)
    with np.errstate(all="ignore"):
        zeta = alpha * np.concatenate([[1.0], np.cumprod(beta * (1.0 + gamma * (k / K) ** delta))])
    good = np.isfinite(zeta).all() and alpha > 0 and (np.diff(zeta) > 0).all()
    if not good:
        raise InputError(
            f"well-tempered parameters ({alpha:g}, {beta:g}, {delta:g}, {gamma:g}) do not give rising, finite exponents"
        )
    return np.asarray(zeta[first - 1 :])
