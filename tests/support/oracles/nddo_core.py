"""A simple, slow oracle for the core repulsion, pair by pair (Hartree; positions in Bohr, see `BOHR`).

MNDO: M. J. S. Dewar and W. Thiel, J. Am. Chem. Soc. 99, 4899 (1977), doi:10.1021/ja00457a004; AM1: M. J. S. Dewar et
al., J. Am. Chem. Soc. 107, 3902 (1985), doi:10.1021/ja00299a024, boron: Organometallics 7, 513 (1988); PM6:
J. J. P. Stewart, J. Mol. Model. 13, 1173 (2007), doi:10.1007/s00894-007-0233-4.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.semiempirical.constants import BOHR, HARTREE
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element, Gaussian, Parameters

BORON: dict[str, tuple[Gaussian, ...]] = {
    "H": ((0.412253, 10.0, 0.832586), (-0.149917, 6.0, 1.18622)),
    "C": ((0.261751, 8.0, 1.063995), (0.050275, 5.0, 1.936492)),
} | dict.fromkeys(("F", "Cl", "Br", "I"), ((0.359244, 9.0, 0.819351), (0.074729, 9.0, 1.574414)))
"""Gaussians of boron in AM1, by its neighbour."""


def core_repulsion(layout: Layout, R_ax: NDArray[np.float64]) -> float:
    """Core repulsion summed over all pairs of atoms."""
    energy = 0.0
    for a, one in enumerate(layout.elements):
        for b, other in enumerate(layout.elements[:a]):
            distance = float(np.linalg.norm(R_ax[a] - R_ax[b]))
            form = _pm6 if layout.parameters.method == "pm6" else _mndo
            energy += form(one, other, distance, layout.parameters)
    return energy


def _gamma(one: Element, other: Element, distance: float) -> float:
    return 1.0 / sqrt(distance**2 + (one.rho["core"] + other.rho["core"]) ** 2)


def _gaussians(terms: tuple[Gaussian, ...], one: Element, other: Element, r: float, farthest: float) -> float:
    """(Z Z'/R) sum K exp(-L (R - M)^2), which is in eV with R in Angstrom."""
    total = 0.0
    for K, L, M in terms:
        exponent = L * (r - M) ** 2
        total += K * exp(-exponent) if exponent < farthest else 0.0
    return one.core_charge * other.core_charge * total / r / HARTREE


def _mndo(one: Element, other: Element, distance: float, parameters: Parameters) -> float:
    r, front = distance * BOHR, one.core_charge * other.core_charge * _gamma(one, other, distance)
    both = {one.symbol, other.symbol}
    if (one.symbol, other.symbol) in parameters.pairs:
        alpha, x = parameters.pairs[one.symbol, other.symbol][:2]
        return front * (1.0 + 2.0 * x * exp(-alpha * r) * (r if both == {"Mo", "H"} else 1.0))
    factor, terms = 1.0, ()
    for element, mate in ((one, other), (other, one)):
        f = exp(-element.alpha * r)
        times_r = (element.symbol, mate.symbol) in (("N", "H"), ("O", "H"), ("N", "He"))
        factor += f * r if times_r else f
        special = parameters.method == "am1" and element.symbol == "B" and mate.symbol in BORON
        terms += BORON[mate.symbol] if special else element.gaussians
    return front * factor + _gaussians(terms, one, other, r, 25.0)


def _pm6(one: Element, other: Element, distance: float, parameters: Parameters) -> float:
    r, both = distance * BOHR, {one.symbol, other.symbol}
    times = 1.0
    if (one.symbol, other.symbol) not in parameters.pairs:
        factor = 1.0 + 10.0 * exp(-3.0 * r if both & {"La", "Lu"} else -2.18 * r)
        times = 2.0
    else:
        alpha, x = parameters.pairs[one.symbol, other.symbol]
        squared = "H" in both and bool(both & {"C", "N", "O"})
        factor = 1.0 + 2.0 * x * exp(-alpha * (r * r if squared else r + 0.0003 * r**6))
    if both == {"C"}:
        factor += 9.278465 * exp(-5.983752 * r)
    if both == {"Si", "O"}:
        factor -= 0.0007 * exp(-((r - 2.9) ** 2))
    energy = one.core_charge * other.core_charge * _gamma(one, other, distance) * factor
    ratio = (one.number**0.3333 + other.number**0.3333) / r
    hard = 1e-8 * ratio**12 / HARTREE if ratio > 1.0 / 3.0 else 0.0
    return energy + times * _gaussians(one.gaussians + other.gaussians, one, other, r, np.inf) + hard
