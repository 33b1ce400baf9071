"""The interface of builders of Coulomb and exchange matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class JKBuilder(Protocol):
    """J_spq and K_spq of densities D_spq, None where not wanted.

    `C_spi`, if known: D_spq = sum_i C_spi C_sqi, occupied orbitals times the square roots of their occupations, with
    columns of zeros where a spin has fewer orbitals. Builders that fit the exchange use it, direct ones do not.
    """

    def __call__(self, D_spq: Any, C_spi: Any | None, want_j: bool, want_k: bool) -> tuple[Any, Any]:
        """Arrays on the device of the builder."""

    def notes(self) -> Sequence[str]:
        """Remarks on the integrals for the result."""
        return ()

    def in_double(self) -> JKBuilder | None:
        """The same builder in double precision; None if it is."""
        return None
