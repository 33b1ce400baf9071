"""Tables of the parameters of atoms and pairs of elements, in the form that the kernels read."""

from __future__ import annotations

import numpy as np

from cuanto.arrays import Array
from cuanto.kernels.nddo import FIELDS, GAUSSIANS, OFFSETS, PAIR_FIELDS, RECORD
from cuanto.kernels.nddo_multipoles import ADDITIVE, SEPARATIONS
from cuanto.kernels.nddo_overlap import radial_norm
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element, Parameters

CUBE_ROOT = 0.3333
"""Exponent of the atomic number in PM6's repulsion of unpolarisable cores."""
R6_FACTOR = 0.0003
"""Factor of R^6 in the exponents of PM6's core repulsion."""
SPECIAL_TERMS = {frozenset("C"): (9.278465, 5.983752, 0.0, 0.0), frozenset(("Si", "O")): (-0.0007, 0.0, 1.0, 2.9)}
"""Extra terms c exp(-(u + v d) d), d = R - m, that PM6 has for two pairs of elements: c, u, v, m."""
SQUARED_PAIRS = {frozenset(("H", symbol)) for symbol in "CNO"}
"""Pairs whose exponent in PM6's core repulsion contains R^2."""
LINEAR_PAIRS = {("N", "H"), ("O", "H"), ("N", "He")}
"""Pairs in which the exponential of the first element is multiplied by R, in MNDO and its relatives."""
LANTHANIDES = range(57, 72)
DEFAULT_PAIR = {False: (2.18, 5.0), True: (3.0, 5.0)}
"""alpha and x of a PM6 pair without parameters, as in MOPAC; True: with a lanthanide."""


def unknown_pairs(layout: Layout) -> list[tuple[str, str]]:
    """Pairs of elements in the molecule for which PM6 has no parameters."""
    names = [element.symbol for element in layout.distinct] if layout.parameters.method == "pm6" else []
    many = {name for name in names if layout.symbols.count(name) > 1}
    pairs = [(one, other) for k, one in enumerate(names) for other in names[k:] if one != other or one in many]
    return [pair for pair in pairs if pair not in layout.parameters.pairs]


def extra_gaussians(layout: Layout) -> int:
    """Largest number of Gaussians that belong to a pair of elements."""
    names = [element.symbol for element in layout.distinct]
    terms = layout.parameters.by_partner
    return max((len(terms.get((one, other), ())) for one in names for other in names), default=0)


def atom_records(layout: Layout) -> Array:
    """Parameters of every atom as a table [atom, field]; elements are numbered in order of occurrence."""
    rows = [_record(element, number) for number, element in enumerate(layout.distinct)]
    return np.stack(rows)[layout.element_of_atom]


def _record(element: Element, number: int) -> Array:
    values: dict[str, list[float]] = {
        "ELEMENT": [number],
        "CHARGE": [element.core_charge],
        "ROOT": [element.number**CUBE_ROOT],
        "ATTRACTED": [float(element.p_attracted)],
        "SEPARATION": [element.D.get(shells, 0.0) for shells in SEPARATIONS],
        "ADDITIVE": [element.rho.get(shells, 0.0) for shells in ADDITIVE],
        "ZETA": list(element.zeta),
        "NORM": [radial_norm(n, zeta) for n, zeta in zip(element.kind, element.zeta, strict=True)],
        "BETA": list(element.beta),
        "GAUSSIAN": [x for term in element.gaussians[:GAUSSIANS] for x in term],
    }
    record = np.zeros(RECORD)
    for name in FIELDS:
        record[OFFSETS[name] : OFFSETS[name] + len(values[name])] = values[name]
    return record


def pair_table(layout: Layout) -> Array:
    """Parameters of the core repulsion, [element, element, field]; see templates/nddo_core_repulsion.h."""
    names = [element.symbol for element in layout.distinct]
    make = _pm6 if layout.parameters.method == "pm6" else _mndo
    table = np.zeros((len(names), len(names), PAIR_FIELDS))
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            row = make(layout.parameters, one, other)
            table[i, j, : len(row)] = row
    return table


def _pm6(parameters: Parameters, one: str, other: str) -> list[float]:
    both = frozenset((one, other))
    term = SPECIAL_TERMS.get(both, (0.0, 0.0, 0.0, 0.0))
    known = parameters.pairs.get((one, other))
    if known is None:
        lanthanide = any(parameters.elements[symbol].number in LANTHANIDES for symbol in both)
        return [*DEFAULT_PAIR[lanthanide], 0.0, 0.0, *term, 2.0, 2.0]
    return [known[0], known[1], float(both in SQUARED_PAIRS), R6_FACTOR, *term, 1.0, 1.0]


def _mndo(parameters: Parameters, one: str, other: str) -> list[float]:
    known = parameters.pairs.get((one, other))
    if known is not None:
        return [2.0 * known[1], known[0], float(len(known) > 2)]
    exponentials = [
        x
        for own, mate in ((one, other), (other, one))
        for x in (1.0, parameters.elements[own].alpha, float((own, mate) in LINEAR_PAIRS))
    ]
    replaced = [parameters.by_partner.get(pair) for pair in ((one, other), (other, one))]
    extra = [x for terms in replaced for term in terms or () for x in term]
    return [*exponentials, 0.0, 0.0, *(float(terms is None) for terms in replaced), *extra]
