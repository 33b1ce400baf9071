"""Sizes of atoms, by which grids are scaled and cells are shifted."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from cuanto.units import BOHR_IN_ANGSTROM

ELEMENTS = 118


@cache
def bragg_slater_radii() -> NDArray[np.float64]:
    """Radii in Bohr by atomic number (element 0 is not used), read-only."""
    return _table("radii", 1 / BOHR_IN_ANGSTROM)


@cache
def treutler_scales() -> NDArray[np.float64]:
    """Factors xi of the radial map M4 by atomic number, read-only."""
    return _table("treutler", 1.0)


def _table(name: str, unit: float) -> NDArray[np.float64]:
    """A list of the data file; elements beyond its end have its last value."""
    numbers = json.loads((files("cuanto.grid") / "data" / "radii.json").read_text())[name]["values"]
    known = [numbers[0], *numbers]
    array = np.array(known + [known[-1]] * (ELEMENTS + 1 - len(known))) * unit
    array.setflags(write=False)
    return array
