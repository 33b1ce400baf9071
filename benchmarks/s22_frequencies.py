"""Minima of the S22 dimers: frequencies by B3LYP-D3BJ/def2-SVP, following imaginary modes until none is left.

    python benchmarks/s22_frequencies.py --only Ammonia_dimer Water_dimer
    python benchmarks/s22_frequencies.py --backend cuda --json benchmarks/results/s22_frequencies_h200.json

Geometries are ASE's (P. Jurecka et al., doi:10.1039/b600027d), optimised first. Dimers that are already in the record
are not computed again, and interrupted ones continue from journals in the folder of `--work`. Needs ASE, geomeTRIC and
dftd3. A dimer with an imaginary mode left ends in exit status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import machine, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.units import BOHR_IN_ANGSTROM

METHOD, BASIS = "b3lyp-d3bj", "def2-svp"


def dimers() -> dict[str, cuanto.Molecule]:
    """The dimers by name, the smallest first."""
    from ase.collections import s22

    found = {name: s22[name] for name in s22.names}
    order = sorted(found, key=lambda name: (len(found[name]), name))
    return {
        name: cuanto.Molecule(found[name].get_chemical_symbols(), found[name].positions / BOHR_IN_ANGSTROM, name=name)
        for name in order
    }


def run_dimer(molecule: cuanto.Molecule, options: argparse.Namespace) -> dict[str, Any]:
    """Optimise, compute frequencies and follow imaginary modes."""
    settings: dict[str, Any] = {"backend": options.backend, "grid": options.grid}
    settings |= {} if options.memory is None else {"max_memory": options.memory * 2**30}
    work, begin = Path(options.work), time.perf_counter()
    journal = work / f"{molecule.name}.opt.journal"
    start = cuanto.optimize(molecule, METHOD, BASIS, convergence="tight", journal=journal, **settings)
    path = work / f"{molecule.name}.freq.journal"
    found = cuanto.frequencies(
        start.molecule, METHOD, BASIS, follow_imaginary=True, journal=path, workers=options.workers, **settings
    )
    row: dict[str, Any] = {"dimer": molecule.name, "atoms": molecule.natom, "optimised": start.converged}
    row |= {"steps": start.iterations, "imaginary": len(found.imaginary), "point_group": found.symmetry[0]}
    row |= {"wavenumbers": found.wavenumbers.round(2).tolist(), "energy": found.energy}
    row |= {"gibbs_energy": found.thermochemistry.gibbs_energy, "notes": list(found.notes)}
    row["seconds"] = round(time.perf_counter() - begin, 1)
    lowest = found.wavenumbers[0]
    print(
        f"{molecule.name:32s} {row['imaginary']} imaginary, lowest {lowest:.1f} cm^-1, {row['seconds']} s", flush=True
    )
    return row


def main() -> None:
    known = list(dimers())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", nargs="+", choices=known, metavar="DIMER")
    parser.add_argument("--grid", default="fine")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--memory", type=float, help="GiB that this process may use, where several share a device")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="folder of journals")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    record: dict[str, Any] = {"benchmark": "s22_frequencies", "machine": machine(get_backend(options.backend))}
    record |= {"method": METHOD, "basis": BASIS, "grid": options.grid, "dimers": []}
    if options.json and Path(options.json).exists():
        record["dimers"] = json.loads(Path(options.json).read_text())["dimers"]
    done = {row["dimer"] for row in record["dimers"]}
    for name, molecule in dimers().items():
        if name not in done and (options.only is None or name in options.only):
            record["dimers"].append(run_dimer(molecule, options))
            save(options.json, record)
    left = [row["dimer"] for row in record["dimers"] if row["imaginary"]]
    if left:
        sys.exit(f"imaginary modes are left: {', '.join(left)}")


if __name__ == "__main__":
    main()
