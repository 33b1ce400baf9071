"""Orbitals and the spin density on a grid, compressed for the page, which draws the surface of any isovalue itself.

An orbital is stored in steps of QUANTUM (invisible in a surface at 0.01 or more), as differences along z with low and
high bytes separated, and deflated: about one byte for two points.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.interfaces.cube import orbital_number, spin_density
from cuanto.interfaces.wavefunction import Wavefunction
from cuanto.properties.volume import Box, orbital_on_grid
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM

QUANTUM = 2e-4
"""Step in which values are stored, Bohr^-3/2."""
MAX_VALUE = 0.4
"""Larger values are cut off; they are inside every surface."""
MIN_ISOVALUE = 0.008
"""Smallest isovalue of the slider; the grid is reduced to where the orbital is larger."""
MARGIN = 6.0
MIN_SPACING, MAX_SPACING = 0.2, 0.45
POINTS, MAX_POINTS = 300_000, 900_000
SPIN_LABELS = ("\u03b1", "\u03b2")
FRONTIER = ("homo-3", "homo-2", "homo-1", "homo", "lumo", "lumo+1", "lumo+2", "lumo+3")
COARSENING = 1.4
"""Spacing of the other orbitals and of the spin density, relative to HOMO and LUMO, so that the page stays small."""
SPIN_LEVEL = 0.01
"""Isovalue of the spin density, Bohr^-3."""


@dataclass(frozen=True, eq=False)
class Surface:
    """An orbital or a density on a part of the grid.

    `group`: the row of buttons that it belongs to; `level`: the isovalue shown first, if it has one of its own.
    """

    key: str
    name: str
    box: Box
    values: Array
    group: str = ""
    level: float | None = None

    def packed(self) -> dict[str, Any]:
        """Data for the script of the page; lengths in Angstrom."""
        return {
            "key": self.key,
            "name": self.name,
            "origin": [x * BOHR_IN_ANGSTROM for x in self.box.origin],
            "spacing": self.box.spacing * BOHR_IN_ANGSTROM,
            "shape": list(self.box.shape),
            "quantum": QUANTUM,
            "level": self.level,
            "data": base64.b64encode(pack(self.values)).decode("ascii"),
        }


def pack(values: Array) -> bytes:
    """Differences along the last axis in steps of QUANTUM, low bytes, then high bytes, deflated."""
    steps = np.round(np.clip(values, -MAX_VALUE, MAX_VALUE) / QUANTUM).astype(np.int16)
    change = np.diff(steps, axis=2, prepend=np.int16(0)).astype("<i2")
    split = change.reshape(-1).view(np.uint8).reshape(-1, 2).T
    return zlib.compress(np.ascontiguousarray(split).tobytes(), 9)


def frontier_surfaces(wave: Wavefunction, molecule: Molecule) -> list[Surface]:
    """HOMO-3 to LUMO+3 of each spin, where they exist, and the spin density."""
    box, coarse = _box(molecule), _box(molecule, COARSENING)
    found = []
    for s in range(len(wave.n_sm)):
        group = SPIN_LABELS[s] if len(wave.n_sm) > 1 else ""
        for name in FRONTIER:
            try:
                m = orbital_number(wave, name, s)
            except InputError:
                continue
            region = box if name in ("homo", "lumo") else coarse
            values, label = (
                orbital_on_grid(wave.basis, wave.C_spm[s][:, m], region),
                name.upper().replace("-", "\u2212"),
            )
            found.append(_surface(f"{name}{s}", label, region, values, group))
    if len(wave.n_sm) > 1:
        found.append(_surface("spin", "Spin density", coarse, spin_density(wave, coarse), level=SPIN_LEVEL))
    return [surface for surface in found if surface is not None]


def _box(molecule: Molecule, coarsening: float = 1.0) -> Box:
    """A fine grid for small molecules, a coarser one for large molecules, so that the page stays small."""
    R_ax = molecule.R_ax
    volume = float(np.prod(np.ptp(R_ax, axis=0) + 2 * MARGIN))
    spacing = float(np.clip((volume / POINTS) ** (1 / 3), MIN_SPACING, MAX_SPACING))
    return Box.around(R_ax, coarsening * max(spacing, (volume / MAX_POINTS) ** (1 / 3)), MARGIN)


def _surface(
    key: str, name: str, box: Box, values: Array, group: str = "", level: float | None = None
) -> Surface | None:
    """The part of the box where values are large; None if there is none."""
    if not np.isfinite(values).all():
        return None
    large = np.abs(values) > (MIN_ISOVALUE if level is None else min(MIN_ISOVALUE, level))
    if not large.any():
        return None
    along = [np.flatnonzero(large.any(axis=tuple({0, 1, 2} - {x}))) for x in range(3)]
    ax, ay, az = (max(int(i[0]) - 2, 0) for i in along)
    bx, by, bz = (min(int(i[-1]) + 3, n) for i, n in zip(along, box.shape, strict=True))
    return Surface(key, name, box.part((ax, ay, az), (bx, by, bz)), values[ax:bx, ay:by, az:bz], group, level)
