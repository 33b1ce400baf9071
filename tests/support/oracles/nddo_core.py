"""A simple, slow oracle for the core repulsion, pair by pair (Hartree; positions in Bohr, see `BOHR`).

MNDO: M. J. S. Dewar and W. Thiel, J. Am. Chem. Soc. 99, 4899 (1977), doi:10.1021/ja00457a004; AM1: M. J. S. Dewar et
al., J. Am. Chem. Soc. 107, 3902 (1985), doi:10.1021/ja00299a024; PM6: J. J. P. Stewart, J. Mol. Model. 13, 1173 (2007),
doi:10.1007/s00894-007-0233-4.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.semiempirical.constants import BOHR, HARTREE
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element


def core_repulsion(layout: Layout, R_ax: NDArray[np.float64]) -> float:
    """Core repulsion summed over all pairs of atoms."""
    energy = 0.0
    for a, one in enumerate(layout.elements):
        for b, other in enumerate(layout.elements[:a]):
            distance = float(np.linalg.norm(R_ax[a] - R_ax[b]))
            if layout.parameters.method == "pm6":
                energy += _pm6(one, other, distance, layout.parameters.pairs[one.symbol, other.symbol])
            else:
                energy += _mndo(one, other, distance, layout.parameters.method != "mndo")
    return energy


def _gamma(one: Element, other: Element, distance: float) -> float:
    return 1.0 / sqrt(distance**2 + (one.rho["0"] + other.rho["0"]) ** 2)


def _gaussians(one: Element, other: Element, r: float, farthest: float) -> float:
    """(Z Z'/R) sum K exp(-L (R - M)^2), which is in eV with R in Angstrom."""
    total = 0.0
    for element in (one, other):
        for K, L, M in element.gaussians:
            exponent = L * (r - M) ** 2
            total += K * exp(-exponent) if exponent < farthest else 0.0
    return one.core_charge * other.core_charge * total / r / HARTREE


def _mndo(one: Element, other: Element, distance: float, gaussians: bool) -> float:
    r = distance * BOHR
    factor = 1.0
    for element, mate in ((one, other), (other, one)):
        f = exp(-element.alpha * r)
        factor += f * r if element.symbol in ("N", "O") and mate.symbol == "H" else f
    energy = one.core_charge * other.core_charge * _gamma(one, other, distance) * factor
    return energy + (_gaussians(one, other, r, 25.0) if gaussians else 0.0)


def _pm6(one: Element, other: Element, distance: float, pair: tuple[float, float]) -> float:
    r, (alpha, x), both = distance * BOHR, pair, {one.symbol, other.symbol}
    squared = "H" in both and bool(both & {"C", "N", "O"})
    factor = 1.0 + 2.0 * x * exp(-alpha * (r * r if squared else r + 0.0003 * r**6))
    if both == {"C"}:
        factor += 9.278465 * exp(-5.983752 * r)
    energy = one.core_charge * other.core_charge * _gamma(one, other, distance) * factor
    ratio = (one.number**0.3333 + other.number**0.3333) / r
    hard = 1e-8 * ratio**12 / HARTREE if ratio > 1.0 / 3.0 else 0.0
    return energy + _gaussians(one, other, r, np.inf) + hard
