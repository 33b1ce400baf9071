"""Properties: functions of a density."""

from cuanto.properties.dipole import dipole
from cuanto.properties.populations import loewdin, mulliken
from cuanto.properties.spin import s_squared

__all__ = ["dipole", "loewdin", "mulliken", "s_squared"]
