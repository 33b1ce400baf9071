"""Two-electron integrals of a basis and their contraction with densities, P = (J - K)[D].

The integrals contain neither c nor the nucleus: one `Repulsion` serves every calculation with these exponents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.atom import AtomBasis
from cuanto.atomic.pairs import Pairs
from cuanto.atomic.species import SPECIES
from cuanto.atomic.store import Store, Waiting, make_plan
from cuanto.backends.base import Backend, get_backend
from cuanto.errors import InputError
from cuanto.kernels.atomic import COMPONENTS
from cuanto.log import Timings

Array = NDArray[np.float64]
Matrices = Sequence[Array]
"""One matrix per symmetry, 2n x 2n (n x n without relativity)."""


class Repulsion:
    """Supermatrices of a basis on a backend; without `relativistic` those of large components only."""

    def __init__(self, basis: AtomBasis, backend: str | Backend = "auto", relativistic: bool = True) -> None:
        self.basis, self.relativistic = basis, relativistic
        self.backend = get_backend(backend) if isinstance(backend, str) else backend
        self.timings = Timings(synchronize=self.backend.synchronize)
        self.pairs = [Pairs.of(species, z) for species, z in zip(SPECIES, basis.exponents, strict=False)]
        plan = make_plan(tuple(one.count for one in self.pairs), relativistic, self.backend.traits.language)
        needed, free = plan.layout.bytes_needed, self.backend.memory()[0]
        if needed > 0.9 * free:
            raise InputError(
                f"the two-electron integrals of {sum(basis.sizes)} functions take {needed / 1e9:.1f} GB and "
                f"{free / 1e9:.1f} GB are free: use fewer functions"
            )
        with self.timings.measure("integrals"):
            self._store = Store(self.pairs, self.backend, relativistic)

    def potential(self, D_i: Matrices) -> list[Array]:
        """P of every symmetry from the densities of all."""
        return self._matrices(range(len(self.pairs)), self._store.contract(self._vectors(D_i)))

    def open_shell(self, D_i: Matrices, chosen: Sequence[int], A_lm: Array) -> list[Array]:
        """Q_l = sum_m A_lm (J - K)[D_m] for the symmetries `chosen`, in their order."""
        return self._matrices(chosen, self._store.contract_weighted(self._vectors(D_i), chosen, A_lm))

    def both(
        self, D_i: Matrices, D_open: Matrices, chosen: Sequence[int], A_lm: Array
    ) -> tuple[list[Array], list[Array]]:
        """P and Q; a GPU is given the second product while it is busy with the first."""
        P_i = self._store.contract(self._vectors(D_i))
        Q_l = self._store.contract_weighted(self._vectors(D_open), chosen, A_lm)
        return self._matrices(range(len(self.pairs)), P_i), self._matrices(chosen, Q_l)

    def _vectors(self, D_i: Matrices) -> Array:
        components = COMPONENTS[self.relativistic]
        vectors = [one.vectors(D, components) for one, D in zip(self.pairs, D_i, strict=True)]
        return np.concatenate(vectors, axis=1)

    def _matrices(self, chosen: Sequence[int], found: Waiting) -> list[Array]:
        return [self.pairs[i].matrix(vectors) for i, vectors in zip(chosen, found(), strict=True)]
