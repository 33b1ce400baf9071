"""Reader of molecules in QCSchema (JSON), Molden or XYZ; the format is recognised from the beginning of the text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cuanto.errors import InputError, require
from cuanto.system.masses import isotope_mass
from cuanto.system.molden import MOLDEN, parse_molden
from cuanto.system.nuclei import GHOST, atom_symbol, ghost_of
from cuanto.system.structure import Structure
from cuanto.system.text import quote
from cuanto.system.xyz import parse_xyz

KNOWN_FORMATS = "XYZ, QCSchema (JSON) or Molden"
KNOWN_INPUTS = f"an {KNOWN_FORMATS} file, 'H 0 0 0; H 0 0 0.74' or smiles:CCO"
"""Accepted forms of a molecule, as a list for messages."""
LARGEST_MASS = 1000
"""Bound of the masses of atoms in a file, atomic mass units."""
MOLECULAR = ("molecular_charge", "molecular_multiplicity")
OF_FRAGMENTS = ("fragment_charges", "fragment_multiplicities")


def parse_structure(text: str, source: str = "the input") -> Structure:
    """Read one molecule; `source` begins every message."""
    start = text.lstrip()[:100].lower()
    if start.startswith("{"):
        return qcschema_structure(parse_json(text, source), source)
    if start.startswith(MOLDEN):
        return parse_molden(text, source)
    require(start, f"{source} is empty: expected a molecule as {KNOWN_FORMATS}")
    return parse_xyz(text, source)


def parse_json(text: str, source: str) -> dict[str, Any]:
    """Parse a JSON object, whose numbers must be finite."""
    try:
        found = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not valid JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise InputError(f"{source}: expected a JSON object, found {quote(type(found).__name__)}")
    return found


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def qcschema_structure(schema: Mapping[str, Any], source: str) -> Structure:
    """The structure in a QCSchema Molecule, AtomicInput or AtomicResult, or the last one of an OptimizationResult."""
    inner = schema.get("final_molecule", schema.get("molecule"))
    if isinstance(inner, Mapping):
        schema = inner
    symbols, geometry = schema.get("symbols"), schema.get("geometry")
    if not isinstance(symbols, list) or not isinstance(geometry, list):
        raise InputError(f"{source}: JSON without symbols and geometry; give a QCSchema Molecule or AtomicInput")
    texts = all(isinstance(symbol, str) for symbol in symbols)
    require(texts, f"{source}: symbols must be a list of strings such as ['O', 'H', 'H']")
    real = schema.get("real") or [True] * len(symbols)
    good = isinstance(real, list) and len(real) == len(symbols) and all(isinstance(one, bool) for one in real)
    require(good, f"{source}: real must be true or false for each of the {len(symbols)} atoms")
    charge, multiplicity = _charge_and_multiplicity(schema, source)
    numbers = _flat(geometry, source)
    require(
        len(numbers) == 3 * len(symbols),
        f"{source}: {len(symbols)} atoms need {3 * len(symbols)} coordinates in geometry, found {len(numbers)}",
    )
    labels = tuple(symbol if there else ghost_of(symbol) for symbol, there in zip(symbols, real, strict=True))
    return Structure(
        symbols=labels,
        coordinates=tuple((numbers[i], numbers[i + 1], numbers[i + 2]) for i in range(0, len(numbers), 3)),
        charge=charge,
        multiplicity=multiplicity,
        name=str(schema.get("name") or ""),
        angstrom=False,
        masses=_masses(schema, labels, source),
    )


def _charge_and_multiplicity(schema: Mapping[str, Any], source: str) -> tuple[int | None, int | None]:
    """Those of the molecule, else those of its fragments together: charges are added, and unpaired electrons too."""
    charge, multiplicity = (_whole(schema.get(key), key, source) for key in MOLECULAR)
    charges, multiplicities = (_fragment_values(schema, key, source) for key in OF_FRAGMENTS)
    if charges and charge is not None and charge != sum(charges):
        raise InputError(f"{source}: molecular_charge {charge} is not the sum of fragment_charges, {sum(charges)}")
    if charges and charge is None:
        charge = sum(charges)
    if multiplicities and multiplicity is None:
        require(min(multiplicities) >= 1, f"{source}: fragment_multiplicities must be at least 1")
        multiplicity = 1 + sum(one - 1 for one in multiplicities)
    return charge, multiplicity


def _fragment_values(schema: Mapping[str, Any], key: str, source: str) -> list[int]:
    """One whole number for each fragment; empty if there are none."""
    values, fragments = schema.get(key), schema.get("fragments")
    if values is None:
        return []
    size = len(fragments) if isinstance(fragments, list) else None
    if not isinstance(values, list) or None in values or size not in (None, len(values)):
        expected = "whole numbers" if size is None else f"{size} whole numbers, one for each of the fragments"
        raise InputError(f"{source}: {key} must be {expected}")
    return [number for value in values if (number := _whole(value, key, source)) is not None]


def _masses(schema: Mapping[str, Any], labels: Sequence[str], source: str) -> tuple[float | None, ...]:
    """Masses of the atoms, those of isotopes given by mass numbers included; empty if the file has none."""
    masses, numbers = schema.get("masses"), schema.get("mass_numbers")
    if masses is None and numbers is None:
        return ()
    natom = len(labels)
    if masses is not None and not (isinstance(masses, list) and len(masses) == natom and all(map(_is_mass, masses))):
        raise InputError(f"{source}: masses must be {natom} numbers, one for each atom, in atomic mass units")
    if numbers is not None and not (isinstance(numbers, list) and len(numbers) == natom):
        raise InputError(f"{source}: mass_numbers must be {natom} whole numbers, -1 for atoms without one")
    found: list[float | None] = []
    for a, label in enumerate(labels):
        mass = None if masses is None else float(masses[a])
        number = None if numbers is None else _whole(numbers[a], "mass_numbers", source)
        try:
            found.append(_mass(atom_symbol(label), mass, number))
        except InputError as error:
            raise InputError(f"{source}, atom {a + 1}: {error}") from None
    return tuple(found)


def _mass(symbol: str, mass: float | None, number: int | None) -> float | None:
    """The mass of an atom from its mass, or from its mass number; None for ghosts and for standard masses."""
    if symbol.startswith(GHOST) or number is None or number < 0:
        return None if symbol.startswith(GHOST) else mass
    if mass is None:
        return isotope_mass(symbol, number)
    require(abs(mass - number) < 0.5, f"the mass {mass:g} and the mass number {number} do not agree: give one of them")
    return mass


def _is_mass(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LARGEST_MASS


def _flat(geometry: list[Any], source: str) -> list[float]:
    rows = [row if isinstance(row, list) else [row] for row in geometry]
    numbers = [number for row in rows for number in row]
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        raise InputError(f"{source}: geometry must be numbers, in Bohr")
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise InputError(f"{source}: geometry has a number that is too large") from None


def _whole(value: object, what: str, source: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and abs(value) > 10**9:
        raise InputError(f"{source}: {what} {quote(value)} is too large")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not float(value).is_integer():
        raise InputError(f"{source}: {what} must be a whole number, not {quote(value)}")
    return int(value)
