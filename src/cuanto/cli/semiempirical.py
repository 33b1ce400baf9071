"""``cuanto energy -m pm6``: what differs for methods without a basis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.methods import SemiempiricalResult
    from cuanto.system import Molecule


def compute(
    console: Console, molecule: Molecule, method: str, settings: dict[str, Any], table: Any
) -> SemiempiricalResult:
    """The calculation, with its iterations shown in `table`."""
    from cuanto.methods.semiempirical import Semiempirical
    from cuanto.methods.semiempirical import semiempirical_energy as energy

    Semiempirical(molecule, method.lower(), settings["backend"])  # says what is wrong before anything is shown
    console.print(f"{molecule.name}: {molecule.natom} atoms, {method}")
    with table:
        result = energy(molecule, method, on_iteration=table.add, **settings)
    return result


def report(console: Console, result: SemiempiricalResult, json: Path | None) -> None:
    """Heat of formation, energies, frontier orbitals, dipole, charges; and the file that was asked for."""
    from rich.table import Table

    if json is not None:
        import json as encoder

        from cuanto.interfaces.files import write_text

        write_text(json, encoder.dumps(result.to_qcschema(), indent=1, allow_nan=False) + "\n")
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    for name, value in result.energies.items():
        table.add_row(name, f"{value:.9f}")
    failed = "" if result.converged else ", NOT converged"
    table.add_row(f"energy / Hartree{failed}", f"{result.energy:.9f}")
    table.add_row(f"heat of formation / (kcal/mol){failed}", f"{result.heat_of_formation:.6f}", style="bold")
    levels = zip(result.homo, result.lumo, strict=True)
    table.add_row("highest occupied, lowest empty", "; ".join(f"{a:.6f}, {b:.6f}" for a, b in levels))
    dipole = result.dipole_debye
    table.add_row("dipole / Debye", f"{(dipole @ dipole) ** 0.5:.6f} ({', '.join(f'{x:.6f}' for x in dipole)})")
    if len(result.occupations) == 2:
        table.add_row("<S^2>", f"{result.s_squared:.6f}")
    table.add_row("seconds", ", ".join(f"{name} {t:.2f}" for name, t in result.timings.seconds.items() if t >= 0.005))
    console.print(table)
    for note in result.notes:
        console.print(note, soft_wrap=True)
    verdict = "converged" if result.converged else "NOT converged"
    console.print(f"{verdict} in {result.iterations} iterations")
