"""Oracle of all integrals over Gaussians: plain NumPy, written from the papers.

Everything here follows McMurchie and Davidson, J. Comput. Phys. 26, 218 (1978),
doi:10.1016/0021-9991(78)90092-X, in the notation of Helgaker, Jorgensen and Olsen, Molecular
Electronic-Structure Theory (Wiley, 2000), doi:10.1002/9781119019572, chapter 9 ("HJO" in the comments).
It shares no code with the kernel generator.
"""

from oracles.integrals.boys import boys
from oracles.integrals.matrices import (
    dipole_matrices,
    eri_2c_matrix,
    eri_3c_tensor,
    eri_4c_tensor,
    kinetic_matrix,
    nuclear_matrix,
    overlap_matrix,
    quadrupole_matrices,
)
from oracles.integrals.one_electron import dipole, kinetic, nuclear, overlap, quadrupole
from oracles.integrals.two_electron import eri_2c, eri_3c, eri_4c

__all__ = [
    "boys",
    "dipole",
    "dipole_matrices",
    "eri_2c",
    "eri_2c_matrix",
    "eri_3c",
    "eri_3c_tensor",
    "eri_4c",
    "eri_4c_tensor",
    "kinetic",
    "kinetic_matrix",
    "nuclear",
    "nuclear_matrix",
    "overlap",
    "overlap_matrix",
    "quadrupole",
    "quadrupole_matrices",
]
