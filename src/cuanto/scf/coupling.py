"""From Fock matrices of each spin to the ones whose eigenvectors are the orbitals.

Restricted open shells: C. C. J. Roothaan, Rev. Mod. Phys. 32, 179 (1960), doi:10.1103/RevModPhys.32.179; diagonal
blocks as M. F. Guest and V. R. Saunders, Mol. Phys. 28, 819 (1974), doi:10.1080/00268977400102171.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def open_shell(F_sjk: Any, C_sjm: Any, n_sm: Array) -> Any:
    """One matrix for both spins, whose blocks between closed, open and virtual orbitals are the orbital gradient.

    Between closed and open orbitals F_beta, between open and virtual ones F_alpha, elsewhere the mean.
    """
    closed, occupied = (int(np.count_nonzero(n_m)) for n_m in (n_sm.min(axis=0), n_sm.max(axis=0)))
    F_jk, half_jk = 0.5 * (F_sjk[0] + F_sjk[1]), 0.5 * (F_sjk[0] - F_sjk[1])
    C_c, C_o, C_v = C_sjm[0, :, :closed], C_sjm[0, :, closed:occupied], C_sjm[0, :, occupied:]
    # alpha = mean + half, beta = mean - half
    half_o = C_o.T @ half_jk
    change = C_o @ ((half_o @ C_v) @ C_v.T - (half_o @ C_c) @ C_c.T)
    return (F_jk + change + change.T)[None]
