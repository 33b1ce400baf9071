"""The local part of core potentials, integrated with the Hermite Gaussians of pairs of primitives.

As for an electrostatic potential, products of basis functions are expanded in Hermite Gaussians
(`coulomb.hermite_pairs`), and matrix elements and forces follow from the derivatives of the potential of a Gaussian
charge (templates/core_local.h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints, range_members, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.core_potentials.radial import Terms, significant_entries
from cuanto.core_potentials.shells import contracted_shells
from cuanto.coulomb.forces import CHUNKS, add_block_forces
from cuanto.coulomb.hermite_pairs import PairBlock, pair_blocks, primitives
from cuanto.coulomb.j_engine import Distributions
from cuanto.coulomb.j_steps import Contraction, Steps
from cuanto.coulomb.j_tables import tuples_on
from cuanto.kernels.core_potential import NODES, core_source, lowered_tuples
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

THRESHOLD = 1e-14
"""Products of primitives below about this are neglected."""
FUNCTIONS_AT_ONCE, PAIR_BYTES = 1500, 230
"""Largest number of basis functions whose pairs are expanded together, and bytes of a pair: about 500 MB in all."""


@cache
def _nodes() -> tuple[Array, Array]:
    """Gauss points and weights of the interval [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (x + 1), 0.5 * w


def local_parts(
    basis: Basis, given: Sequence[tuple[int, Terms]], backend: Backend, room: float = np.inf
) -> Iterator[LocalPart]:
    """Local potentials that reach any basis function, in groups that take up to `room` bytes if possible."""
    at_once = min(FUNCTIONS_AT_ONCE, (max(0.0, room) / PAIR_BYTES) ** 0.5)
    shells, portion = contracted_shells(basis), list[tuple[int, Terms]]()
    chosen = np.zeros(0, dtype=np.int64)
    functions = np.array([shell.nbf for shell in basis.shells])
    for atom, terms in given:
        distances = shells.distances(basis.R_ax, basis.R_ax[atom])
        own = np.unique(shells.shell[significant_entries(terms, shells, distances)])
        if not len(own):
            continue
        together = np.union1d(chosen, own)
        if portion and functions[together].sum() > at_once:
            yield LocalPart(basis, portion, chosen, backend)
            portion, together = [], own
        portion.append((atom, terms))
        chosen = together
    if portion:
        yield LocalPart(basis, portion, chosen, backend)


class LocalPart:
    """The local potentials of several atoms, and the basis functions that they reach."""

    def __init__(self, basis: Basis, given: Sequence[tuple[int, Terms]], chosen: Ints, backend: Backend) -> None:
        """`given`: atoms and their potentials; `chosen`: numbers of the shells that they reach."""
        self.backend = backend
        own = [basis.shells[i] for i in chosen.tolist()]
        first, sizes = basis.offsets[chosen], [shell.nbf for shell in own]
        owner, place = range_members(sizes)
        self.functions: Ints = first[owner] + place
        self._basis = Basis.from_shells(own, basis.R_ax)
        self._set_up(given)

    def _set_up(self, given: Sequence[tuple[int, Terms]]) -> None:
        """Expand pairs and copy the potentials to the device."""
        rows = [(float(t.power), t.exponent, t.coefficient) for _, terms in given for t in terms]
        groups, contraction = primitives(self._basis)
        self._contraction = Contraction(contraction, self.backend)
        largest = max(1.0, *(abs(coefficient) for _, _, coefficient in rows))
        self._blocks = pair_blocks(groups, THRESHOLD / largest, self.backend)
        node, weight = _nodes()
        atoms = np.array([a for a, _ in given])
        starts = range_starts([len(terms) for _, terms in given]).astype(np.int32)
        arrays = {"centre": self._basis.R_ax[atoms], "centre_atom": atoms, "term_first": starts}
        arrays |= {"term": np.array(rows), "node": node, "weight": weight}
        self._arguments = {**self.backend.upload(arrays), "centres": len(atoms), "table": tuples_on(self.backend)}

    def _launches(self, kernel: str, higher: int) -> list[tuple[PairBlock, Launch]]:
        """Launches that write the potentials V of the pairs of all blocks; `higher`: additional orders."""
        xp = self.backend.xp
        program, found = self.backend.compile(core_source(self.backend.traits.language, kernel)), []
        for block in self._blocks:
            tuples = hermite_count(block.order + higher)
            arrays = {"geometry": block.arrays.geometry, "factor": block.arrays.factor}
            arrays |= {"R": xp.empty((block.count, tuples)), "V": xp.empty((block.count, tuples))}
            sizes = {"first": block.first, "order": block.order + higher, "tuples": tuples}
            found.append((block, Launch(program, block.count, {**self._arguments, **arrays, **sizes})))
        return found

    def _potentials(self, launches: Sequence[tuple[PairBlock, Launch]]) -> list[tuple[PairBlock, dict[str, Any]]]:
        """The potentials that launches have written, as arguments of the kernels that use them."""
        found = []
        for block, launch in launches:
            rank = self.backend.xp.arange(-block.first, len(block.arrays.u) - block.first)
            own = {"V": launch.arguments["V"], "rank": rank, "factor": block.arrays.factor}
            found.append((block, {**own, "bra_stride": launch.arguments["tuples"], "value_stride": 1}))
        return found

    def matrix(self) -> Any:
        """V_pq of the significant functions."""
        launches = self._launches("core_local", 0)
        self.backend.launch_all([launch for _, launch in launches])
        size = self._contraction.shape[1]
        J = self.backend.zeros((1, size, size), np.float64)
        Steps(self.backend).collect_blocks(self._potentials(launches), J)
        return self._contraction.matrix(J)[0]

    def gradient(self, D_pq: Any) -> Array:
        """dE/dR for a density of the significant functions, [atom, axis]."""
        backend = self.backend
        gradient = backend.zeros((len(self._basis.R_ax), 3), np.float64)
        X = self._contraction.density(D_pq[None])
        charges = Distributions.of(self._blocks, backend)
        H = Steps(backend).densities(charges.classes, charges.arrays, X).H_knt
        starts = {
            block.first: (c.first, H_kt) for c, H_kt in zip(charges.classes, H, strict=True) for block in c.blocks
        }
        launches, table = [], backend.to_device(lowered_tuples())
        for block, launch in self._launches("core_local_force", 1):
            first, H_kt = starts[block.first]
            own = H_kt[block.first - first :]
            arrays = {"lowered": table, "H": own, "densities": own.shape[1], "gradient": gradient}
            grain = max(-(-block.count // CHUNKS), gradient.size)
            more = {**launch.arguments, **arrays}
            launches.append((block, replace(launch, arguments=more, grain=grain, sums="gradient")))
        backend.launch_all([launch for _, launch in launches])
        add_block_forces(gradient, self._potentials(launches), X, backend)
        return np.asarray(backend.to_host(gradient))
