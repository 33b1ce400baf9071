"""The molecule of a Molden file: its atoms and, from the occupations of its orbitals, charge and multiplicity."""

import re
from collections.abc import Iterator

from cuanto.errors import InputError, require
from cuanto.system.elements import ATOMIC_NUMBERS, symbol_of
from cuanto.system.nuclei import Nuclei, atom_symbol, ghost_of
from cuanto.system.structure import Position, Structure, parse_position
from cuanto.system.text import parse_finite, parse_whole, quote, split_lines

MOLDEN = "[molden format]"
_SECTION = re.compile(r"\s*\[([^\]]+)\]\s*(.*)")
_ENTRY = re.compile(r"\s*(spin|occup)\s*=\s*(\S+)", re.IGNORECASE)


def parse_molden(text: str, source: str = "molden") -> Structure:
    """Read the molecule; `source` begins every message."""
    sections = list(_sections(text))
    atoms = [(rest, lines) for name, rest, lines in sections if name == "atoms"]
    require(atoms, f"{source}: a Molden file without a section [Atoms]")
    unit, lines = atoms[0]
    if unit.strip("() ").lower() not in ("au", "angs"):
        raise InputError(f"{source}: unit {quote(unit)} of [Atoms]; write [Atoms] AU or [Atoms] Angs")
    cores = _core_electrons([line for name, _, lines in sections if name == "core" for line in lines], source)
    rows = [line for line in lines if line.strip()]
    found = [_atom(line, cores.get(a, 0), source) for a, line in enumerate(rows, 1)]
    symbols = tuple(symbol for symbol, _ in found)
    orbitals = [line for name, _, lines in sections if name == "mo" for line in lines]
    charge, multiplicity = _electrons(orbitals, int(Nuclei.of(symbols).charges.sum()) - sum(cores.values()))
    if sum(cores.values()) % 2:  # an unpaired electron belongs to the cores
        multiplicity = None
    return Structure(
        symbols=symbols,
        coordinates=tuple(position for _, position in found),
        charge=charge,
        multiplicity=multiplicity,
        name="",
        angstrom=unit.strip("() ").lower() == "angs",
    )


def _sections(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Sections: name in lower case, rest of its line, following lines."""
    name, rest, lines = "", "", list[str]()
    for line in split_lines(text):
        head = _SECTION.fullmatch(line)
        if head is None:
            lines.append(line)
            continue
        yield name, rest, lines
        name, rest, lines = head[1].strip().lower(), head[2], []
    yield name, rest, lines


def _core_electrons(lines: list[str], source: str) -> dict[int, int]:
    """Electrons that core potentials replace, by the number of the atom: lines '1 : 60'."""
    counts = {}
    for line in filter(None, map(str.strip, lines)):
        atom, count = (parse_whole(part.strip()) for part in (*line.split(":"), "", "")[:2])
        if atom is None or count is None or line.count(":") != 1:
            raise InputError(f"{source}: expected 'atom : electrons' in [Core], found {quote(line)}")
        counts[atom] = count
    return counts


def _atom(line: str, core: int, source: str) -> tuple[str, Position]:
    """Atom of a line 'label number atomic-number x y z'; atomic number 0 means a ghost of the label's element.

    Some programs subtract the `core` electrons from the atomic number; the label then tells the element.
    """
    tokens = line.split()
    require(len(tokens) >= 6, f"{source}: expected 'element number atomic-number x y z', found {quote(line.strip())}")
    try:
        symbol = ghost_of(atom_symbol(tokens[0])) if tokens[2] == "0" else symbol_of(tokens[2])
        if core and ATOMIC_NUMBERS.get(tokens[0].capitalize()) == ATOMIC_NUMBERS[symbol] + core:
            symbol = tokens[0].capitalize()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return symbol, parse_position(tokens[3:6], source)


def _electrons(lines: list[str], protons: int) -> tuple[int | None, int | None]:
    """Charge and multiplicity from the occupations; None if there are no orbitals or an occupation is fractional."""
    spin, sums, single = "alpha", {"alpha": 0.0, "beta": 0.0}, 0
    spins = set()
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is None:
            continue
        if entry[1].lower() == "spin":
            spin = entry[2].lower()
            spins.add(spin)
            continue
        occupation = parse_finite(entry[2])
        if occupation is None or spin not in sums or abs(occupation - round(occupation)) > 1e-6:
            return None, None
        sums[spin] += occupation
        single += round(occupation) == 1
    electrons = round(sum(sums.values()))
    if electrons == 0:
        return None, None
    unpaired = round(sums["alpha"] - sums["beta"]) if "beta" in spins else single
    return protons - electrons, 1 + abs(unpaired)
