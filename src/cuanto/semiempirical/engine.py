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
from cuanto.kernels.nddo import attraction_source, core_source, exchange_source, repulsion_source
from cuanto.kernels.text import Source
from cuanto.memory import Budget
from cuanto.semiempirical.constants import BOHR, HARTREE
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.tables import atom_records, extra_gaussians, pair_table

Atoms = NDArray[np.int32]

MEMORY_FRACTION = 2 / 3
"""Part of the budget that G may take: matrices of the SCF need the rest."""
REPULSION = "repulsion between atoms"
"""Name of the reservation."""
GRAIN = tuning.size("cpu", "semiempirical.pairs_at_once")


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
        """Whether G is stored rather than recomputed for every Fock matrix."""
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
        """Launch of a kernel for all pairs of two lists of atoms; `sums`: the array to which pairs add."""
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
        """Launches for all pairs of atoms, one for each pair of kinds; `make` returns the kernel of two kinds."""
        return [
            self._launch(make(self._language, a, b), atoms[a], atoms[b], a == b, values, sums)
            for a, b in _classes(atoms)
        ]

    @cached_property
    def _common(self) -> dict[str, Any]:
        """Arguments of all kernels."""
        layout = self.layout
        counts = {"orbitals": layout.orbitals, "products": layout.products, "atoms": self.atoms}
        return {**self.arrays, **counts, "elements": len(layout.distinct)}

    # ---- integrals ----------------------------------------------------------------------------------------

    @property
    def model(self) -> dict[str, Any]:
        """Arguments of the kernels of the core Hamiltonian that depend on the method."""
        gaussians = max(len(element.gaussians) for element in self.layout.distinct)
        flags = {"pm6": int(self.layout.parameters.method == "pm6"), "mopac": int(self.mopac)}
        terms = {"gaussians": gaussians, "extras": extra_gaussians(self.layout)}
        return {**flags, **terms, "bohr": BOHR, "hartree": HARTREE}

    def prepare(self) -> None:
        """Compile all kernels that an energy needs, concurrently."""
        sources = [core_source(self._language, *kinds) for kinds in _classes(self.layout.kinds)]
        for make in (repulsion_source, exchange_source):
            sources += [make(self._language, a, b) for a, b in _classes(self.layout.by_orbitals)]
        sources += [attraction_source(self._language, orbitals) for orbitals, _, _ in self._difference_lists]
        for program in [self.backend.compile(source) for source in sources]:
            program.wait()

    def repulsion(self, slab: Slab) -> Any:
        """Compute the rows of G that belong to a slab."""
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
        """Yield G in slabs; a single slab is stored."""
        if not self.stored:
            for slab in self.slabs:
                yield slab, self.repulsion(slab)
            return
        if self._stored is None:
            self._stored = self.repulsion(self.slabs[0])
        yield self.slabs[0], self._stored

    @cached_property
    def _difference_lists(self) -> list[tuple[int, Atoms, Atoms]]:
        """Pairs whose attraction differs from G: the number of orbitals of the atoms, these atoms, and the cores."""
        own, core = self.layout.differing
        every = np.arange(self.atoms, dtype=np.int32)
        found = []
        for orbitals, atoms in self.layout.by_orbitals.items():
            found += [(orbitals, atoms[own[atoms]], every), (orbitals, atoms[~own[atoms]], every[core])]
        return [(orbitals, rows, columns) for orbitals, rows, columns in found if len(rows) and len(columns)]

    def _difference_launches(self, values: Mapping[str, Any], sums: str, consumer: str = "store") -> list[Launch]:
        return [
            self._launch(attraction_source(self._language, orbitals, consumer), rows, columns, False, values, sums)
            for orbitals, rows, columns in self._difference_lists
        ]

    def attraction_difference(self) -> Any | None:
        """Attraction of orbital products to cores minus the one that G gives; None if there is no difference."""
        if not self._difference_lists:
            return None
        V_bP = self.backend.zeros((self.molecules, self.layout.products), np.float64)
        self.backend.launch_all(self._difference_launches({"attraction": V_bP}, "attraction"))
        return V_bP

    def core(self) -> tuple[Any, Any, Any]:
        """Three arrays: the core Hamiltonian between atoms without the attraction to cores; the attraction of unit
        densities to all cores, as a positive number; and the core repulsion by atom, that of a pair at one of its
        atoms."""
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
        """Coulomb potential of packed densities q at all products; exchange between atoms is added to F."""
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
        """dE/dR_bax of the energy of all pairs of atoms at a fixed density, without PM6's corrections."""
        spins = D_bspq.shape[1]
        D_bspq = self.backend.xp.ascontiguousarray(D_bspq, dtype=np.float64)  # may be in single precision
        values = {"D": D_bspq, **self.model, "spins": spins, "factor": 1.0 if spins == 2 else 0.5}
        values["gradient"] = self.backend.zeros((self.molecules, self.atoms, 3), np.float64)
        launches = self._launches(
            partial(repulsion_source, consumer="gradient"), self.layout.by_orbitals, values, "gradient"
        )
        launches += self._launches(partial(core_source, consumer="gradient"), self.layout.kinds, values, "gradient")
        launches += self._difference_launches(values, "gradient", "gradient")
        self.backend.launch_all(launches)
        return values["gradient"]


T = TypeVar("T")


def _classes(atoms: Mapping[T, NDArray[np.int32]]) -> list[tuple[T, T]]:
    """Pairs of kinds of atoms; a kind with itself if it has two atoms."""
    kinds = list(atoms)
    return [(a, b) for k, a in enumerate(kinds) for b in kinds[k:] if a != b or len(atoms[a]) > 1]
