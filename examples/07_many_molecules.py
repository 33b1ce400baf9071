"""Many molecules in one table; an interrupted run can be continued, and failures do not stop the rest.

    python examples/07_many_molecules.py [COUNT [TABLE.csv]]

On the command line: `cuanto energy conformers/*.xyz -m pm6 --out energies.parquet`.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import cuanto


def displaced_molecules(count: int) -> list[cuanto.Molecule]:
    """Benzene with random displacements of the atoms, as in training data for a potential."""
    with as_file(files("cuanto") / "data" / "molecules" / "benzene.xyz") as shipped:
        benzene = cuanto.Molecule.from_xyz(shipped)
    rng = np.random.default_rng(7)
    moved = [benzene.R_ax + rng.normal(scale=0.05, size=benzene.R_ax.shape) for _ in range(count)]
    return [cuanto.Molecule(benzene.symbols, R_ax, name=f"benzene {k}") for k, R_ax in enumerate(moved, start=1)]


def main(count: int = 20, table: str | None = None) -> list[float]:
    """PM6 energies and forces; one molecule has an element without PM6 parameters."""
    out = Path(table or Path(tempfile.mkdtemp(prefix="cuanto_many_")) / "energies.csv")
    molecules = [*displaced_molecules(count), cuanto.Molecule(["U"], [[0, 0, 0]], name="uranium")]
    begin = time.perf_counter()
    rows = cuanto.energies(molecules, "pm6", gradient=True, out=out)
    seconds = time.perf_counter() - begin

    good = [row for row in rows if row.converged]
    spread = np.std([row.energy for row in good])
    print(f"{len(good)} of {len(rows)} converged in {seconds:.1f} s, {len(rows) / seconds:.0f} molecules per second")
    print(f"energies: {np.mean([row.energy for row in good]):.6f} +- {spread:.6f} Hartree")
    print("failed:", *(f"{row.name}: {row.error}" for row in rows if row.error))
    with out.open(newline="") as file:
        print(f"{out} has {sum(1 for _ in csv.DictReader(file))} rows")
    return [row.energy for row in good]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Energies and forces of many molecules.")
    parser.add_argument("count", nargs="?", type=int, default=20, metavar="COUNT", help="molecules (default: 20)")
    parser.add_argument("table", nargs="?", metavar="TABLE", help=".csv (default: in a temporary folder)")
    options = parser.parse_args()
    try:
        main(options.count, options.table)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
