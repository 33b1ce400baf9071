"""What an energy term is: a functional of the density together with its derivative."""

from __future__ import annotations

from typing import Any, Protocol


class Term(Protocol):
    """One physical effect.

    D_spq has one spin (both electrons of every orbital) or two; C_spi as for `coulomb.base.JKBuilder`, or None.
    """

    name: str

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any | None]:
        """Energy (a number, or a scalar on the device) and dE/dD_spq (or with one spin: the same for all; or None)."""
