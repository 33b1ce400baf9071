"""Energy and gradient of a molecule as functions of the positions of its atoms."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from cuanto.api import gradient_along_path
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.methods import GaussianResult, Request, Result
from cuanto.motion.extrapolation import Extrapolation
from cuanto.system import Molecule


class Surface:
    """The potential energy surface of a molecule; each SCF starts from the orbitals of the one before.

    `options` are keywords of `cuanto.energy`, checked at once. `points`: geometries from which start orbitals are
    extrapolated; more than one only along a trajectory with equal steps. `surroundings`: point charges and fields.
    `result`: that of the last geometry.
    """

    def __init__(
        self,
        molecule: Molecule,
        method: str = "hf",
        basis: BasisChoice | Basis | None = None,
        *,
        points: int = 1,
        **options: Any,
    ) -> None:
        request = Request.of(molecule, method, basis, **options)
        self.molecule, self.method, self.basis, self.options = molecule, method, basis, options
        self.surroundings = request.surroundings
        self._orbital: Basis | None = None
        if request.model is not None:
            self._orbital = request.orbital_basis()
        self._extrapolation = Extrapolation(points)
        self.result: Result | None = None

    def at(self, R_ax: ArrayLike, guess: Any = None) -> Result:
        """Energy and gradient at the positions R_ax (Bohr), from a `guess` or the last orbitals."""
        molecule, options = self.molecule_at(R_ax), dict(self.options)
        basis = None if self._orbital is None else self._orbital.moved_to(molecule.R_ax)
        if guess is None:
            guess = self.result if basis is None else self._extrapolation.predict(basis)
        if guess is not None:
            options["guess"] = guess
        if isinstance(self.result, GaussianResult) and self.result.auxbasis is not None:
            options["auxbasis"] = self.result.auxbasis.moved_to(molecule.R_ax)
        self.result = gradient_along_path(molecule, self.method, basis, **options)
        if isinstance(self.result, GaussianResult):
            self._extrapolation.add(self.result)
        return self.result

    def molecule_at(self, R_ax: ArrayLike) -> Molecule:
        """The molecule with its atoms at the positions R_ax (Bohr)."""
        return self.molecule.moved_to(R_ax)
