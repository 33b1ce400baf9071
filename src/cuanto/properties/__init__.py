"""Properties computed from a density."""

from cuanto.properties.atoms_in_molecules import hirshfeld, mayer
from cuanto.properties.density import dipole, loewdin, mulliken, s_squared

__all__ = ["dipole", "hirshfeld", "loewdin", "mayer", "mulliken", "s_squared"]
