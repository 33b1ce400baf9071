"""Integrals, Coulomb potential and exchange of all pairs of atoms, by kernels on the backend.

The repulsion between products of orbitals of all atoms is one matrix G; if it does not fit into memory, it is
recomputed in slabs of rows whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.backends.base import Backend, Launch
from cuanto.errors import InputError
from cuanto.kernels.nddo import (
    FIELDS,
    GAUSSIANS,
    OFFSETS,
    RECORD,
    core_source,
    exchange_source,
    repulsion_source,
)
from cuanto.kernels.nddo_multipoles import ADDITIVE, SEPARATIONS
from cuanto.kernels.nddo_overlap import radial_norm
from cuanto.kernels.text import Source
from cuanto.memory import Budget
from cuanto.semiempirical.constants import BOHR, HARTREE
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element, Parameters

Atoms = NDArray[np.int32]

MEMORY_FRACTION = 2 / 3
"""Part of the budget that G may take: matrices of the SCF need the rest."""
REPULSION = "repulsion between atoms"
"""Name of the reservation."""
GRAIN = tuning.size("cpu", "semiempirical.pairs_at_once")

CARBON_PAIR = 9.278465
"""Factor of PM6's term for carbon with carbon."""
ROOT = 0.3333
"""Exponent of the atomic number in PM6's repulsion of unpolarisable cores."""


@dataclass(frozen=True)
class Slab:
    """Rows of G that belong to the atoms `begin` to `end`."""

    begin: int
    end: int

    def contains(self, atoms: Atoms) -> NDArray[np.bool_]:
        """Which of the atoms belong to the slab."""
        return (atoms >= self.begin) & (atoms < self.end)


