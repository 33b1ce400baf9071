"""Texts of the NDDO kernels: integrals, exchange and gradient of all pairs of two kinds of atoms.

A kind is the principal quantum numbers of s, p and d; everything else about an element is data, and repulsion and
exchange need only the numbers of orbitals. A launch covers all molecules of a batch, which have the same composition.
An item is one of the `rows` x `columns` pairs of atoms of a molecule; with `triangle` both atoms are of one kind, and
each pair is computed once. A CPU processes whole rows at once, with the columns in the lanes of its vectors; a GPU has
a thread for each pair. Repulsion is stored as G[product on one atom, product on the other], so that the Coulomb part of
a Fock matrix is a product of a matrix and a vector. Exchange of a pair reads one block and writes blocks of its own: no
two threads add to the same element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from cuanto import tuning
from cuanto.kernels.abi import Arguments, parse_arguments
from cuanto.kernels.nddo_multipoles import ADDITIVE, SEPARATIONS, products, repulsion
from cuanto.kernels.nddo_overlap import SERIES_LIMIT, Kind, mopac_limit, overlap_text, series_text
from cuanto.kernels.text import SUMS, Source, assemble

THREADS = tuning.size("cuda", "semiempirical.threads")
GAUSSIANS = 4
FIELDS: dict[str, int] = {
    "ELEMENT": 1,
    "CHARGE": 1,
    "ROOT": 1,
    "ATTRACTED": 1,
    "SEPARATION": len(SEPARATIONS),
    "ADDITIVE": len(ADDITIVE),
    "ZETA": 3,
    "NORM": 3,
    "BETA": 3,
    "GAUSSIAN": 3 * GAUSSIANS,
}
"""Fields of an atom's record and their lengths: the index of its element (for the table of pairs), core charge, cube
root of the atomic number, whether cores attract its p orbitals, multipoles, shells, and Gaussians (K, L, M)."""
OFFSETS = dict(zip(FIELDS, np.cumsum([0, *FIELDS.values()]).tolist(), strict=False))
RECORD = sum(FIELDS.values())
PAIR_FIELDS = 16
"""Numbers of a pair of elements in the core repulsion; see templates/nddo_core_repulsion.h."""

GRID = parse_arguments(
    "INDEX begin, INDEX end, INDEX rows, INDEX columns, int triangle, const int* row_atom, const int* "
    "column_atom, const int* first, const int* first_product, INDEX orbitals, INDEX products"
)
GEOMETRY = parse_arguments("INDEX atoms, const double* R, const double* record, const double* pair, int elements")
SLAB = parse_arguments("int atom_begin, int atom_end")
REPULSION = GRID + GEOMETRY + SLAB + parse_arguments("double* G")
MODEL = parse_arguments("int pm6, int gaussians, int extras, int mopac, double bohr, double hartree")
CORE = GRID + GEOMETRY + MODEL + parse_arguments("double* H, double* energies")
ATTRACTION = GRID + GEOMETRY + parse_arguments("double* attraction")
EXCHANGE = GRID + SLAB + parse_arguments("const double* G, INDEX spins, double factor, const double* D, double* F")
GRADIENT = GRID + GEOMETRY + MODEL + parse_arguments("INDEX spins, double factor, const double* D, double* gradient")


LOADERS = {"cpu": "nddo_pairs_cpu.h", "cuda": "nddo_pairs.cuh"}
"""Templates that map items to pairs."""
LARGE_BLOCKS = {"cpu": "nddo_exchange_wide_cpu.h", "cuda": "nddo_exchange_block.h"}
"""Templates of the exchange of a pair whose first atom has d functions, and whose second has more than one orbital."""
Texts = list[str]


def _table(name: str, values: Sequence[int]) -> str:
    return f"TABLE short {name}[] = {{{', '.join(map(str, values))}}};"


def _source(
    target: str, entry: str, arguments: Arguments, orbitals: tuple[int, int], parts: Texts, **extra: object
) -> Source:
    """A kernel of pairs of atoms with these numbers of orbitals; `parts` follow the common templates."""
    a, b = orbitals
    defines: dict[str, object] = {"NA": a, "NB": b, "NA2": a * (a + 1) // 2, "NB2": b * (b + 1) // 2}
    defines |= {"LARGEST": max(a, b), "FIELDS": RECORD, "PAIR_FIELDS": PAIR_FIELDS, **OFFSETS, **extra}
    names = ("nddo_numbers.h", "nddo_model.h", "nddo_grid.h", LOADERS[target], "nddo_pair.h", "nddo_frame.h")
    defines["THREADS"] = THREADS
    return assemble(entry, target, "double", arguments, defines, (*names, *parts), threads=THREADS, per_block=THREADS)


def _products(orbitals_a: int, orbitals_b: int) -> Texts:
    """Tables of the two orbitals of every product."""
    lines = []
    for side, orbitals in (("a", orbitals_a), ("b", orbitals_b)):
        pairs = products(orbitals)
        lines.append(_table(f"first_of_{side}", [i for i, _ in pairs]))
        lines.append(_table(f"second_of_{side}", [j for _, j in pairs]))
    return lines


def _repulsion_parts(orbitals_a: int, orbitals_b: int) -> tuple[dict[str, object], Texts]:
    code = repulsion(orbitals_a, orbitals_b)
    names = ("entry_a", "entry_b", "entry_value")
    columns = zip(*code.entries, strict=True)
    tables = [_table(name, column) for name, column in zip(names, columns, strict=True)]
    return {"VALUES": code.values, "ENTRIES": len(code.entries)}, [*tables, code.text]


def _core_parts(kind_a: Kind, kind_b: Kind) -> tuple[dict[str, object], Texts]:
    limits = {"SERIES_LIMIT": SERIES_LIMIT, "MOPAC_LIMIT": mopac_limit(kind_a, kind_b)}
    overlap = overlap_text(kind_a, kind_b)
    parts = [series_text(), "nddo_auxiliary.h", overlap, "nddo_core_repulsion.h", "nddo_resonance.h"]
    defines: dict[str, object] = {name: f"REAL({value!r})" for name, value in limits.items()}
    return defines | {"RHO_CORE": f"(ADDITIVE + {ADDITIVE.index('core')})"}, parts


def _gradient_parts(name: str) -> Texts:
    return ["nddo_gradient.h", f"nddo_gradient_{name}.h", "nddo_gradient_kernel.h"]


@cache
def repulsion_source(target: str, orbitals_a: int, orbitals_b: int, consumer: str = "store") -> Source:
    """G of all pairs of atoms of two kinds, or the `gradient` of repulsion, exchange and core attraction."""
    orbitals = orbitals_a, orbitals_b
    counts, parts = _repulsion_parts(*orbitals)
    if consumer == "store":
        entry = f"nddo_repulsion_{orbitals_a}_{orbitals_b}"
        return _source(target, entry, REPULSION, orbitals, [*parts, "nddo_repulsion.h"], **counts)
    parts = [*_products(*orbitals), *parts, *_gradient_parts("repulsion")]
    entry = f"nddo_repulsion_gradient_{orbitals_a}_{orbitals_b}"
    return _source(target, entry, (*GRADIENT, *SUMS), orbitals, parts, **counts)


@cache
def core_source(target: str, kind_a: Kind, kind_b: Kind, consumer: str = "store") -> Source:
    """Core Hamiltonian between atoms of two kinds and core repulsion, or their `gradient`."""
    limits, parts = _core_parts(kind_a, kind_b)
    arguments, end, name = (CORE, ["nddo_core.h"], "core")
    if consumer == "gradient":
        arguments, end, name = (GRADIENT, _gradient_parts("core"), "core_gradient")
    entry = f"nddo_{name}_{''.join(map(str, kind_a))}_{''.join(map(str, kind_b))}"
    orbitals = len(kind_a) ** 2, len(kind_b) ** 2
    return _source(target, entry, (*arguments, *SUMS), orbitals, [*parts, *end], **limits)


@cache
def attraction_source(target: str, orbitals: int, consumer: str = "store") -> Source:
    """Difference between the attraction to a core and that to its charge in an s orbital, for all products on atoms
    with these orbitals, or its `gradient`. B is the core; every pair is computed in this direction only."""
    counts, parts = _repulsion_parts(orbitals, 1)
    counts |= {f"RHO_{name.replace(' ', '_').upper()}": f"(ADDITIVE + {k})" for k, name in enumerate(ADDITIVE)}
    parts = [*_products(orbitals, 1), *parts, "nddo_attraction_local.h"]
    if consumer == "store":
        entry, arguments, end = f"nddo_attraction_{orbitals}", ATTRACTION, ["nddo_attraction.h"]
    else:
        entry, arguments, end = f"nddo_attraction_gradient_{orbitals}", GRADIENT, _gradient_parts("attraction")
    return _source(target, entry, (*arguments, *SUMS), (orbitals, 1), [*parts, *end], **counts)


@cache
def exchange_source(target: str, orbitals_a: int, orbitals_b: int) -> Source:
    """Exchange of all pairs of atoms with these numbers of orbitals."""
    block = LARGE_BLOCKS[target] if orbitals_a == 9 and orbitals_b > 1 else "nddo_exchange_block.h"
    parts = [*_products(orbitals_a, orbitals_b), block, "nddo_exchange.h"]
    entry = f"nddo_exchange_{orbitals_a}_{orbitals_b}"
    loop = "UNROLL" if orbitals_a < 9 else "NO_UNROLL"
    return _source(target, entry, EXCHANGE, (orbitals_a, orbitals_b), parts, EXCHANGE_LOOP=loop)
