"""Parameters of a molecule's atoms as the tables that kernels read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.nddo import FIELDS, GAUSSIANS, OFFSETS, PAIR_FIELDS, RECORD
from cuanto.kernels.nddo_multipoles import ADDITIVE, SEPARATIONS
from cuanto.kernels.nddo_overlap import radial_norm
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element, Parameters

Array = NDArray[np.float64]

CARBON_PAIR = 9.278465
"""Factor of PM6's term for carbon with carbon."""
ROOT = 0.3333
"""Exponent of the atomic number in PM6's repulsion of unpolarisable cores."""


def atom_records(layout: Layout) -> Array:
    """[atom, field]; elements are numbered as they occur."""
    names = element_names(layout)
    rows = {name: _record(layout.parameters.elements[name], number) for number, name in enumerate(names)}
    return np.stack([rows[symbol] for symbol in layout.symbols])


def element_names(layout: Layout) -> list[str]:
    """In the order of their first atoms."""
    return list(dict.fromkeys(layout.symbols))


def _record(element: Element, number: int) -> Array:
    values: dict[str, list[float]] = {
        "ELEMENT": [number],
        "CHARGE": [element.core_charge],
        "ROOT": [element.number**ROOT],
        "ALPHA": [element.alpha],
        "SEPARATION": [element.D.get(shells, 0.0) for shells in SEPARATIONS],
        "ADDITIVE": [element.rho.get(shells, 0.0) for shells in ADDITIVE],
        "ZETA": list(element.zeta),
        "NORM": [radial_norm(element.n, zeta) for zeta in element.zeta],
        "BETA": list(element.beta),
        "GAUSSIAN": [x for term in element.gaussians[:GAUSSIANS] for x in term],
    }
    record = np.zeros(RECORD)
    for name in FIELDS:
        record[OFFSETS[name] : OFFSETS[name] + len(values[name])] = values[name]
    return record


def pair_table(layout: Layout) -> Array:
    """[element, element, field] of the core repulsion; see templates/nddo_core_repulsion.h."""
    names = element_names(layout)
    table = np.zeros((len(names), len(names), PAIR_FIELDS))
    for a, one in enumerate(names):
        for b, other in enumerate(names):
            table[a, b] = _pair(layout.parameters, one, other)
    return table


def _pair(parameters: Parameters, one: str, other: str) -> list[float]:
    if parameters.method == "pm6":
        alpha, x = parameters.pairs[one, other]
        squared = "H" in (one, other) and bool({one, other} & {"C", "N", "O"})
        return [alpha, x, float(squared), CARBON_PAIR if one == other == "C" else 0.0]
    return [float(one in ("N", "O") and other == "H"), float(other in ("N", "O") and one == "H"), 0.0, 0.0]
