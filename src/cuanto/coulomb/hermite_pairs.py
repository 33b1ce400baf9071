"""Products of primitive Gaussians as Hermite Gaussians, with bounds for screening.

Primitives with the same centre and exponent are treated as one, whatever their shells (the s and p functions of an SP
shell, the columns of a general contraction): a pair of them is one charge distribution, expanded up to the highest
order. E by eqs. 9.5.6-9.5.7 of Helgaker, Jorgensen and Olsen, doi:10.1002/9781119019572.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from cuanto import tuning
from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.recurrences.components import degree, function_count, kernel_matrix, powers
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

Kind = tuple[tuple[int, bool], ...]
"""The shells (momentum, solid harmonics?) that share a primitive."""
NEGLIGIBLE = 1e-2
"""Pairs are neglected when their bound is below this times the threshold."""
CHUNK_NUMBERS = tuning.size("cpu", "j.expansion_numbers")


@dataclass(frozen=True)
class Primitives:
    """Primitives of one kind; their functions are columns `first` to `first + count * functions` of the contraction."""

    kind: Kind
    exponents: Array
    centres: Array
    scale: Array  # [primitive, shell of the kind]: largest contraction coefficient
    first: int

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


def primitives(basis: Basis) -> tuple[list[Primitives], Any]:
    """Unique primitives by kind, and the sparse contraction C_pk from their functions to AOs."""
    classes = segments(basis)
    shells = sorted({(c.l, c.pure) for c in classes})
    owners = [np.repeat(np.arange(c.count), c.sizes) for c in classes]
    places = [np.column_stack([c.centres[o], c.exponents]) for c, o in zip(classes, owners, strict=True)]
    unique, number = np.unique(np.concatenate(places), axis=0, return_inverse=True)
    numbers = np.split(number.reshape(-1), np.cumsum([len(x) for x in places])[:-1])
    scale = np.zeros((len(unique), len(shells)))
    for c, k in zip(classes, numbers, strict=True):
        np.maximum.at(scale[:, shells.index((c.l, c.pure))], k, np.abs(c.coefficients).max(axis=1))
    masks = (scale > 0) @ (1 << np.arange(len(shells)))
    groups, start = [], np.zeros((len(unique), len(shells)), dtype=np.int64)
    first = 0
    for mask in np.unique(masks[masks > 0]):
        mine, used = np.flatnonzero(masks == mask), [j for j in range(len(shells)) if mask >> j & 1]
        kind = tuple(shells[j] for j in used)
        groups.append(Primitives(kind, unique[mine, 3], unique[mine, :3], scale[mine][:, used], first))
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


@dataclass(frozen=True)
class PairBlock:
    """Pairs of primitives of two kinds; host arrays except E_kft."""

    bra: Primitives
    ket: Primitives
    u: Ints  # [pair]: primitive of the first kind
    v: Ints
    E_kft: Any  # device, [pair, functions of u times functions of v, Hermite function]
    exponents: Array
    centres: Array
    weight: Array  # 1 for a primitive with itself, else 2
    bound: Array  # sqrt (b|b), the largest of all functions

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.exponents)

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.bra.order + self.ket.order

    @property
    def functions(self) -> int:
        """Products of functions of one pair."""
        return self.bra.functions * self.ket.functions

    def places(self, size: int) -> Ints:
        """[pair, functions]: elements of a matrix over all primitive functions, `size` of them, in one row."""
        rows = self.bra.first + self.bra.functions * self.u[:, None] + np.arange(self.bra.functions)
        cols = self.ket.first + self.ket.functions * self.v[:, None] + np.arange(self.ket.functions)
        return (rows[:, :, None] * size + cols[:, None, :]).reshape(self.count, -1)


def pair_blocks(groups: list[Primitives], threshold: float, backend: Backend) -> list[PairBlock]:
    """All significant pairs, by kinds."""
    smallest = NEGLIGIBLE * threshold
    kinds = [(a, b) for i, a in enumerate(groups) for b in groups[: i + 1]]
    blocks = (_pair_block(a, b, *candidates(a, b, smallest), smallest, backend) for a, b in kinds)
    return [block for block in blocks if block.count]


def single_blocks(groups: list[Primitives], backend: Backend) -> list[PairBlock]:
    """Single functions, as pairs with the function 1, an s function of exponent zero."""
    one = Primitives(((0, True),), np.zeros(1), np.zeros((1, 3)), np.ones((1, 1)), 0)
    blocks = (_pair_block(a, one, np.arange(a.count), np.zeros(a.count, int), -1.0, backend) for a in groups)
    return [replace(block, weight=np.ones(block.count)) for block in blocks]


def _pair_block(a: Primitives, b: Primitives, u: Ints, v: Ints, smallest: float, backend: Backend) -> PairBlock:
    """The pairs (u, v) of two kinds whose bound exceeds `smallest`."""
    E_parts, bounds = [], []
    numbers = a.functions * b.functions * hermite_count(a.order + b.order)
    for part in _chunks(len(u), max(1, CHUNK_NUMBERS // numbers)):
        E_kft = _expansion(a, b, u[part], v[part], backend)
        bound = _bounds(E_kft, a, b, u[part], v[part], backend)
        E_parts.append(E_kft[backend.to_device(bound > smallest)])
        bounds.append(bound)
    bound = np.concatenate([np.zeros(0), *bounds])
    u, v = u[bound > smallest], v[bound > smallest]
    E = backend.xp.concatenate(E_parts) if E_parts else backend.xp.zeros((0, 0, 0))
    p = a.exponents[u] + b.exponents[v]
    centres = a.centres[u] + (b.exponents[v] / p)[:, None] * (b.centres[v] - a.centres[u])
    weight = np.where((u == v) & (a is b), 1.0, 2.0)
    return PairBlock(a, b, u, v, E, p, centres, weight, bound[bound > smallest])


def _chunks(count: int, size: int) -> Iterator[slice]:
    return (slice(begin, begin + size) for begin in range(0, count, size))


def candidates(a: Primitives, b: Primitives, threshold: float) -> tuple[Ints, Ints]:
    """Pairs whose overlap factor times coefficients is above the threshold, found in chunks of rows."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for rows in _chunks(a.count, max(1, CHUNK_NUMBERS // b.count)):
        alpha, beta = a.exponents[rows, None], b.exponents[None, :]
        p = alpha + beta
        R2 = ((a.centres[rows, None, :] - b.centres[None, :, :]) ** 2).sum(axis=2)
        size = np.exp(-alpha * beta / p * R2) / p * a.scale.max(axis=1)[rows, None] * b.scale.max(axis=1)[None, :]
        # The polynomial part is bounded by the spread of the product Gaussian and by the distance.
        size *= np.maximum(1.0, np.maximum(1.0 / p, R2)) ** (0.5 * (a.order + b.order))
        keep = size > threshold
        if a is b:
            keep &= np.arange(a.count)[rows, None] >= np.arange(b.count)
        found.append(np.argwhere(keep) + np.array([rows.start, 0]))
    pairs = np.concatenate(found)
    return pairs[:, 0], pairs[:, 1]


