"""Interaction energies of fragments with the counterpoise correction.

Every fragment is computed twice: in its own basis, and in that of the complex with the other fragments as ghosts. S. F.
Boys and F. Bernardi, Mol. Phys. 19, 553 (1970), doi:10.1080/00268977000101561; for more than two fragments, all of them
in the basis of the whole complex: B. H. Wells and S. Wilson, Chem. Phys. Lett. 101, 429 (1983),
doi:10.1016/0009-2614(83)87508-X.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import InputError, require
from cuanto.log import Timings
from cuanto.methods import Request, Result
from cuanto.methods.error_estimates import interaction_errors, total_error
from cuanto.methods.model import kind_of
from cuanto.options import errors_about_option
from cuanto.scf.guess import GUESSES
from cuanto.scf.state import State
from cuanto.solve import solve
from cuanto.system import Molecule
from cuanto.system.fragments import Division, Fragment, Fragments
from cuanto.units import HARTREE_IN_KCAL_PER_MOL

PER_ATOM = ("atomic_charges", "atomic_spins")
"""Options with a value for each atom of the complex."""
COMPLEX_ONLY = ("guess", "occupations")
"""Options that describe the orbitals of the complex; the name of a guess applies to all calculations."""


@dataclass(frozen=True, eq=False)
class FragmentResult:
    """Results of a fragment: in its own basis (`alone`) and in that of the complex (`in_complex`)."""

    fragment: Fragment
    alone: Result
    in_complex: Result

    @property
    def lowering(self) -> float:
        """Energy in the basis of the complex minus that in the fragment's own, Hartree: zero or negative."""
        return self.in_complex.energy - self.alone.energy


@dataclass(frozen=True, eq=False, repr=False)
class CounterpoiseResult:
    """Interaction energy of fragments; energies in Hartree, `*_kcal_mol` in kcal/mol.

    `raw`: the complex minus the fragments in their own bases. `corrected`: minus the fragments in the basis of the
    complex. `correction`: the difference of both, positive. Fragments keep the geometry that they have in the complex.
    """

    complex: Result
    fragments: tuple[FragmentResult, ...]

    @property
    def raw(self) -> float:
        """Interaction energy without correction."""
        return self.complex.energy - sum(one.alone.energy for one in self.fragments)

    @property
    def corrected(self) -> float:
        """Interaction energy with the counterpoise correction."""
        return self.complex.energy - sum(one.in_complex.energy for one in self.fragments)

    @property
    def correction(self) -> float:
        """Counterpoise correction."""
        return -sum(one.lowering for one in self.fragments)

    @property
    def corrected_energy(self) -> float:
        """Energy of the complex with the correction."""
        return self.complex.energy + self.correction

    @cached_property
    def corrected_errors(self) -> Mapping[str, float]:
        """Estimated errors of `corrected` by source, Hartree; empty if one of the calculations has none."""
        return self._errors([one.in_complex for one in self.fragments])

    @cached_property
    def raw_errors(self) -> Mapping[str, float]:
        """Estimated errors of `raw` by source, Hartree; empty if one of the calculations has none."""
        return self._errors([one.alone for one in self.fragments])

    @property
    def corrected_error(self) -> float:
        """Estimated size of all errors of `corrected` together, Hartree; not a number without estimates."""
        return total_error(self.corrected_errors) if self.corrected_errors else nan

    @property
    def raw_error(self) -> float:
        """Estimated size of all errors of `raw` together, Hartree; not a number without estimates."""
        return total_error(self.raw_errors) if self.raw_errors else nan

    def _errors(self, parts: Sequence[Result]) -> Mapping[str, float]:
        found = [one.errors for one in (self.complex, *parts)] if self.converged else [{}]
        return interaction_errors(found[0], found[1:]) if all(found) else {}

    @property
    def raw_kcal_mol(self) -> float:
        """Interaction energy without correction."""
        return self.raw * HARTREE_IN_KCAL_PER_MOL

    @property
    def corrected_kcal_mol(self) -> float:
        """Interaction energy with the counterpoise correction."""
        return self.corrected * HARTREE_IN_KCAL_PER_MOL

    @property
    def correction_kcal_mol(self) -> float:
        """Counterpoise correction."""
        return self.correction * HARTREE_IN_KCAL_PER_MOL

    @property
    def energy(self) -> float:
        """Energy of the complex, without correction."""
        return self.complex.energy

    @property
    def results(self) -> tuple[Result, ...]:
        """All calculations: the complex, then every fragment in the complex and alone."""
        return (self.complex, *(result for one in self.fragments for result in (one.in_complex, one.alone)))

    @property
    def converged(self) -> bool:
        """Whether every calculation converged."""
        return all(result.converged for result in self.results)

    @property
    def iterations(self) -> int:
        """Iterations of all calculations."""
        return sum(result.iterations for result in self.results)

    @property
    def timings(self) -> Timings:
        """Seconds of all calculations by step."""
        seconds: dict[str, float] = {}
        for result in self.results:
            for name, value in result.timings.seconds.items():
                seconds[name] = seconds.get(name, 0.0) + value
        return Timings(seconds)

    def to_dict(self) -> dict[str, Any]:
        """All energies as plain data."""
        fragments = [
            {
                "atoms": list(one.fragment.atoms),
                "charge": one.fragment.alone.charge,
                "multiplicity": one.fragment.alone.multiplicity,
                "energy": one.alone.energy,
                "energy_in_basis_of_complex": one.in_complex.energy,
                "converged": one.alone.converged and one.in_complex.converged,
            }
            for one in self.fragments
        ]
        return {
            "complex_energy": self.complex.energy,
            "interaction_energy": self.raw,
            "interaction_energy_kcal_mol": self.raw_kcal_mol,
            "corrected_interaction_energy": self.corrected,
            "corrected_interaction_energy_kcal_mol": self.corrected_kcal_mol,
            "interaction_energy_errors": dict(self.raw_errors),
            "interaction_energy_error": self.raw_error,
            "corrected_interaction_energy_errors": dict(self.corrected_errors),
            "corrected_interaction_energy_error": self.corrected_error,
            "counterpoise_correction": self.correction,
            "counterpoise_correction_kcal_mol": self.correction_kcal_mol,
            "corrected_complex_energy": self.corrected_energy,
            "converged": self.converged,
            "fragments": fragments,
        }

    def __repr__(self) -> str:
        """One line."""
        verdict = "converged" if self.converged else "NOT converged"
        corrected = f"{self.corrected:.9f} Hartree ({self.corrected_kcal_mol:.3f} kcal/mol) corrected"
        return f"<CounterpoiseResult of {len(self.fragments)} fragments: {corrected}, raw {self.raw:.9f}, {verdict}>"


