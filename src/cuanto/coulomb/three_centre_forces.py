"""Forces of three-centre integrals with a two-particle density: sum_pqP Gamma_pqP d(pq|P)/dR.

No derivatives of integrals are needed. The potentials W_t = (t|P) of fitting functions in the Hermite Gaussians t of
every pair of primitives are computed to one order more than the pair has; the density Gamma, expanded in the same
Gaussians, is contracted with them. With P the centre of a pair of exponents alpha and beta, p = alpha + beta: d/dA =
(alpha/p) d/dP + d/d(A - B), where d/dP raises the order and d/d(A - B) acts on the expansion alone (McMurchie and
Davidson, J. Comput. Phys. 26, 218 (1978), doi:10.1016/0021-9991(78)90092-X; Helgaker and Taylor, Theor. Chim. Acta 83,
177 (1992), doi:10.1007/BF01132826). The force on the fitting function follows from translational invariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, Ints, range_members, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.fitted_tensor import ThreeCentre, Workspace
from cuanto.integrals.attenuation import smearing
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.derivative import sum_by_atom
from cuanto.integrals.engine import Engine, upload_groups
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels import fitting_force as kernels
from cuanto.kernels.abi import COULOMB_BRA
from cuanto.kernels.recurrences.components import polynomials
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.spec import Shells

THRESHOLD = 1e-13
"""Primitive pairs whose derivatives contribute less are neglected."""
GAMMA_BYTES, POTENTIAL_BYTES = tuning.sizes("fitting.gamma_bytes"), tuning.sizes("fitting.potential_bytes")
LONGEST_RUN, ITEMS = 8, 16
"""Maximum number of pairs of the same two atoms that form an item, which is contracted at once; fewer form one if there
would be less than `ITEMS` items per worker."""
CANDIDATES = 2**22
"""Pairs of primitives that are examined at once."""

Part = tuple[Any, Any, Any]
"""C_pi, C_qj and Y_ijP of a contribution sum_ij C_pi C_qj Y_ijP to Gamma_pqP."""


def primitive_pairs(a: SegmentClass, b: SegmentClass, threshold: float) -> tuple[Ints, Ints]:
    """Pairs (u, v) of primitives of two classes whose derivatives may exceed the threshold, sorted.

    Each pair of segments is included once if both classes are the same.
    """
    owner_a, owner_b = (np.repeat(np.arange(c.count), c.sizes) for c in (a, b))
    R2_ij = ((a.centres[:, None] - b.centres) ** 2).sum(axis=2)
    # A bound of all factors but the exponential one, which excludes most pairs.
    p, R2 = a.exponents.min() + b.exponents.min(), R2_ij.max()
    slope = 2.0 * max(a.exponents.max(), b.exponents.max()) * (np.sqrt(0.5 / p) + np.sqrt(R2))
    size = max(slope, 1.0) * max(1.0, 1.0 / p, R2) ** (0.5 * (a.l + b.l)) / p
    limit = np.log(size * a.largest.max() * b.largest.max() / threshold)
    found, rows = [], max(1, CANDIDATES // len(owner_b))
    for begin in range(0, len(owner_a), rows):
        i, alpha = owner_a[begin : begin + rows], a.exponents[begin : begin + rows, None]
        keep = alpha * b.exponents / (alpha + b.exponents) * R2_ij[i][:, owner_b] < limit
        if a is b:
            keep &= i[:, None] >= owner_b
        u, v = np.nonzero(keep)
        found.append((u + begin, v))
    u, v = (np.concatenate(column) for column in zip(*found, strict=True))
    alpha, beta, R2 = a.exponents[u], b.exponents[v], R2_ij[owner_a[u], owner_b[v]]
    decay = np.exp(-alpha * beta / (alpha + beta) * R2)
    keep = _sizes(a, b, alpha, beta, R2) * decay * a.largest[u] * b.largest[v] > threshold
    return u[keep], v[keep]


def _sizes(a: SegmentClass, b: SegmentClass, alpha: Any, beta: Any, R2: Any) -> Any:
    """Bounds of the derivatives of products of primitives without coefficients and exponential factor."""
    p = alpha + beta
    spread, R = np.sqrt(0.5 / p), np.sqrt(R2)
    # d/dA and d/dB multiply by 2 alpha |r - A| and 2 beta |r - B|; powers are bounded by the spread and the distance.
    slope = np.maximum(2.0 * alpha * (spread + beta / p * R), 2.0 * beta * (spread + alpha / p * R))
    power = np.maximum(1.0, np.maximum(1.0 / p, R2)) ** (0.5 * (a.l + b.l)) if a.l + b.l else 1.0
    return power * np.maximum(slope, 1.0) / p


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Significant pairs of primitives of two classes on the device, in items of a few pairs of the same two atoms.

    `i`, `j`: segments of the pairs, sorted by i; `first`: first pair of every item, and the end of the last one.
    """

    a: SegmentClass
    b: SegmentClass
    i: Ints
    j: Ints
    first: Ints
    arrays: Mapping[str, Any]

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.a.l + self.b.l

    @property
    def expansion(self) -> int:
        """Number of values stored for a pair: its expansions, and its share alpha/p."""
        return 4 * self.sizes["rows"] * self.sizes["columns"] * self.sizes["tuples"] + 1

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes that kernels need."""
        a, b = self.a, self.b
        sizes = {"la": a.l, "lb": b.l, "a_columns": a.columns, "b_columns": b.columns, "same": int(a is b)}
        sizes |= {"a_functions": a.functions, "b_functions": b.functions, "hermites": hermite_count(self.order + 1)}
        sizes |= {"rows": a.columns * a.functions, "columns": b.columns * b.functions}
        return sizes | {"tuples": len(kernels.raised_tuples(self.order))}


def _items(ids: Ints, longest: int) -> Ints:
    """First pair of each item, and the end of the last one; an item has at most `longest` consecutive pairs with equal
    ids."""
    change = np.flatnonzero(np.diff(ids, prepend=-1))
    lengths = np.diff(np.append(change, len(ids)))
    run, piece = range_members(-(-lengths // longest))
    return np.append(change[run] + longest * piece, len(ids))


class _Classes:
    """The classes of a basis and their pairs on a device; pairs are made when first needed."""

    def __init__(self, basis: Basis, backend: Backend, omega: float | None, parts: int, threshold: float) -> None:
        self.all, self._backend, self._threshold = segments(basis), backend, threshold
        self._atoms = [basis.function_atoms[c.ao[:, 0]] for c in self.all]
        self._owners = [np.repeat(np.arange(c.count), c.sizes) for c in self.all]
        self._smearing, self._parts = smearing(omega), parts
        groups: list[dict[str, Any]] = []
        for c, owner in zip(self.all, self._owners, strict=True):
            start, power, value = polynomials(((c.l, c.pure),))
            shape = {"start": start, "power": power, "value": value, "owner": owner}
            shape["aos"] = (c.ao[:, :, None] + np.arange(c.functions)).reshape(c.count, -1)
            groups.append(shape | {"exponent": c.exponents, "centre": c.centres[owner], "coefficient": c.coefficients})
        self._arrays = upload_groups(backend, groups)
        self._known: dict[tuple[int, int], _Pairs | None] = {}
        self._program = backend.compile(kernels.fit_pairs_source(backend.traits.language))

    def functions(self, x: int, some: slice) -> Any:
        """The functions of some segments of a class."""
        return self._arrays[x]["aos"][some].reshape(-1)

    def pairs(self, x: int, y: int) -> _Pairs | None:
        """The significant pairs of two classes, if there are any."""
        if (x, y) not in self._known:
            self._known[x, y] = self._make(x, y)
        return self._known[x, y]

    def _make(self, x: int, y: int) -> _Pairs | None:
        a, b, backend = self.all[x], self.all[y], self._backend
        u, v = primitive_pairs(a, b, self._threshold)
        if not len(u):
            return None
        i, j = self._owners[x][u], self._owners[y][v]
        atoms_a, atoms_b = self._atoms[x], self._atoms[y]
        longest = min(LONGEST_RUN, max(1, len(u) * self._parts // (ITEMS * backend.traits.parts)))
        first = _items(i * (int(atoms_b.max()) + 1) + atoms_b[j], longest)
        host: dict[str, Any] = {"u": u, "v": v, "item_first": first, "table": kernels.raised_tuples(a.l + b.l)}
        host |= {"atom_a": atoms_a[i[first[:-1]]], "atom_b": atoms_b[j[first[:-1]]]}
        arrays = backend.upload(host)
        for name, own in (("a", self._arrays[x]), ("b", self._arrays[y])):
            arrays |= {f"{name}_{key}": value for key, value in own.items()}
        sizes = {"record": COULOMB_BRA, "coefficient": a.columns * b.columns, "bra_coefficient": 1}
        arrays |= {name: backend.xp.empty((len(u), size)) for name, size in sizes.items()}
        arrays |= {name: backend.xp.empty(len(u), dtype=np.int64) for name in ("a_place", "b_place")}
        result = _Pairs(a, b, i, j, first, arrays)
        backend.launch(self._program, len(u), {**arrays, **result.sizes, "smearing": self._smearing})
        return result


class ThreeCentreForces:
    """Adds up sum_pqP Gamma_pqP d(pq|P)/dR.

    In arrays over fitting functions, column k belongs to function `order[k]`; `width`: number of columns, padded.
    `limit`: bytes of memory for a pass.
    """

    def __init__(self, integrals: ThreeCentre, limit: float = np.inf, threshold: float = THRESHOLD) -> None:
        self.basis, self.aux, self.backend = integrals.basis, integrals.aux, integrals.backend
        backend, language = self.backend, self.backend.traits.language
        self._gamma_bytes = min(0.5 * limit, GAMMA_BYTES[language])
        self._potential_bytes = min(0.5 * limit, POTENTIAL_BYTES[language])
        # Consecutive columns for the functions of neighbouring shells, so that they are written together.
        kets = integrals.kets()
        starts = range_starts([ket.cols.size for ket in kets])
        self.order = np.concatenate([ket.cols.reshape(-1) for ket in kets]).astype(np.int64)
        self.width = -(-len(self.order) // kernels.PADDING) * kernels.PADDING
        self._kets = [
            replace(ket, cols=np.arange(start, start + ket.cols.size, dtype=np.int32).reshape(ket.cols.shape))
            for ket, start in zip(kets, starts, strict=False)
        ]
        self._parts = kernels.force_parts(language, self.width)
        self._classes = _Classes(self.basis, backend, integrals.omega, self._parts, threshold)
        self.target = backend.zeros((3 * self.width + 3 * len(self.basis.R_ax),), np.float64)
        self._expansions = Workspace(backend)
        self._W: Any = backend.zeros((0,), np.float64)
        self._ket_arguments = Engine(backend, self._W, self.width).kets(self._kets)
        self._rows, self._first = backend.xp.arange(0), backend.xp.arange(1, dtype=np.int32)
        self._expand = backend.compile(kernels.fit_expand_source(language))
        self._force = backend.compile(kernels.fit_force_source(language))

    def add(self, parts: Sequence[Part]) -> None:
        """Add the contributions of parts of Gamma; the sum of all parts must be symmetric in p and q."""
        xp, product = self.backend.xp, self.backend.linalg.product
        C_qj = xp.concatenate([C_qj for _, C_qj, _ in parts], axis=1) if len(parts) > 1 else parts[0][1]
        per_function = 8 * self.width * (self.basis.nbf + 2 * C_qj.shape[1])
        for x, c in enumerate(self._classes.all):
            step = max(1, int(self._gamma_bytes / per_function) // (c.columns * c.functions))
            for begin in range(0, c.count, step):
                some = slice(begin, min(begin + step, c.count))
                p = self._classes.functions(x, some)
                # Z_jpP = sum_i C_pi Y_ijP
                result = [
                    product(C_pi[p], Y.reshape(len(Y), -1)).reshape(len(p), -1, self.width) for C_pi, _, Y in parts
                ]
                Z = xp.concatenate([Z_pjP.transpose(1, 0, 2) for Z_pjP in result]).reshape(C_qj.shape[1], -1)
                del result
                for y in range(x + 1):
                    self._add_classes((x, y), some, C_qj, Z)

    def _add_classes(self, classes: tuple[int, int], some: slice, C_qj: Any, Z: Any) -> None:
        """Add `some` segments of one class with all near ones of another; Z [j, p P]."""
        pairs = self._classes.pairs(*classes)
        if pairs is None:
            return
        begin, end = np.searchsorted(pairs.i, (some.start, some.stop))
        if begin == end:
            return
        near = slice(int(pairs.j[begin:end].min()), int(pairs.j[begin:end].max()) + 1)
        Gamma_qpP = self.backend.linalg.product(C_qj[self._classes.functions(classes[1], near)], Z)
        common = {**pairs.sizes, **pairs.arrays, "width": self.width, "Gamma": Gamma_qpP, "target": self.target}
        sizes = pairs.sizes
        common |= {"a_base": some.start * sizes["rows"], "b_base": near.start * sizes["columns"], "parts": self._parts}
        common |= {"a_stride": self.width, "b_stride": Gamma_qpP.shape[1]}
        items = np.searchsorted(pairs.first, (begin, end))
        for own in self._passes(pairs, slice(*items)):
            self._contract(pairs, own, common)

    def _passes(self, pairs: _Pairs, items: slice) -> Iterator[slice]:
        """Ranges of items whose potentials and expansions fit into the memory of a pass."""
        numbers = pairs.sizes["hermites"] * self.width + pairs.expansion
        most = max(1, int(self._potential_bytes / (8 * numbers)))
        begin = items.start
        while begin < items.stop:
            end = int(np.searchsorted(pairs.first, pairs.first[begin] + most, side="right")) - 1
            end = min(max(end, begin + 1), items.stop)
            yield slice(begin, end)
            begin = end

    def _contract(self, pairs: _Pairs, items: slice, common: Mapping[str, Any]) -> None:
        """Contract the pairs of some items with Gamma."""
        first, last = (int(x) for x in pairs.first[[items.start, items.stop]])
        count, arrays = last - first, pairs.arrays
        memory = self._expansions(count * pairs.expansion)
        common = {**common, "E": memory[count:], "share": memory[:count], "first": first}
        own = {name: arrays[name][first:last] for name in ("record", "coefficient")}
        scratch = kernels.expansion_memory(pairs.a.l, pairs.b.l)
        self.backend.launch(self._expand, count, {**common, **own}, scratch)
        common["W"] = self._potentials(pairs, first, last)
        own = {name: arrays[name][items] for name in ("atom_a", "atom_b")}
        own["item_first"] = arrays["item_first"][items.start : items.stop + 1]
        contraction = Launch(self._force, (items.stop - items.start) * self._parts, {**common, **own}, sums="target")
        self.backend.launch_all([contraction])

    def _potentials(self, pairs: _Pairs, first: int, last: int) -> Any:
        """W [pair, Hermite Gaussian, column] of some pairs; columns of padding are zero."""
        count, hermites = last - first, pairs.sizes["hermites"]
        rows = count * hermites
        if self._W.size < rows * self.width:
            self._W = None  # freed before the next one is allocated
            self._W = self.backend.zeros((rows * self.width,), np.float64)
        if len(self._rows) < rows:
            self._rows = self.backend.xp.arange(rows)
            self._first = self.backend.xp.arange(rows + 1, dtype=np.int32)
        record = pairs.arrays["record"][first:last]
        arguments = {"bra_record": record, "bra_shell": record, "bra_first": self._first, "columns": 1}
        arguments["bra_coefficient"] = pairs.arrays["bra_coefficient"][first:last]
        arguments["rows"] = self._rows[:rows].reshape(count, hermites)
        shells, none = Shells((pairs.order + 1,), hermite=True), np.zeros((count, 0))
        bra = BraBatch(shells, 1, np.arange(count + 1, dtype=np.int32), none, none, none, none.astype(np.int64))
        engine = Engine(self.backend, self._W, self.width)
        calls = len(pairs.i) / count
        self.backend.run([engine.jobs("coulomb", bra, arguments, self._kets, self._ket_arguments, "md", calls)])
        return self._W

    def gradient(self) -> Array:
        """The sum of all contributions, [atom, axis]; on the host."""
        total, naux = self.backend.to_host(self.target), len(self.order)
        on_xP = total[: 3 * self.width].reshape(3, -1)[:, :naux]
        P, x = np.indices((naux, 3)).reshape(2, -1)
        on_aux = sum_by_atom(self.aux, on_xP[x, P], self.order[P], x)
        return np.asarray(total[3 * self.width :].reshape(-1, 3) + on_aux)
