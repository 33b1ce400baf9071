"""State of an SCF iteration, and orbitals that are passed between calculations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from cuanto.arrays import Array
from cuanto.basis import Basis

if TYPE_CHECKING:
    from cuanto.scf.secants import Secants


@dataclass(frozen=True, eq=False)
class State:
    """A density, its energy and Fock matrix, and its orbitals.

    Matrices live on the device of the calculation. Spins: one (restricted, `n_sm` up to 2) or two; restricted open
    shells have two densities, Fock matrices and rows of occupations, and one set of orbitals.
    `curvature`: the lowest one of the energy (Hartree), if the stability of a converged state was examined, or an upper
    bound on it (`curvature_is_bound`).
    `gradient` is the Frobenius norm of FDS - SDF in an orthonormal basis; `energy` contains all of `energies`.
    """

    iteration: int
    energy: float
    energies: Mapping[str, float]
    energy_change: float = nan
    gradient: float = nan
    converged: bool = True
    step: str = ""
    C_spm: Any = None
    eps_sm: Any = None
    n_sm: Any = None
    D_spq: Any = None
    F_spq: Any = None
    curvature: float | None = None
    curvature_is_bound: bool = False


@dataclass(frozen=True, eq=False)
class Orbitals:
    """Occupied orbitals in some basis (host arrays), from which a calculation can start.

    From a nearby geometry: `secants` of its SCFs, which the calculation uses and adds to; `partition` of its grid (edge
    of the cubes, fraction of the shells in spheres), which is not searched for again.
    """

    basis: Basis
    C_spm: Array
    n_sm: Array
    secants: Secants | None = None
    partition: tuple[float, float] | None = None