def counterpoise(
    molecule: Molecule | str | os.PathLike[str],
    fragments: Fragments,
    method: str = "hf",
    basis: BasisChoice | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
    charges: Sequence[int] | None = None,
    multiplicities: Sequence[int] | None = None,
    on_iteration: Callable[[State], object] | None = None,
    on_result: Callable[[str, Result], object] | None = None,
    **options: Any,
) -> CounterpoiseResult:
    """Compute the interaction energy of the fragments of a molecule, with and without the counterpoise correction.

    `fragments`: numbers of atoms, in order ('3,3' or [3, 3]), or lists of atoms numbered from 1 ('1-3;4-6' or
    [[1, 2, 3], [4, 5, 6]]); two or more. `charge` and `multiplicity` of the molecule as in `energy`; `charges` and
    `multiplicities` of the fragments: zero and the lowest possible ones by default. `on_result`: called with the name
    and result of every calculation. `options`: those of `energy`; orbitals as a guess and occupations apply to the
    complex only.
    """
    molecule = Molecule.of(molecule, charge, multiplicity)
    parts = Division(fragments, charges, multiplicities).divide(molecule)
    requests = {
        name: Request.of(part, method, basis, **keywords)
        for name, part, keywords in _calculations(molecule, parts, _checked(method, basis, options))
    }
    found: dict[str, Result] = {}
    for name, request in requests.items():
        found[name] = solve(request, on_iteration)
        if on_result is not None:
            on_result(name, found[name])
    results = [FragmentResult(one, found[name_of(one)], found[name_of(one, True)]) for one in parts]
    return CounterpoiseResult(found["complex"], tuple(results))


def name_of(fragment: Fragment, in_complex: bool = False) -> str:
    """Name of one calculation."""
    return f"fragment {fragment.number}{' in the complex' if in_complex else ''}"


def _calculations(
    molecule: Molecule, fragments: Sequence[Fragment], options: dict[str, Any]
) -> Iterator[tuple[str, Molecule, dict[str, Any]]]:
    """Name, molecule and options of every calculation; the complex first."""
    yield "complex", molecule, options
    named = isinstance(guess := options.get("guess"), str) and guess in GUESSES
    common = {name: value for name, value in options.items() if name not in COMPLEX_ONLY or (name == "guess" and named)}
    of_atoms = {name: list(common[name]) for name in PER_ATOM if common.get(name) is not None}
    for name, values in of_atoms.items():
        require(len(values) == molecule.natom, f"{name}: give one number for each of the {molecule.natom} atoms")
    for one in fragments:
        own = {name: [values[a - 1] for a in one.atoms] for name, values in of_atoms.items()}
        padded = {
            name: [value if a in one.atoms else 0.0 for a, value in enumerate(values, start=1)]
            for name, values in of_atoms.items()
        }
        yield name_of(one, True), one.ghosts, {**common, **padded}
        yield name_of(one), one.alone, {**common, **own}


def _checked(method: str, basis: object, options: dict[str, Any]) -> dict[str, Any]:
    """The options; methods without a counterpoise correction and bases made for one molecule are refused."""
    with errors_about_option("method"):
        if kind_of(method) == "semiempirical":
            raise InputError(f"{method} has no counterpoise correction: use hf or a functional")
    for name, given in (("basis", basis), ("auxbasis", options.get("auxbasis"))):
        if isinstance(given, Basis):
            raise InputError(f"{name}: a counterpoise correction needs a name or file, not one made for a molecule")
    return options
