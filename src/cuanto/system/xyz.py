"""The XYZ format: number of atoms, a comment, then 'element x y z' in Angstrom.

The comment may carry `charge=-1`, `mult=2` (or `multiplicity=2`) and `name=...`. One structure per file. Dummy atoms
(X) are left out.

Number and comment may be missing. Atoms may then be separated by semicolons, and a first line of two whole numbers
gives charge and multiplicity.
"""

import re
from collections.abc import Sequence
from typing import Any

from cuanto.errors import InputError, require
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.nuclei import atom_symbol, is_dummy
from cuanto.system.structure import Position, Structure, parse_position
from cuanto.system.text import parse_real, parse_whole, quote, split_lines

_CHARGE = re.compile(r"\bcharge\s*=\s*(\S+)", re.IGNORECASE)
_MULTIPLICITY = re.compile(r"\bmult(?:iplicity)?\s*=\s*(\S+)", re.IGNORECASE)
_WITHOUT_EQUALS_SIGN = {
    "charge": re.compile(r"\bcharge\b\s*:?\s*([+-]?\d{1,2})\b", re.IGNORECASE),
    "mult": re.compile(r"\bmult(?:iplicity)?\b\s*:?\s*(\d{1,2})\b", re.IGNORECASE),
}
_OTHER_KEYS = {
    "charge": re.compile(
        r"\b(?:total_charge|net_charge|chrg|q)\s*=\s*[\"']?([+-]?\d{1,2})\b(?!\.)[\"']?", re.IGNORECASE
    ),
    "multiplicity": re.compile(r"\bspin(?:_multiplicity)?\s*=\s*[\"']?(\d{1,2})\b(?!\.)[\"']?", re.IGNORECASE),
}
_DEFAULTS = {"charge": ("0",), "multiplicity": ("0", "1")}
"""Values that other programs write for a neutral singlet."""
_PBC = re.compile(r"\bpbc\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)", re.IGNORECASE)
_LATTICE = re.compile(r"\blattice\s*=", re.IGNORECASE)
_ABOUT_SMILES = (
    "; if the file has SMILES, give each of them as smiles:CCO, many with --out TABLE.csv, in Python to "
    "cuanto.energies(['smiles:CCO', 'smiles:CC'])"
)
_TWO_NUMBERS = re.compile(r"\s*([+-]?\d)\s+([1-9])\s*")
_OTHER_LENGTHS = re.compile(
    r"\b(?:units?\s*=\s*[\"']?|positions\{)"
    r"(?:bohrs?|a\.?u\.?|atomic(?:[ _-]?units?)?|nm|pm|(?:nano|pico)met(?:er|re)s?)(?!\.?[\w/*^]|[ -]units?/)[\"'}]?",
    re.IGNORECASE,
)
"""A unit of length other than Angstrom, in the notation of i-PI as well; `unit=eV` is about something else."""
_LENGTH = r"(?:bohrs?|a\.?u\.?|atomic[ _-]units?|nm|pm|(?:nano|pico)met(?:er|re)s?)"
_END = r"(?!\.?[\w/*^]|[ -]units?/|-?\d|\s+magneton)"
_OF_LENGTHS = r"\s+of\s+(?:length|distance|coordinates|positions)"
_COORDINATES = r"\b(?:coordinates?|coords?|positions?|geometry|xyz)\b(?:\s+(?:are|is|given|all|units?))*"
_LENGTHS_IN_WORDS = re.compile(
    rf"\bunits?(?:{_OF_LENGTHS})?\s*(?:(?:[:=]|(?:are|is|in|of)\b)\s*)?[\"'(]?bohrs?{_END}|"
    rf"^[\s#]*(?:(?:all|coordinates?|length)\s+)?units?\s*(?::\s*|\s(?:are\s+|in\s+)?){_LENGTH}{_END}|"
    rf"{_COORDINATES}\s*[:=(\[]?\s*bohrs?{_END}|"
    rf"{_COORDINATES}\s+in\s+(?:units\s+of\s+)?{_LENGTH}{_END}",
    re.IGNORECASE,
)
"""Statements about coordinates, such as `units: Bohr` and `coordinates in a.u.`. Energies and dipole moments may be in
atomic units, so that these words without coordinates count only as the beginning of the comment."""
_DECIMAL_COMMA = re.compile(r"\d,\d")
_NAME = re.compile(r"\bname\s*=\s*(\S+)", re.IGNORECASE)
_CHARGE_AND_MULTIPLICITY = re.compile(r"[+-]?\d{1,9}\s+\d{1,9}")
_OTHER_VECTORS = re.compile(r"\b(forces|velocities|momenta|[fvp]_centroid)\{", re.IGNORECASE)
"""Vectors other than positions, in the notation of i-PI."""
_PROPERTIES = re.compile(r"\bProperties\s*=\s*(\S+)", re.IGNORECASE)


