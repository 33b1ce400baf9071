"""Molecules near stationary points of cheap methods, for tests of vibrations."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from ase.build import molecule

import cuanto
from cuanto import Molecule, Vibrations

WATER = Molecule.from_string("3\nname=water\nO 0 0 0.1273\nH 0 0.7581 -0.5087\nH 0 -0.7581 -0.5087\n")
"""Water near the minimum of HF/STO-3G."""
PLANAR = Molecule.from_string(
    "4\nname=ammonia\nN 0 0 0\nH 0 0.9807452 0\nH 0.84935026 -0.4903726 0\nH -0.84935026 -0.4903726 0\n"
)
"""Ammonia near the planar transition state of PM6."""
HF: dict[str, Any] = {"method": "hf", "basis": "sto-3g", "fitting": "none", "backend": "cpu"}
PM6: dict[str, Any] = {"method": "pm6", "backend": "cpu"}


@cache
def water() -> Vibrations:
    """Vibrations of water, computed once."""
    return cuanto.frequencies(WATER, **HF)


def rotated(name: str) -> tuple[list[str], np.ndarray]:
    """Elements and positions (Bohr) of one of ASE's molecules in an arbitrary orientation."""
    found, random = molecule(name), np.random.default_rng(len(name))
    rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]
    return found.get_chemical_symbols(), found.positions @ rotation / 0.529177 + random.normal(size=3)
