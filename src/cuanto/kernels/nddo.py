"""Texts of the NDDO kernels: integrals, exchange and gradient of all pairs of two kinds of atoms.

A kind is (principal quantum number, number of orbitals); everything else about an element is data, and repulsion and
exchange need only the numbers of orbitals. Kernels run over `rows` x `columns` atoms of `molecules` of one composition;
with `triangle`, both are of one kind and a pair is done once. Repulsion goes to G[product on an atom, product on
another], so that the Coulomb part of a Fock matrix is a product of a matrix and a vector; exchange of a pair reads one
block and writes blocks of its own: nothing is added up by two threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from cuanto.kernels.abi import Arguments
from cuanto.kernels.nddo_multipoles import ADDITIVE, SEPARATIONS, products, repulsion
from cuanto.kernels.nddo_overlap import SERIES_LIMIT, mopac_limit, overlap_text, series_text
from cuanto.kernels.text import SYNTAX, Source, assemble

Kind = tuple[int, int]

THREADS = 128
"""Pairs of a block of threads."""
GAUSSIANS = 4
FIELDS: dict[str, int] = {
    "ELEMENT": 1,
    "CHARGE": 1,
    "ROOT": 1,
    "ALPHA": 1,
    "SEPARATION": len(SEPARATIONS),
    "ADDITIVE": len(ADDITIVE),
    "ZETA": 3,
    "NORM": 3,
    "BETA": 3,
    "GAUSSIAN": 3 * GAUSSIANS,
}
"""What a kernel knows of an atom, and how many numbers that is: the index of its element (for the table of pairs), core
charge, a root of the atomic number, MNDO's alpha, multipoles, shells, and Gaussians (K, L, M)."""
OFFSETS = dict(zip(FIELDS, np.cumsum([0, *FIELDS.values()]).tolist(), strict=False))
RECORD = sum(FIELDS.values())
PAIR_FIELDS = 4

GRID: Arguments = (
    ("INDEX", "begin"),
    ("INDEX", "end"),
    ("INDEX", "rows"),
    ("INDEX", "columns"),
    ("int", "triangle"),
    ("const int*", "row_atom"),
    ("const int*", "column_atom"),
    ("const int*", "first"),
    ("const int*", "first_product"),
    ("INDEX", "orbitals"),
    ("INDEX", "products"),
)
GEOMETRY: Arguments = (
    ("INDEX", "atoms"),
    ("const double*", "R"),
    ("const double*", "record"),
    ("const double*", "pair"),
    ("int", "elements"),
)
SLAB: Arguments = (("int", "atom_begin"), ("int", "atom_end"))
REPULSION: Arguments = (*GRID, *GEOMETRY, *SLAB, ("double*", "G"))
MODEL: Arguments = (
    ("int", "pm6"),
    ("int", "gaussians"),
    ("int", "mopac"),
    ("double", "bohr"),
    ("double", "hartree"),
)
CORE: Arguments = (*GRID, *GEOMETRY, *MODEL, ("double*", "H"), ("double*", "energies"))
EXCHANGE: Arguments = (
    *GRID,
    *SLAB,
    ("const double*", "G"),
    ("INDEX", "spins"),
    ("double", "factor"),
    ("const double*", "D"),
    ("double*", "F"),
)
GRADIENT: Arguments = (
    *GRID,
    *GEOMETRY,
    *MODEL,
    ("INDEX", "spins"),
    ("double", "factor"),
    ("const double*", "D"),
    ("double*", "gradient"),
)


LOADERS = {"cpu": ("nddo_triangle.h", "nddo_pairs_cpu.h"), "cuda": ("nddo_pairs.cuh",)}
SUFFIX = {"cpu": "_cpu.h", "cuda": ".cuh"}


def _table(name: str, values: Sequence[int], target: str) -> str:
    return f"{SYNTAX[target].table} short {name}[] = {{{', '.join(map(str, values))}}};"


def _defines(orbitals_a: int, orbitals_b: int) -> dict[str, object]:
    return {
        "NA": orbitals_a,
        "NB": orbitals_b,
        "NA2": orbitals_a * (orbitals_a + 1) // 2,
        "NB2": orbitals_b * (orbitals_b + 1) // 2,
        "LARGEST": max(orbitals_a, orbitals_b),
        "THREADS": THREADS,
        "FIELDS": RECORD,
        "PAIR_FIELDS": PAIR_FIELDS,
        **OFFSETS,
    }


def _pair_parts(target: str) -> tuple[str, ...]:
    return ("nddo_numbers.h", "nddo_model.h", "nddo_pair.h", "nddo_frame.h", *LOADERS[target])


