"""One effective Fock matrix per symmetry, densities, and extrapolation.

Everything is in orthonormal functions. Open shells: C. C. J. Roothaan, Rev. Mod. Phys. 32, 179 (1960),
doi:10.1103/RevModPhys.32.179. Blocks of the matrix are named c (closed), o (open) and r (the rest: virtual spinors and
those of negative energy). DIIS: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuanto.atomic.species import Array
from cuanto.backends.base import get_backend
from cuanto.scf.diis import History, flatten, unflatten


def effective(F_closed: Array, Q: Array | None, C_c: Array, C_o: Array, filling: float) -> Array:
    """F_closed, with F_open = F_closed - Q where the open shell meets itself and the rest.

    The c-o block, (F_closed - filling F_open) / (1 - filling), vanishes where rotations between closed and open spinors
    no longer lower the energy; its scale keeps their order.
    """
    if Q is None:
        return F_closed
    P_c, P_o = C_c @ C_c.T, C_o @ C_o.T
    Q_o = Q @ P_o
    mixed = P_c @ Q_o * (1.0 + filling / (1.0 - filling)) - Q_o + 0.5 * P_o @ Q_o
    # P_o Q P_o once, P_r Q P_o and its transpose once each, the c-o blocks with the other sign
    return F_closed + mixed + mixed.T


def error(F: Array, C_c: Array, C_o: Array) -> Array:
    """[F, G] with G = 1 for closed, 1/2 for open and 0 for all other spinors: zero at self-consistency."""
    FG = F @ C_c @ C_c.T + 0.5 * (F @ C_o @ C_o.T)
    return np.asarray(FG - FG.T)


class Extrapolation:
    """DIIS over the matrices of all symmetries together, or damping, or neither."""

    def __init__(self, accelerator: str, damping: float, history: int) -> None:
        self.accelerator, self.damping = accelerator, damping
        self._history = History(history, get_backend("cpu"))
        self._used: Array | None = None

    def __call__(self, F_i: Sequence[Array], e_i: Sequence[Array]) -> list[Array]:
        """The matrices to diagonalise."""
        joined = flatten(F_i, np)
        if self.accelerator == "damping":
            mixed = joined if self._used is None else (1.0 - self.damping) * joined + self.damping * self._used
            self._used = mixed
        else:
            self._history.absorb(self._history.push(joined, flatten(e_i, np)))
            mixed = self._history.extrapolate()
        return unflatten(mixed, F_i)
