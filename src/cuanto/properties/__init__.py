"""Properties computed from a density."""

from cuanto.properties.density import dipole, loewdin, mulliken, s_squared

__all__ = ["dipole", "loewdin", "mulliken", "s_squared"]
