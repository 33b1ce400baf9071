"""Radial quadrature about a core potential: panels of Gauss points, as narrow as the functions require.

An integrand is a product of exponentials, powers and Bessel functions, an entire function of r: a panel of PANEL points
integrates exp(-s r^2) to rounding if s (width/2)^2 <= RESOLUTION. Panels are halved until this holds for all
primitives and terms of the potential whose bounds are significant on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.basis.core_potential import RadialTerm
from cuanto.core_potentials.shells import ContractedShells

PANEL = 24
"""Gauss points of a panel: a multiple of all vector lengths."""
RESOLUTION = 12.0
THRESHOLD = 1e-13
"""Contributions of a panel to an integral below this are neglected."""
Terms = Sequence[RadialTerm]


def potential(terms: Terms, r: Array) -> Array:
    """r^2 U(r)"""
    values = [term.coefficient * r**term.power * np.exp(-term.exponent * r**2) for term in terms]
    return np.asarray(sum(values, np.zeros_like(r)))


@dataclass(frozen=True)
class RadialGrid:
    """Points with weights r^2 U_l dr, [angular momentum][point]; angular momentum l uses the first reach[l] points.

    `entries`: significant contracted shells.
    """

    r: Array
    weights: list[Array]
    reach: Ints
    entries: Ints


class _Bounds:
    """Bounds of terms of potentials and of projections on panels."""

    def __init__(self, potentials: Sequence[Terms], shells: ContractedShells, distances: Array) -> None:
        self.owner = np.array([l for l, terms in enumerate(potentials) for _ in terms])
        rows = [(t.power, t.exponent, abs(t.coefficient)) for terms in potentials for t in terms]
        self.power, self.exponent, self.coefficient = np.array(rows, dtype=float).reshape(-1, 3).T
        self.momenta, self.shells, self.distances = len(potentials), shells, distances

    def end(self) -> float:
        """A radius beyond which the potentials are negligible."""
        r = 1.0
        while (self.coefficient * r**self.power * np.exp(-self.exponent * r**2)).sum() > 1e-3 * THRESHOLD:
            r *= 1.1
        return r

    def terms(self, low: float, high: float) -> Array:
        """Largest r^2 |U| of every term on a panel times its width."""
        r = np.clip(np.sqrt(self.power / (2 * self.exponent)), low, high)
        return np.asarray((high - low) * self.coefficient * r**self.power * np.exp(-self.exponent * r**2))

    def momentum_sums(self, terms: Array) -> Array:
        """Sums of the terms of each angular momentum."""
        return np.asarray(np.bincount(self.owner, terms, self.momenta), dtype=float)


@dataclass(frozen=True)
class _Panel:
    """A panel with upper bounds of the potentials U_l and of the projections of all contracted shells."""

    low: float
    high: float
    potentials: Array
    shells: Array

    @property
    def significant(self) -> bool:
        """Whether any integral has a contribution."""
        return bool(self.potentials.max() * self.shells.max(initial=0.0) ** 2 > THRESHOLD)


def _panel(bounds: _Bounds, low: float, high: float) -> tuple[_Panel, float]:
    """A panel, and the largest exponent of an integrand on it."""
    terms = bounds.terms(low, high)
    potentials = bounds.momentum_sums(terms)
    primitives = bounds.shells.bounds(bounds.distances, low, high)
    panel = _Panel(low, high, potentials, bounds.shells.contracted(primitives))
    largest, a = panel.shells.max(initial=0.0), bounds.shells.exponents
    seen = primitives * (potentials.max() * largest) > THRESHOLD
    tight = a[seen].max(initial=0.0)
    z = bounds.exponent[terms * largest**2 > THRESHOLD].max(initial=0.0)
    return panel, float(2 * tight + z)


def _panels(bounds: _Bounds) -> list[_Panel]:
    """Significant panels, from the centre outwards."""
    found: list[_Panel] = []
    waiting = [(0.0, bounds.end())]
    while waiting:
        low, high = waiting.pop()
        panel, exponent = _panel(bounds, low, high)
        if not panel.significant:
            continue
        if exponent * (0.5 * (high - low)) ** 2 <= RESOLUTION:
            found.append(panel)
            continue
        middle = 0.5 * (low + high)
        waiting += [(middle, high), (low, middle)]
    return found


def radial_grid(potentials: Sequence[Terms], shells: ContractedShells, distances: Array) -> RadialGrid | None:
    """Quadrature for the potentials U_l and shells at some distances; None if nothing is significant."""
    bounds = _Bounds(potentials, shells, distances)
    panels = _panels(bounds) if len(bounds.owner) and shells.count else []
    if not panels:
        return None
    x, w = np.polynomial.legendre.leggauss(PANEL)
    low, high = (np.array([getattr(panel, name) for panel in panels]) for name in ("low", "high"))
    r = (0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * x).reshape(-1)
    dr = (0.5 * (high - low)[:, None] * w).reshape(-1)
    largest = np.array([panel.shells.max() for panel in panels])
    bound_nl = np.array([panel.potentials for panel in panels])
    significant = bound_nl * largest[:, None] ** 2 > THRESHOLD
    last = np.where(significant.any(axis=0), len(panels) - significant[::-1].argmax(axis=0), 0)
    reach = PANEL * last
    weights = [dr[:n] * potential(terms, r[:n]) for terms, n in zip(potentials, reach.tolist(), strict=True)]
    return RadialGrid(r, weights, reach, _entries(panels, largest, bound_nl))


def _entries(panels: Sequence[_Panel], largest: Array, bound_nl: Array) -> Ints:
    """Contracted shells with a significant projection on any panel; `bound_nl`: bounds of U_l on panel n."""
    weight = bound_nl.max(axis=1) * largest
    significant = (np.array([panel.shells for panel in panels]) * weight[:, None] > THRESHOLD).any(axis=0)
    return np.flatnonzero(significant)


def significant_entries(terms: Terms, shells: ContractedShells, distances: Array) -> Ints:
    """Contracted shells that a local potential acts on."""
    bounds = _Bounds([terms], shells, distances)
    if not len(bounds.owner) or not shells.count:
        return np.zeros(0, dtype=np.int64)
    edges = bounds.end() * np.linspace(0.0, 1.0, 17)
    panels = [_panel(bounds, low, high)[0] for low, high in pairwise(edges.tolist())]
    largest = np.array([panel.shells.max() for panel in panels])
    return _entries(panels, largest, np.array([panel.potentials for panel in panels]))
