"""The molecule: atoms, charge and spin, validated here and trusted everywhere else."""

import operator
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.arrays import Array, Ints
from cuanto.errors import InputError, InputWarning, require
from cuanto.files import write_text
from cuanto.system.distances import close_pairs
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.formats import KNOWN_INPUTS, parse_structure
from cuanto.system.nuclei import Nuclei, atom_symbol, element_of
from cuanto.system.smiles import looks_like_smiles, parse_smiles
from cuanto.system.structure import Structure
from cuanto.system.text import format_path, quote, read_text
from cuanto.system.xyz import is_atom_list, parse_xyz
from cuanto.units import BOHR_IN_ANGSTROM
from cuanto.wording import count, format_charge

MIN_DISTANCE = 0.3
"""Angstrom. Shorter than any bond (H2: 0.74): closer atoms mean wrong units or an atom listed twice."""

MAX_SHOWN = 6
"""Largest number of multiplicities that a message lists."""

MAX_COORDINATE = 1e4
"""Angstrom, one micrometre: larger coordinates have wrong units."""


@dataclass(frozen=True, init=False, eq=False)
class Molecule:
    """Atoms with a total charge and a spin multiplicity; coordinates in Bohr, read-only.

    A ghost atom (symbol Gh-O, also read from Gh(O), X-O, @O, O: and the like) carries basis functions and nothing else.
    The default multiplicity is the lowest possible one: 1 for an even number of electrons, 2 for an odd number.
    `masses` of isotopes are in atomic mass units, None for the standard atomic weight of an element; the attribute is
    None if all are standard, and `nuclei.masses` has the masses of all atoms.
    """

    symbols: tuple[str, ...]
    R_ax: Array
    charge: int
    multiplicity: int
    name: str
    masses: Array | None = field(default=None, repr=False)
    nuclei: Nuclei = field(init=False, repr=False)

    def __init__(
        self,
        symbols: Sequence[str],
        R_ax: ArrayLike,
        charge: int = 0,
        multiplicity: int | None = None,
        name: str = "",
        masses: Sequence[float | None] | Array | None = None,
    ) -> None:
        if isinstance(symbols, str | bytes):
            raise InputError(
                f"symbols are a list such as ['H', 'H'], not {quote(symbols)}; cuanto.Molecule.of reads files and "
                "texts such as 'H 0 0 0; H 0 0 0.74'"
            )
        set_field = object.__setattr__
        set_field(self, "name", str(name))
        set_field(self, "symbols", tuple(atom_symbol(str(symbol)) for symbol in symbols))
        set_field(self, "nuclei", Nuclei.of(self.symbols, masses))
        set_field(self, "masses", self.nuclei.isotopic_masses)
        set_field(self, "R_ax", _positions(R_ax, self.symbols))
        set_field(self, "charge", _whole(charge, "charge"))
        _check_electrons(self.nelectron, int(self.nuclei.charges.sum()), self.charge)
        lowest = 1 + self.nelectron % 2
        set_field(self, "multiplicity", lowest if multiplicity is None else _whole(multiplicity, "multiplicity"))
        _check_multiplicity(self.multiplicity, self.nelectron, self.charge)

    @classmethod
    def from_xyz(
        cls, path: str | os.PathLike[str], charge: int | None = None, multiplicity: int | None = None
    ) -> "Molecule":
        """Molecule from an XYZ file (Angstrom).

        Charge and multiplicity default to `charge=` and `mult=` on the comment line, else to 0 and the lowest possible
        multiplicity. Dummy atoms (X) are left out.
        """
        found = parse_xyz(read_text(path, "XYZ file"), format_path(path))
        return cls._from_parsed(found, charge, multiplicity, Path(path).stem, f"{format_path(path)}: ")

    @classmethod
    def from_string(cls, xyz_text: str, charge: int | None = None, multiplicity: int | None = None) -> "Molecule":
        """Molecule from the text of an XYZ file; otherwise as `from_xyz`."""
        if not isinstance(xyz_text, str):
            raise InputError(f"from_string takes the text of an XYZ file, not {type(xyz_text).__name__}")
        return cls._from_parsed(parse_xyz(xyz_text), charge, multiplicity, "", "")

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], charge: int | None = None, multiplicity: int | None = None
    ) -> "Molecule":
        """Molecule from an XYZ, QCSchema (JSON) or Molden file, recognised by its content; otherwise as `from_xyz`."""
        text = read_text(path, "file")
        return cls.from_text(text, charge, multiplicity, source=format_path(path), name=Path(path).stem)

    @classmethod
    def from_text(
        cls,
        text: str,
        charge: int | None = None,
        multiplicity: int | None = None,
        source: str = "the input",
        name: str = "",
    ) -> "Molecule":
        """Molecule from the text of an XYZ, QCSchema or Molden file; otherwise as `from_file`.

        Messages begin with `source`; `name` is used if the text has none.
        """
        return cls._from_parsed(parse_structure(text, source), charge, multiplicity, name, f"{source}: ")

    @classmethod
    def from_smiles(cls, smiles: str, charge: int | None = None, multiplicity: int | None = None) -> "Molecule":
        """Molecule from its SMILES, with a geometry made by RDKit (`pip install 'cuanto[smiles]'`)."""
        return cls._from_parsed(parse_smiles(smiles), charge, multiplicity, "", f"{quote(smiles)}: ")

    @classmethod
    def from_ase(cls, atoms: Any, charge: int | None = None, multiplicity: int | None = None) -> "Molecule":
        """Molecule from ASE's Atoms.

        Charge and multiplicity default to those of the initial charges and magnetic moments. Masses that were set with
        `atoms.set_masses` are used.
        """
        if any(getattr(atoms, "pbc", ())):
            raise InputError("cuanto computes molecules, not periodic systems: set atoms.pbc = False")
        if charge is None:
            charge = round(float(sum(atoms.get_initial_charges())))
        unpaired = abs(round(float(sum(atoms.get_initial_magnetic_moments()))))
        if multiplicity is None and unpaired:
            multiplicity = unpaired + 1
        positions = np.array(atoms.get_positions()) / BOHR_IN_ANGSTROM
        name, has = str(getattr(atoms, "symbols", "")), getattr(atoms, "has", lambda what: False)
        masses = atoms.get_masses() if has("masses") else None
        return cls(atoms.get_chemical_symbols(), positions, charge, multiplicity, name, masses)

    @classmethod
    def of(cls, given: Any, charge: int | None = None, multiplicity: int | None = None) -> "Molecule":
        """Molecule from a Molecule, the name or the text of a file, atoms, `smiles:CCO`, or ASE's Atoms.

        Atoms are written as `O 0 0 0; H 0 0.76 0.59; H 0 -0.76 0.59` (Angstrom). Charge and multiplicity override those
        of a file or of Atoms; a Molecule must have them already.
        """
        if isinstance(given, cls):
            given._require(charge, multiplicity)
            return given
        if isinstance(given, str) and given.lower().startswith("smiles:"):
            return cls.from_smiles(given[len("smiles:") :], charge, multiplicity)
        if isinstance(given, str) and ("\n" in given or is_atom_list(given)):
            return cls.from_text(given, charge, multiplicity)
        if isinstance(given, str | os.PathLike):
            try:
                return cls.from_file(given, charge, multiplicity)
            except InputError as error:
                raise (error if os.path.exists(given) else InputError(f"{error}; {_instead_of(given)}")) from None
        if hasattr(given, "get_chemical_symbols") and hasattr(given, "get_positions"):
            return cls.from_ase(given, charge, multiplicity)
        if isinstance(getattr(given, "molecule", None), cls):
            raise InputError(f"{type(given).__name__} is not a molecule: give its attribute .molecule")
        raise InputError(
            f"{type(given).__name__} is not a molecule: give a cuanto.Molecule, the name of a file, atoms such as "
            "'H 0 0 0; H 0 0 0.74', smiles:CCO or ASE's Atoms"
        )

    def _require(self, charge: int | None, multiplicity: int | None) -> None:
        """Refuse a charge or multiplicity that differs from that of the molecule."""
        given = {"charge": charge, "multiplicity": multiplicity}
        if wrong := {name: value for name, value in given.items() if value not in (None, getattr(self, name))}:
            masses = {} if self.masses is None else {"masses": "old.masses"}
            wanted = ", ".join(f"{name}={value}" for name, value in (wrong | masses).items())
            raise InputError(
                f"charge and multiplicity belong to the Molecule, which has charge {format_charge(self.charge)} and "
                f"multiplicity {self.multiplicity}: make one with Molecule(old.symbols, old.R_ax, {wanted})"
            )

    def to_xyz(self, path: str | os.PathLike[str] | None = None) -> str:
        """Text of an XYZ file (Angstrom) with charge and multiplicity, written to `path` if one is given.

        Masses of isotopes are a column of extended XYZ.
        """
        name = f" name={self.name}" if re.fullmatch(r"[^\s=]+", self.name) else ""
        comment = f"charge={self.charge} mult={self.multiplicity}{name}"
        rows = [f"{symbol:<4s}" + "".join(f" {x:16.10f}" for x in row) for symbol, row in self._rows()]
        if self.masses is not None:
            comment = f"Properties=species:S:1:pos:R:3:masses:R:1 {comment}"
            rows = [f"{row} {mass!r}" for row, mass in zip(rows, self.masses.tolist(), strict=True)]
        text = "\n".join([str(self.natom), comment, *rows]) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    def _rows(self) -> Iterator[tuple[str, Array]]:
        return zip(self.symbols, self.R_ax * BOHR_IN_ANGSTROM, strict=True)

    @classmethod
    def _from_parsed(
        cls, found: Structure, charge: int | None, multiplicity: int | None, name: str, prefix: str
    ) -> "Molecule":
        for hint in (found.cell_hint, found.hint if charge is None and multiplicity is None else ""):
            if hint:
                warnings.warn(hint, InputWarning, stacklevel=3)
        if multiplicity is None and (charge is None or charge == (found.charge or 0)):
            multiplicity = found.multiplicity  # the file's multiplicity belongs to the file's charge
        if charge is None:
            charge = found.charge or 0
        with np.errstate(over="ignore"):  # overflow is reported as a coordinate that is not finite
            R_ax = np.array(found.coordinates) / (BOHR_IN_ANGSTROM if found.angstrom else 1.0)
        try:
            return cls(found.symbols, R_ax, charge, multiplicity, found.name or name, found.masses or None)
        except InputError as error:
            raise InputError(f"{prefix}{error}") from None

    @property
    def natom(self) -> int:
        """Number of atoms."""
        return len(self.symbols)

    @property
    def elements(self) -> tuple[str, ...]:
        """Element of every atom, including ghosts: it determines basis functions, radii and parameters."""
        return tuple(map(element_of, self.symbols))

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Atomic numbers of the elements; for nuclear charges, which ghosts do not have, see `nuclei`."""
        return np.array([ATOMIC_NUMBERS[element] for element in self.elements], dtype=np.int64)

    @property
    def composition(self) -> dict[str, int]:
        """Number of atoms of each element without ghosts, in Hill's order: carbon, hydrogen, then alphabetically.

        E. A. Hill, J. Am. Chem. Soc. 22, 478 (1900), doi:10.1021/ja02046a005.
        """
        counts = Counter(element for element, ghost in zip(self.elements, self.nuclei.ghosts, strict=True) if not ghost)
        first = [element for element in ("C", "H") if "C" in counts and element in counts]
        return {element: counts[element] for element in [*first, *sorted(counts.keys() - set(first))]}

    @property
    def formula(self) -> str:
        """Chemical formula without ghosts and charge, in Hill's order."""
        return "".join(element + (str(count) if count > 1 else "") for element, count in self.composition.items())

    @property
    def nelectron(self) -> int:
        """Number of electrons, without those of core potentials."""
        return int(self.nuclei.charges.sum()) - self.charge

    @property
    def valence_multiplicity(self) -> int:
        """Multiplicity of the electrons outside of core potentials.

        It differs from that of all electrons where the cores have an odd number of them, as in potentials of
        lanthanides that include f electrons: one unpaired electron then belongs to the cores.
        """
        unpaired = self.multiplicity - 1
        return 1 + (unpaired if (self.nelectron - unpaired) % 2 == 0 else abs(unpaired - 1))

    @property
    def n_alpha(self) -> int:
        """Number of electrons of majority spin."""
        return (self.nelectron + self.valence_multiplicity - 1) // 2

    @property
    def n_beta(self) -> int:
        """Number of electrons of minority spin."""
        return self.nelectron - self.n_alpha

    def moved_to(self, R_ax: ArrayLike) -> "Molecule":
        """The same atoms at other positions (Bohr), none of their electrons replaced by core potentials."""
        return Molecule(self.symbols, R_ax, self.charge, self.multiplicity, self.name, self.masses)

    def with_masses(self, masses: Sequence[float | None] | Array | None) -> "Molecule":
        """The same molecule with these masses in atomic mass units; None for standard atomic weights."""
        molecule = copy(self)
        object.__setattr__(molecule, "nuclei", self.nuclei.with_masses(self.symbols, masses))
        object.__setattr__(molecule, "masses", molecule.nuclei.isotopic_masses)
        return molecule

    def with_core_electrons(self, core_electrons: Sequence[int] | Ints) -> "Molecule":
        """The same molecule with these electrons of every atom replaced by core potentials."""
        counts = np.array(core_electrons, dtype=np.int64)
        if np.array_equal(counts, self.nuclei.core_electrons):
            return self
        require(counts.shape == (self.natom,), f"{self.natom} atoms need {self.natom} numbers of core electrons")
        molecule = copy(self)
        object.__setattr__(molecule, "nuclei", replace(self.nuclei, core_electrons=counts))
        left, multiplicity = molecule.nelectron, molecule.valence_multiplicity
        require(left >= 1, f"charge {self.charge:+d} leaves no electron outside of the core potentials")
        _check_multiplicity(multiplicity, left, self.charge)
        return molecule

    def nuclear_repulsion(self) -> float:
        """Coulomb energy of the nuclei, Hartree."""
        Z_a = self.nuclei.charges.astype(float)
        energy = 0.0
        for a in range(1, self.natom):  # by rows: memory stays linear in the number of atoms
            energy += Z_a[a] * float(np.sum(Z_a[:a] / np.linalg.norm(self.R_ax[:a] - self.R_ax[a], axis=1)))
        return energy


