"""Printed vibrations and thermochemistry; every number has its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cuanto.cli.lines import print_error, print_notes, print_remarks, print_text
from cuanto.cli.show import make_table, print_table
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.motion.thermochemistry import Thermochemistry
    from cuanto.motion.vibrations import Vibrations

WARNING = "WARNING"


def print_vibrations(console: Console, vibrations: Vibrations, quiet: bool, label: str) -> None:
    """Print modes, thermochemistry, notes, and warnings on standard error."""
    if quiet:
        _print_line(console, vibrations, label)
    else:
        _print_modes(console, vibrations)
        _print_thermochemistry(console, vibrations.thermochemistry, vibrations.symmetry[0])
    for note in vibrations.notes:
        if note.startswith(WARNING):
            print_error(f"{label}: {note}")
        elif not quiet:
            print_notes(console, [note])
    if vibrations.result is not None:
        print_remarks(label, vibrations.result.notes)


def _print_line(console: Console, vibrations: Vibrations, label: str) -> None:
    thermochemistry, imaginary = vibrations.thermochemistry, len(vibrations.imaginary)
    text = f"{label} {vibrations.energy:.9f} Hartree, zero-point energy {thermochemistry.zero_point_energy:.6f}, "
    text += f"Gibbs energy {thermochemistry.gibbs_energy:.6f}"
    text += f", {count(imaginary, 'imaginary mode')}" if imaginary else ""
    print_text(console, text)


def _print_modes(console: Console, vibrations: Vibrations) -> None:
    columns = {
        "wavenumber / cm^-1": [f"{nu:.2f}" for nu in vibrations.wavenumbers],
        "intensity / (km/mol)": [f"{intensity:.2f}" for intensity in vibrations.intensities],
        "reduced mass / u": [f"{mass:.4f}" for mass in vibrations.reduced_masses],
    }
    if (scale := vibrations.conditions.scale) != 1.0:
        columns[f"times {scale:g}"] = [f"{nu:.2f}" for nu in vibrations.scaled_wavenumbers]
    heads = ("mode", *columns)
    rows = [(str(k), *row) for k, row in enumerate(zip(*columns.values(), strict=True), start=1)]
    if not rows:
        console.print(" no vibrations")
        return
    if console.is_terminal:
        table = make_table(heads, right=range(len(heads)))
        for row in rows:
            table.add_row(*row, style="bold red" if row[1].startswith("-") else "")
        print_table(console, table)
        return
    for row in (heads, *rows):
        console.print("".join(cell.rjust(len(head) + 2) for cell, head in zip(row, heads, strict=True)), markup=False)


def _print_thermochemistry(console: Console, thermochemistry: Thermochemistry, group: str) -> None:
    from cuanto.units import HARTREE_IN_KJ_PER_MOL

    conditions = thermochemistry.conditions
    scale = "" if conditions.scale == 1.0 else f", wavenumbers scaled by {conditions.scale:g}"
    head = f"thermochemistry at {conditions.temperature:g} K and {conditions.pressure:g} atm ({conditions.entropy}"
    line = f"{head}, {group}, symmetry number {conditions.symmetry_number}, degeneracy {conditions.degeneracy}{scale})"
    print_text(console, f" {line}", "bold")
    for name, value, thermal in thermochemistry.rows():
        more = "" if thermal is None else f"{thermal * HARTREE_IN_KJ_PER_MOL:12.3f} kJ/mol"
        print_text(console, f" {name:<30}{value:18.9f}  Hartree{more}")
    for name, value in thermochemistry.molar_rows():
        print_text(console, f" {name:<30}{value:18.3f}  J/(mol K)")
    print_text(console, " kJ/mol: without the electronic energy")
