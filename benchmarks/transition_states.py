"""Transition states from Baker and Chan's starting structures, HF/3-21G: steps, energies and imaginary modes.

    pip install --no-deps pysisyphus     # the structures (its other files are not needed)
    python benchmarks/transition_states.py --json benchmarks/results/transition_states_cpu.json
    python benchmarks/transition_states.py --only 01_hcn --hessian pm6

J. Baker, F. Chan, J. Comput. Chem. 17, 888 (1996), doi:10.1002/(SICI)1096-987X(199605)17:7<888::AID-JCC12>3.0.CO;2-7,
whose energies are compared with ours. The initial Hessian comes from differences of our own gradients, or from another
method.
Modes: eigenvalues of the mass-weighted Hessian (central differences) without translations and rotations. Anything but
one imaginary mode, or a search that does not converge, ends in exit status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.motion.displacements import DisplacementPlan
from cuanto.motion.surface import Surface
from cuanto.system.symmetry import identity

CASES = {
    "01_hcn": (0, 1, -92.24604),
    "02_hcch": (0, 1, -76.29343),
    "03_h2co": (0, 1, -113.05003),
    "04_ch3o": (0, 2, -113.69365),
    "05_cyclopropyl": (0, 2, -115.72100),
    "12_ethane_h2_abstraction": (0, 1, -78.54323),
    "13_hf_abstraction": (0, 1, -176.98453),
    "14_vinyl_alcohol": (0, 1, -151.91310),
    "21_acrolein_rot": (0, 1, -189.67574),
    "23_hcn_h2": (0, 1, -93.31114),
    "24_h2cnh": (0, 1, -93.33296),
    "25_hcnh2": (0, 1, -93.28172),
}
"""Charge, multiplicity and the published energy, Hartree."""
ELECTRON_MASSES = 1822.888486
"""Electron masses in one atomic mass unit."""
STEP = 0.005
"""Displacement of the atoms for the Hessian, Bohr."""
WAVENUMBER = 219474.6313705
"""One Hartree in 1/cm."""


def structures() -> Path:
    """Folder of the structures in the installed package, which is not imported."""
    found = find_spec("pysisyphus")
    if found is None or found.origin is None:
        sys.exit("the starting structures are in pysisyphus: pip install --no-deps pysisyphus")
    return Path(found.origin).parent / "geom_library" / "baker_ts"


def wavenumbers(molecule: cuanto.Molecule, H_xx: Any) -> Any:
    """Harmonic wavenumbers in 1/cm, imaginary ones negative, without translations and rotations."""
    m_x = np.repeat(molecule.nuclei.masses * ELECTRON_MASSES, 3)
    R_ax = molecule.R_ax - molecule.nuclei.masses @ molecule.R_ax / molecule.nuclei.masses.sum()
    moves = [np.tile(axis, molecule.natom) for axis in np.eye(3)]
    moves += [np.cross(axis, R_ax).reshape(-1) for axis in np.eye(3)]
    U, s, _ = np.linalg.svd((np.array(moves) * np.sqrt(m_x)).T, full_matrices=True)
    inner = U[:, int((s > 1e-6 * s[0]).sum()) :]
    values = np.linalg.eigvalsh(inner.T @ (H_xx / np.sqrt(np.outer(m_x, m_x))) @ inner)
    return np.sign(values) * np.sqrt(np.abs(values)) * WAVENUMBER


def run_case(name: str, hessian: str, backend: str) -> dict[str, Any]:
    """Search for one transition state."""
    charge, multiplicity, published = CASES[name]
    molecule = cuanto.Molecule.from_xyz(structures() / f"{name}.xyz", charge, multiplicity)
    given = {"fitting": "none", "backend": backend}
    start = time.perf_counter()
    found = cuanto.optimize(molecule, "hf", "3-21g", ts=True, hessian=hessian, **given)
    seconds = time.perf_counter() - start
    surface = Surface(found.molecule, "hf", "3-21g", guess=found.result, **given)
    plan = DisplacementPlan(molecule.natom, [identity(molecule.natom)], STEP)
    H_xx = plan.hessian(found.molecule.R_ax, lambda R_ax: surface.at(R_ax).gradient)
    modes = wavenumbers(found.molecule, H_xx)
    imaginary = [round(float(value), 1) for value in modes if value < 0]
    row: dict[str, Any] = {"case": name, "converged": found.converged, "steps": found.iterations}
    row |= {"energy": found.energy, "published": published, "imaginary": imaginary, "seconds": round(seconds, 2)}
    row |= {"lowest_real": round(float(min(value for value in modes if value >= 0)), 1)}
    verdict = "converged" if found.converged else "NOT converged"
    difference = found.energy - published
    print(
        f"{name:26s} {row['steps']:3d} steps, {verdict}, {difference:+.1e} Hartree, imaginary {imaginary}", flush=True
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CASES))
    parser.add_argument("--hessian", default="numerical", choices=["numerical", "pm6"])
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", help="record to write; one that exists is continued")
    options = parser.parse_args()
    record: dict[str, Any] = {"benchmark": "transition states", "hessian": options.hessian, "cases": []}
    if options.json and Path(options.json).exists():
        record = json.loads(Path(options.json).read_text())
    record["machine"] = machine(get_backend(options.backend))
    known = {row["case"] for row in record["cases"]}
    for name in options.only or CASES:
        if name not in known:
            record["cases"].append(run_case(name, options.hessian, options.backend))
            save(options.json, record)
    good = [row for row in record["cases"] if row["converged"] and len(row["imaginary"]) == 1]
    print(f"{len(good)} of {len(record['cases'])} have converged to one imaginary mode")
    sys.exit(0 if len(good) == len(record["cases"]) else 1)


if __name__ == "__main__":
    main()
