"""Exact (Hartree-Fock) exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.coulomb.base import JKBuilder
from cuanto.terms.base import Term


class Exchange(Term):
    """E = -1/2 sum_s sum_pq D_spq K_spq[D_s]; with one spin, whose density holds both electrons, half of that."""

    def __init__(self, builder: JKBuilder, fraction: float = 1.0, name: str = "exchange") -> None:
        self.builder, self.fraction, self.name = builder, fraction, name

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, and dE/dD_s = -K[D_s]; with one spin, -K[D]/2."""
        _, K_spq = self.builder(D_spq, C_spi, False, True)
        F_spq = (-0.5 * self.fraction if len(D_spq) == 1 else -self.fraction) * K_spq
        return 0.5 * (D_spq.reshape(-1) @ F_spq.reshape(-1)), F_spq

    def response(self, D_spq: Any, change_spq: Any) -> Any:
        """-K of the change."""
        return self.fock(change_spq, None)[1]

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """dE/dR_ax, from the builder."""
        return self.fraction * self.builder.exchange_gradient(D_spq, C_spi)

    def notes(self) -> Sequence[str]:
        """Notes of the builder."""
        return self.builder.notes()

    def in_double(self) -> Exchange | None:
        """The same term with a builder in double precision; None if this one already is."""
        builder = self.builder.in_double()
        return None if builder is None else Exchange(builder, self.fraction, self.name)
