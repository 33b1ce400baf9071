"""Protocol of an energy term: a functional of the density together with its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cuanto.coulomb.forces import Sources


class Term(Protocol):
    """The energy of one physical effect, as a functional of the density, and its derivatives.

    D_spq has one matrix for both spins together or one for each spin. C_spi: occupied orbitals times the square roots
    of their occupations, as for `coulomb.base.JKBuilder`; None if unknown. `curvature_error`: error (Hartree) of the
    second derivatives of the energy with respect to orbital rotations. `linear`: dE/dD does not depend on the density.
    """

    name: str
    curvature_error: float = 0.0
    linear: bool = False

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any | None]:
        """Energy, a number or a scalar on the device, and dE/dD_spq.

        The latter is a single matrix if it is the same for all spins, and None if it is zero.
        """

    def gradient(self, D_spq: Any, C_spi: Any | None) -> Any | None:
        """dE/dR_ax at a fixed density matrix, Hartree/Bohr, on the host or the device; None if it is not implemented.

        Rows are the atoms, followed by the point charges of the surroundings where they are affected.
        """
        return None

    def sources(self, D_spq: Any) -> Sources | None:
        """Charges and operators that determine the whole gradient of this term; None if there are none.

        The sources of several terms are added, and their gradient is computed at once.
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
