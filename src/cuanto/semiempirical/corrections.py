"""Corrections of PM6 to heats of formation, as in MOPAC 23: triple bonds of carbon and planar nitrogen.

J. J. P. Stewart, J. Mol. Model. 13, 1173 (2007), doi:10.1007/s00894-007-0233-4. Energies in kcal/mol, gradients in
kcal/mol/Angstrom.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.semiempirical.parameters import parameters

TRIPLE_BOND_ENERGY = 12.0
SHORT_BOND, LONG_BOND = 1.21, 1.33
"""Range of bond lengths, in Angstrom, over which the energy of a triple bond is switched off."""
PLANAR, STEEPNESS = -0.5, 10.0
REACH, REACHES = 1.1, {"C": 1.2, "B": 1.0}
"""Atoms are neighbours of nitrogen below this multiple of the sum of their radii, which are parameters of PM6: for
most elements, and for those that differ."""


def corrections(symbols: Sequence[str], R_ax: Array) -> tuple[float, Array]:
    """Energy and gradient at positions in Angstrom."""
    gradient = np.zeros_like(R_ax)
    names = np.array(symbols)
    energy = _triple_bonds(np.flatnonzero(names == "C"), R_ax, gradient)
    return energy + _planar_nitrogen(names, R_ax, gradient), gradient


def _triple_bonds(carbons: NDArray[np.int64], R_ax: Array, gradient: Array) -> float:
    """TRIPLE_BOND_ENERGY of every short CC bond, times a polynomial that falls to zero from SHORT_BOND to LONG_BOND."""
    if len(carbons) < 2:
        return 0.0
    from scipy.spatial import cKDTree  # imported here, because it is slow to import

    pairs = cKDTree(R_ax[carbons]).query_pairs(LONG_BOND, output_type="ndarray")
    if len(pairs) == 0:
        return 0.0
    a, b = carbons[pairs[:, 0]], carbons[pairs[:, 1]]
    d_px = R_ax[b] - R_ax[a]
    R = np.linalg.norm(d_px, axis=1)
    width = LONG_BOND - SHORT_BOND
    t = np.clip((R - SHORT_BOND) / width, 0.0, 1.0)
    steps = t**3 * (-10.0 + t * (15.0 - 6.0 * t))
    bump = t**3 * (1.0 - t * (3.0 - t * (3.0 - t)))
    slope = t**2 * (-30.0 + t * (60.0 - 30.0 * t)) + 25.0 * bump
    slope += (25.0 * t - 5.0) * t**2 * (3.0 - t * (12.0 - t * (15.0 - 6.0 * t)))
    force_px = (TRIPLE_BOND_ENERGY * slope / width / R)[:, None] * d_px
    np.add.at(gradient, b, force_px)
    np.add.at(gradient, a, -force_px)
    return float(TRIPLE_BOND_ENERGY * np.sum(1.0 + steps + (25.0 * t - 5.0) * bump))


def _planar_nitrogen(names: NDArray[np.str_], R_ax: Array, gradient: Array) -> float:
    """-1/2 exp(-10 d), d = 2 pi minus the sum of the angles, for three neighbours with fewer than two hydrogens."""
    centres = np.flatnonzero(names == "N")
    if len(centres) == 0:
        return 0.0
    elements = parameters("pm6").elements
    radius_a = np.array([elements[name].radius for name in names])
    reach_a = np.array([REACHES.get(name, REACH) for name in names])
    distance = np.linalg.norm(R_ax[None] - R_ax[centres, None], axis=2)
    bonded = distance < reach_a[None] * (radius_a[None] + radius_a[centres, None])
    bonded[np.arange(len(centres)), centres] = False
    chosen = (bonded.sum(axis=1) == 3) & ((bonded & (names == "H")).sum(axis=1) < 2)
    if not chosen.any():
        return 0.0
    centre_n = centres[chosen]
    neighbour_nk = np.nonzero(bonded[chosen])[1].reshape(-1, 3)
    u_nkx = R_ax[neighbour_nk] - R_ax[centre_n, None]
    length_nk = np.linalg.norm(u_nkx, axis=2)
    u_nkx = u_nkx / length_nk[:, :, None]
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    cosine = np.sum(u_nkx[:, first] * u_nkx[:, second], axis=2)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    energy_n = PLANAR * np.exp(-STEEPNESS * (2.0 * np.pi - angle.sum(axis=1)))
    # d angle/d r_k = -(u_l - cos u_k)/(sin |r_k|); d energy/d angle = STEEPNESS energy
    factor = -STEEPNESS * energy_n[:, None] / np.sqrt(np.maximum(1.0 - cosine**2, 1e-30))
    for k, l in ((first, second), (second, first)):
        across = (u_nkx[:, l] - cosine[:, :, None] * u_nkx[:, k]) / length_nk[:, k, None]
        force = factor[:, :, None] * across
        np.add.at(gradient, neighbour_nk[:, k], force)
        np.add.at(gradient, centre_n, -force.sum(axis=1))
    return float(energy_n.sum())
