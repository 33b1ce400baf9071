"""The most important values of a result as rows and lines, for terminals, Python and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

from numpy.linalg import LinAlgError

from cuanto.arrays import Array
from cuanto.basis.auxiliary import AUTOMATIC
from cuanto.errors import REMARKS, CuantoError, InputError
from cuanto.units import HARTREE_IN_EV, QUADRUPOLE_IN_DEBYE_ANGSTROM
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.methods.result import Result

LAST_ENERGY = "last energy, NOT converged"
MAX_ATOMS = 200
"""Largest number of atoms whose charges are listed; files have all of them."""
ATOM_WIDTH, COLUMN_WIDTH = 12, 11
"""Characters of the name of an atom, and of a column of charges."""
ON_A_LINE = 6
"""Bond orders on a line."""
MIN_BOND_ORDER = 0.3
"""Smaller bond orders are not printed."""
LARGE_FITTING_ERROR = 3e-3
"""Estimated errors of fitting of which to warn, Hartree per atom; the largest actual one of the sets chosen by default
is 8e-5 in benchmarks/error_estimates.py."""

Row = tuple[str, str, str]


def summary_rows(result: Result, gradient: bool = False) -> Iterator[Row]:
    """Name, value and unit of energies, orbitals, dipole moment and spin; with the norm of a `gradient`."""
    for name, value in result.energies.items():
        yield name, f"{value:.9f}", "Hartree"
    yield "energy" if result.converged else LAST_ENERGY, f"{result.energy:.9f}", "Hartree"
    if errors := result.errors:
        parts = ", ".join(f"{name} {value:+.0e}" for name, value in errors.items())
        yield "estimated error", f"{result.error:.1e}", f"Hartree ({parts})"
    heat = getattr(result, "heat_of_formation", None)
    if heat is not None:
        yield "heat of formation", f"{heat:.6f}", "kcal/mol"
    for name, levels in (("highest occupied orbital", result.homo), ("lowest unoccupied orbital", result.lumo)):
        spins = (", alpha", ", beta") if len(levels) == 2 else ("",)
        for spin, level in zip(spins, levels, strict=True):
            yield _level(name + spin, level)
    if isfinite(result.gap):
        yield _level("gap", result.gap)
    dipole, about = result.dipole_debye, " about the centre of mass" if result.molecule.charge else ""
    vector = ", ".join(f"{x:z.6f}" for x in dipole)
    yield "dipole moment", f"{(dipole @ dipole) ** 0.5:z.6f}", f"Debye ({vector}){about}"
    if gradient:
        yield "norm of the gradient", f"{(result.gradient**2).sum() ** 0.5:.6f}", "Hartree/Bohr"
    if len(result.occupations) == 2:
        yield "<S^2>", f"{result.s_squared:z.6f}", f"(ideal {result.ideal_s_squared:.6f})"


def _level(name: str, level: float) -> Row:
    finite = isfinite(level)
    return name, f"{level:.6f}" if finite else "none", f"Hartree ({level * HARTREE_IN_EV:.3f} eV)" if finite else ""


def property_lines(result: Result) -> Iterator[str]:
    """The quadrupole moment, charges and bond orders, as far as the result has them."""
    yield from moment_lines(result)
    yield from charge_lines(result)
    yield from bond_lines(result)


def property_or_none(result: Result, name: str) -> Any:
    """A property of the result; None if a file lacks it, or if it cannot be computed from what the file has."""
    try:
        return getattr(result, name, None)
    except (CuantoError, MemoryError, LinAlgError):
        return None


def moment_lines(result: Result) -> Iterator[str]:
    """The traceless quadrupole moment."""
    moment_xy = property_or_none(result, "quadrupole")
    if moment_xy is not None:
        Q_xy = moment_xy * QUADRUPOLE_IN_DEBYE_ANGSTROM
        places = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
        words = ", ".join(f"{name} {Q_xy[place]:z.4f}" for name, place in places.items())
        yield f"quadrupole moment / (Debye Angstrom): {words} (traceless, about the centre of mass)"


def charge_columns(result: Result) -> dict[str, Array]:
    """Charges of the atoms by the name of their definition, and spin populations of open shells."""
    found = {result.charge_kind: property_or_none(result, "charges")}
    names = {"Loewdin": "loewdin_charges", "Hirshfeld": "hirshfeld_charges", "CM5": "cm5_charges"}
    for kind, name in names.items():
        found[kind] = property_or_none(result, name)
    occupations = property_or_none(result, "occupations")
    if occupations is not None and len(occupations) == 2:
        found["spin"] = property_or_none(result, "spin_populations")
    return {kind: values for kind, values in found.items() if values is not None}


def charge_lines(result: Result) -> Iterator[str]:
    """A table of the charges and, for open shells, spin populations of all atoms."""
    columns, symbols = charge_columns(result), result.molecule.symbols
    spin = f" and {result.charge_kind} spin populations" if "spin" in columns else ""
    if len(symbols) > MAX_ATOMS:
        for kind, values in columns.items():
            what = f"{result.charge_kind} spin populations" if kind == "spin" else f"{kind} charges / e"
            span = f"from {min(values):+.3f} to {max(values):+.3f}"
            yield f"{what}: {span}; the JSON file has those of all {len(symbols)} atoms"
        return
    if columns:
        yield f"charges / e{spin}:"
        yield " " * ATOM_WIDTH + "".join(f"{kind:>{COLUMN_WIDTH}}" for kind in columns)
    for a, (symbol, *row) in enumerate(zip(symbols, *columns.values(), strict=True), 1):
        cells = "".join(f"{value:+z{COLUMN_WIDTH}.3f}" for value in row)
        yield f"{a:5d} {symbol:<{ATOM_WIDTH - 6}}{cells}"


def bond_lines(result: Result) -> Iterator[str]:
    """The larger bond orders, a few on a line."""
    B_ab, symbols = property_or_none(result, "bond_orders"), result.molecule.symbols
    if B_ab is None or not 1 < len(symbols) <= MAX_ATOMS:
        return
    pairs = [(a, b) for a in range(len(symbols)) for b in range(a + 1, len(symbols)) if B_ab[a, b] >= MIN_BOND_ORDER]
    if pairs:
        yield f"{result.bond_kind} bond orders of at least {MIN_BOND_ORDER:g}:"
    cells = [f"{symbols[a]}{a + 1}-{symbols[b]}{b + 1} {B_ab[a, b]:.2f}" for a, b in pairs]
    for k in range(0, len(cells), ON_A_LINE):
        yield "   " + "".join(f"{cell:<16}" for cell in cells[k : k + ON_A_LINE]).rstrip()


def fitting_line(result: Result) -> str:
    """What was fitted, and in which set; empty for methods without a basis."""
    fitting, auxiliary = getattr(result, "fitting", ""), getattr(result, "auxbasis", None)
    if fitting in ("", "none") or auxiliary is None:
        return ""
    return f"{'J' if fitting == 'j' else 'J and K'} fitted in {auxiliary.name}"


def error_warnings(result: Result) -> Iterator[str]:
    """A warning if the estimated error of fitting is large."""
    error = abs(result.errors.get("fitting", 0.0))
    if error >= LARGE_FITTING_ERROR * result.molecule.natom:
        other = "" if result.keywords.get("auxbasis") == AUTOMATIC else f"auxbasis={AUTOMATIC!r} or "
        yield f"WARNING: the estimated error of fitting is {error:.0e} Hartree: use {other}fitting='none'"


def summary_text(result: Result) -> str:
    """A table with a heading and the rows, then hints and warnings."""
    rows = list(_available_rows(result))
    names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
    table = [f" {name:<{names}}  {value:>{values}}  {unit}".rstrip() for name, value, unit in rows]
    return "\n".join([_heading(result), *table, *(f" {note}" for note in _remarks(result))])


def summary_html(result: Result) -> str:
    """The table in HTML, with hints and warnings below it."""
    cells = "".join(
        f"<tr><td style='text-align:left'>{escape(name)}</td><td style='text-align:right'>{escape(value)}</td>"
        f"<td style='text-align:left'>{escape(unit)}</td></tr>"
        for name, value, unit in _available_rows(result)
    )
    colour = "" if result.converged else " style='color:#c00'"
    remarks = "".join(f"<p>{escape(note)}</p>" for note in _remarks(result))
    return f"<table><caption{colour}>{escape(_heading(result))}</caption>{cells}</table>{remarks}"


def _heading(result: Result) -> str:
    verdict = "converged" if result.converged else "NOT converged"
    iterations = count(result.iterations, "iteration")
    return f"{result.molecule.name or 'molecule'}, {result.level_of_theory}, {verdict} in {iterations}"


def _remarks(result: Result) -> list[str]:
    """Notes that ask for attention."""
    return [note for note in (*result.notes, *error_warnings(result)) if note.startswith(REMARKS)]


def _available_rows(result: Result) -> Iterator[Row]:
    """The rows of `summary_rows` up to the first value that a result read from a file lacks."""
    try:
        yield from summary_rows(result)
    except InputError:
        return
