"""Calculator for ASE (https://wiki.fysik.dtu.dk/ase): energies in eV, forces in eV/Angstrom, dipoles in e Angstrom.

atoms.calc = Cuanto(method="pm6")                     # and any other keyword of `cuanto.energy`

It can be the quantum part of ASE's `EIQMMM`: `embed` surrounds the molecule with point charges, on which forces are
computed as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.api import gradient_along_path
from cuanto.arrays import Array
from cuanto.errors import ConvergenceError, MissingDependencyError, without_convergence_warnings
from cuanto.methods import GaussianResult, Result
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_EV

try:
    from ase.calculators.calculator import Calculator, CalculatorSetupError, SCFError, all_changes
except ImportError:
    raise MissingDependencyError("the calculator needs ASE: `pip install 'cuanto[ase]'`") from None


class Cuanto(Calculator):
    """ASE calculator; keywords are those of `cuanto.energy`, and `charge` and `multiplicity` of the molecule.

    If they are None, they follow from the initial charges and magnetic moments of the atoms. Each calculation starts
    from the previous one if the atoms are the same, and the first one without a search for lower states, so that the
    state does not depend on the order of calls.
    """

    implemented_properties = ["energy", "free_energy", "forces", "dipole", "charges"]  # noqa: RUF012  # ASE's own way
    default_parameters = {"method": "hf", "charge": None, "multiplicity": None}  # noqa: RUF012
    ignored_changes = {"pbc", "cell"}  # noqa: RUF012
    result: Result | None = None
    """The last result, with properties that ASE does not have."""
    _charges: PointCharges | None = None
    _forces = False
    """Whether forces have been requested; from then on they are computed with every energy."""

    def __init__(self, method: str = "hf", basis: Any = None, **settings: Any) -> None:
        if basis is not None:
            settings["basis"] = basis
        super().__init__(method=method, **settings)  # type: ignore[no-untyped-call]

    def set(self, **settings: Any) -> Any:
        """Change parameters and forget earlier results."""
        changed = super().set(**settings)  # type: ignore[no-untyped-call]
        if changed:
            self.reset()  # type: ignore[no-untyped-call]
            self.result = None
        return changed

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = tuple(all_changes),
    ) -> None:
        """Compute the properties that ASE asks for."""
        super().calculate(atoms, properties, system_changes)  # type: ignore[no-untyped-call]
        self._forces = self._forces or "forces" in properties
        moved = self._charges is not None and self._charges.moved
        if self.result is None or system_changes or moved:
            self.result = self._compute(self.atoms, self.result)
        if self._charges is not None:
            self._charges.moved = False
        result = self.result
        self.results = {
            "energy": result.energy * HARTREE_IN_EV,
            "free_energy": result.energy * HARTREE_IN_EV,
            "dipole": result.dipole * BOHR_IN_ANGSTROM,
            "charges": result.charges,
        }
        if "forces" in properties:
            self.results["forces"] = -result.gradient * (HARTREE_IN_EV / BOHR_IN_ANGSTROM)

    def embed(self, charges: Any, **parameters: Any) -> PointCharges:
        """Surround the molecule with point charges (e); ASE's `EIQMMM` calls this, and then moves them."""
        if parameters:
            raise CalculatorSetupError(f"unknown parameters of the embedding: {', '.join(parameters)}")
        self._charges = PointCharges(self, np.array(charges, dtype=float))
        return self._charges

    def _compute(self, atoms: Any, before: Result | None) -> Result:
        if atoms.pbc.any():
            raise CalculatorSetupError("cuanto computes molecules: set atoms.pbc = False")
        molecule, settings = self._molecule(atoms), dict(self.parameters)
        method = settings.pop("method")
        del settings["charge"], settings["multiplicity"]
        if before is not None and _same_electrons(before.molecule, molecule):
            settings.setdefault("guess", before)
        if self._charges is not None:
            settings["point_charges"] = (self._charges.charges, self._charges.positions)
        try:
            with without_convergence_warnings():
                result = gradient_along_path(molecule, method, forces=self._forces, **settings)
        except ConvergenceError as error:
            raise SCFError(str(error)) from None
        if not result.converged:
            raise SCFError(f"not converged in {result.iterations} iterations")
        return result

    def _molecule(self, atoms: Any) -> Molecule:
        charge, multiplicity = self.parameters["charge"], self.parameters["multiplicity"]
        return Molecule.from_ase(atoms, charge, multiplicity)


class PointCharges:
    """Point charges around the molecule of a calculator, in the form that ASE's `EIQMMM` expects.

    `charges` in e, `positions` in Bohr; `moved`: whether they were moved since the last calculation.
    """

    def __init__(self, calculator: Cuanto, charges: Array) -> None:
        self._calculator, self.charges = calculator, charges
        self.positions, self.moved = np.zeros((len(charges), 3)), True

    def set_positions(self, positions: Array, com_pv: Any = None) -> None:
        """Move the charges (Angstrom)."""
        self.positions, self.moved = np.array(positions) / BOHR_IN_ANGSTROM, True
        self._calculator.results = {}

    def get_forces(self, calculator: Any) -> Array:
        """Forces on the charges, eV/Angstrom."""
        result = self._calculator.result
        if not isinstance(result, GaussianResult) or self.moved:
            raise CalculatorSetupError("forces on point charges need a calculation with them first")
        return -result.charges_gradient * (HARTREE_IN_EV / BOHR_IN_ANGSTROM)


def _same_electrons(one: Molecule, other: Molecule) -> bool:
    """Whether the orbitals of one molecule can be a guess for the other."""
    return (one.symbols, one.charge, one.multiplicity) == (other.symbols, other.charge, other.multiplicity)
