"""Charge model 5: Hirshfeld charges, corrected so that they reproduce dipole moments.

A. V. Marenich, S. V. Jerome, C. J. Cramer and D. G. Truhlar, J. Chem. Theory Comput. 8, 527 (2012),
doi:10.1021/ct200866d. Parameters are in data/cm5.json.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

import numpy as np

from cuanto.arrays import Array
from cuanto.system import Molecule
from cuanto.system.elements import SYMBOLS
from cuanto.units import BOHR_IN_ANGSTROM


def cm5(molecule: Molecule, hirshfeld_a: Array) -> Array:
    """CM5 charges from Hirshfeld charges: q_a + sum_b T_ab exp(-alpha (r_ab - R_a - R_b)) (eqs. 1-3).

    T_ab = D_ZZ' for six pairs of H, C, N and O, else D_Z - D_Z'. Charge only moves between atoms, so the
    total charge does not change. Ghost atoms have no charges.
    """
    alpha, R_Z, T_ZZ = _parameters()
    q_a = np.array(hirshfeld_a, dtype=float)
    real = np.flatnonzero(molecule.nuclei.protons > 0)
    Z_a, r_ax = molecule.numbers[real], molecule.R_ax[real] * BOHR_IN_ANGSTROM
    for i, a in enumerate(real):
        r_b = np.sqrt(((r_ax - r_ax[i]) ** 2).sum(axis=1))
        B_b = np.exp(-alpha * (r_b - R_Z[Z_a[i]] - R_Z[Z_a]))  # T is zero for the atom itself
        q_a[a] += float(T_ZZ[Z_a[i], Z_a] @ B_b)
    return q_a


@lru_cache
def _parameters() -> tuple[float, Array, Array]:
    """alpha (1/Angstrom), radii (Angstrom) and T_ZZ' by atomic number."""
    table = json.loads((files("cuanto") / "data" / "cm5.json").read_text(encoding="utf-8"))
    number = {symbol: Z for Z, symbol in enumerate(SYMBOLS, 1)}
    D_Z = np.zeros(len(SYMBOLS) + 1)
    for symbol, value in table["elements"]["values"].items():
        D_Z[number[symbol]] = value
    T_ZZ = D_Z[:, None] - D_Z[None, :]
    for pair, value in table["pairs"]["values"].items():
        first, second = (number[symbol] for symbol in pair.split("-"))
        T_ZZ[first, second], T_ZZ[second, first] = value, -value
    return float(table["alpha"]["value"]), np.array([0.0, *table["radii"]["values"]]), T_ZZ
