"""Protocol of an energy term: a functional of the density together with its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cuanto.coulomb.forces import Sources


class Term(Protocol):
    """One physical effect.

    D_spq has one spin (both electrons of every orbital) or two; C_spi as for `coulomb.base.JKBuilder`, or None.
    `curvature_error`: Hartree, error of the second derivatives of the energy under rotations of orbitals.
    """

    name: str
    curvature_error: float = 0.0

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any | None]:
        """Energy (a number, or a scalar on the device), and dE/dD_spq (with a single matrix if it is the same for all
        spins; None if it is zero)."""

    def gradient(self, D_spq: Any, C_spi: Any | None) -> Any | None:
        """dE/dR_ax at a fixed density matrix, Hartree/Bohr; None if it is not implemented.

        Rows are the atoms, followed by the point charges of the surroundings where they are affected.
        """
        return None

    def sources(self, D_spq: Any) -> Sources | None:
        """Charges and operators from which the whole gradient of this term follows; None if it does not.

        Those of several terms are added, and their gradient computed at once.
        """
        return None

    def response(self, D_spq: Any, change_spq: Any) -> Any | None:
        """Change of dE/dD_spq to first order in a change of the density; None if it is not implemented."""
        return None

    def notes(self) -> Sequence[str]:
        """Notes for the result."""
        return ()

    def in_double(self) -> Term | None:
        """The same term in double precision; None if it is already."""
        return None
