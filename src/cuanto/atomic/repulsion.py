"""Two-electron integrals of a basis and their contraction with densities, P = (J - K)[D].

The integrals contain neither c nor the nucleus: one `Repulsion` serves every calculation with these exponents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.atom import AtomBasis
from cuanto.atomic.pairs import Pairs
from cuanto.atomic.species import SPECIES
from cuanto.atomic.store_cpu import TriangularStore
from cuanto.atomic.store_matrix import MatrixStore
from cuanto.backends.base import Backend, get_backend
from cuanto.errors import InputError
from cuanto.log import Timings

Array = NDArray[np.float64]
Matrices = Sequence[Array]
"""One matrix per symmetry, 2n x 2n (n x n without relativity)."""


Waiting = Callable[[], list[Array]]
"""Something that was begun: the call waits for it."""


class Store(Protocol):
    """Supermatrices somewhere, and their products with densities as vectors [component, pair] by symmetry."""

    def contract(self, D_i: Sequence[Array]) -> Waiting:
        """sum_j X_ij D_j by symmetry i."""

    def contract_weighted(self, D_i: Sequence[Array], chosen: Sequence[int], A_lm: Array) -> Waiting:
        """sum_m A_lm X_lm D_m for the chosen symmetries l, m."""


class Repulsion:
    """Supermatrices of a basis on a backend; without `relativistic` those of large components only."""

    def __init__(self, basis: AtomBasis, backend: str | Backend = "auto", relativistic: bool = True) -> None:
        self.basis, self.relativistic = basis, relativistic
        self.backend: Any = get_backend(backend) if isinstance(backend, str) else backend
        self.timings = Timings(synchronize=getattr(self.backend, "synchronize", None))
        self.pairs = [Pairs.of(species, z) for species, z in zip(SPECIES, basis.exponents, strict=False)]
        store = TriangularStore if self.backend.name == "cpu" else MatrixStore
        needed, free = store.bytes_needed(self.pairs, relativistic), self.backend.memory()[0]
        if needed > 0.9 * free:
            raise InputError(
                f"the two-electron integrals of {sum(basis.sizes)} functions take {needed / 1e9:.1f} GB and "
                f"{free / 1e9:.1f} GB are free: use fewer functions"
            )
        with self.timings.measure("integrals"):
            self._store: Store = store(self.pairs, self.backend, relativistic)

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

    def _vectors(self, D_i: Matrices) -> list[Array]:
        components = 4 if self.relativistic else 1
        return [one.vectors(D, components) for one, D in zip(self.pairs, D_i, strict=True)]

    def _matrices(self, chosen: Sequence[int], found: Waiting) -> list[Array]:
        return [self.pairs[i].matrix(vectors) for i, vectors in zip(chosen, found(), strict=True)]
