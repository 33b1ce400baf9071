"""Hartree-Fock without fitting in large basis sets, and integrals by class to h, beside PySCF in the same run.

    python benchmarks/high_momentum.py --json benchmarks/results/high_momentum_cpu.json
    python benchmarks/high_momentum.py --classes --json benchmarks/results/integral_classes_cpu.json --plot classes.svg
    python benchmarks/high_momentum.py --only sulfur-dioxide --repeats 1

Calculations: one call of `cuanto.energy` and one of PySCF in turn, `--repeats` times after a first one that is not
counted, with the same functions, threads and criteria; both programs store integrals where they fit into memory.
Recorded are the best seconds and the best processor seconds, which other programs on the machine disturb less.
Energies must agree to 1e-8 Hartree.

Classes: (ab|ab) of pairs of shells to h with one primitive each, on different centres, on one thread. Ours by the
kernels that J and K use, libcint's by `mol.intor("int2e", shls_slice=...)`; nanoseconds of processor time per integral.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, geometry, machine, pyscf_mole, save

import os
os.environ.pop("CUANTO_BASIS_PATH", None)  # the Basis Set Exchange has all of these
import cuanto
from cuanto.backends.base import get_backend
from cuanto.options import CalculationOptions, ScfOptions

DATA = ROOT / "benchmarks" / "data"
ENERGY_TOLERANCE = 1e-8
TARGET_RATIO = 0.4
PEER_MEMORY = 8000
"""Memory limit of PySCF, MB."""
LETTERS = "spdfgh"


@dataclass(frozen=True)
class System:
    """A molecule in a basis; `file` None: a single atom of the element `name`."""

    name: str
    file: Path | None
    basis: str


SYSTEMS = {
    "sulfur-dioxide": System("sulfur dioxide", DATA / "sulfur_dioxide.xyz", "cc-pvqz"),
    "bromomethane": System("bromomethane", DATA / "bromomethane.xyz", "cc-pvqz"),
    "neon": System("Ne", None, "cc-pv5z"),
    "water": System("water", geometry("water_01"), "cc-pv5z"),
    "copper-oxide": System("CuO", geometry("CuO"), "6-31g**"),
    "copper-oxide-qz": System("CuO", geometry("CuO"), "def2-qzvp"),
    "glycine": System("glycine", geometry("glycine"), "def2-qzvp"),
}


@dataclass
class Clock:
    """Best seconds and processor seconds of repeated calls."""

    seconds: float = np.inf
    processor: float = np.inf

    def __call__(self, work: Any) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.processor = min(self.processor, time.process_time() - cpu)
        self.seconds = min(self.seconds, time.perf_counter() - start)
        return result

    def record(self) -> dict[str, float]:
        """Rounded values."""
        return {"best": round(self.seconds, 4), "processor": round(self.processor, 4)}


def molecule_of(system: System) -> cuanto.Molecule:
    """The molecule of a system."""
    if system.file is not None:
        return cuanto.Molecule.from_xyz(system.file)
    return cuanto.Molecule([system.name], [[0.0, 0.0, 0.0]])


def peer_calculation(mol: Any, multiplicity: int) -> Any:
    """One calculation with PySCF; returns the object."""
    from pyscf import scf

    settings = ScfOptions()
    method = (scf.RHF if multiplicity == 1 else scf.UHF)(mol)
    method.max_memory, method.chkfile, method.max_cycle = PEER_MEMORY, None, 100
    method.conv_tol, method.conv_tol_grad = settings.energy_tolerance, settings.gradient_tolerance / 2**0.5
    method.direct_scf_tol = CalculationOptions().screening
    method.kernel()
    return method


def measure(key: str, backend: Any, repeats: int) -> dict[str, Any]:
    """Both programs in turn."""
    system = SYSTEMS[key]
    molecule = molecule_of(system)
    basis = cuanto.Basis(system.basis, molecule)
    mol = pyscf_mole(molecule, basis)
    mol.spin = molecule.multiplicity - 1
    ours, theirs = Clock(), Clock()

    def run() -> Any:
        return cuanto.energy(molecule, "hf", basis, backend=backend, fitting="none")

    run()
    backend.finish_compiling()
    run()
    for _ in range(repeats):
        result = ours(run)
        peer = theirs(lambda: peer_calculation(mol, molecule.multiplicity))
    difference = abs(result.energy - float(peer.e_tot))
    row = {
        "name": system.name,
        "basis": system.basis,
        "functions": basis.nbf,
        "iterations": result.iterations,
        "energy": result.energy,
        "cuanto": ours.record(),
        "pyscf": theirs.record() | {"energy": float(peer.e_tot), "cycles": int(getattr(peer, "cycles", 0) or 0)},
        "ratio": round(ours.seconds / theirs.seconds, 3),
        "processor_ratio": round(ours.processor / theirs.processor, 3),
        "difference": difference,
    }
    print(
        f"{system.name}/{system.basis}: {basis.nbf} functions, cuanto {ours.seconds:.2f} s (processor {ours.processor:.2f}),"
        f" PySCF {theirs.seconds:.2f} s ({theirs.processor:.2f}), ratio {row['ratio']:.2f} ({row['processor_ratio']:.2f}),"
        f" energies differ by {difference:.1e}",
        flush=True,
    )
    return row


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SYSTEMS, nargs="*", default=list(SYSTEMS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    from pyscf import lib

    from cuanto.backends.cpu.backend import CpuBackend

    backend = CpuBackend(threads=options.threads)
    lib.num_threads(options.threads)
    rows = [measure(key, backend, options.repeats) for key in options.only]
    save(options.json, {"machine": machine(backend), "calculations": rows})
    bad = [row for row in rows if row["difference"] > ENERGY_TOLERANCE]
    sys.exit(f"energies differ: {bad}" if bad else 0)


if __name__ == "__main__":
    main()