def parse_xyz(text: str, source: str = "xyz") -> Structure:
    """Parse one structure; `source` begins every message."""
    if is_atom_list(text):
        return _parse_atom_list(text, source)
    lines = split_lines(text)
    while lines and not lines[-1].strip():
        lines.pop()
    require(lines, f"{source} is empty: expected the number of atoms, a comment line and the atoms")
    natom = _atom_count(lines[0], source)
    comment = lines[1] if len(lines) > 1 else ""
    _check_length(lines, natom, source)
    _check_columns(comment, source)
    if not _PROPERTIES.search(comment):
        _check_one_atom_per_line(lines, source)
    name = _NAME.search(comment)
    rows = [_atom(line, f"{source}, line {number}") for number, line in enumerate(lines[2:], start=3)]
    return Structure(
        **_atoms(rows, source),
        masses=_masses(lines, rows, source),
        charge=_comment_number(_CHARGE, comment, "charge", source),
        multiplicity=_comment_number(_MULTIPLICITY, comment, "multiplicity", source),
        name=name[1] if name else "",
        angstrom=True,
        hint=_hint(comment, source),
        cell_hint=_cell_hint(comment, source),
    )


def is_atom_list(text: str) -> bool:
    """Whether a text begins with an atom, or with charge and multiplicity and then an atom."""
    lines = _atom_lines(text[:1000])
    if lines and _CHARGE_AND_MULTIPLICITY.fullmatch(lines[0]):
        del lines[0]
    tokens = lines[0].split() if lines else []
    return len(tokens) >= 4 and all(parse_real(token) is not None for token in tokens[1:4])


def _parse_atom_list(text: str, source: str) -> Structure:
    lines = _atom_lines(text)
    charge, multiplicity = None, None
    if _CHARGE_AND_MULTIPLICITY.fullmatch(lines[0]):
        charge, multiplicity = map(parse_whole, lines.pop(0).split())
    for number, line in enumerate(lines, start=1):
        if (fields := len(line.split())) > 4:
            points = ", and write 0.5, not 0,5" if _DECIMAL_COMMA.search(text) else ""
            raise InputError(
                f"{source}, atom {number}: {quote(line)} has {fields} fields, and an atom has four, 'element x y z': "
                f"separate atoms by ; or line ends{points}"
            )
    rows = [_atom(line, f"{source}, atom {number}") for number, line in enumerate(lines, start=1)]
    return Structure(**_atoms(rows, source), charge=charge, multiplicity=multiplicity, name="", angstrom=True)


def _atom_lines(text: str) -> list[str]:
    """Atoms separated by line ends or semicolons; commas count as spaces."""
    lines = split_lines(text.replace(";", "\n").replace(",", " "))
    return [line.strip() for line in lines if line.strip()]


def _atoms(rows: Sequence[tuple[str | None, Position]], source: str) -> dict[str, Any]:
    """Symbols, coordinates and numbers of dummy atoms, which have no symbol."""
    atoms = [(symbol, xyz) for symbol, xyz in rows if symbol is not None]
    require(atoms, f"{source}: has dummy atoms only, which have no nucleus: at least one atom must be real")
    return {
        "symbols": tuple(symbol for symbol, _ in atoms),
        "coordinates": tuple(xyz for _, xyz in atoms),
        "dummies": tuple(number for number, (symbol, _) in enumerate(rows, start=1) if symbol is None),
    }


def _atom_count(line: str, source: str) -> int:
    natom = parse_whole(line.strip())
    if natom is None:
        advice = _ABOUT_SMILES if source.lower().endswith((".csv", ".tsv", ".smi", ".smiles")) else ""
        raise InputError(f"{source}, line 1: expected the number of atoms, found {quote(line.strip())}{advice}")
    require(natom >= 1, f"{source}, line 1: gives {natom} as the number of atoms, at least one is needed")
    return natom


def _check_length(lines: list[str], natom: int, source: str) -> None:
    found = len(lines) - 2
    require(found >= natom, f"{source}: line 1 says {natom} atoms, but only {max(found, 0)} lines of atoms follow")
    if found == natom:
        return
    if parse_whole(next(line for line in lines[2 + natom :] if line.strip()).strip()) is not None:
        raise InputError(
            f"{source}: has more than one structure; give a file with one, or compute the energies of all of them with "
            "`cuanto energy FILE --out TABLE.csv`, in Python with cuanto.energies(FILE)"
        )
    raise InputError(f"{source}: line 1 says {natom} atoms, but {found} lines of atoms follow")