def _whole(value: SupportsIndex, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{what} must be a whole number, not {quote(value)}") from None


def _positions(R_ax: ArrayLike, symbols: tuple[str, ...]) -> Array:
    """Checked, read-only copy of the coordinates (Bohr)."""
    try:
        positions = np.array(R_ax, dtype=float)
    except (TypeError, ValueError):
        raise InputError("coordinates must be an array of numbers of shape (natom, 3)") from None
    if not symbols or positions.shape != (len(symbols), 3):
        raise InputError(f"{len(symbols)} atoms need coordinates of shape (natom, 3), not {positions.shape}")
    if not np.isfinite(positions).all():
        a = int(np.flatnonzero(~np.isfinite(positions).all(axis=1))[0])
        raise InputError(f"atom {a + 1} ({symbols[a]}) has a coordinate that is not finite")
    largest = float(np.abs(positions).max()) * BOHR_IN_ANGSTROM
    require(
        largest <= MAX_COORDINATE,
        f"a coordinate of {largest:.3g} Angstrom is beyond {MAX_COORDINATE:g}: are the units Angstrom?",
    )
    _check_distances(positions, symbols)
    positions.setflags(write=False)
    return positions


def _check_distances(R_ax: Array, symbols: tuple[str, ...]) -> None:
    r_k, a_k, b_k = close_pairs(R_ax, MIN_DISTANCE / BOHR_IN_ANGSTROM)
    if not r_k.size:
        return
    k = int(np.argmin(r_k))
    a, b, distance = int(a_k[k]), int(b_k[k]), float(r_k[k]) * BOHR_IN_ANGSTROM
    pair = f"atoms {a + 1} ({symbols[a]}) and {b + 1} ({symbols[b]})"
    require(distance >= 1e-3, f"{pair} are at the same position: is an atom listed twice?")
    raise InputError(f"{pair} are {distance:.2g} Angstrom apart: are the coordinates in nm or another unit?")


def _check_electrons(nelectron: int, protons: int, charge: int) -> None:
    require(protons != 0, "all atoms are ghosts, which have no electrons: at least one atom must be real")
    nuclei = f"the {protons} protons" if protons > 1 else "the proton"
    possible = f"it can be {-protons - 2:+d} to {format_charge(protons - 1)}"
    require(nelectron >= 1, f"charge {charge:+d} is impossible: no electron would be left with {nuclei}; {possible}")
    if nelectron > 2 * protons + 2:
        many = f"{nelectron} electrons are more than {nuclei} can bind"
        raise InputError(f"charge {charge:+d} is impossible: {many}; {possible}")


def _check_multiplicity(multiplicity: int, nelectron: int, charge: int) -> None:
    if multiplicity in range(1 + nelectron % 2, nelectron + 2, 2):
        return
    electrons = f"{count(nelectron, 'electron')} (charge {format_charge(charge)})"
    raise InputError(
        f"multiplicity {multiplicity} is impossible with {electrons}: it can be {possible_multiplicities(nelectron)}"
    )


def _instead_of(given: str | os.PathLike[str]) -> str:
    """Advice about a name that is not the name of a file: a SMILES, or the accepted forms."""
    name = str(given)
    return f"if it is a SMILES, write smiles:{name}" if looks_like_smiles(name) else f"give {KNOWN_INPUTS}"


def possible_multiplicities(nelectron: int) -> str:
    """The possible multiplicities for a message: '1, 3 or 5'."""
    possible = range(1 + nelectron % 2, nelectron + 2, 2)
    first, last = [str(one) for one in possible[:MAX_SHOWN]], str(possible[-1])
    if len(possible) > MAX_SHOWN:
        return f"{', '.join(first[:3])} and so on up to {last}"
    return f"{', '.join(first[:-1])} or {last}" if len(first) > 1 else last
