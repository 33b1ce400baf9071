"""Products of primitive Gaussians as Hermite Gaussians, with bounds for screening.

Primitives with the same centre and exponent are treated as one, whatever their shells (the s and p functions of an SP
shell, the columns of a general contraction): a pair of them is one charge distribution, expanded up to the highest
order. E by eqs. 9.5.6-9.5.7 of Helgaker, Jorgensen and Olsen, doi:10.1002/9781119019572 (templates/j_expand.h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, Ints, SparseMatrix, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.j_tables import Kind, polynomials_on, self_repulsion_on, tuples_on
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.hermite_build import expansion_memory, step_source
from cuanto.kernels.recurrences.components import function_count
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

BOUND_SHARE = 1e-2
"""Pairs are neglected when their bound is below this times the threshold."""
CHUNK_NUMBERS = tuning.size("cpu", "j.expansion_numbers")


@dataclass(frozen=True)
class Primitives:
    """Primitives of one kind, arrays of the host or of a device.

    Their functions are columns `first` to `first + count * functions` of the contraction. Function m is a polynomial
    with the terms start[m] to start[m + 1] of `terms` (on a device): starts, powers [term, axis], coefficients.
    """

    kind: Kind
    first: int
    exponents: Any
    centres: Any
    scale: Any  # [primitive, function]: largest contraction coefficient
    size: Any  # [primitive]: largest scale
    atom: Any  # [primitive]: the number of the centre, -1 for one that does not move
    terms: tuple[Any, ...] = ()

    @classmethod
    def of(cls, kind: Kind, first: int, exponents: Array, centres: Array, scale: Array, atom: Ints) -> Primitives:
        """Host arrays; scale: [primitive, shell of the kind]."""
        widths = [function_count(*shell) for shell in kind]
        return cls(kind, first, exponents, centres, np.repeat(scale, widths, axis=1), scale.max(axis=1), atom)

    @property
    def count(self) -> int:
        """Number of primitives."""
        return len(self.exponents)

    @cached_property
    def functions(self) -> int:
        """Functions of one primitive."""
        return sum(function_count(l, pure) for l, pure in self.kind)

    @cached_property
    def order(self) -> int:
        """Highest angular momentum."""
        return max(l for l, _ in self.kind)

    @cached_property
    def _arguments(self) -> dict[str, dict[str, Any]]:
        values = {"exponent": self.exponents, "centre": self.centres, "scale": self.scale, "size": self.size}
        values |= {"atom": self.atom, **dict(zip(("start", "power", "value"), self.terms, strict=True))}
        sides = {side: {f"{side}_{name}": value for name, value in values.items()} for side in ("a", "b")}
        return {side: {f"l{side}": self.order, **part} for side, part in sides.items()}

    def arguments(self, side: str) -> dict[str, Any]:
        """Arguments of kernels, for one side of pairs ("a" or "b")."""
        return self._arguments[side]


def upload_primitives(groups: Sequence[Primitives], backend: Backend) -> list[Primitives]:
    """The same primitives with arrays of a device, copied in one transfer."""
    names = ("exponents", "centres", "scale", "size", "atom")
    found = backend.upload({f"{i} {name}": getattr(group, name) for i, group in enumerate(groups) for name in names})
    return [
        replace(group, terms=polynomials_on(backend, group.kind), **{name: found[f"{i} {name}"] for name in names})
        for i, group in enumerate(groups)
    ]


def primitives(basis: Basis) -> tuple[list[Primitives], SparseMatrix]:
    """Unique primitives by kind, and the sparse contraction C_pk from their functions to AOs."""
    groups, contraction = basis.of_shells(_primitives_of_shells)
    return [replace(group, centres=basis.R_ax[group.atom]) for group in groups], contraction


def _primitives_of_shells(basis: Basis) -> tuple[list[Primitives], SparseMatrix]:
    """`primitives`, kept for bases with the same shells, in which only the centres have to be replaced."""
    classes = segments(basis)
    shells = sorted({(c.l, c.pure) for c in classes})
    owners = [np.repeat(np.arange(c.count), c.sizes) for c in classes]
    atoms = np.concatenate([basis.function_atoms[c.ao[o, 0]] for c, o in zip(classes, owners, strict=True)])
    values, which = np.unique(np.concatenate([c.exponents for c in classes]), return_inverse=True)
    unique, number = np.unique(atoms * len(values) + which, return_inverse=True)
    numbers = np.split(number, np.cumsum([len(owner) for owner in owners])[:-1])
    atom, exponents, scale = unique // len(values), values[unique % len(values)], np.zeros((len(unique), len(shells)))
    for c, k in zip(classes, numbers, strict=True):
        np.maximum.at(scale[:, shells.index((c.l, c.pure))], k, c.largest)
    masks = (scale > 0) @ (1 << np.arange(len(shells)))
    groups, start = [], np.zeros((len(unique), len(shells)), dtype=np.int64)
    first = 0
    for mask in np.unique(masks[masks > 0]):
        mine, used = np.flatnonzero(masks == mask), [j for j in range(len(shells)) if mask >> j & 1]
        kind = tuple(shells[j] for j in used)
        part = (exponents[mine], basis.R_ax[atom[mine]], scale[mine][:, used], atom[mine])
        groups.append(Primitives.of(kind, first, *part))
        sizes = np.cumsum([0, *(function_count(*shell) for shell in kind)])
        for j, offset in zip(used, sizes, strict=False):
            start[mine, j] = first + np.arange(len(mine)) * sizes[-1] + offset
        first += len(mine) * int(sizes[-1])
    columns = [start[k, shells.index((c.l, c.pure))] for c, k in zip(classes, numbers, strict=True)]
    return groups, _contraction(classes, owners, columns, (basis.nbf, first))


def _contraction(
    classes: Sequence[SegmentClass], owners: list[Ints], columns: list[Ints], shape: tuple[int, int]
) -> SparseMatrix:
    rows, cols, values = [], [], []
    for c, owner, column in zip(classes, owners, columns, strict=True):
        m = np.arange(c.functions)
        full = (len(column), c.columns, c.functions)
        rows.append(np.broadcast_to(c.ao[owner][:, :, None] + m, full).reshape(-1))
        cols.append(np.broadcast_to(column[:, None, None] + m, full).reshape(-1))
        values.append(np.broadcast_to(c.coefficients[:, :, None], full).reshape(-1))
    return SparseMatrix(np.concatenate(rows), np.concatenate(cols), np.concatenate(values), shape)


@dataclass(frozen=True)
class ChargeSet:
    """Primitives whose pairs are charge distributions, or which are charge distributions themselves (`single`).

    Their densities are elements of a matrix (of a vector for single functions), which begin at `offset`.
    """

    name: str
    groups: Sequence[Primitives]
    single: bool
    offset: int = 0

    @property
    def row(self) -> int:
        """Numbers in a row of the matrix."""
        return 1 if self.single else sum(group.count * group.functions for group in self.groups)


@dataclass(frozen=True, eq=False)
class PairArrays:
    """Arrays of a device over all pairs, block after block."""

    u: Any  # primitive of the first kind
    v: Any
    geometry: Any  # [pair, field]: square root of the exponent p, centre
    factor: Any  # weight p^-3/2; weight: 2 for pairs (1 for a primitive with itself), 1 for single functions
    bound: Any  # sqrt (b|b), the largest of all functions
    along: Any  # position along a space-filling curve, less than 2^47

    @classmethod
    def empty(cls, count: int, xp: Any) -> PairArrays:
        """Arrays without values."""
        u, v, along = (xp.empty(count, dtype=np.int64) for _ in range(3))
        return cls(u, v, xp.empty((count, 4)), xp.empty(count), xp.empty(count), along)


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of primitives of two kinds, a range of `arrays` from `first` on."""

    charges: ChargeSet
    bra: Primitives
    ket: Primitives
    arrays: PairArrays
    first: int
    E_kft: Any  # [pair, functions of u times functions of v, Hermite function]

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.E_kft)

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.bra.order + self.ket.order

    @property
    def functions(self) -> int:
        """Products of functions of one pair."""
        return self.bra.functions * self.ket.functions

    def part(self, name: str) -> Any:
        """The part of one of the arrays."""
        return getattr(self.arrays, name)[self.first : self.first + self.count]

    def pairs(self, table: Any, higher: int = 0) -> dict[str, Any]:
        """Arguments of kernels; `table`: that of Hermite tuples, to a `higher` order than the pairs' own."""
        sizes = {"first": self.first, "rows": self.bra.functions, "columns": self.ket.functions}
        sizes |= {"tuples": hermite_count(self.order + higher), "table": table}
        return {"u": self.arrays.u, "v": self.arrays.v, **sizes}

    @property
    def density_offsets(self) -> dict[str, int]:
        """Arguments of kernels: offsets of the densities."""
        row = self.charges.row
        return {"origin": self.charges.offset + self.bra.first * row + self.ket.first, "row": row}


