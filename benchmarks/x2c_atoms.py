"""Noble gases by X2C beside four components, in the same exponents, with the same nucleus and speed of light.

    python benchmarks/x2c_atoms.py --only Ne Ar
    python benchmarks/x2c_atoms.py --backend cuda --json benchmarks/results/x2c_atoms.json

Spin-free X2C-Hartree-Fock energies (no fitting) against Dirac-Hartree-Fock with the Dirac-Coulomb Hamiltonian, and both
against the energy without relativity: well-tempered sets of `cuanto atom`, uncontracted, Gaussian nuclei.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

from common import machine, save

import cuanto
from cuanto.atomic.export import uncontracted
from cuanto.atomic.job import element_job, run_energy
from cuanto.backends.base import get_backend

ATOMS = ("He", "Ne", "Ar", "Kr", "Xe", "Rn")


def measure(symbol: str, backend: str) -> dict[str, Any]:
    """Energies of an atom, Hartree."""
    job = element_job(symbol)
    four = run_energy(job, backend)
    plain = run_energy(replace(job, settings=replace(job.settings, relativistic=False)), backend)
    atom = cuanto.Molecule([symbol], [[0.0, 0.0, 0.0]])
    basis = cuanto.Basis.from_tables("wtbs", {symbol: uncontracted(symbol, job.atom().basis)}, atom)
    options: dict[str, Any] = {"relativity": "x2c", "nuclear_model": "gaussian", "speed_of_light": job.settings.c}
    start = time.perf_counter()
    scalar = cuanto.energy(atom, "hf", basis, fitting="none", backend=backend, **options)
    return {
        "atom": symbol,
        "functions": basis.nbf,
        "four_components": four.energy,
        "x2c": scalar.energy,
        "without_relativity": plain.energy,
        "four_component_energies": {spinor.label: spinor.energy for spinor in four.spinors},
        "x2c_energies": sorted({round(float(e), 6) for e in scalar.orbital_energies[0][: atom.nelectron // 2]}),
        "converged": bool(four.converged and plain.converged and scalar.converged),
        "x2c_seconds": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", default=list(ATOMS))
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for symbol in options.only:
        rows.append(row := measure(symbol, options.backend))
        relativity, difference = (row["four_components"] - row[k] for k in ("without_relativity", "x2c"))
        print(
            f"{symbol:3} {row['functions']:4} functions: {row['four_components']:.6f} (4c) {row['x2c']:.6f} (X2C), "
            f"relativity {relativity:.6f}, 4c - X2C {difference:.6f}, {row['x2c_seconds']:.1f} s",
            flush=True,
        )
        save(
            options.json,
            {"benchmark": "x2c_atoms", "machine": machine(get_backend(options.backend)), "rows": rows},
        )


if __name__ == "__main__":
    main()