def expand_derivative(block: PairBlock, some: slice, x: int, backend: Backend) -> Any:
    """E_kft of d/dA_x of some pairs of a block, A the centre of the first function; one order more than E itself."""
    return _expansion(block.bra, block.ket, block.u[some], block.v[some], backend, x)


def _expansion(a: Primitives, b: Primitives, u: Ints, v: Ints, backend: Backend, derivative: int | None = None) -> Any:
    """E_kft without contraction coefficients; of d/dA along the axis of a `derivative`, if one is given."""
    xp, put = backend.xp, backend.to_device
    alpha, beta = put(a.exponents[u]), put(b.exponents[v])
    AB = put(a.centres[u] - b.centres[v])
    p = alpha + beta
    more = int(derivative is not None)
    axes = [_one_axis(a.order + more * (x == derivative), b.order, alpha, beta, p, AB[:, x], xp) for x in range(3)]
    order = a.order + b.order + more
    if derivative is not None:
        axes[derivative] = _raise_and_lower(axes[derivative], alpha, xp)
    E_kfgt = xp.zeros((len(u), a.functions, b.functions, hermite_count(order)))
    f = 0
    for la, pure_a in a.kind:
        g, fa = 0, function_count(la, pure_a)
        for lb, pure_b in b.kind:
            fb = function_count(lb, pure_b)
            i, j, t = (put(np.array(x)) for x in (powers(la), powers(lb), hermite_tuples(la + lb + more)))
            axes = [_up_to(E, la + lb + more, xp) for E in axes]
            E_abtk = prod(
                (axes[x][i[:, None, None, x], j[None, :, None, x], t[:, x]] for x in range(3)), start=xp.ones(())
            )
            Ca, Cb = (put(np.array(kernel_matrix(*shell))) for shell in ((la, pure_a), (lb, pure_b)))
            E_fbtk = E_abtk if fa == E_abtk.shape[0] else xp.tensordot(Ca, E_abtk, (1, 0))
            E_fgtk = E_fbtk if fb == E_fbtk.shape[1] else xp.tensordot(Cb, E_fbtk, (1, 1)).transpose(1, 0, 2, 3)
            E_kfgt[:, f : f + fa, g : g + fb, : len(t)] = E_fgtk.transpose(3, 0, 1, 2)
            g += fb
        f += fa
    return E_kfgt.reshape(len(u), a.functions * b.functions, -1)


