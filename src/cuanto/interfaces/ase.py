"""A calculator of ASE (https://wiki.fysik.dtu.dk/ase): energies in eV, forces in eV/Angstrom, dipoles in e Angstrom.

atoms.calc = Cuanto(method="pm6")                     # and whatever else `cuanto.energy` takes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuanto.api import energy
from cuanto.errors import MissingDependencyError
from cuanto.methods import SEMIEMPIRICAL, Result
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_EV

try:
    from ase.calculators.calculator import Calculator, CalculatorSetupError, SCFError, all_changes
except ImportError:
    raise MissingDependencyError("the calculator needs ASE: `pip install 'cuanto[ase]'`") from None


class Cuanto(Calculator):
    """`charge` and `multiplicity`: of the molecule; where they are None, the sum of the atoms' initial charges, and of
    their initial magnetic moments. Other keywords are those of `cuanto.energy`. Forces: semiempirical methods.

    Each calculation starts from the one before, where the atoms are the same.
    """

    implemented_properties = ["energy", "free_energy", "dipole", "charges"]  # noqa: RUF012  # ASE's own way
    default_parameters = {"method": "hf", "charge": None, "multiplicity": None}  # noqa: RUF012
    ignored_changes = {"pbc", "cell"}  # noqa: RUF012
    result: Result | None = None
    """The last one, with all that ASE has no name for."""

    def __init__(self, method: str = "hf", **settings: Any) -> None:
        super().__init__(method=method, **settings)  # type: ignore[no-untyped-call]

    def set(self, **settings: Any) -> Any:
        """Change parameters; what was computed with the others is forgotten."""
        changed = super().set(**settings)  # type: ignore[no-untyped-call]
        if changed:
            self.reset()  # type: ignore[no-untyped-call]
            self.result = None
            forces = ["forces"] if self.parameters["method"].lower() in SEMIEMPIRICAL else []
            self.implemented_properties = [*type(self).implemented_properties, *forces]
        return changed

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = tuple(all_changes),
    ) -> None:
        """As ASE calls it."""
        super().calculate(atoms, properties, system_changes)  # type: ignore[no-untyped-call]
        if self.result is None or system_changes:
            self.result = self._computed(self.atoms, self.result)
        result = self.result
        self.results = {
            "energy": result.energy * HARTREE_IN_EV,
            "free_energy": result.energy * HARTREE_IN_EV,
            "dipole": result.dipole * BOHR_IN_ANGSTROM,
            "charges": result.charges,
        }
        if "forces" in properties:
            self.results["forces"] = -result.gradient * (HARTREE_IN_EV / BOHR_IN_ANGSTROM)

    def _computed(self, atoms: Any, before: Result | None) -> Result:
        if atoms.pbc.any():
            raise CalculatorSetupError("cuanto computes molecules: set atoms.pbc = False")
        molecule, settings = self._molecule(atoms), dict(self.parameters)
        method = settings.pop("method")
        del settings["charge"], settings["multiplicity"]
        if before is not None and _alike(before.molecule, molecule):
            settings.setdefault("guess", before)
        result = energy(molecule, method, **settings)
        if not result.converged:
            raise SCFError(f"not converged in {result.iterations} iterations")
        return result

    def _molecule(self, atoms: Any) -> Molecule:
        charge, multiplicity = self.parameters["charge"], self.parameters["multiplicity"]
        if charge is None:
            charge = round(float(atoms.get_initial_charges().sum()))
        unpaired = abs(round(float(atoms.get_initial_magnetic_moments().sum())))
        if multiplicity is None and unpaired:
            multiplicity = unpaired + 1
        symbols, positions = atoms.get_chemical_symbols(), atoms.positions / BOHR_IN_ANGSTROM
        return Molecule(symbols, positions, charge, multiplicity, str(atoms.symbols))


def _alike(one: Molecule, other: Molecule) -> bool:
    """Whether orbitals of one can be a guess for the other."""
    return (one.symbols, one.charge, one.multiplicity) == (other.symbols, other.charge, other.multiplicity)
