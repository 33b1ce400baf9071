"""Unit conversions. Inside cuanto everything is in atomic units; only interfaces convert.

Values: CODATA 2010, P. J. Mohr, B. N. Taylor, D. B. Newell, Rev. Mod. Phys. 84, 1527 (2012),
doi:10.1103/RevModPhys.84.1527.
"""

from typing import Final

BOHR_IN_ANGSTROM: Final = 0.52917721092
"""One Bohr in Angstrom."""

HARTREE_IN_EV: Final = 27.21138505
"""One Hartree in electronvolt."""

DIPOLE_IN_DEBYE: Final = 2.541746364
"""One atomic unit of dipole moment (e a0 = 8.47835326e-30 C m) in Debye (1e-21/c C m)."""
