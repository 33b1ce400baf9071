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

QUADRUPOLE_IN_DEBYE_ANGSTROM: Final = DIPOLE_IN_DEBYE * BOHR_IN_ANGSTROM
"""One atomic unit of quadrupole moment (e a0^2) in Debye Angstrom (Buckingham)."""

DALTON_IN_ELECTRON_MASSES: Final = 1822.8884848
"""One atomic mass unit in electron masses."""

HARTREE_IN_WAVENUMBERS: Final = 219474.6313708
"""One Hartree in cm^-1."""

BOLTZMANN: Final = 3.1668114e-6
"""Boltzmann's constant, Hartree per kelvin."""

HARTREE_IN_KJ_PER_MOL: Final = 2625.49964
"""One Hartree in kJ/mol."""

HARTREE_IN_KCAL_PER_MOL: Final = HARTREE_IN_KJ_PER_MOL / 4.184
"""One Hartree in kcal/mol, thermochemical calories."""

ATMOSPHERE: Final = 101325.0 / 2.94210131e13
"""One standard atmosphere (101325 Pa) in Hartree/Bohr^3."""

INTENSITY_IN_KM_PER_MOL: Final = 974.8802
"""Absolute infrared intensity for a squared derivative of the dipole moment of 1 e^2 per atomic mass unit."""

SPEED_OF_LIGHT: Final = 137.035999074
"""Speed of light in atomic units, the inverse of the fine-structure constant."""
