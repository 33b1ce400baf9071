"""The most important values of a result as rows and lines, for terminals, Python and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.units import HARTREE_IN_EV

if TYPE_CHECKING:
    from cuanto.methods.result import Result

LAST_ENERGY = "last energy, NOT converged"
MAX_ATOMS = 200
"""Largest number of atoms whose charges are listed; files have all of them."""
ON_A_LINE = 6
"""Atoms on a line of charges, if there are several lines."""

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
    for name, levels in (("highest occupied orbital", result.homo), ("lowest empty orbital", result.lumo)):
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
    there = isfinite(level)
    return name, f"{level:.6f}" if there else "none", f"Hartree ({level * HARTREE_IN_EV:.3f} eV)" if there else ""


def charge_lines(result: Result) -> Iterator[str]:
    """Charges and, for open shells, spin populations of all atoms, labelled by their definition."""
    yield from _by_atom(f"{result.charge_kind} charges / e", result, result.charges)
    if len(result.occupations) == 2:
        try:
            populations = result.spin_populations
        except InputError:  # a file that does not have them
            return
        yield from _by_atom(f"{result.charge_kind} spin populations", result, populations)


def fitting_line(result: Result) -> str:
    """What was fitted, and in which set; empty for methods without a basis."""
    fitting, auxiliary = getattr(result, "fitting", ""), getattr(result, "auxbasis", None)
    if fitting in ("", "none") or auxiliary is None:
        return ""
    return f"{'J' if fitting == 'j' else 'J and K'} fitted in {auxiliary.name}"


def _by_atom(title: str, result: Result, values: Array) -> Iterator[str]:
    symbols = result.molecule.symbols
    if len(symbols) > MAX_ATOMS:
        low, high = min(values), max(values)
        yield f"{title}: from {low:+.3f} to {high:+.3f}; the JSON file has those of all {len(symbols)} atoms"
        return
    if len(symbols) <= ON_A_LINE:
        yield f"{title}: " + ", ".join(f"{symbol} {x:+z.3f}" for symbol, x in zip(symbols, values, strict=True))
        return
    yield f"{title}:"
    cells = [f"{k:5d} {symbol:<4s}{x:+z7.3f}" for k, (symbol, x) in enumerate(zip(symbols, values, strict=True), 1)]
    for k in range(0, len(cells), ON_A_LINE):
        yield "".join(cells[k : k + ON_A_LINE])


def summary_text(result: Result) -> str:
    """A table with a heading, the rows, and the charges."""
    rows = list(_rows_of_file(result))
    names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
    table = [f" {name:<{names}}  {value:>{values}}  {unit}".rstrip() for name, value, unit in rows]
    return "\n".join([_heading(result), *table])


def summary_html(result: Result) -> str:
    """The table in HTML."""
    cells = "".join(
        f"<tr><td style='text-align:left'>{escape(name)}</td><td style='text-align:right'>{escape(value)}</td>"
        f"<td style='text-align:left'>{escape(unit)}</td></tr>"
        for name, value, unit in _rows_of_file(result)
    )
    colour = "" if result.converged else " style='color:#c00'"
    return f"<table><caption{colour}>{escape(_heading(result))}</caption>{cells}</table>"


def _heading(result: Result) -> str:
    verdict = "converged" if result.converged else "NOT converged"
    many = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    return f"{result.molecule.name or 'molecule'}, {result.level_of_theory}, {verdict} in {many}"


def _rows_of_file(result: Result) -> Iterator[Row]:
    """The rows; those of a result that was read from a file end where the file has no more."""
    try:
        yield from summary_rows(result)
    except InputError:
        return
