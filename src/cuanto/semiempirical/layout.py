"""Order of orbitals, of products of orbitals on an atom, and of kinds of atoms.

Products on one atom are packed by pairs of shells: ss; sx sy sz; xx xy xz yy yz zz; then s with d, p with d, and d with
d (orbitals s, x, y, z, x2-y2, xz, z2, yz, xy), so that a rotation acts on contiguous blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.kernels.nddo_multipoles import products
from cuanto.semiempirical.constants import RESCALE
from cuanto.semiempirical.parameters import Element, Parameters
from cuanto.system import Molecule
from cuanto.system.molecule import possible_multiplicities
from cuanto.wording import format_charge

Indices = NDArray[np.int32]
Kind = tuple[int, ...]
"""Principal quantum numbers of the shells."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Atoms of one molecule, or of many of the same composition."""

    parameters: Parameters
    symbols: tuple[str, ...]

    @cached_property
    def distinct(self) -> tuple[Element, ...]:
        """Every element once, in order of occurrence."""
        return tuple(self.parameters.element(symbol) for symbol in dict.fromkeys(self.symbols))

    @cached_property
    def element_of_atom(self) -> Indices:
        """Number, in `distinct`, of the element of every atom."""
        number = {element.symbol: k for k, element in enumerate(self.distinct)}
        return np.array([number[symbol] for symbol in self.symbols], dtype=np.int32)

    @property
    def elements(self) -> tuple[Element, ...]:
        """Element of every atom."""
        return tuple(self.distinct[k] for k in self.element_of_atom.tolist())

    def per_atom(self, value: Callable[[Element], Any]) -> NDArray[Any]:
        """A quantity of every atom's element; it is computed once for each element."""
        return np.array([value(element) for element in self.distinct])[self.element_of_atom]

    def per_orbital(self, values: Callable[[Element], Array]) -> Array:
        """Values of all orbitals, from those of each element's orbitals."""
        own = [values(element) for element in self.distinct]
        return np.concatenate([own[k] for k in self.element_of_atom.tolist()])

    @cached_property
    def kinds(self) -> dict[Kind, Indices]:
        """Atoms of every kind; kinds with more orbitals come first."""
        order = sorted({element.kind for element in self.distinct}, key=lambda kind: (len(kind), kind), reverse=True)
        number = self.per_atom(lambda element: order.index(element.kind))
        return {kind: np.flatnonzero(number == k).astype(np.int32) for k, kind in enumerate(order)}

    @cached_property
    def by_orbitals(self) -> dict[int, Indices]:
        """Atoms by number of orbitals, in descending order."""
        counts = self.sizes
        return {n: np.flatnonzero(counts == n).astype(np.int32) for n in (9, 4, 1) if (counts == n).any()}

    @cached_property
    def differing(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks of atoms whose attraction to cores does not follow from the repulsion of electrons, the matrix G.

        The first mask: because of their orbitals; the second: because of their cores.
        """

        def own(e: Element) -> bool:
            return not e.p_attracted or any(e.rho.get(pair) != e.rho.get(f"{pair} core") for pair in ("sp", "pp"))

        return self.per_atom(own), self.per_atom(lambda e: e.rho["core"] != e.rho["0"])

    @cached_property
    def ambiguous(self) -> bool:
        """Whether an SCF may end above the lowest state: transition metals, lanthanides and noble gases."""
        return any(element.shells.metal or element.shells.noble for element in self.distinct)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of orbitals of every atom."""
        return self.per_atom(lambda element: element.orbitals)

    @cached_property
    def first(self) -> Indices:
        """First orbital of every atom, followed by the number of all orbitals."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int32)

    @cached_property
    def first_product(self) -> Indices:
        """First packed product of every atom, followed by the number of all products."""
        return np.concatenate([[0], np.cumsum(self.sizes * (self.sizes + 1) // 2)]).astype(np.int32)

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
        found = np.empty((2, self.products), dtype=np.int32)
        for orbitals, atoms in self.by_orbitals.items():
            pairs = np.array(products(orbitals), dtype=np.int32).T
            places = self.first_product[atoms, None] + np.arange(pairs.shape[1])
            found[:, places] = self.first[atoms, None] + pairs[:, None, :]
        return found[0], found[1]

    @cached_property
    def core_charges(self) -> Array:
        """Valence electrons of every atom."""
        return self.per_atom(lambda element: float(element.core_charge))

    @cached_property
    def cores(self) -> Array:
        """Core charges as a packed density: each in the ss product of its atom."""
        vector = np.zeros(self.products)
        vector[self.first_product[:-1]] = self.core_charges
        return vector

    @cached_property
    def atom_of_orbital(self) -> Indices:
        """The atom of every orbital."""
        return np.repeat(np.arange(len(self.symbols), dtype=np.int32), self.sizes)

    @cached_property
    def isolated(self) -> float:
        """Energy of the separate atoms, Hartree."""
        return math.fsum(self.per_atom(lambda element: element.isolated).tolist())

    @cached_property
    def heat(self) -> float:
        """Heat of formation of the separate atoms, kcal/mol."""
        return math.fsum(self.per_atom(lambda element: element.heat).tolist())

    def valence_multiplicity(self, multiplicity: int) -> int:
        """Multiplicity of the valence electrons. The cores of lanthanides contain the f electrons; if their number is
        odd, one of them is among the unpaired electrons of the molecule, but not among those of the valence shell. In a
        singlet it pairs with a valence electron."""
        inner = int(self.per_atom(lambda element: element.number - element.core_charge).sum())
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
            electrons = f"{total} valence electrons (charge {format_charge(charge)})"
            choice = possible_multiplicities(total)
            raise InputError(f"multiplicity {multiplicity} is impossible with {electrons}: it can be {choice}")
        if up > self.orbitals:
            raise InputError(f"{up} electrons of one spin do not fit into {self.orbitals} orbitals")
        return up, total - up


def positions(molecules: Sequence[Molecule]) -> Array:
    """Positions of every molecule, in the Bohr of these methods."""
    return np.stack([molecule.R_ax for molecule in molecules]) * RESCALE
