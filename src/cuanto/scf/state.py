"""One iteration of an SCF, and orbitals as they are handed from one calculation to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """A density with the energy and the Fock matrix made from it, and the orbitals that it is made of.

    Matrices live on the device of the calculation. Spins: one (restricted, `n_sm` up to 2) or two; restricted open
    shells have two densities, Fock matrices and rows of occupations, and one set of orbitals.
    `curvature`, of a converged state whose stability was examined: the lowest one of the energy (Hartree).
    `gradient` is the Frobenius norm of FDS - SDF in an orthonormal basis; `energy` contains all of `energies`.
    """

    iteration: int
    energy: float
    energies: Mapping[str, float]
    energy_change: float = np.nan
    gradient: float = np.nan
    converged: bool = True
    step: str = ""
    C_spm: Any = None
    eps_sm: Any = None
    n_sm: Any = None
    D_spq: Any = None
    F_spq: Any = None
    curvature: float | None = None


@dataclass(frozen=True, eq=False)
class Orbitals:
    """Occupied orbitals in some basis (host arrays): what a calculation can start from."""

    basis: Basis
    C_spm: Array
    n_sm: Array