def _check_columns(comment: str, source: str) -> None:
    """Refuse other units, and extended XYZ whose first columns are not the positions: forces could be read in their
    place."""
    if vectors := _OTHER_VECTORS.search(comment):
        raise InputError(f"{source}, line 2: the columns are {vectors[1]}, not positions: give that of the positions")
    properties = _PROPERTIES.search(comment)
    if units := _OTHER_LENGTHS.search(comment) or _LENGTHS_IN_WORDS.search(comment):
        raise InputError(f"{source}, line 2: {units[0]!r}, but XYZ files are in Angstrom: convert the coordinates")
    if properties and not properties[1].strip("\"'").lower().startswith("species:s:1:pos:r:3"):
        raise InputError(f"{source}, line 2: columns must begin with species:S:1:pos:R:3, not {quote(properties[1])}")


def _check_one_atom_per_line(lines: list[str], source: str) -> None:
    """Refuse lines with a second atom; other columns, such as charges and forces, are allowed."""
    for number, line in enumerate(lines[2:], start=3):
        more = line.split()[4:8]
        if len(more) == 4 and more[0].capitalize() in ATOMIC_NUMBERS and None not in map(parse_real, more[1:]):
            raise InputError(f"{source}, line {number}: {quote(line.strip())} has two atoms: write one on each line")


def _masses(lines: list[str], rows: Sequence[tuple[str | None, Position]], source: str) -> tuple[float, ...]:
    """Masses of the atoms in extended XYZ with a column `masses`; empty if there is none."""
    properties = _PROPERTIES.search(lines[1])
    words = properties[1].strip("\"'").lower().split(":") if properties else []
    names, widths = words[::3], [parse_whole(width) or 0 for width in words[2::3]]
    if "masses" not in names[: len(widths)]:
        return ()
    column, found = sum(widths[: names.index("masses")]), []
    for number, (line, (symbol, _)) in enumerate(zip(lines[2:], rows, strict=True), start=3):
        word = next(iter(line.split()[column:]), "")
        if symbol is None:
            continue
        if (mass := parse_real(word)) is None:
            raise InputError(f"{source}, line {number}: mass {quote(word)} is not a number")
        found.append(mass)
    return tuple(found)


def _atom(line: str, where: str) -> tuple[str | None, Position]:
    """Symbol, None for a dummy atom, and position."""
    tokens = line.split()
    require(len(tokens) >= 4, f"{where}: expected 'element x y z', found {quote(line.strip())}")
    try:
        symbol = None if is_dummy(tokens[0]) else atom_symbol(tokens[0])
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return symbol, parse_position(tokens[1:4], where)


def _hint(comment: str, source: str) -> str:
    """A hint about a charge or multiplicity without an equals sign, such as `charge 1`, which is not read."""
    found = {key: match[1] for key, pattern in _WITHOUT_EQUALS_SIGN.items() if (match := pattern.search(comment))}
    if numbers := _TWO_NUMBERS.fullmatch(comment):
        found = {"charge": numbers[1], "mult": numbers[2]}
    if not found or found in ({"charge": "0"}, {"charge": "0", "mult": "1"}, {"mult": "1"}):
        return _hint_about_keys(comment, source)
    meant = " ".join(f"{key}={value}" for key, value in found.items())
    return f"hint: {source}, line 2: {quote(comment, 60)} is not read; write {meant} if it is meant"


def _hint_about_keys(comment: str, source: str) -> str:
    """A hint about other names of the charge and the multiplicity, such as `q=1` and `spin=4`."""
    known = {"charge": _CHARGE, "multiplicity": _MULTIPLICITY}
    found = {key: match for key, pattern in _OTHER_KEYS.items() if (match := pattern.search(comment))}
    found = {
        key: match
        for key, match in found.items()
        if match[1] not in _DEFAULTS[key] and known[key].search(comment) is None
    }
    if not found:
        return ""
    given = " ".join(match[0] for match in found.values())
    meant = " ".join(f"{key}={match[1]}" for key, match in found.items())
    which = " (the multiplicity is 2S + 1)" if "multiplicity" in found else ""
    return f"hint: {source}, line 2: {quote(given, 60)} is not read; write {meant} if it is meant{which}"


def _cell_hint(comment: str, source: str) -> str:
    """A hint about a cell that is left out; periodic boundary conditions are refused."""
    if (pbc := _PBC.search(comment)) is None:
        what = f"hint: {source}, line 2: the lattice is not read: cuanto computes molecules, not periodic systems"
        return what if _LATTICE.search(comment) else ""
    if re.search("[t1]", pbc[1], re.IGNORECASE):
        raise InputError(
            f"{source}, line 2: {quote(pbc[0])}, but cuanto computes molecules, not periodic systems: "
            'write pbc="F F F" if it is a molecule'
        )
    return ""


def _comment_number(pattern: re.Pattern[str], comment: str, what: str, source: str) -> int | None:
    found = {text.strip("\"',;") for text in pattern.findall(comment)}
    if not found:
        return None
    require(len(found) <= 1, f"{source}, line 2: gives more than one {what}")
    text = found.pop()
    value = parse_whole(text)
    if value is None:
        raise InputError(f"{source}, line 2: {what} {quote(text)} is not a whole number")
    return value
