"""Forces of three-centre integrals with a two-particle density: sum_pqP Gamma_pqP d(pq|P)/dR, without derivatives.

The potentials (t|P) of fitting functions in the Hermite Gaussians of every pair of primitives are computed to one order
more than the pair has; the density Gamma, expanded in the same Gaussians, is contracted with them. With P the centre
of a pair of exponents alpha and beta, p = alpha + beta: d/dA = (alpha/p) d/dP + d/d(A - B), where d/dP raises the
order and d/d(A - B) acts on the expansion alone (eqs. 9.5.28-9.5.31 of Helgaker, Jorgensen and Olsen,
doi:10.1002/9781119019572). What is left of translation is the force on the fitting function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array, Ints, range_members, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.coulomb.fitted_tensor import ThreeCentre, Workspace
from cuanto.integrals.attenuation import attenuated_exponents
from cuanto.integrals.batches import COULOMB_FACTOR, BraBatch
from cuanto.integrals.derivative import sum_by_atom
from cuanto.integrals.engine import Engine, upload_groups
from cuanto.integrals.pairs import pair_records
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.fitting_force import (
    PADDING,
    expansion_memory,
    fit_expand_source,
    fit_force_source,
    polynomials,
    raised_tuples,
)
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.spec import Shells

THRESHOLD = 1e-13
"""Primitive pairs whose derivatives contribute less are neglected."""
GAMMA_BYTES, POTENTIAL_BYTES = tuning.sizes("fitting.gamma_bytes"), tuning.sizes("fitting.potential_bytes")
RUN = 8
"""Pairs of the same two atoms that are contracted together, at most."""
CANDIDATES = 2**22
"""Pairs of primitives that are examined at once."""

Part = tuple[Any, Any, Any]
"""C_pi, C_qj and Y_ijP of a contribution C_pi C_qj Y_ijP to Gamma_pqP."""


@dataclass(frozen=True)
class PrimitivePairs:
    """Significant pairs of primitives of two classes, by segments i of the first one; each pair of segments once.

    `coefficient` [pair, columns of both]: contraction, exponential factor, and 2 for the other order of two segments.
    """

    a: SegmentClass
    b: SegmentClass
    i: Ints
    j: Ints
    record: Array
    coefficient: Array

    @property
    def order(self) -> int:
        """Hermite order."""
        return self.a.l + self.b.l


def primitive_pairs(a: SegmentClass, b: SegmentClass, same: bool, threshold: float) -> PrimitivePairs:
    """The pairs of primitives of two classes (or of the `same` class) whose derivatives may exceed the threshold."""
    owner_a, owner_b = (np.repeat(np.arange(c.count), c.sizes) for c in (a, b))
    rows = max(1, CANDIDATES // len(owner_b))
    found = [
        _significant(a, b, owner_a, owner_b, slice(begin, begin + rows), same, threshold)
        for begin in range(0, len(owner_a), rows)
    ]
    u, v, factor = (np.concatenate(column) for column in zip(*found, strict=True))
    i, j = owner_a[u], owner_b[v]
    if same:
        factor[i == j] *= 0.5
    products = a.coefficients[u][:, :, None] * b.coefficients[v][:, None, :]
    record = pair_records(
        a.exponents[u], b.exponents[v], np.take(a.centres.T, i, axis=1), np.take(b.centres.T, j, axis=1)
    )
    return PrimitivePairs(a, b, i, j, record, products.reshape(len(u), -1) * factor[:, None])


def _significant(
    a: SegmentClass, b: SegmentClass, owner_a: Ints, owner_b: Ints, some: slice, same: bool, threshold: float
) -> tuple[Ints, Ints, Array]:
    """Primitives and factors of pairs of `some` primitives of the first class with all of the second."""
    i = owner_a[some]
    alpha, beta = a.exponents[some, None], b.exponents
    p = alpha + beta
    distances = a.centres[i[0] : i[-1] + 1, None] - b.centres
    R2 = (distances**2).sum(axis=2)[i - i[0]][:, owner_b]
    factor = np.exp(-alpha * beta / p * R2) / p
    spread, R = np.sqrt(0.5 / p), np.sqrt(R2)
    # d/dA and d/dB multiply by 2 alpha |r - A| and 2 beta |r - B|; powers are bounded by the spread and the distance.
    slope = np.maximum(2.0 * alpha * (spread + beta / p * R), 2.0 * beta * (spread + alpha / p * R))
    size = factor * np.maximum(slope, 1.0) * a.largest[some, None] * b.largest
    size *= np.maximum(1.0, np.maximum(1.0 / p, R2)) ** (0.5 * (a.l + b.l))
    keep = size > threshold
    if same:
        keep &= i[:, None] >= owner_b
    u, v = np.nonzero(keep)
    return u + some.start, v, 2.0 * COULOMB_FACTOR * factor[u, v]


def _items(ids: Ints) -> Ints:
    """First pair of each item: consecutive pairs with equal ids, at most RUN; and the end of the last one."""
    change = np.flatnonzero(np.diff(ids, prepend=-1))
    lengths = np.diff(np.append(change, len(ids)))
    run, piece = range_members(-(-lengths // RUN))
    return np.append(change[run] + RUN * piece, len(ids))


class _DevicePairs:
    """Pairs of two classes on the device, with everything that kernels need besides densities and potentials."""

    def __init__(self, pairs: PrimitivePairs, atom_p: Ints, omega: float | None) -> None:
        a, b = self.a, self.b = pairs.a, pairs.b
        self.rows, self.columns = a.columns * a.functions, b.columns * b.functions
        self.order, self.hermites = pairs.order, hermite_count(pairs.order + 1)
        self.tuples = len(raised_tuples(pairs.order))
        self.i, self.j, self.count = pairs.i, pairs.j, len(pairs.i)
        atoms_a, atoms_b = (atom_p[c.ao[:, 0]] for c in (a, b))
        first = _items((pairs.i * (int(atoms_b.max()) + 1) + atoms_b[pairs.j]))
        self.item_first = first
        exponents = attenuated_exponents(pairs.record[:, 0], omega)
        smeared = pairs.record if omega is None else np.column_stack([exponents, pairs.record[:, 1:]])
        self.host = {
            "record": pairs.record,
            "coefficient": pairs.coefficient,
            "bra_record": smeared,
            "bra_coefficient": np.sqrt(exponents / pairs.record[:, 0])[:, None],
            "a_first": pairs.i * self.rows,
            "b_first": pairs.j * self.columns,
            "item_first": first,
            "atom_a": atoms_a[pairs.i[first[:-1]]],
            "atom_b": atoms_b[pairs.j[first[:-1]]],
            "table": raised_tuples(pairs.order),
        }
        for name, shell in (("a", a), ("b", b)):
            start, power, value = polynomials(shell.l, shell.pure)
            self.host |= {f"{name}_start": start, f"{name}_power": power, f"{name}_value": value}
        self.device: Mapping[str, Any] = {}

    @property
    def scalars(self) -> dict[str, int]:
        """Sizes that kernels need."""
        a, b = self.a, self.b
        sizes = {"la": a.l, "lb": b.l, "a_columns": a.columns, "b_columns": b.columns, "tuples": self.tuples}
        sizes |= {"a_functions": a.functions, "b_functions": b.functions, "hermites": self.hermites}
        return sizes | {"rows": self.rows, "columns": self.columns}

    @property
    def expansion(self) -> int:
        """Numbers in the expansions of a pair."""
        return 4 * self.rows * self.columns * self.tuples


class ThreeCentreForces:
    """Adds up sum_pqP Gamma_pqP d(pq|P)/dR.

    `order`: the fitting function in each of the first columns of every array over fitting functions; `width`: the
    number of columns, padded. `limit`: bytes of memory for a pass.
    """

    def __init__(self, integrals: ThreeCentre, limit: float = np.inf, threshold: float = THRESHOLD) -> None:
        self.basis, self.aux, self.backend = integrals.basis, integrals.aux, integrals.backend
        language = self.backend.traits.language
        self._gamma_bytes = min(0.5 * limit, GAMMA_BYTES[language])
        self._potential_bytes = min(0.5 * limit, POTENTIAL_BYTES[language])
        # Consecutive columns for the functions of neighbouring shells, so that they are written together.
        kets = integrals.kets()
        starts = range_starts([ket.cols.size for ket in kets])
        self.order = np.concatenate([ket.cols.reshape(-1) for ket in kets]).astype(np.int64)
        self.width = -(-len(self.order) // PADDING) * PADDING
        self._kets = [
            replace(ket, cols=np.arange(start, start + ket.cols.size, dtype=np.int32).reshape(ket.cols.shape))
            for ket, start in zip(kets, starts, strict=False)
        ]
        classes = segments(self.basis)
        atom_p = self.basis.function_atoms
        self._pairs: list[list[_DevicePairs]] = []
        for x, a in enumerate(classes):
            made = [primitive_pairs(a, b, a is b, threshold) for b in classes[: x + 1]]
            self._pairs.append([_DevicePairs(pairs, atom_p, integrals.omega) for pairs in made if len(pairs.i)])
        mine = [pairs for row in self._pairs for pairs in row]
        for pairs, arrays in zip(mine, upload_groups(self.backend, [pairs.host for pairs in mine]), strict=True):
            pairs.device = arrays
        self.target = self.backend.zeros((3 * self.width + 3 * len(self.basis.R_ax),), np.float64)
        self._expansions, self._W = Workspace(self.backend), self.backend.zeros((0,), np.float64)
        self._ket_arguments = Engine(self.backend, self._W, self.width).kets(self._kets)
        self._counters: dict[str, Any] = {}
        self._expand = self.backend.compile(fit_expand_source(language))
        self._force = self.backend.compile(fit_force_source(language))

    def add(self, parts: Sequence[Part]) -> None:
        """Add the contributions of parts of Gamma; all that were added must be symmetric in p and q together."""
        linalg, xp, width = self.backend.linalg, self.backend.xp, self.width
        C_qj = xp.concatenate([C_qj for _, C_qj, _ in parts], axis=1)
        for c, row in zip(segments(self.basis), self._pairs, strict=True):
            size = c.columns * c.functions
            step = max(1, int(self._gamma_bytes / (8 * width * (self.basis.nbf + C_qj.shape[1]))) // size)
            for begin in range(0, c.count, step):
                some = slice(begin, min(begin + step, c.count))
                p = self._functions(c, some)
                Z_pjP = xp.concatenate(
                    [linalg.product(C_pi[p], Y.reshape(len(Y), -1)).reshape(len(p), -1, width) for C_pi, _, Y in parts],
                    axis=1,
                )
                for pairs in row:
                    first, last = np.searchsorted(pairs.i, (some.start, some.stop))
                    if first < last:
                        near = slice(int(pairs.j[first:last].min()), int(pairs.j[first:last].max()) + 1)
                        Gamma_pqP = linalg.product(C_qj[self._functions(pairs.b, near)], Z_pjP)
                        self._add_pairs(pairs, (first, last), (some.start, near.start), Gamma_pqP)

    def _functions(self, c: SegmentClass, some: slice) -> Any:
        """The functions of some segments of a class, on the device."""
        return self.backend.to_device((c.ao[some, :, None] + np.arange(c.functions)).reshape(-1))

    def _add_pairs(self, pairs: _DevicePairs, span: tuple[int, int], base: tuple[int, int], Gamma_pqP: Any) -> None:
        """Contract the pairs of a `span`; Gamma begins with the segments `base` of both classes."""
        common = {**pairs.scalars, **pairs.device, "width": self.width, "Gamma": Gamma_pqP, "target": self.target}
        common |= {"a_base": base[0] * pairs.rows, "b_base": base[1] * pairs.columns, "stride": Gamma_pqP.shape[1]}
        numbers = pairs.hermites * self.width + pairs.expansion + 1
        items = np.searchsorted(pairs.item_first, span)
        for begin, end in self._passes(pairs.item_first[items[0] : items[1] + 1], numbers):
            begin, end = begin + items[0], end + items[0]
            first, last = (int(x) for x in pairs.item_first[[begin, end]])
            device, W = pairs.device, self._potentials(pairs, first, last)
            memory = self._expansions(last - first, pairs.expansion + 1).reshape(-1)
            E, share = memory[last - first :], memory[: last - first]
            own = {"record": device["record"][first:last], "coefficient": device["coefficient"][first:last]}
            common |= {"E": E, "share": share, "W": W, "first": first}
            scratch = expansion_memory(pairs.a.l, pairs.b.l)
            self.backend.launch_all([Launch(self._expand, last - first, {**common, **own}, scratch)])
            own = {"item_first": device["item_first"][begin : end + 1]}
            own |= {name: device[name][begin:end] for name in ("atom_a", "atom_b")}
            self.backend.launch_all([Launch(self._force, end - begin, {**common, **own}, sums="target")])

    def _passes(self, item_first: Ints, numbers: int) -> Iterator[tuple[int, int]]:
        """Ranges of items whose pairs, with so many `numbers` each, fit into the memory of a pass."""
        most, begin, last = max(1, int(self._potential_bytes / (8 * numbers))), 0, len(item_first) - 1
        while begin < last:
            end = int(np.searchsorted(item_first, item_first[begin] + most, side="right")) - 1
            end = min(max(end, begin + 1), last)
            yield begin, end
            begin = end

    def _potentials(self, pairs: _DevicePairs, first: int, last: int) -> Any:
        """W [pair, Hermite Gaussian, column] of some pairs; columns of padding are zero."""
        count, rows = last - first, (last - first) * pairs.hermites
        if self._W.size < rows * self.width:
            self._W = self.backend.zeros((rows * self.width,), np.float64)
        if len(self._counters.get("rows", ())) < rows:
            host = {"rows": np.arange(rows), "bra_first": np.arange(rows + 1, dtype=np.int32)}
            self._counters = self.backend.upload(host)
        engine = Engine(self.backend, self._W, self.width)
        arguments: dict[str, Any] = {name: pairs.device[name][first:last] for name in ("bra_record", "bra_coefficient")}
        arguments |= {"bra_first": self._counters["bra_first"], "columns": 1, "bra_shell": arguments["bra_record"]}
        arguments["rows"] = self._counters["rows"][:rows].reshape(count, pairs.hermites)
        host = (np.zeros((count, 0)), np.zeros((count, 1)), np.zeros((count, 3)), np.zeros((count, 0)))
        bra = BraBatch(Shells((pairs.order + 1,), hermite=True), 1, np.arange(count + 1, dtype=np.int32), *host)
        self.backend.run([engine.jobs("coulomb", bra, arguments, self._kets, self._ket_arguments, "md")])
        return self._W

    def gradient(self) -> Array:
        """The sum of all contributions, [atom, axis]; on the host."""
        total, naux = self.backend.to_host(self.target), len(self.order)
        on_xP = total[: 3 * self.width].reshape(3, -1)[:, :naux]
        P, x = np.indices((naux, 3)).reshape(2, -1)
        on_aux = sum_by_atom(self.aux, on_xP[x, P], self.order[P], x)
        return np.asarray(total[3 * self.width :].reshape(-1, 3) + on_aux)