class PairEngine:
    """Pairs of atoms of molecules of one composition at positions R_bax (in the Bohr of these methods)."""

    def __init__(
        self, layout: Layout, R_bax: Array, backend: Backend, budget: Budget | None = None, mopac: bool = False
    ) -> None:
        self.layout, self.backend, self.mopac = layout, backend, mopac
        self.molecules, self.atoms = R_bax.shape[:2]
        tables = {"record": atom_records(layout), "pair": pair_table(layout)}
        first = {"first": layout.first, "first_product": layout.first_product}
        self.arrays = backend.upload({"R": np.ascontiguousarray(R_bax), **tables, **first})
        self.slabs = self._plan(Budget(backend) if budget is None else budget)
        self._lists: dict[bytes, Any] = {}
        self._stored: Any = None
        self._language = backend.traits.language

    @property
    def stored(self) -> bool:
        """Whether G is kept, not recomputed for every Fock matrix."""
        return len(self.slabs) == 1

    def _plan(self, budget: Budget) -> list[Slab]:
        """One slab, or several if G does not fit into the budget; the largest is reserved."""
        row = 8 * self.layout.products * self.molecules
        limit, first = MEMORY_FRACTION * budget.available(), self.layout.first_product
        if row * self.layout.products <= limit:
            budget.reserve(REPULSION, row * self.layout.products)
            return [Slab(0, self.atoms)]
        if self.molecules > 1:
            size = row * self.layout.products / 1e9
            raise InputError(f"repulsion of {self.molecules} molecules needs {size:.1f} GB: give fewer")
        slabs, begin = [], 0
        while begin < self.atoms:
            end = int(np.searchsorted(first, first[begin] + max(limit / row, 45.0), side="right")) - 1
            end = min(max(end, begin + 1), self.atoms)
            slabs.append(Slab(begin, end))
            begin = end
        height = max(int(first[slab.end] - first[slab.begin]) for slab in slabs)
        budget.reserve(REPULSION, min(row * height, budget.available()))
        return slabs

    # ---- launching ----------------------------------------------------------------------------------------

    def _list(self, atoms: Atoms) -> Any:
        key = atoms.tobytes()
        if key not in self._lists:
            self._lists[key] = self.backend.to_device(atoms)
        return self._lists[key]

    def _launch(
        self, source: Source, rows: Atoms, columns: Atoms, triangle: bool, values: Mapping[str, Any], sums: str = ""
    ) -> Launch:
        """All pairs of two lists of atoms; `sums`: the array to which pairs add."""
        arguments = {
            **self._common,
            "rows": len(rows),
            "columns": len(columns),
            "triangle": int(triangle),
            "row_atom": self._list(rows),
            "column_atom": self._list(columns),
            **values,
        }
        grain = -(-GRAIN // max(1, len(columns))) * len(columns)
        items = self.molecules * len(rows) * len(columns)
        return Launch(self.backend.compile(source), items, arguments, grain=grain, sums=sums)

    def _launches(
        self, make: Callable[..., Source], atoms: Mapping[Any, Atoms], values: Mapping[str, Any], sums: str = ""
    ) -> list[Launch]:
        """All pairs of atoms, by pairs of kinds, for which `make` gives the kernel."""
        return [
            self._launch(make(self._language, a, b), atoms[a], atoms[b], a == b, values, sums)
            for a, b in _classes(atoms)
        ]

    @cached_property
    def _common(self) -> dict[str, Any]:
        """Arguments of all kernels."""
        layout = self.layout
        counts = {"orbitals": layout.orbitals, "products": layout.products, "atoms": self.atoms}
        return {**self.arrays, **counts, "elements": len(element_names(layout))}

    # ---- integrals ----------------------------------------------------------------------------------------

    @property
    def model(self) -> dict[str, Any]:
        """Arguments of the kernels of the core Hamiltonian that depend on the method."""
        method = self.layout.parameters.method
        gaussians = {"mndo": 0, "pm6": 1}.get(method, GAUSSIANS)
        flags = {"pm6": int(method == "pm6"), "gaussians": gaussians, "mopac": int(self.mopac)}
        return {**flags, "bohr": BOHR, "hartree": HARTREE}

    def prepare(self) -> None:
        """Compile the kernels of energies concurrently."""
        sources = [core_source(self._language, *kinds) for kinds in _classes(self.layout.kinds)]
        for make in (repulsion_source, exchange_source):
            sources += [make(self._language, a, b) for a, b in _classes(self.layout.by_orbitals)]
        for program in [self.backend.compile(source) for source in sources]:
            program.wait()

    def repulsion(self, slab: Slab) -> Any:
        """Rows of G."""
        first, products = self.layout.first_product, self.layout.products
        height = int(first[slab.end] - first[slab.begin])
        G = self.backend.zeros((self.molecules, height, products), np.float64)
        values = {"atom_begin": slab.begin, "atom_end": slab.end, "G": G}
        launches = []
        for a, b in _classes(self.layout.by_orbitals):
            rows, columns = self.layout.by_orbitals[a], self.layout.by_orbitals[b]
            source, inside = repulsion_source(self._language, a, b), slab.contains(rows)
            launches.append(self._launch(source, rows[inside], columns, a == b, values))
            launches.append(self._launch(source, rows[~inside], columns[slab.contains(columns)], a == b, values))
        self.backend.launch_all(launches)
        return G

    def blocks(self) -> Iterator[tuple[Slab, Any]]:
        """G in slabs; a single one is kept."""
        if not self.stored:
            for slab in self.slabs:
                yield slab, self.repulsion(slab)
            return
        if self._stored is None:
            self._stored = self.repulsion(self.slabs[0])
        yield self.slabs[0], self._stored

    def core(self) -> tuple[Any, Any, Any]:
        """The core Hamiltonian between atoms, minus the attraction of all products to the cores, and the repulsion of
        cores by atoms; that of a pair is assigned to one of its atoms."""
        xp, n = self.backend.xp, self.layout.orbitals
        H_bpq = self.backend.zeros((self.molecules, n, n), np.float64)
        energies = self.backend.zeros((self.molecules, self.atoms), np.float64)
        cores = self.backend.to_device(np.tile(self.layout.cores, (self.molecules, 1)))
        values = {"H": H_bpq, "energies": energies, **self.model}
        self.backend.launch_all(self._launches(core_source, self.layout.kinds, values, "energies"))
        attraction = [self._times(G, cores) for _, G in self.blocks()]
        return H_bpq, xp.concatenate(attraction, axis=1), energies

    # ---- Fock matrices ------------------------------------------------------------------------------------

    def coulomb_and_exchange(self, q_bP: Any, D_bspq: Any, F_bspq: Any, factor: float) -> Any:
        """Potential of packed densities q at all products; exchange between atoms is added to F."""
        xp, potential = self.backend.xp, []
        D_bspq = xp.ascontiguousarray(D_bspq)
        for slab, G in self.blocks():
            potential.append(self._times(G, q_bP))
            self._exchange(slab, G, D_bspq, F_bspq, factor)
        return xp.concatenate(potential, axis=1)

    def _times(self, G: Any, q_bP: Any) -> Any:
        """G q of every molecule; for a single one by a matrix-vector product."""
        if self.molecules == 1:
            return (G[0] @ q_bP[0])[None]
        return self.backend.xp.matmul(G, q_bP[:, :, None])[:, :, 0]

    def _exchange(self, slab: Slab, G: Any, D_bspq: Any, F_bspq: Any, factor: float) -> None:
        values = {"atom_begin": slab.begin, "atom_end": slab.end, "G": G, "D": D_bspq, "F": F_bspq}
        values |= {"spins": D_bspq.shape[1], "factor": factor}
        launches, atoms = [], self.layout.by_orbitals
        for a, b in _classes(atoms):
            source, rows = exchange_source(self._language, a, b), atoms[a][slab.contains(atoms[a])]
            launches.append(self._launch(source, rows, atoms[b], a == b, values))
        self.backend.launch_all(launches)

    # ---- gradient -----------------------------------------------------------------------------------------

    def gradient(self, D_bspq: Any) -> Any:
        """dE/dR_bax of pairs at fixed density, without corrections."""
        spins = D_bspq.shape[1]
        D_bspq = self.backend.xp.ascontiguousarray(D_bspq, dtype=np.float64)  # may be in single
        values = {"D": D_bspq, **self.model, "spins": spins, "factor": 1.0 if spins == 2 else 0.5}
        values["gradient"] = self.backend.zeros((self.molecules, self.atoms, 3), np.float64)
        launches = self._launches(
            partial(repulsion_source, consumer="gradient"), self.layout.by_orbitals, values, "gradient"
        )
        launches += self._launches(partial(core_source, consumer="gradient"), self.layout.kinds, values, "gradient")
        self.backend.launch_all(launches)
        return values["gradient"]


T = TypeVar("T")


def _classes(atoms: Mapping[T, NDArray[np.int32]]) -> list[tuple[T, T]]:
    """Pairs of kinds of atoms; a kind with itself if it has two atoms."""
    kinds = list(atoms)
    return [(a, b) for k, a in enumerate(kinds) for b in kinds[k:] if a != b or len(atoms[a]) > 1]


# ---- parameters of atoms as tables of the kernels -------------------------------------------------------------


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
    return np.array([[_pair(layout.parameters, one, other) for other in names] for one in names])


def _pair(parameters: Parameters, one: str, other: str) -> list[float]:
    if parameters.method == "pm6":
        alpha, x = parameters.pairs[one, other]
        squared = "H" in (one, other) and bool({one, other} & {"C", "N", "O"})
        return [alpha, x, float(squared), CARBON_PAIR if one == other == "C" else 0.0]
    return [float(one in ("N", "O") and other == "H"), float(other in ("N", "O") and one == "H"), 0.0, 0.0]
