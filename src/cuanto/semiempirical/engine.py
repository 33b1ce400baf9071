"""Integrals, Coulomb vector and exchange of all pairs of atoms, by kernels on the backend.

Repulsion between the products of orbitals of all atoms is one matrix G; beyond the memory plan it is made anew in slabs
of rows whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.backends.base import Backend, Launch
from cuanto.errors import InputError
from cuanto.kernels.nddo import (
    GAUSSIANS,
    core_source,
    exchange_source,
    repulsion_source,
)
from cuanto.kernels.text import Source
from cuanto.semiempirical.constants import BOHR, HARTREE
from cuanto.semiempirical.layout import Kind, Layout
from cuanto.semiempirical.records import atom_records, element_names, pair_table

Array = NDArray[np.float64]
Atoms = NDArray[np.int32]

SHARE = 0.6
"""Of the free memory that G may take: matrices of the SCF need the rest."""
GRAIN = tuning.size("cpu", "semiempirical.pairs_at_once")


@dataclass(frozen=True)
class Slab:
    """Rows of G: those of the atoms `begin` to `end`."""

    begin: int
    end: int


class PairEngine:
    """Pairs of atoms of `molecules` of one composition at positions R_bax (Bohr of these methods)."""

    def __init__(
        self, layout: Layout, R_bax: Array, backend: Backend, max_memory: float | None = None, mopac: bool = False
    ) -> None:
        self.layout, self.backend, self.mopac = layout, backend, mopac
        self.molecules, self.atoms = R_bax.shape[:2]
        host: dict[str, NDArray[Any]] = {
            "R": np.ascontiguousarray(R_bax),
            "record": atom_records(layout),
            "pair": pair_table(layout),
            "first": layout.first,
            "first_product": layout.first_product,
        }
        self.arrays = backend.upload(host)
        self.slabs = self._plan(max_memory)
        self._lists: dict[bytes, Any] = {}
        self._stored: Any = None
        self._language = backend.traits.language

    @property
    def stored(self) -> bool:
        """G is kept, not made anew for every Fock matrix."""
        return len(self.slabs) == 1

    def _plan(self, max_memory: float | None) -> list[Slab]:
        row = 8 * self.layout.products * self.molecules
        limit = SHARE * self.backend.memory()[0]
        limit = limit if max_memory is None else min(limit, max_memory)
        first = self.layout.first_product
        if row * self.layout.products <= limit:
            return [Slab(0, self.atoms)]
        if self.molecules > 1:
            raise InputError(
                f"repulsion of {self.molecules} molecules needs {row * self.layout.products / 1e9:.1f} GB: give fewer"
            )
        slabs, begin = [], 0
        while begin < self.atoms:
            end = int(np.searchsorted(first, first[begin] + max(limit / row, 45.0), side="right")) - 1
            end = min(max(end, begin + 1), self.atoms)
            slabs.append(Slab(begin, end))
            begin = end
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

    @cached_property
    def _common(self) -> dict[str, Any]:
        """Arguments of all kernels."""
        layout = self.layout
        counts = {"orbitals": layout.orbitals, "products": layout.products, "atoms": self.atoms}
        return {**self.arrays, **counts, "elements": len(element_names(layout))}

    # ---- integrals ----------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> list[tuple[int, int]]:
        """Numbers of orbitals of atoms that occur as pairs."""
        return _classes(self.layout.by_orbitals)

    @cached_property
    def kind_classes(self) -> list[tuple[Kind, Kind]]:
        """Kinds of atoms that occur as pairs."""
        return _classes(self.layout.kinds)

    @property
    def model(self) -> dict[str, Any]:
        """What the core Hamiltonian of a method needs to know."""
        method = self.layout.parameters.method
        gaussians = {"mndo": 0, "pm6": 1}.get(method, GAUSSIANS)
        flags = {"pm6": int(method == "pm6"), "gaussians": gaussians, "mopac": int(self.mopac)}
        return {**flags, "bohr": BOHR, "hartree": HARTREE}

    def prepare(self, sources: Sequence[Source] = ()) -> None:
        """Compile what is needed, side by side; without `sources`: what energies need."""
        if not sources:
            sources = [core_source(self._language, *kinds) for kinds in self.kind_classes]
            for make in (repulsion_source, exchange_source):
                sources += [make(self._language, a, b) for a, b in self.classes]
        for program in [self.backend.compile(source) for source in sources]:
            program.wait()

    def repulsion(self, slab: Slab) -> Any:
        """Rows of G."""
        first, products = self.layout.first_product, self.layout.products
        height = int(first[slab.end] - first[slab.begin])
        G = self.backend.zeros((self.molecules, height, products), np.float64)
        values = {"atom_begin": slab.begin, "atom_end": slab.end, "G": G}
        launches = []
        for a, b in self.classes:
            rows, columns = self.layout.by_orbitals[a], self.layout.by_orbitals[b]
            inside = (rows >= slab.begin) & (rows < slab.end)
            source = repulsion_source(self._language, a, b)
            launches.append(self._launch(source, rows[inside], columns, a == b, values))
            near = columns[(columns >= slab.begin) & (columns < slab.end)]
            launches.append(self._launch(source, rows[~inside], near, a == b, values))
        self.backend.launch_all(launches)
        return G

    def blocks(self) -> Iterator[tuple[Slab, Any]]:
        """G in slabs, kept where there is room."""
        if not self.stored:
            for slab in self.slabs:
                yield slab, self.repulsion(slab)
            return
        if self._stored is None:
            self._stored = self.repulsion(self.slabs[0])
        yield self.slabs[0], self._stored

    def core(self) -> tuple[Any, Any, Any]:
        """The core Hamiltonian between atoms, minus the attraction of all products to the cores, and the repulsion of
        cores by atoms, every pair at one of its two."""
        xp, n = self.backend.xp, self.layout.orbitals
        H_bpq = self.backend.zeros((self.molecules, n, n), np.float64)
        energies = self.backend.zeros((self.molecules, self.atoms), np.float64)
        cores = self.backend.to_device(np.tile(self.layout.cores, (self.molecules, 1)))
        values, kinds = {"H": H_bpq, "energies": energies, **self.model}, self.layout.kinds
        self.backend.launch_all(
            [
                self._launch(core_source(self._language, a, b), kinds[a], kinds[b], a == b, values, "energies")
                for a, b in self.kind_classes
            ]
        )
        attraction = [self._times(G, cores) for _, G in self.blocks()]
        return H_bpq, xp.concatenate(attraction, axis=1), energies

    # ---- Fock matrices ------------------------------------------------------------------------------------

    def coulomb_and_exchange(self, q_bP: Any, D_bspq: Any, F_bspq: Any, factor: float) -> Any:
        """The potential of packed densities q on all products; exchange between atoms is added to F."""
        xp, potential = self.backend.xp, []
        D_bspq = xp.ascontiguousarray(D_bspq)
        for slab, G in self.blocks():
            potential.append(self._times(G, q_bP))
            self._exchange(slab, G, D_bspq, F_bspq, factor)
        return xp.concatenate(potential, axis=1)

    def _times(self, G: Any, q_bP: Any) -> Any:
        """G q of every molecule; of a single one by the library's product of a matrix and a vector."""
        if self.molecules == 1:
            return (G[0] @ q_bP[0])[None]
        return self.backend.xp.matmul(G, q_bP[:, :, None])[:, :, 0]

    def _exchange(self, slab: Slab, G: Any, D_bspq: Any, F_bspq: Any, factor: float) -> None:
        values = {"atom_begin": slab.begin, "atom_end": slab.end, "G": G, "D": D_bspq, "F": F_bspq}
        values |= {"spins": D_bspq.shape[1], "factor": factor}
        launches = []
        for a, b in self.classes:
            rows = self.layout.by_orbitals[a]
            if not self.stored:
                rows = rows[(rows >= slab.begin) & (rows < slab.end)]
            source = exchange_source(self._language, a, b)
            launches.append(self._launch(source, rows, self.layout.by_orbitals[b], a == b, values))
        self.backend.launch_all(launches)

    # ---- gradient -----------------------------------------------------------------------------------------

    def gradient(self, D_bspq: Any) -> Any:
        """dE/dR_bax of pairs at fixed density, without corrections."""
        spins = D_bspq.shape[1]
        values = {
            "D": self.backend.xp.ascontiguousarray(D_bspq, dtype=np.float64),  # early ones are in single
            **self.model,
            "spins": spins,
            "factor": 1.0 if spins == 2 else 0.5,
            "gradient": self.backend.zeros((self.molecules, self.atoms, 3), np.float64),
        }
        atoms, kinds, language = self.layout.by_orbitals, self.layout.kinds, self._language
        parts = [(repulsion_source(language, a, b, "gradient"), atoms[a], atoms[b], a == b) for a, b in self.classes]
        parts += [(core_source(language, a, b, "gradient"), kinds[a], kinds[b], a == b) for a, b in self.kind_classes]
        self.prepare([source for source, *_ in parts])
        self.backend.launch_all([self._launch(*part, values, "gradient") for part in parts])
        return values["gradient"]


T = TypeVar("T")


def _classes(atoms: Mapping[T, NDArray[np.int32]]) -> list[tuple[T, T]]:
    """Pairs of kinds; a kind with itself where there are two atoms of it."""
    kinds = list(atoms)
    return [(a, b) for k, a in enumerate(kinds) for b in kinds[k:] if a != b or len(atoms[a]) > 1]
