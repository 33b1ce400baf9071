"""Draw the terminal output of a calculation for the documentation: docs/images/energy.svg.

    python tools/screenshots.py [FOLDER]

The picture shows what `cuanto energy` prints on a terminal, produced by the same functions.
"""

from __future__ import annotations

import argparse
import io
import re
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import cuanto
from cuanto.cli.show import IterationTable, print_heading, print_summary

ROOT = Path(__file__).parents[1]
METHOD, BASIS = "b3lyp", "def2-svp"
WIDTH = 100


class Paper(Console):
    """A console that wraps long lines, as a terminal does, instead of cutting them off."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{**options, "soft_wrap": False})


def picture() -> str:
    """Make an SVG that loads nothing from a network; it uses the reader's fonts."""
    with as_file(files("cuanto") / "data" / "molecules" / "water.xyz") as path:
        molecule = cuanto.Molecule.from_xyz(path)
    console = Paper(record=True, width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(Text(f"$ cuanto energy water.xyz -m {METHOD} -b {BASIS}", style="bold cyan"))
    table = IterationTable(console, quiet=True)  # print rows; a live table would be recorded many times
    result = cuanto.energy(molecule, METHOD, BASIS, on_iteration=table.add)
    functions = f"/{BASIS}, {len(result.orbital_energies[0])} functions, spherical"
    print_heading(console, molecule, METHOD, functions)
    console.print(table._table(table._rows))
    print_summary(console, result)
    svg = console.export_svg(title="cuanto")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "energy.svg"
    path.write_text(picture())
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the terminal output shown in the documentation.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    main(parser.parse_args().folder)
