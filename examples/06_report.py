"""An HTML report of a calculation (molecule, frontier orbitals, convergence), and cube files.

    python examples/06_report.py [MOLECULE.xyz [FOLDER]]

The report works without a network. On the command line: `cuanto energy benzene.xyz --json benzene.json`, then
`cuanto report benzene.json` and `cuanto cube benzene.json --orbital lumo`.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import cuanto
from cuanto.interfaces.cube import write_orbital
from cuanto.interfaces.wavefunction import wavefunction_of
from cuanto.properties.volume import Box
from cuanto.report import write_report


def main(xyz: str | None = None, folder: str | None = None) -> tuple[Path, Path]:
    """Paths of the report and of the cube file of the HOMO."""
    with as_file(files("cuanto") / "data" / "molecules" / "benzene.xyz") as shipped:
        molecule = cuanto.Molecule.from_xyz(xyz or shipped)
    result = cuanto.energy(molecule, "hf", "sto-3g")
    verdict = "converged" if result.converged else "NOT converged"
    print(f"{molecule.name}: {result.energy:.8f} Hartree, {verdict} in {result.iterations} iterations")

    output = Path(folder or tempfile.mkdtemp(prefix="cuanto_report_"))
    page, cube = output / "report.html", output / "homo.cube"
    write_report(page, result)
    print(f"open {page} in a browser ({page.stat().st_size / 1024:.0f} KiB)")

    box = Box.around(molecule.R_ax, spacing=0.4)  # Bohr
    write_orbital(cube, molecule, wavefunction_of(result), "homo", box=box)
    print(f"open {cube} in Avogadro, Jmol or VMD ({cube.stat().st_size / 1024:.0f} KiB)")
    return page, cube


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An HTML report and a cube file.")
    parser.add_argument("xyz", nargs="?", metavar="MOLECULE.xyz", help="geometry in Angstrom (default: benzene)")
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    try:
        main(options.xyz, options.folder)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