def pair_blocks(groups: Sequence[Primitives], threshold: float, backend: Backend) -> list[PairBlock]:
    """All significant pairs, by kinds."""
    return charge_blocks([ChargeSet("pairs", groups, single=False)], threshold, backend)


def single_blocks(groups: Sequence[Primitives], backend: Backend) -> list[PairBlock]:
    """Single functions, as pairs with the function 1, an s function of exponent zero."""
    return charge_blocks([ChargeSet("single", groups, single=True)], 0.0, backend)


def pair_counts(groups: Sequence[Primitives], threshold: float, backend: Backend) -> list[int]:
    """Numbers of significant pairs of every kind with itself and with those before it."""
    return _select(_kinds(upload_primitives(groups, backend)), threshold, backend).counts


def charge_blocks(sets: Sequence[ChargeSet], threshold: float, backend: Backend) -> list[PairBlock]:
    """Pairs of several sets, each sorted by Hermite order, expanded together."""
    constant = Primitives.of(((0, True),), 0, np.zeros(1), np.zeros((1, 3)), np.ones((1, 1)), np.full(1, -1))
    *part, one = upload_primitives([*(group for charges in sets for group in charges.groups), constant], backend)
    starts, found = range_starts([len(charges.groups) for charges in sets]), []
    for charges, start, end in zip(sets, starts, starts[1:], strict=False):
        mine = part[start:end]
        kinds = [(group, one) for group in mine] if charges.single else _kinds(mine)
        chosen = _all(kinds, backend) if charges.single else _select(kinds, threshold, backend)
        blocks = [(charges, *pair) for pair in zip(kinds, chosen.of_kinds(), strict=True) if pair[1]["items"]]
        found += sorted(blocks, key=lambda block: block[1][0].order + block[1][1].order)
    return _expand(found, backend)


