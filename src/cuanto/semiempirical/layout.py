"""Order of orbitals, of products of orbitals on an atom, and of kinds of atoms.

Products on one atom are packed by pairs of shells: ss; sx sy sz; xx xy xz yy yz zz; then s with d, p with d, and d with
d (orbitals s, x, y, z, x2-y2, xz, z2, yz, xy), so that a rotation acts on contiguous blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.semiempirical.constants import RESCALE
from cuanto.semiempirical.parameters import Element, Parameters
from cuanto.system import Molecule
from cuanto.system.molecule import possible_multiplicities

Indices = NDArray[np.int32]
Kind = tuple[int, ...]
"""Principal quantum numbers of the shells."""


@cache
def products(orbitals: int) -> tuple[tuple[int, int], ...]:
    """Pairs of orbitals in packed order."""
    shells = [range(1), range(1, 4), range(4, 9)][: {1: 1, 4: 2, 9: 3}[orbitals]]
    found: list[tuple[int, int]] = []
    for upper, own in enumerate(shells):
        for other in shells[:upper]:
            found += [(i, j) for i in other for j in own]
        found += [(i, j) for i in own for j in own if i <= j]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Layout:
    """Atoms of one molecule, or of many of the same composition."""

    parameters: Parameters
    symbols: tuple[str, ...]

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """Element of every atom."""
        return tuple(self.parameters.element(symbol) for symbol in self.symbols)

    @cached_property
    def kinds(self) -> dict[Kind, Indices]:
        """Atoms of every kind; kinds with more orbitals come first."""
        found: dict[Kind, list[int]] = {}
        for a, element in enumerate(self.elements):
            found.setdefault(element.kind, []).append(a)
        order = sorted(found, key=lambda kind: (len(kind), kind), reverse=True)
        return {kind: np.array(found[kind], dtype=np.int32) for kind in order}

    @cached_property
    def by_orbitals(self) -> dict[int, Indices]:
        """Atoms by number of orbitals, in descending order."""
        counts = np.array([element.orbitals for element in self.elements])
        return {n: np.flatnonzero(counts == n).astype(np.int32) for n in (9, 4, 1) if (counts == n).any()}

    @cached_property
    def differing(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks of atoms whose attraction to cores does not follow from the repulsion of electrons, the matrix G.

        The first mask: because of their orbitals; the second: because of their cores.
        """
        own = [
            not e.p_attracted or any(e.rho.get(pair) != e.rho.get(f"{pair} core") for pair in ("sp", "pp"))
            for e in self.elements
        ]
        return np.array(own), np.array([e.rho["core"] != e.rho["0"] for e in self.elements])

    @cached_property
    def ambiguous(self) -> bool:
        """Whether an SCF may end above the lowest state: transition metals, lanthanides and noble gases."""
        return any(element.shells.metal or element.shells.noble for element in self.elements)

    @cached_property
    def first(self) -> Indices:
        """First orbital of every atom, followed by the number of all orbitals."""
        return np.cumsum([0] + [element.orbitals for element in self.elements], dtype=np.int32)

    @cached_property
    def first_product(self) -> Indices:
        """First packed product of every atom, followed by the number of all products."""
        sizes = [element.orbitals * (element.orbitals + 1) // 2 for element in self.elements]
        return np.cumsum([0, *sizes], dtype=np.int32)

    @property
    def orbitals(self) -> int:
        """Number of orbitals."""
        return int(self.first[-1])

    @property
    def products(self) -> int:
        """Number of packed products."""
        return int(self.first_product[-1])

    @cached_property
    def product_indices(self) -> tuple[Indices, Indices]:
        """Row and column, in the matrices of all orbitals, of every packed product."""
        atoms = zip(self.elements, self.first[:-1], strict=True)
        pairs = [np.array(products(element.orbitals), dtype=np.int32) + first for element, first in atoms]
        rows, columns = np.concatenate(pairs).T
        return rows, columns

    @cached_property
    def core_charges(self) -> Array:
        """Valence electrons of every atom."""
        return np.array([element.core_charge for element in self.elements], dtype=float)

    @cached_property
    def cores(self) -> Array:
        """Core charges as a packed density: each in the ss product of its atom."""
        vector = np.zeros(self.products)
        vector[self.first_product[:-1]] = self.core_charges
        return vector

    @cached_property
    def atom_of_orbital(self) -> Indices:
        """The atom of every orbital."""
        sizes = [element.orbitals for element in self.elements]
        return np.repeat(np.arange(len(self.symbols), dtype=np.int32), sizes)

    @cached_property
    def isolated(self) -> float:
        """Energy of the separate atoms, Hartree."""
        return math.fsum(element.isolated for element in self.elements)

    @cached_property
    def heat(self) -> float:
        """Heat of formation of the separate atoms, kcal/mol."""
        return math.fsum(element.heat for element in self.elements)

    def valence_multiplicity(self, multiplicity: int) -> int:
        """Multiplicity of the valence electrons. The cores of lanthanides contain the f electrons; if their number is
        odd, one of them is among the unpaired electrons of the molecule, but not among those of the valence shell. In a
        singlet it pairs with a valence electron."""
        inner = sum(element.number - element.core_charge for element in self.elements)
        if inner % 2 == 0:
            return multiplicity
        return 2 if multiplicity == 1 else multiplicity - 1

    def electrons(self, charge: int, multiplicity: int) -> tuple[int, int]:
        """Valence electrons of both spins."""
        total = int(self.core_charges.sum()) - charge
        up = (total + self.valence_multiplicity(multiplicity) - 1) // 2
        if total < 1:
            most = total + charge
            raise InputError(f"charge {charge:+d} is impossible with {most} valence electrons: at most {most - 1:+d}")
        if total < up:
            electrons = f"{total} valence electrons (charge {f'{charge:+d}' if charge else 0})"
            choice = possible_multiplicities(total)
            raise InputError(f"multiplicity {multiplicity} is impossible with {electrons}: it can be {choice}")
        if up > self.orbitals:
            raise InputError(f"{up} electrons of one spin do not fit into {self.orbitals} orbitals")
        return up, total - up


def positions(molecules: Sequence[Molecule]) -> Array:
    """Positions of every molecule, in the Bohr of these methods."""
    return np.stack([molecule.R_ax for molecule in molecules]) * RESCALE
