"""Products of primitive Gaussians as Hermite Gaussians, with bounds for screening.

Primitives with the same centre and exponent are treated as one, whatever their shells (the s and p functions of an SP
shell, the columns of a general contraction): a pair of them is one charge distribution, expanded up to the highest
order. E by eqs. 9.5.6-9.5.7 of Helgaker, Jorgensen and Olsen, doi:10.1002/9781119019572 (templates/j_expand.h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from scipy import sparse

from cuanto import tuning
from cuanto.arrays import Array, Ints, Ints32
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.j_tables import self_repulsion_on, tuples_on
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.hermite_build import expansion_memory, step_source
from cuanto.kernels.recurrences.components import function_count, kernel_matrix, powers
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

Kind = tuple[tuple[int, bool], ...]
"""The shells (momentum, solid harmonics?) that share a primitive."""
NEGLIGIBLE = 1e-2
"""Pairs are neglected when their bound is below this times the threshold."""
CHUNK_NUMBERS = tuning.size("cpu", "j.expansion_numbers")


@dataclass(frozen=True)
class Primitives:
    """Primitives of one kind, arrays of the host or of a device.

    Their functions are columns `first` to `first + count * functions` of the contraction. Function m is a polynomial
    with the terms start[m] to start[m + 1].
    """

    kind: Kind
    first: int
    exponents: Any
    centres: Any
    scale: Any  # [primitive, function]: largest contraction coefficient
    atom: Any  # [primitive]: the number of the centre, -1 for one that does not move
    start: Any
    power: Any  # [term, axis]
    value: Any  # [term]

    @classmethod
    def of(cls, kind: Kind, first: int, exponents: Array, centres: Array, scale: Array, atom: Ints) -> Primitives:
        """Host arrays; scale: [primitive, shell of the kind]."""
        widths = [function_count(*shell) for shell in kind]
        return cls(kind, first, exponents, centres, np.repeat(scale, widths, axis=1), atom, *polynomials(kind))

    @property
    def count(self) -> int:
        """Number of primitives."""
        return len(self.exponents)

    @property
    def functions(self) -> int:
        """Functions of one primitive."""
        return sum(function_count(l, pure) for l, pure in self.kind)

    @property
    def order(self) -> int:
        """Highest momentum."""
        return max(l for l, _ in self.kind)

    def arguments(self, side: str) -> dict[str, Any]:
        """Arguments of kernels, for one side of pairs ("a" or "b")."""
        values = {"exponent": self.exponents, "centre": self.centres, "scale": self.scale, "atom": self.atom}
        values |= {"start": self.start, "power": self.power, "value": self.value}
        return {f"l{side}": self.order} | {f"{side}_{name}": value for name, value in values.items()}


@cache
def polynomials(kind: Kind) -> tuple[Ints32, Ints32, Array]:
    """Starts, powers and coefficients of the terms of all functions."""
    rows = [
        [(a, x) for a, x in zip(powers(l), row, strict=True) if x] for l, pure in kind for row in kernel_matrix(l, pure)
    ]
    start = np.array([0, *accumulate(len(row) for row in rows)], dtype=np.int32)
    power = np.array([a for row in rows for a, _ in row], dtype=np.int32)
    return start, power, np.array([x for row in rows for _, x in row])


def uploaded(groups: Sequence[Primitives], backend: Backend) -> list[Primitives]:
    """The same primitives with arrays of a device, copied in one transfer."""
    names = ("exponents", "centres", "scale", "atom", "start", "power", "value")
    found = backend.upload({f"{i} {name}": getattr(group, name) for i, group in enumerate(groups) for name in names})
    return [replace(group, **{name: found[f"{i} {name}"] for name in names}) for i, group in enumerate(groups)]


def primitives(basis: Basis) -> tuple[list[Primitives], Any]:
    """Unique primitives by kind, and the sparse contraction C_pk from their functions to AOs."""
    classes = segments(basis)
    shells = sorted({(c.l, c.pure) for c in classes})
    owners = [np.repeat(np.arange(c.count), c.sizes) for c in classes]
    places = [np.column_stack([c.centres[o], c.exponents]) for c, o in zip(classes, owners, strict=True)]
    unique, number = np.unique(np.concatenate(places), axis=0, return_inverse=True)
    numbers = np.split(number.reshape(-1), np.cumsum([len(x) for x in places])[:-1])
    scale, atom = np.zeros((len(unique), len(shells))), np.zeros(len(unique), dtype=np.int64)
    for c, owner, k in zip(classes, owners, numbers, strict=True):
        np.maximum.at(scale[:, shells.index((c.l, c.pure))], k, np.abs(c.coefficients).max(axis=1))
        atom[k] = basis.function_atoms[c.ao[owner, 0]]
    masks = (scale > 0) @ (1 << np.arange(len(shells)))
    groups, start = [], np.zeros((len(unique), len(shells)), dtype=np.int64)
    first = 0
    for mask in np.unique(masks[masks > 0]):
        mine, used = np.flatnonzero(masks == mask), [j for j in range(len(shells)) if mask >> j & 1]
        kind = tuple(shells[j] for j in used)
        own = (unique[mine, 3], unique[mine, :3], scale[mine][:, used], atom[mine])
        groups.append(Primitives.of(kind, first, *own))
        sizes = np.cumsum([0, *(function_count(*shell) for shell in kind)])
        for j, offset in zip(used, sizes, strict=False):
            start[mine, j] = first + np.arange(len(mine)) * sizes[-1] + offset
        first += len(mine) * int(sizes[-1])
    columns = [start[k, shells.index((c.l, c.pure))] for c, k in zip(classes, numbers, strict=True)]
    return groups, _contraction(classes, owners, columns, (basis.nbf, first))


def _contraction(
    classes: Sequence[SegmentClass], owners: list[Ints], columns: list[Ints], shape: tuple[int, int]
) -> Any:
    rows, cols, values = [], [], []
    for c, owner, column in zip(classes, owners, columns, strict=True):
        m = np.arange(c.functions)
        full = (len(column), c.columns, c.functions)
        rows.append(np.broadcast_to(c.ao[owner][:, :, None] + m, full).reshape(-1))
        cols.append(np.broadcast_to(column[:, None, None] + m, full).reshape(-1))
        values.append(np.broadcast_to(c.coefficients[:, :, None], full).reshape(-1))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols)))
    return sparse.csr_matrix(sparse.coo_matrix(entries, shape=shape))


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of primitives of two kinds; arrays of a device.

    Densities of the functions are elements of a matrix with `row` elements in a row, which begins at `offset`.
    `weight`: 2 for pairs (1 for a primitive with itself), 1 for single functions. Arrays have an element per pair.
    """

    bra: Primitives
    ket: Primitives
    u: Any  # primitive of the first kind
    v: Any
    row: int
    weight: float
    E_kft: Any  # [pair, functions of u times functions of v, Hermite function]
    geometry: Any  # [pair, field]: square root of the exponent p, centre
    factor: Any  # weight p^-3/2
    bound: Any  # sqrt (b|b), the largest of all functions
    along: Any  # place along a curve in space, less than 2^53
    offset: int = field(default=0, kw_only=True)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.u)

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.bra.order + self.ket.order

    @property
    def functions(self) -> int:
        """Products of functions of one pair."""
        return self.bra.functions * self.ket.functions

    def pairs(self, table: Any, higher: int = 0) -> dict[str, Any]:
        """Arguments of kernels; `table`: that of Hermite tuples, to a `higher` order than the pairs' own."""
        sizes = {"rows": self.bra.functions, "columns": self.ket.functions}
        return {"u": self.u, "v": self.v, **sizes, "tuples": hermite_count(self.order + higher), "table": table}

    @property
    def places(self) -> dict[str, int]:
        """Arguments of kernels: where the densities are."""
        return {"origin": self.offset + self.bra.first * self.row + self.ket.first, "row": self.row}


