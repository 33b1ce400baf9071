"""Total spin of a determinant: A. Szabo and N. S. Ostlund, Modern Quantum Chemistry (Dover, 1996), eq. 2.271."""

from __future__ import annotations

from typing import Any

import numpy as np


def s_squared(D_spq: Any, S_pq: Any) -> float:
    """<S^2> = M (M + 1) + n_beta - tr(D_alpha S D_beta S); zero for one density that holds both spins.

    For fractional occupations, of the determinants' mean density.
    """
    if len(D_spq) == 1:
        return 0.0
    alpha, beta = (np.asarray(D_pq) @ S_pq for D_pq in D_spq)
    n_alpha, n_beta = float(np.trace(alpha)), float(np.trace(beta))
    spin = 0.5 * (n_alpha - n_beta)
    return spin * (spin + 1.0) + n_beta - float(np.sum(alpha * beta.T))
