"""Choice of the occupied among degenerate orbitals of a guess, which would otherwise depend on rounding errors.

The superposed density of an open-shell atom is spherical, that of a linear molecule cylindrical: an open shell of their
orbitals is degenerate, and which of its orbitals are filled would depend on the last digits of the Fock matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.scf.orthogonal import Frame

DEGENERATE = 1e-5
"""Hartree: levels of a guess that are closer to each other are degenerate."""


def order_degenerate(frame: Frame, C_sjm: Any, eps_sm: Any, n_km: Array) -> Any:
    """If only some of a set of degenerate orbitals are occupied, align the set with basis functions.

    Orbitals along the first functions, such as xy of an atom's d shell, come first. All other orbitals stay the same.
    """
    xp, chosen = frame.xp, []
    for C_jm, eps_m, n_m in zip(C_sjm, frame.to_host(eps_sm), n_km, strict=True):
        for begin, end in _open_levels(eps_m, n_m):
            own_pm = frame.X_pm @ C_jm[:, begin:end]
            weight_p = xp.asarray(np.arange(1.0, len(own_pm) + 1.0) / len(own_pm))
            _, U_mm = frame.linalg.eigh((own_pm * weight_p[:, None]).T @ own_pm)
            C_jm = xp.concatenate([C_jm[:, :begin], C_jm[:, begin:end] @ U_mm, C_jm[:, end:]], axis=1)
        chosen.append(C_jm)
    return xp.stack(chosen)


def _open_levels(eps_m: Array, n_m: Array) -> list[tuple[int, int]]:
    """Ranges of degenerate orbitals that are not occupied equally."""
    apart = np.diff(eps_m) > DEGENERATE
    level_m = np.concatenate([[0], np.cumsum(apart)])
    open_levels = np.unique(level_m[:-1][(np.diff(n_m) != 0.0) & ~apart])
    first, end = (np.searchsorted(level_m, open_levels, side=side).tolist() for side in ("left", "right"))
    return list(zip(first, end, strict=True))