def pair_blocks(groups: Sequence[Primitives], threshold: float, backend: Backend) -> list[PairBlock]:
    """All significant pairs, by kinds."""
    size, smallest = sum(group.count * group.functions for group in groups), NEGLIGIBLE * threshold
    own = uploaded(groups, backend)
    kinds = [(a, b) for i, a in enumerate(own) for b in own[: i + 1]]
    found = [(a, b, *candidates(a, b, smallest, backend.xp)) for a, b in kinds]
    return _expanded([pair for pair in found if len(pair[2])], size, 2.0, backend)


def single_blocks(groups: Sequence[Primitives], backend: Backend) -> list[PairBlock]:
    """Single functions, as pairs with the function 1, an s function of exponent zero."""
    xp, one = backend.xp, np.ones((1, 1))
    constant = Primitives.of(((0, True),), 0, np.zeros(1), np.zeros((1, 3)), one, np.full(1, -1))
    *own, last = uploaded([*groups, constant], backend)
    pairs = [(a, last, xp.arange(a.count), xp.zeros(a.count, dtype=np.int64)) for a in own]
    return _expanded(pairs, 1, 1.0, backend)


def _expanded(
    pairs: Sequence[tuple[Primitives, Primitives, Any, Any]], row: int, weight: float, backend: Backend
) -> list[PairBlock]:
    """Expansions, records and bounds of pairs (u, v) of two kinds, in one launch for all."""
    xp, table = backend.xp, tuples_on(backend)
    program = backend.compile(step_source(backend.traits.language, "j_expand"))
    blocks, launches = [], []
    for a, b, u, v in pairs:
        count, order = len(u), a.order + b.order
        E_kft = xp.empty((count, a.functions * b.functions, hermite_count(order)))
        arrays = (E_kft, xp.empty((count, 4)), xp.empty(count), xp.empty(count), xp.empty(count, dtype=np.int64))
        block = PairBlock(a, b, u, v, row, weight, *arrays)
        values = {**block.pairs(table), **a.arguments("a"), **b.arguments("b"), "weight": weight}
        values |= {"same": int(a is b), "W": self_repulsion_on(backend, order), "E": E_kft, "geometry": block.geometry}
        values |= {"factor": block.factor, "bound": block.bound, "along": block.along}
        launches.append(Launch(program, count, values, expansion_memory(a.order, b.order)))
        blocks.append(block)
    backend.launch_all(launches)
    return blocks


