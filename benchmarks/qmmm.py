"""QM/MM: conservation of energy in a drop of water, and the cost of many point charges relative to the SCF.

    python benchmarks/qmmm.py --json benchmarks/results/qmmm_cpu.json
    python benchmarks/qmmm.py --backend cuda --only charges

Conservation: `examples/16_qmmm.py` (formaldehyde, RHF/STO-3G, and TIP3P waters by OpenMM, 0.5 fs), slope and spread of
the total energy. Charges: water molecule, RI-B3LYP/def2-SVP, in the field of random charges at 5 to 60 Bohr; seconds of
the whole gradient calculation and of the parts that see the charges, warm.
"""

from __future__ import annotations

import argparse
import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import geometry, machine, save

import cuanto
from cuanto.backends.base import get_backend

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "16_qmmm.py"
COUNTS = (0, 1000, 10_000, 50_000)
CHARGE_STEPS = ("one-electron integrals", "gradient of overlap, core, coulomb", "gradient of nuclear repulsion")
"""Names of the steps whose time depends on the charges."""


def conservation(steps: int, waters: int) -> dict[str, Any]:
    """Slope and spread of the total energy."""
    energies = np.array(runpy.run_path(str(EXAMPLE))["main"](waters=waters, steps=steps, backend="cpu"))
    time_ps = 0.0005 * np.arange(len(energies))
    slope = float(np.polyfit(time_ps, energies - energies[0], 1)[0]) / (4 + 3 * waters)
    return {"steps": steps, "waters": waters, "drift_hartree_per_atom_ps": slope, "spread": float(np.ptp(energies))}


def charges(count: int, backend: Any) -> dict[str, Any]:
    """Seconds with `count` charges, the best of three runs."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(count, 3))
    R_cx = direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.uniform(5.0, 60.0, (count, 1))
    surroundings = {"point_charges": (rng.uniform(-0.5, 0.5, count), R_cx)} if count else {}
    molecule, best = cuanto.Molecule.from_xyz(geometry("water_01")), {"seconds": np.inf}
    basis = cuanto.Basis("def2-svp", molecule)
    aux = cuanto.Basis("def2-universal-jkfit", molecule)
    for _ in range(4):
        start = time.perf_counter()
        result = cuanto.gradient(molecule, "b3lyp", basis, auxbasis=aux, backend=backend, **surroundings)
        seconds = time.perf_counter() - start
        if seconds < best["seconds"]:
            steps = result.timings.seconds
            best = {"seconds": seconds, "seeing_charges": sum(steps.get(name, 0.0) for name in CHARGE_STEPS)}
    return {"charges": count, **best, "converged": result.converged}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", choices=["charges", "conservation"])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--waters", type=int, default=40)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend = get_backend(options.backend)
    record: dict[str, Any] = {"benchmark": "qmmm", "machine": machine(backend), "charges": []}
    if options.only != "conservation":
        for count in COUNTS:
            record["charges"].append(charges(count, backend))
            print(record["charges"][-1], flush=True)
    if options.only != "charges":
        record["conservation"] = conservation(options.steps, options.waters)
        print(record["conservation"])
    save(options.json, record)


if __name__ == "__main__":
    main()