def _products(orbitals_a: int, orbitals_b: int, target: str) -> list[str]:
    """Tables of both orbitals of every product."""
    lines = []
    for side, orbitals in (("a", orbitals_a), ("b", orbitals_b)):
        pairs = products(orbitals)
        lines.append(_table(f"first_of_{side}", [i for i, _ in pairs], target))
        lines.append(_table(f"second_of_{side}", [j for _, j in pairs], target))
    return lines


def _repulsion_parts(orbitals_a: int, orbitals_b: int, target: str) -> tuple[dict[str, object], list[str]]:
    made = repulsion(orbitals_a, orbitals_b)
    names = ("entry_a", "entry_b", "entry_value")
    columns = zip(*made.entries, strict=True)
    tables = [_table(name, column, target) for name, column in zip(names, columns, strict=True)]
    return {"VALUES": made.values, "ENTRIES": len(made.entries)}, [*tables, made.text]


def _core_parts(kind_a: Kind, kind_b: Kind) -> tuple[dict[str, object], list[str]]:
    limits = {"SERIES_LIMIT": SERIES_LIMIT, "MOPAC_LIMIT": mopac_limit(kind_a, kind_b)}
    defines = _defines(kind_a[1], kind_b[1]) | {name: f"REAL({value!r})" for name, value in limits.items()}
    overlap = overlap_text(kind_a, kind_b)
    return defines, [series_text(), "nddo_auxiliary.h", overlap, "nddo_core_repulsion.h", "nddo_resonance.h"]


@cache
def repulsion_source(target: str, orbitals_a: int, orbitals_b: int) -> Source:
    """G of all pairs of atoms with so many orbitals."""
    counts, parts = _repulsion_parts(orbitals_a, orbitals_b, target)
    body = [*_pair_parts(target), *parts, f"nddo_repulsion{SUFFIX[target]}"]
    entry = f"nddo_repulsion_{orbitals_a}_{orbitals_b}"
    return assemble(entry, target, "double", REPULSION, _defines(orbitals_a, orbitals_b) | counts, body)


@cache
def core_source(target: str, kind_a: Kind, kind_b: Kind) -> Source:
    """Core Hamiltonian between atoms of two kinds, and core repulsion."""
    defines, parts = _core_parts(kind_a, kind_b)
    body = [*_pair_parts(target), *parts, f"nddo_core{SUFFIX[target]}"]
    entry = f"nddo_core_{kind_a[0]}{kind_a[1]}_{kind_b[0]}{kind_b[1]}"
    return assemble(entry, target, "double", CORE, defines, body)


@cache
def exchange_source(target: str, orbitals_a: int, orbitals_b: int) -> Source:
    """Exchange of all pairs of atoms with so many orbitals."""
    defines = _defines(orbitals_a, orbitals_b) | {"EXCHANGE_LOOP": "UNROLL" if orbitals_a < 9 else "NO_UNROLL"}
    tables = _products(orbitals_a, orbitals_b, target)
    body = [*_pair_parts(target), *tables, "nddo_exchange.h", f"nddo_exchange{SUFFIX[target]}"]
    return assemble(f"nddo_exchange_{orbitals_a}_{orbitals_b}", target, "double", EXCHANGE, defines, body)


@cache
def repulsion_gradient_source(target: str, orbitals_a: int, orbitals_b: int) -> Source:
    """Gradient of repulsion, exchange and attraction to the cores."""
    counts, parts = _repulsion_parts(orbitals_a, orbitals_b, target)
    body = [*_pair_parts(target), *_products(orbitals_a, orbitals_b, target), *parts]
    body += ["nddo_gradient.h", "nddo_gradient_repulsion.h", f"nddo_gradient{SUFFIX[target]}"]
    entry = f"nddo_repulsion_gradient_{orbitals_a}_{orbitals_b}"
    return assemble(entry, target, "double", GRADIENT, _defines(orbitals_a, orbitals_b) | counts, body)


@cache
def core_gradient_source(target: str, kind_a: Kind, kind_b: Kind) -> Source:
    """Gradient of the core Hamiltonian between atoms, and of core repulsion."""
    defines, parts = _core_parts(kind_a, kind_b)
    body = [*_pair_parts(target), *parts, "nddo_gradient.h", "nddo_gradient_core.h", f"nddo_gradient{SUFFIX[target]}"]
    entry = f"nddo_core_gradient_{kind_a[0]}{kind_a[1]}_{kind_b[0]}{kind_b[1]}"
    return assemble(entry, target, "double", GRADIENT, defines, body)
