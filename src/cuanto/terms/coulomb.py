"""Classical repulsion of the electron density with itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.forces import Sources
from cuanto.terms.base import Term


class Coulomb(Term):
    """E = 1/2 sum_pq D_pq J_pq[D], D the sum of the spins."""

    name = "coulomb"

    def __init__(self, builder: JKBuilder) -> None:
        self.builder = builder

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, and dE/dD = J, the same for both spins."""
        D_pq = D_spq.sum(axis=0) if len(D_spq) > 1 else D_spq[0]
        J_spq = self.builder.coulomb(D_spq)
        return 0.5 * (D_pq.reshape(-1) @ J_spq.reshape(-1)), J_spq

    def response(self, D_spq: Any, change_spq: Any) -> Any:
        """J of the change."""
        return self.fock(change_spq, None)[1]

    def sources(self, D_spq: Any) -> Sources | None:
        """Charges for the gradient, from the builder."""
        return self.builder.coulomb_sources(D_spq.sum(axis=0))

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """dE/dR_ax, from the builder."""
        return self.builder.coulomb_gradient(D_spq.sum(axis=0))

    def notes(self) -> Sequence[str]:
        """Notes of the builder."""
        return self.builder.notes()

    def in_double(self) -> Coulomb | None:
        """The same term with a builder in double precision; None if this one already is."""
        builder = self.builder.in_double()
        return None if builder is None else Coulomb(builder)
