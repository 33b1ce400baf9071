"""Blocks of functions of neighbouring atoms: which of them overlap, and the rows of (pq|P) of each block.

Functions are sorted so that neighbours are close, and cut into blocks. A block holds the rows [q, p, P] of its own
functions p with all functions q of the blocks that it overlaps with; P is contiguous. With q outermost the
transformation of q is one matrix product for a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cuanto.arrays import Array, Flags, Ints, range_starts
from cuanto.basis import Basis, Shell
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.pairs import pair_batches
from cuanto.integrals.segments import segments

THRESHOLD = 1e-13
"""Smaller products of primitives are neglected (energy of octane: 1e-13), and pairs of blocks without larger ones."""
MAX_ITERATIONS = 60
"""Largest number of iterations for a range."""
RANGE_ERROR = 1e-6
"""Relative error to which a range converges."""
RANGE_SAFETY = 1.0001
"""Factor of the range of pairs that allows for rounding and for that error."""


@dataclass(frozen=True)
class Block:
    """Functions `first` to `last` in the order of the layout, and their partners q, in ascending order."""

    number: int
    first: int
    last: int
    q: Ints
    partners: tuple[int, ...]

    @property
    def functions(self) -> int:
        """Number of its own functions."""
        return self.last - self.first

    @property
    def rows(self) -> int:
        """Number of pairs (p, q)."""
        return self.functions * len(self.q)


@dataclass(frozen=True)
class Layout:
    """The blocks of a basis; `order` is the function at each position, `atoms` the atoms of each block.

    `triangle`: partners of a block are itself and earlier ones only.
    """

    basis: Basis
    triangle: bool
    order: Ints
    atoms: tuple[Ints, ...]
    blocks: tuple[Block, ...]

    @property
    def positions(self) -> Ints:
        """Position of each function."""
        return np.argsort(self.order)

    @property
    def starts(self) -> Ints:
        """First row of each block if all are stored one after the other, and the number of rows."""
        return range_starts([block.rows for block in self.blocks])

    def row_table(self) -> Ints:
        """[p, q]: row of a pair if all blocks are stored, -1 for none; symmetric for a triangle."""
        n = self.basis.nbf
        table = np.full((n, n), -1, dtype=np.int64)
        for block, start in zip(self.blocks, self.starts, strict=False):
            rows = start + np.arange(block.rows).reshape(-1, block.functions).T
            table[np.ix_(self.order[block.first : block.last], self.order[block.q])] = rows
        return np.maximum(table, table.T) if self.triangle else table


def make_layout(basis: Basis, triangle: bool, functions: int = 24) -> Layout:
    """Blocks of at least `functions` functions (but the last), with all partners or (`triangle`) half of them."""
    atom_p = basis.function_atoms
    own = [np.flatnonzero(atom_p == a) for a in range(len(basis.R_ax))]
    atoms = cut_atoms(_tree_order(basis.R_ax), [len(f) for f in own], functions)
    order = np.concatenate([own[a] for group in atoms for a in group])
    ends = np.cumsum([sum(len(own[a]) for a in group) for group in atoms])
    starts = ends - np.diff(ends, prepend=0)
    near = _near(basis)[np.ix_(np.concatenate(atoms), np.concatenate(atoms))]
    begin = np.cumsum([0, *(len(group) for group in atoms[:-1])])
    reach = np.logical_or.reduceat(np.logical_or.reduceat(near, begin, axis=0), begin, axis=1)
    blocks = []
    for b in range(len(atoms)):
        partners = [int(c) for c in np.flatnonzero(reach[b]) if c <= b or not triangle]
        q = np.concatenate([np.arange(starts[c], ends[c]) for c in partners])
        blocks.append(Block(b, int(starts[b]), int(ends[b]), q, tuple(partners)))
    return Layout(basis, triangle, order, tuple(atoms), tuple(blocks))


def _tree_order(R_ax: Array) -> Ints:
    """Atoms in the order of the leaves of a tree that halves the molecule along its longest side."""
    positions = R_ax.tolist()  # Python's own numbers are faster here

    def leaves(atoms: list[int]) -> list[int]:
        if len(atoms) <= 1:
            return atoms
        coordinates = list(zip(*(positions[a] for a in atoms), strict=True))
        sides = [max(values) - min(values) for values in coordinates]
        side = sides.index(max(sides))
        atoms = sorted(atoms, key=lambda a: positions[a][side])
        middle = len(atoms) // 2
        return leaves(atoms[:middle]) + leaves(atoms[middle:])

    return np.array(leaves(list(range(len(positions)))), dtype=np.int64)


def cut_atoms(atoms: Ints, sizes: Sequence[int], functions: int) -> list[Ints]:
    """Groups of atoms with at least `functions` functions (but the last)."""
    groups: list[Ints] = []
    begin = held = 0
    for k, a in enumerate(atoms):
        held += sizes[a]
        if held >= functions or (k == len(atoms) - 1 and held):
            groups.append(atoms[begin : k + 1])
            begin, held = k + 1, 0
    return groups


def _near(basis: Basis) -> Flags:
    """Pairs of atoms with a product of primitives above the threshold (bound as in `integrals.pairs`)."""
    squared = ((basis.R_ax[:, None] - basis.R_ax[None]) ** 2).sum(axis=2)
    near: Flags = squared <= basis.of_shells(_ranges)
    return near


def _ranges(basis: Basis) -> Array:
    """[a, b]: squared distance beyond which no product of primitives of two atoms is above the threshold."""
    shells = basis.shells_of_atoms
    names = [tuple(shell.key for shell in mine) for mine in shells]
    kinds = {name: k for k, name in enumerate(dict.fromkeys(names))}
    kind = np.array([kinds[name] for name in names])
    primitives = [_primitives(shells[names.index(name)]) for name in kinds]
    reach = np.array([[_range(x, y) for y in primitives] for x in primitives])
    return np.asarray(reach[kind[:, None], kind[None, :]])


def _primitives(shells: Sequence[Shell]) -> tuple[Array, Array, Array]:
    """Exponent, largest coefficient and angular momentum of all primitives of an atom."""
    if not shells:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    classes = segments(Basis.from_shells([shell.on(0) for shell in shells], np.zeros((1, 3))))
    return (
        np.concatenate([c.exponents for c in classes]),
        np.concatenate([np.abs(c.coefficients).max(axis=1) for c in classes]),
        np.concatenate([np.full(len(c.exponents), float(c.l)) for c in classes]),
    )


def _range(x: tuple[Array, Array, Array], y: tuple[Array, Array, Array]) -> float:
    """Squared distance beyond which no product of primitives is above the threshold; -1 if there is none."""
    if not len(x[0]) or not len(y[0]):
        return -1.0
    alpha, beta = x[0][:, None], y[0][None, :]
    p, half_l = alpha + beta, 0.5 * (x[2][:, None] + y[2][None, :])
    size = np.log(np.maximum(x[1][:, None] * y[1][None, :] / p, 1e-300)) - np.log(THRESHOLD)
    R2 = np.full(p.shape, 1e4)
    for _ in range(MAX_ITERATIONS):  # the logarithm of the polynomial part grows more slowly than the exponent
        last, spread = R2, np.maximum(1.0, np.maximum(1.0 / p, R2))
        R2 = np.maximum(0.0, (size + half_l * np.log(spread)) * p / (alpha * beta))
        if float(np.abs(R2 - last).max()) <= RANGE_ERROR * float(R2.max()):
            break
    return float(RANGE_SAFETY * R2.max())


def block_pairs(layout: Layout, block: Block) -> Iterator[BraBatch]:
    """The pairs of shells of one block, with the higher angular momentum first; rows are [q, p] of the block."""
    shells = layout.basis.shells_of_atoms
    partners = np.concatenate([layout.atoms[c] for c in block.partners])
    own, others = (
        Basis.from_shells([shell for a in atoms for shell in shells[a]], layout.basis.R_ax)
        for atoms in (layout.atoms[block.number], partners)
    )
    for a in reversed(segments(own)):
        for b in reversed(segments(others)):
            if a.l >= b.l:
                yield from pair_batches(a, b, False, lambda p, q: q * own.nbf + p, THRESHOLD)
            else:
                yield from pair_batches(b, a, False, lambda q, p: q * own.nbf + p, THRESHOLD)
