"""Contracted shells of a basis as arrays, and bounds on their projections."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from weakref import WeakKeyDictionary

import numpy as np

from cuanto.arrays import Array, Ints, range_members, range_starts
from cuanto.basis import Basis
from cuanto.integrals.segments import require_momentum


@dataclass(frozen=True, eq=False)
class ContractedShells:
    """One entry per contraction column of every shell; primitives one after the other."""

    l: Ints
    pure: Ints
    functions: Ints
    atom: Ints
    shell: Ints  # number of the shell in the basis
    row: Ints  # first basis function
    first: Ints  # [entry + 1]: first primitive
    exponents: Array
    coefficients: Array
    size: Array  # [primitive]: largest value of the angular part times |coefficient|, times sqrt(4 pi)
    momentum: Ints  # [primitive]

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self.l)

    def select(self, entries: Ints) -> tuple[Ints, Ints]:
        """Primitives of some entries as a new list: the first of each entry, and the numbers of all in the old list."""
        sizes = (self.first[1:] - self.first[:-1])[entries]
        owner, place = range_members(sizes)
        return range_starts(sizes), self.first[entries][owner] + place

    def bounds(self, distances: Array, low: float, high: float) -> Array:
        """Upper bounds of the projections of primitives on spheres of radii from `low` to `high`.

        `distances`: of the primitives from the centre of the spheres, whose points are at least rho away from the
        primitive; r^l exp(-a r^2) has its maximum at r^2 = l / (2 a).
        """
        rho = np.maximum(np.maximum(distances - high, low - distances), 0.0)
        largest = np.maximum(rho, np.sqrt(self.momentum / (2 * self.exponents)))
        return np.asarray(self.size * largest**self.momentum * np.exp(-self.exponents * largest**2))

    def contracted(self, bounds: Array) -> Array:
        """Bounds of entries from those of their primitives."""
        return np.add.reduceat(bounds, self.first[:-1]) if self.count else np.zeros(0)

    def distances(self, R_ax: Array, centre: Array) -> Array:
        """Distance of every primitive from a centre."""
        of_atom = np.linalg.norm(R_ax - centre, axis=1)
        return np.repeat(of_atom[self.atom], self.first[1:] - self.first[:-1])


_known: WeakKeyDictionary[Basis, ContractedShells] = WeakKeyDictionary()


def contracted_shells(basis: Basis) -> ContractedShells:
    """The contracted shells of a basis; cached."""
    if basis not in _known:
        _known[basis] = _contracted_shells(basis)
    return _known[basis]


def _contracted_shells(basis: Basis) -> ContractedShells:
    numbers: list[tuple[int, ...]] = []
    exponents: list[Array] = []
    coefficients: list[Array] = []
    for number, (shell, offset) in enumerate(zip(basis.shells, basis.offsets.tolist(), strict=True)):
        require_momentum(basis, shell.l)
        pure = int(shell.pure or shell.l < 2)
        for q in range(shell.ncol):
            used = shell.coefficients[:, q] != 0.0
            numbers.append((shell.l, pure, shell.ncomp, shell.atom, number, offset + q * shell.ncomp))
            exponents.append(shell.exponents[used])
            coefficients.append(shell.coefficients[used, q])
    l, pure_, functions, atom, own, row = np.array(numbers, dtype=np.int64).reshape(-1, 6).T
    sizes = [len(a) for a in exponents]
    a, c = (np.concatenate(x) if x else np.zeros(0) for x in (exponents, coefficients))
    largest = np.where(pure_ == 1, np.sqrt(2 * l + 1.0), sqrt(4 * pi))
    size, momentum = np.abs(c) * np.repeat(largest, sizes), np.repeat(l, sizes)
    return ContractedShells(l, pure_, functions, atom, own, row, range_starts(sizes), a, c, size, momentum)