def _kinds(groups: Sequence[Primitives]) -> list[tuple[Primitives, Primitives]]:
    return [(a, b) for i, a in enumerate(groups) for b in groups[: i + 1]]


def _expand(
    found: Sequence[tuple[ChargeSet, tuple[Primitives, Primitives], dict[str, Any]]], backend: Backend
) -> list[PairBlock]:
    """Expansions, records and bounds of pairs, in one launch for each pair of kinds."""
    xp, table = backend.xp, tuples_on(backend)
    program = backend.compile(step_source(backend.traits.language, "j_expand"))
    arrays = PairArrays.empty(sum(chosen["items"] for _, _, chosen in found), xp)
    blocks, launches, first = [], [], 0
    for charges, (a, b), chosen in found:
        order, count = a.order + b.order, chosen["items"]
        E_kft = xp.empty((count, a.functions * b.functions, hermite_count(order)))
        block = PairBlock(charges, a, b, arrays, first, E_kft)
        values = {**vars(arrays), **block.pairs(table), **a.arguments("a"), **b.arguments("b"), **chosen, "E": E_kft}
        values |= {"weight": 1.0 if charges.single else 2.0, "W": self_repulsion_on(backend, order)}
        launches.append(Launch(program, count, values, expansion_memory(a.order, b.order)))
        blocks.append(block)
        first += count
    backend.launch_all(launches)
    return blocks


@dataclass(frozen=True)
class _Selection:
    """Selected pairs of several kinds, by number (templates/j_select.h); the pairs of each kind start at its base."""

    kinds: Sequence[tuple[Primitives, Primitives]]
    numbers: Any
    bases: Sequence[int]
    counts: list[int]
    starts: Sequence[int]

    def of_kinds(self) -> Iterator[dict[str, Any]]:
        """Arguments of kernels for each pair of kinds."""
        for (a, b), base, items, start in zip(self.kinds, self.bases, self.counts, self.starts, strict=False):
            part = {"numbers": self.numbers, "base": base, "from": start, "items": items}
            yield {**part, "count": b.count, "same": int(a is b)}


def _all(kinds: Sequence[tuple[Primitives, Primitives]], backend: Backend) -> _Selection:
    """All primitives, each paired with the constant function."""
    counts = [a.count for a, _ in kinds]
    return _Selection(kinds, backend.xp.arange(max(counts)), [0] * len(kinds), counts, [0] * len(kinds))


def _select(kinds: Sequence[tuple[Primitives, Primitives]], threshold: float, backend: Backend) -> _Selection:
    """Pairs whose overlap factor times coefficients is above the threshold, found in chunks."""
    xp, smallest = backend.xp, BOUND_SHARE * threshold
    bases = range_starts([a.count * b.count for a, b in kinds]).tolist()
    program = backend.compile(step_source(backend.traits.language, "j_select"))
    parts = []
    for begin in range(0, bases[-1], CHUNK_NUMBERS):
        end = min(begin + CHUNK_NUMBERS, bases[-1])
        keep, launches = xp.empty(end - begin, dtype=np.bool_), []
        for (a, b), base, stop in zip(kinds, bases, bases[1:], strict=False):
            first, last = max(base, begin), min(stop, end)
            if first < last:
                values = {**a.arguments("a"), **b.arguments("b"), "count": b.count, "same": int(a is b)}
                values |= {"skip": first - base, "place": first - begin, "threshold": smallest, "keep": keep}
                launches.append(Launch(program, last - first, values))
        backend.launch_all(launches)
        parts.append(begin + xp.flatnonzero(keep) if begin else xp.flatnonzero(keep))
    numbers = xp.concatenate(parts) if len(parts) > 1 else parts[0]
    starts = backend.to_host(xp.searchsorted(numbers, backend.to_device(np.array(bases)))).tolist()
    counts = [end - start for start, end in pairwise(starts)]
    return _Selection(kinds, numbers, bases, counts, starts)
