"""Energy and gradient of a molecule as functions of the positions of its atoms."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from cuanto.api import gradient
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.methods import Request, Result
from cuanto.system import Molecule


class Surface:
    """The potential energy surface of a molecule; each SCF starts from the orbitals of the one before.

    `options` are keywords of `cuanto.energy`, checked at once. `result`: that of the last geometry.
    """

    def __init__(
        self, molecule: Molecule, method: str = "hf", basis: BasisChoice | Basis | None = None, **options: Any
    ) -> None:
        Request.of(molecule, method, basis, **options)
        self.molecule, self.method, self.basis, self.options = molecule, method, basis, options
        self.result: Result | None = None

    def at(self, R_ax: ArrayLike, guess: Any = None) -> Result:
        """Energy and gradient at the positions R_ax (Bohr), from a `guess` or the last orbitals."""
        options = dict(self.options)
        if guess is not None or self.result is not None:
            options["guess"] = self.result if guess is None else guess
        self.result = gradient(self.molecule_at(R_ax), self.method, self.basis, **options)
        return self.result

    def molecule_at(self, R_ax: ArrayLike) -> Molecule:
        """The molecule with its atoms at the positions R_ax (Bohr)."""
        m = self.molecule
        return Molecule(m.symbols, R_ax, m.charge, m.multiplicity, m.name)
