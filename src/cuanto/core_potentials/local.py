"""The local part of a core potential: its potential in the Hermite Gaussians of pairs of primitives.

As for an electrostatic potential, products of basis functions are expanded in Hermite Gaussians
(`coulomb.hermite_pairs`), and matrix elements and forces follow from the derivatives of the potential of a Gaussian
charge (templates/core_local.h).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.core_potentials.radial import Terms, significant_entries
from cuanto.core_potentials.shells import contracted_shells
from cuanto.coulomb.forces import add_block_forces
from cuanto.coulomb.hermite_pairs import PairBlock, pair_blocks, primitives
from cuanto.coulomb.j_steps import Contraction, Steps
from cuanto.coulomb.j_tables import tuples_on
from cuanto.kernels.core_potential import NODES, core_source
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count

THRESHOLD = 1e-14
"""Products of primitives below about this are neglected."""


@cache
def _nodes() -> tuple[Array, Array]:
    """Gauss points and weights of the interval [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (x + 1), 0.5 * w


class LocalPart:
    """A local potential and the basis functions that reach it."""

    def __init__(self, basis: Basis, centre: Array, terms: Terms, backend: Backend) -> None:
        self.backend = backend
        shells = contracted_shells(basis)
        entries = significant_entries(terms, shells, shells.distances(basis.R_ax, centre))
        chosen = np.unique(shells.shell[entries])
        own = [basis.shells[i] for i in chosen.tolist()]
        starts = basis.offsets[chosen]
        parts = [np.arange(p, p + s.nbf) for p, s in zip(starts.tolist(), own, strict=True)]
        self.functions: Ints = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        self._basis = Basis.from_shells(own, basis.R_ax)
        if len(self.functions):
            groups, contraction = primitives(self._basis)
            self._contraction = Contraction(contraction, backend)
            largest = max(1.0, *(abs(term.coefficient) for term in terms))
            self._blocks = pair_blocks(groups, THRESHOLD / largest, backend)
            rows = [(float(t.power), t.exponent, t.coefficient) for t in terms]
            node, weight = _nodes()
            arrays = {"centre": np.array(centre), "term": np.array(rows), "node": node, "weight": weight}
            self._arguments = {**backend.upload(arrays), "terms": len(rows), "table": tuples_on(backend)}

    def _potentials(self, higher: int) -> list[tuple[PairBlock, dict[str, Any]]]:
        """Potentials of all pairs, to a `higher` order than their own, as arguments of the kernels that use them."""
        backend, xp = self.backend, self.backend.xp
        program = backend.compile(core_source(backend.traits.language, "core_local"))
        found, launches = [], []
        for block in self._blocks:
            order, arrays = block.order + higher, block.arrays
            tuples = hermite_count(order)
            V = xp.empty((block.count, tuples))
            values = {**self._arguments, "first": block.first, "order": order, "tuples": tuples, "V": V}
            launches.append(Launch(program, block.count, {**values, "geometry": arrays.geometry}))
            rank = xp.arange(len(arrays.u)) - block.first
            potential = {"bra_stride": tuples, "value_stride": 1, "rank": rank, "factor": arrays.factor, "V": V}
            found.append((block, potential))
        backend.launch_all(launches)
        return found

    def matrix(self) -> Any:
        """V_pq of the functions that matter."""
        size = self._contraction.shape[1]
        J = self.backend.zeros((1, size, size), np.float64)
        Steps(self.backend).collect_blocks(self._potentials(0), J)
        return self._contraction.matrix(J)[0]

    def gradient(self, D_pq: Any) -> Array:
        """dE/dR of the atoms with basis functions for a density of the functions that matter, [atom, axis]."""
        X = self._contraction.density(D_pq[None])
        gradient = self.backend.zeros((len(self._basis.R_ax), 3), np.float64)
        add_block_forces(gradient, self._potentials(1), X, self.backend)
        return np.asarray(self.backend.to_host(gradient))