def _chunks(count: int, size: int) -> Iterator[slice]:
    return (slice(begin, begin + size) for begin in range(0, count, size))


def candidates(a: Primitives, b: Primitives, threshold: float, xp: Any) -> tuple[Any, Any]:
    """Pairs whose overlap factor times coefficients is above the threshold, found in chunks of rows."""
    found = []
    for rows in _chunks(a.count, max(1, CHUNK_NUMBERS // b.count)):
        alpha, beta = a.exponents[rows, None], b.exponents[None, :]
        p = alpha + beta
        R2 = sum((a.centres[rows, None, x] - b.centres[None, :, x]) ** 2 for x in range(3))
        size = xp.exp(alpha * beta / p * -R2) / p
        size *= a.scale[rows].max(axis=1)[:, None] * b.scale.max(axis=1)[None, :]
        # The polynomial part is bounded by the spread of the product Gaussian and by the distance.
        spread = xp.maximum(1.0, xp.maximum(1.0 / p, R2))
        for _ in range((a.order + b.order) // 2):
            size *= spread
        if (a.order + b.order) % 2:
            size *= xp.sqrt(spread)
        keep = size > threshold
        if a is b:
            keep &= xp.arange(a.count)[rows, None] >= xp.arange(b.count)
        u, v = xp.nonzero(keep)
        found.append((u + rows.start, v))
    u, v = (xp.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*found, strict=True))
    return xp.ascontiguousarray(u), xp.ascontiguousarray(v)


def sorting_key(bounds: Any, along: Any) -> Any:
    """Integers that sort pairs by falling powers of four of their bounds, then along the curve in space."""
    return along - (bounds.view(np.int64) >> 53 << 53)
