"""Blocks of functions of neighbouring atoms: which of them overlap, and where their rows of (pq|P) lie.

Functions are put in an order in which neighbours stand together, and cut into blocks. A block holds the rows [q, p, P]
of its own functions p with all functions q of those blocks that it overlaps with; P is contiguous. With q outermost the
transformation of q is one product for a block, and the rows with q of earlier blocks lie together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis, Shell
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.pairs import RowMap, pair_batches
from cuanto.integrals.segments import Array, Indices, segments

THRESHOLD = 1e-13
"""Products of primitives below this are left out (energy of octane: 1e-13), pairs of blocks that have none above it."""
CONVERGED = 1e-6
"""Relative change of a range at which it is known."""
SAFETY = 1.0001
"""Factor of the range of pairs, so that rounding never loses a row."""


@dataclass(frozen=True)
class Block:
    """Functions first .. last of the order of blocks with their partners q, ascending in that order."""

    number: int
    first: int
    last: int
    q: Indices
    partners: tuple[int, ...]

    @property
    def functions(self) -> int:
        """Own functions."""
        return self.last - self.first

    @property
    def rows(self) -> int:
        """Pairs (p, q)."""
        return self.functions * len(self.q)


@dataclass(frozen=True)
class Layout:
    """The blocks of a basis; `order` is the function at each place, `atoms` the atoms of each block.

    `triangle`: partners of a block are itself and earlier ones only.
    """

    basis: Basis
    triangle: bool
    order: Indices
    atoms: tuple[Indices, ...]
    blocks: tuple[Block, ...]

    @property
    def place(self) -> Indices:
        """Place of each function."""
        return np.argsort(self.order)

    @property
    def starts(self) -> Indices:
        """First row of each block where all are kept one after the other, and their number at the end."""
        return np.concatenate([[0], np.cumsum([block.rows for block in self.blocks])])

    def row_table(self) -> Indices:
        """Row of a pair of places where all blocks lie one after the other; -1 for none."""
        n = self.basis.nbf
        table = np.full((n, n), -1, dtype=np.int64)
        for block, start in zip(self.blocks, self.starts, strict=False):
            table[block.first : block.last, block.q] = start + np.arange(block.rows).reshape(-1, block.functions).T
        return table

    def rows_at_once(self, table: Indices) -> tuple[Indices, Array, Indices]:
        """For sums over all rows, and one more that is zero: the pair p n + q of a row; half of how often it counts
        (rows with places q > p repeat others, and count nothing); the row of every pair."""
        n = self.basis.nbf
        p = np.concatenate([*(np.tile(np.arange(b.first, b.last), len(b.q)) for b in self.blocks), [0]])
        q = np.concatenate([*(np.repeat(b.q, b.functions) for b in self.blocks), [0]])
        weight = np.where(q < p, 1.0, np.where(q == p, 0.5, 0.0))
        weight[-1] = 0.0
        lower = np.tril(table, -1) + np.tril(table).T  # of (p, q) and (q, p)
        row_pq = np.where(lower < 0, len(p) - 1, lower)[self.place][:, self.place]
        return self.order[p] * n + self.order[q], weight, row_pq

    def mirrored_rows(self, table: Indices) -> tuple[Indices, Indices]:
        """Rows (p, q) with places q <= p, and the rows (q, p) that are equal to them."""
        low, high = np.nonzero(np.triu(table >= 0))
        return table[high, low], table[low, high]


def make_layout(basis: Basis, triangle: bool, functions: int = 24) -> Layout:
    """Blocks of so many functions at least (the last one may have fewer), with all partners or (`triangle`) half of
    them."""
    own = _functions_of_atoms(basis)
    atoms = _cut(_neighbours_together(basis.R_ax), [len(f) for f in own], functions)
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


def _functions_of_atoms(basis: Basis) -> list[Indices]:
    """Functions of every atom, in the order of its shells."""
    found: list[list[Indices]] = [[] for _ in basis.R_ax]
    for shell, offset in zip(basis.shells, basis.offsets, strict=True):
        found[shell.atom].append(np.arange(offset, offset + shell.nbf))
    return [np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64) for parts in found]


def _shells_of_atoms(basis: Basis) -> list[list[Shell]]:
    shells: list[list[Shell]] = [[] for _ in basis.R_ax]
    for shell in basis.shells:
        shells[shell.atom].append(shell)
    return shells


def _neighbours_together(R_ax: Array) -> Indices:
    """Atoms in the order of leaves of a tree that halves the molecule along its longest side."""
    pending = [np.arange(len(R_ax))]
    ordered: list[int] = []
    while pending:
        atoms = pending.pop()
        if len(atoms) <= 1:
            ordered += atoms.tolist()
            continue
        side = int(np.argmax(np.ptp(R_ax[atoms], axis=0)))
        atoms = atoms[np.argsort(R_ax[atoms, side], kind="stable")]
        pending += [atoms[len(atoms) // 2 :], atoms[: len(atoms) // 2]]
    return np.array(ordered, dtype=np.int64)


def _cut(atoms: Indices, sizes: Sequence[int], functions: int) -> list[Indices]:
    """Groups of so many functions at least (the last one may have fewer)."""
    groups: list[Indices] = []
    begin = held = 0
    for k, a in enumerate(atoms):
        held += sizes[a]
        if held >= functions or (k == len(atoms) - 1 and held):
            groups.append(atoms[begin : k + 1])
            begin, held = k + 1, 0
    return groups


def _near(basis: Basis) -> NDArray[np.bool_]:
    """Pairs of atoms with a product of primitives above the threshold (bound as in `integrals.pairs`)."""
    shells = _shells_of_atoms(basis)
    names = [b"".join(s.exponents.tobytes() + s.coefficients.tobytes() + bytes([s.l]) for s in mine) for mine in shells]
    kinds = {name: k for k, name in enumerate(dict.fromkeys(names))}
    kind = np.array([kinds[name] for name in names])
    primitives = [_primitives(shells[names.index(name)]) for name in kinds]
    reach = np.array([[_range(x, y) for y in primitives] for x in primitives])
    squared = ((basis.R_ax[:, None] - basis.R_ax[None]) ** 2).sum(axis=2)
    near: NDArray[np.bool_] = squared <= reach[kind[:, None], kind[None, :]]
    return near


def _primitives(shells: list[Shell]) -> tuple[Array, Array, Array]:
    """Exponent, largest coefficient and momentum of all primitives of an atom."""
    if not shells:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    classes = segments(Basis.from_shells([replace(shell, atom=0) for shell in shells], np.zeros((1, 3))))
    return (
        np.concatenate([c.exponents for c in classes]),
        np.concatenate([np.abs(c.coefficients).max(axis=1) for c in classes]),
        np.concatenate([np.full(len(c.exponents), float(c.l)) for c in classes]),
    )


def _range(x: tuple[Array, Array, Array], y: tuple[Array, Array, Array]) -> float:
    """Squared distance beyond which no product of primitives is above the threshold; -1 where there is none."""
    if not len(x[0]) or not len(y[0]):
        return -1.0
    alpha, beta = x[0][:, None], y[0][None, :]
    p, half_l = alpha + beta, 0.5 * (x[2][:, None] + y[2][None, :])
    size = np.log(np.maximum(x[1][:, None] * y[1][None, :] / p, 1e-300)) - np.log(THRESHOLD)
    R2 = np.full(p.shape, 1e4)
    for _ in range(60):  # a contraction: the logarithm of the polynomial part grows more slowly than the exponent
        before = R2.max()
        R2 = np.maximum(0.0, (size + half_l * np.log(np.maximum(1.0, np.maximum(1.0 / p, R2)))) * p / (alpha * beta))
        if abs(R2.max() - before) <= CONVERGED * before:
            break
    return float(SAFETY * R2.max())


def block_pairs(layout: Layout, block: Block) -> Iterator[BraBatch]:
    """The pairs of shells of one block."""
    partners = [layout.atoms[c] for c in block.partners]
    own, others = (_part(layout.basis, atoms) for atoms in (layout.atoms[block.number], np.concatenate(partners)))
    return _rectangle(own, others, THRESHOLD)


class _RectangleRows(RowMap):
    """Row of an own function and a partner, whichever of them comes first."""

    def __init__(self, own: int, swapped: bool) -> None:
        super().__init__(own, packed=False)
        self._swapped = swapped

    def __call__(self, i: Indices, j: Indices) -> Indices:
        return i * self.nbf + j if self._swapped else j * self.nbf + i


def _rectangle(own: Basis, others: Basis, threshold: float) -> Iterator[BraBatch]:
    """All pairs of the shells of two bases; kernels want the higher momentum first."""
    normal, swapped = (_RectangleRows(own.nbf, flag) for flag in (False, True))
    for a in reversed(segments(own)):
        for b in reversed(segments(others)):
            if a.l >= b.l:
                yield from pair_batches(a, b, False, normal, threshold)
            else:
                yield from pair_batches(b, a, False, swapped, threshold)


def _part(basis: Basis, atoms: Indices) -> Basis:
    """The shells of these atoms, in their order."""
    shells = _shells_of_atoms(basis)
    return Basis.from_shells([shell for a in atoms for shell in shells[a]], basis.R_ax)
