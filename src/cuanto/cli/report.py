"""``cuanto report`` and ``cuanto cube``: a result as an HTML page, and cube files for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cuanto.cli.arguments import Verbose, examples
from cuanto.cli.lines import print_text
from cuanto.errors import InputError, require
from cuanto.files import require_writable

EXAMPLES = examples(
    "cuanto energy water.xyz -m b3lyp --json water.json && cuanto report water.json",
    "cuanto report water.json --out talk/water.html",
)
CUBE_EXAMPLES = examples(
    "cuanto cube water.json --orbital lumo",
    "cuanto cube water.json --quantity density --out rho.cube",
    "cuanto cube radical.json --quantity spin",
    "cuanto cube water.json --quantity esp --spacing 0.3",
)
QUANTITY_HELP = (
    "homo, lumo, homo-1, lumo+2, a number from 1; density, spin (alpha minus beta density) or esp (electrostatic "
    "potential)."
)
SPACING = 0.2
"""Distance of the points of a cube file, Bohr."""
ResultFile = Annotated[
    Path,
    typer.Argument(
        metavar="RESULT", help="JSON (QCSchema) of an energy, optimisation or frequencies, or a checkpoint (HDF5)."
    ),
]


def report(
    result: ResultFile,
    out: Annotated[Path | None, typer.Option("--out", help="Path of the page. \\[default: beside the result]")] = None,
    verbose: Verbose = False,
) -> None:
    """Write an HTML report about a result: molecule, orbitals, convergence and timings."""
    path = out if out is not None else _beside(result, ".html")
    require_writable(path, result)
    from cuanto.report import write_report

    write_report(path, result)
    text = f"wrote {path} ({path.stat().st_size / 1024:.0f} KiB); open it in a browser"
    print_text(Console(highlight=False), text)


def _beside(result: Path, ending: str) -> Path:
    """A file in the folder of the result, named after it."""
    require(result.name, f"'{result}' is a folder: give the file of a result")
    return result.with_name(f"{result.stem}{ending}")


def cube(
    result: ResultFile,
    orbital: Annotated[str, typer.Option("--orbital", "--quantity", help=QUANTITY_HELP)] = "homo",
    beta: Annotated[bool, typer.Option("--beta", help="Use the beta orbitals.")] = False,
    spacing: Annotated[
        float | None, typer.Option(help="Spacing of the points, Bohr. \\[default: 0.2; for esp 0.4]")
    ] = None,
    margin: Annotated[float, typer.Option(help="Margin around the atoms, Bohr.")] = 5.0,
    out: Annotated[Path | None, typer.Option("--out", help="Path of the file. \\[default: beside the result]")] = None,
    verbose: Verbose = False,
) -> None:
    """Write an orbital, a density or the electrostatic potential of a result as a cube file, for Avogadro, Jmol, VMD
    and others."""
    from cuanto.interfaces import cube as files
    from cuanto.interfaces.keywords import errors_about
    from cuanto.interfaces.read import read
    from cuanto.interfaces.sources import safe_label
    from cuanto.interfaces.wavefunction import wavefunction_of
    from cuanto.properties.volume import Box

    name = orbital.strip().lower()
    writers = {"density": files.write_density, "spin": files.write_spin_density, "esp": files.write_potential}
    if beta and name in writers:
        raise InputError(f"{name} is computed from all electrons: leave out --beta, or choose an orbital")
    label = safe_label(name + "_beta" * beta)
    path = out if out is not None else _beside(result, f"_{label}.cube")
    require_writable(path, result)
    with errors_about(str(result)):
        computed = read(result)
        wave = wavefunction_of(computed)
    if spacing is None:
        spacing = files.POTENTIAL_SPACING if name == "esp" else SPACING
    box = Box.around(computed.molecule.R_ax, spacing, margin)
    if name in writers:
        writers[name](path, computed.molecule, wave, box)
    elif files.is_orbital(name):
        files.write_orbital(path, computed.molecule, wave, name, int(beta), box)
    else:
        raise InputError(f"--quantity {orbital[:40]!r}: give {QUANTITY_HELP.rstrip('.')}")
    points = " x ".join(str(n) for n in box.shape)
    text = f"wrote {path} ({points} points, {path.stat().st_size / 2**20:.1f} MiB)"
    print_text(Console(highlight=False), text)