def _one_axis(la: int, lb: int, alpha: Any, beta: Any, p: Any, AB: Any, xp: Any) -> Any:
    """E[i, j, t, pair] along one axis."""
    E = xp.zeros((la + 1, lb + 1, la + lb + 1, len(p)))
    E[0, 0, 0] = xp.exp(-alpha * beta / p * AB**2)
    for i in range(la + 1):
        for j in range(lb + 1):
            if i + j == 0:
                continue
            low, X = (E[i - 1, j], -beta / p * AB) if i > 0 else (E[i, j - 1], alpha / p * AB)
            E[i, j] = X * low
            E[i, j, 1:] += low[:-1] / (2.0 * p)
            for t in range(i + j):
                E[i, j, t] += (t + 1) * low[t + 1]
    return E


def _up_to(E: Any, order: int, xp: Any) -> Any:
    """E[i, j, t, pair] with zeros for t up to an order that it does not reach."""
    missing = order + 1 - E.shape[2]
    return E if missing <= 0 else xp.concatenate([E, xp.zeros((*E.shape[:2], missing, E.shape[3]))], axis=2)


def _raise_and_lower(E: Any, alpha: Any, xp: Any) -> Any:
    """E[i, j, t, pair] of d/dA of the first function: 2 alpha E[i + 1] - i E[i - 1]."""
    made = 2.0 * alpha * E[1:]
    for i in range(1, len(made)):
        made[i] -= i * E[i - 1]
    return made


@cache
def self_repulsion_factor(order: int) -> Array:
    """W with (h|h) = theta |W^T g|^2 for a Hermite density h of exponent p, where g_t = p^(|t|/2) h_t.

    At P = Q only even tuples have R_u = (-p)^(|u|/2) (u_x - 1)!! (u_y - 1)!! (u_z - 1)!! / (|u| + 1).
    """
    t = np.array(hermite_tuples(order))
    odd = np.array([prod(range(x - 1, 0, -2)) if x % 2 == 0 else 0.0 for x in range(2 * order + 1)])
    u = t[:, None, :] + t[None, :, :]
    total = u.sum(axis=2)
    sign = 1.0 - 2.0 * ((t.sum(axis=1) + total // 2) % 2)
    M = sign * odd[u].prod(axis=2) / (total + 1)
    # The matrix is positive; the shift keeps it so in finite arithmetic and increases the bound.
    size = np.sqrt(np.diag(M))
    W: Array = size[:, None] * np.linalg.cholesky(M / np.outer(size, size) + 1e-12 * np.eye(len(M)))
    return W


def self_repulsion_scale(p_k: Array, order: int) -> Array:
    """Factors [pair, Hermite function] with sqrt (h|h) = |W^T (factor h)|, the Schwarz bound of h."""
    degrees = np.array([degree(t) for t in hermite_tuples(order)])
    theta = 2.0 * np.pi**2.5 / (p_k**2 * np.sqrt(2.0 * p_k))
    factors: Array = np.sqrt(theta)[:, None] * p_k[:, None] ** (0.5 * degrees)
    return factors


def _bounds(E_kft: Any, a: Primitives, b: Primitives, u: Ints, v: Ints, backend: Backend) -> Array:
    """Largest sqrt (b|b) of all functions, with the largest coefficients; on the host."""
    xp, put = backend.xp, backend.to_device
    order = a.order + b.order
    g_kft = E_kft * put(self_repulsion_scale(a.exponents[u] + b.exponents[v], order))[:, None, :]
    size = xp.sqrt(((g_kft @ put(self_repulsion_factor(order))) ** 2).sum(axis=2))
    own = [np.repeat(x.scale, [function_count(*shell) for shell in x.kind], axis=1) for x in (a, b)]
    scale = (own[0][u][:, :, None] * own[1][v][:, None, :]).reshape(len(u), -1)
    return backend.to_host((size * put(scale)).max(axis=1))


def bound_buckets(bounds: Any) -> Any:
    """Integers that increase by one when the bound grows by a factor of four: the upper bits of a positive double."""
    return bounds.view(np.int64) >> 53
