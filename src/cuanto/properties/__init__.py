"""Properties computed from a density."""

from cuanto.properties.atoms_in_molecules import hirshfeld, mayer
from cuanto.properties.charge_model import cm5
from cuanto.properties.density import dipole, loewdin, mulliken, quadrupole, s_squared, second_moments

__all__ = [
    "cm5",
    "dipole",
    "hirshfeld",
    "loewdin",
    "mayer",
    "mulliken",
    "quadrupole",
    "s_squared",
    "second_moments",
]
