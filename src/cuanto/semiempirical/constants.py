"""Constants of the NDDO methods: CODATA 2018, as current parameter sets and their reference data assume.

They differ from those of `cuanto.units`: a heat of formation is a small difference of large energies, and other
constants shift it by hundredths of a kcal/mol.
"""

from __future__ import annotations

from typing import Final

from cuanto.units import BOHR_IN_ANGSTROM

BOHR: Final = 0.529177210903
"""Angstrom."""
HARTREE: Final = 27.211386245988
"""eV."""
EV_IN_KCAL: Final = 23.060547830619029
"""kcal/mol."""
HARTREE_IN_KCAL: Final = HARTREE * EV_IN_KCAL
DEBYE: Final = 1.602176634 * 2.99792458 * BOHR
"""One e Bohr in Debye."""
RESCALE: Final = BOHR_IN_ANGSTROM / BOHR
"""Converts coordinates of `Molecule` to this Bohr; input is in Angstrom."""
