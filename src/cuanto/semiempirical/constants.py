"""Physical constants of the NDDO methods: CODATA 2018, as in current parameter sets and their reference data.

They differ from those of `cuanto.units`, because a heat of formation is a small difference of large energies, which
the older constants would shift by hundredths of a kcal/mol.
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
"""Factor that converts the coordinates of a `Molecule`, in the Bohr of `cuanto.units`, to this Bohr."""
