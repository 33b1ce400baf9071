"""Calculations that do not fit the free memory of a GPU: whether they finish, with the same energy, and how fast.

    python benchmarks/gpu_memory.py --json benchmarks/results/gpu_memory_h200.json
    python benchmarks/gpu_memory.py --large valinomycin --json benchmarks/results/gpu_memory_h200.json
    python benchmarks/gpu_memory.py --large water_128 --iterations 3    # whether it fits

Water clusters, RI-B3LYP/def2-SVP, with less and less free memory: the rest of the device is held by an array, as
another process would. `share` is the free memory in units of what the plan with all integrals in their fastest form
expects. Energies must equal that with all memory to 1e-9 Hartree. If even the smallest plan does not fit, a clear error
is expected and recorded.

`--large`: molecules whose integrals exceed the device, at default settings, with the time of each step; rows are added
to the file. Kernels are compiled in the background: repeat a command in a new process for times with full caches.
`--bandwidth` times the products and copies of which K consists, for sizes of valinomycin.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import geometry, machine, save
from scf_systems import OWN

import cuanto
from cuanto.backends.base import get_backend
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting import FUNCTIONS, block_sizes
from cuanto.coulomb.fitting_layout import make_layout
from cuanto.errors import ConvergenceWarning, CuantoError

SAME_ENERGY = 1e-9
"""Tolerance of energies between memory plans, Hartree."""
MOLECULES = ("water_16", "water_24", "water_32", "water_64")
SHARES = (2.0, 1.0, 0.5, 0.25, 0.1)
"""Free memory in units of that of the fastest plan."""
AUX = "def2-universal-jkfit"
PRINT_ITERATIONS_ABOVE = 1500
"""Basis functions from which iterations are reported."""
LARGE = {
    "valinomycin": (OWN / "valinomycin.xyz", "def2-tzvp"),
    "taxol": (OWN / "taxol.xyz", "def2-tzvp"),
    "water_128": (geometry("water_128"), "def2-svp"),
}


class Ballast:
    """Holds device memory until a number of bytes are left."""

    def __init__(self, backend: Any, free: int) -> None:
        gc.collect()
        backend.release_memory()
        held = backend.memory()[0] - free
        self.array = backend.zeros((max(0, held),), np.uint8)


BEGIN = time.perf_counter()


def report(text: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"[{time.perf_counter() - BEGIN:7.2f}] {text}", flush=True)


def run(molecule: Any, basis: Any, aux: Any, backend: Any, **options: Any) -> dict[str, Any]:
    """Time an energy; an error is recorded."""
    backend.synchronize()
    report(f"{len(molecule.symbols)} atoms, {basis.nbf} functions, {backend.memory()[0] / 2**30:.2f} GiB free")
    free, start = backend.memory()[0], time.perf_counter()
    row: dict[str, Any] = {"free": free, "finished": False}
    common = {"fitting": "jk", "auxbasis": aux, "backend": backend, **options}
    if basis.nbf > PRINT_ITERATIONS_ABOVE:
        common["on_iteration"] = lambda state: report(f"iteration {state.iteration}, energy {float(state.energy):.9f}")
    try:
        result = cuanto.energy(molecule, "b3lyp", basis, **common)
    except (CuantoError, MemoryError) as error:
        return row | {"seconds": time.perf_counter() - start, "error": f"{type(error).__name__}: {error}"}
    backend.synchronize()
    row |= {"seconds": time.perf_counter() - start, "finished": True, "energy": result.energy}
    steps = {name: round(seconds, 3) for name, seconds in result.timings.seconds.items()}
    row |= {"converged": result.converged, "iterations": result.iterations}
    return row | {"notes": list(result.notes), "steps": steps}


def expected_bytes(basis: Any, aux: Any, backend: Any) -> int:
    """Bytes of the plan that stores everything in the fastest form."""
    layout = make_layout(basis, triangle=False, functions=FUNCTIONS[backend.traits.language])
    return block_sizes(ThreeCentre(basis, aux, backend), layout).in_core


def sweep(names: list[str], shares: list[float], backend: Any, record: dict[str, Any], path: str | None) -> None:
    """Water clusters with less and less memory; rows of other clusters in the record are kept."""
    rows = record["rows"] = [row for row in record.get("rows", []) if row["molecule"] not in names]
    for name in names:
        molecule = cuanto.Molecule.from_xyz(geometry(name))
        basis, aux = cuanto.Basis("def2-svp", molecule), cuanto.Basis(AUX, molecule)
        tight = {"energy_tolerance": 1e-10}
        run(molecule, basis, aux, backend, **tight)  # compiles and loads kernels
        whole, needed = run(molecule, basis, aux, backend, **tight), expected_bytes(basis, aux, backend)
        show({"molecule": name} | whole)
        for share in shares:
            if share * needed > backend.memory()[0]:
                continue
            ballast = Ballast(backend, int(share * needed))
            row = {"molecule": name, "functions": basis.nbf, "share": share, "expected": needed}
            row |= run(molecule, basis, aux, backend, **tight)
            del ballast
            row["whole_seconds"] = whole["seconds"]
            if row["finished"]:
                row["difference"] = row["energy"] - whole["energy"]
            rows.append(row)
            show(row)
            save(path, record)


def show(row: dict[str, Any]) -> None:
    what = f"{row['molecule']:10s} {row['free'] / 2**30:7.2f} GiB free {row['seconds']:8.2f} s"
    if not row["finished"]:
        report(f"{what}  {row['error']}")
        return
    notes = [note for note in row["notes"] if note.startswith(("density fitting", "memory"))]
    report(f"{what}  {row['iterations']} iterations, {row.get('difference', 0.0):+.1e}  {'; '.join(notes)}")


def large(name: str, backend: Any, record: dict[str, Any], path: str | None, iterations: int) -> None:
    """A large molecule at default settings, with the time of each step."""
    file, basis_name = LARGE[name]
    molecule = cuanto.Molecule.from_xyz(file)
    basis, aux = cuanto.Basis(basis_name, molecule), cuanto.Basis(AUX, molecule)
    row = {"molecule": name, "basis": basis_name, "functions": basis.nbf, "auxiliary": aux.nbf}
    row["max_iterations"] = iterations
    row |= run(molecule, basis, aux, backend, profile=True, max_iterations=iterations)
    show(row)
    for step, seconds in row.get("steps", {}).items():
        print(f"    {step:28s} {seconds:9.3f} s")
    others = [one for one in record.get("large", []) if one["molecule"] != name]
    record["large"] = [*others, row]
    save(path, record)


def bandwidth(backend: Any) -> None:
    """Seconds of the parts of K of valinomycin: copies of rows, both products."""
    xp, n, naux, orbitals, near = backend.xp, 2958, 7518, 150, 1100
    B_rP, C_iq = xp.random.rand(200_000, naux), xp.random.rand(orbitals, near)
    X_piP, gathered = xp.empty((n, orbitals, naux)), xp.empty((near, naux))
    row = xp.asarray(np.sort(np.random.default_rng(1).choice(len(B_rP), near, replace=False)))
    several = B_rP[: 4 * near].reshape(4, near, naux)
    X_piP[...] = 0.5
    flat = X_piP.reshape(len(X_piP), -1)
    square, product = xp.random.rand(8192, 8192), 2 * orbitals * near * naux
    parts = {
        "copy of the rows of a function": (lambda: xp.take(B_rP, row, axis=0, out=gathered), 16 * near * naux, "B"),
        "the same as complex numbers": (
            lambda: xp.take(B_rP.view(complex), row, axis=0, out=gathered.view(complex)),
            16 * near * naux,
            "B",
        ),
        "product with orbitals": (lambda: xp.matmul(C_iq, gathered, out=X_piP[0]), product, "flop"),
        "the same for 4 functions": (lambda: xp.matmul(C_iq, several, out=X_piP[:4]), 4 * product, "flop"),
        "X X^T, panels": (lambda: backend.linalg.gram(flat), flat.shape[0] ** 2 * flat.shape[1], "flop"),
        "X X^T, symmetric": (lambda: backend.linalg.lower_gram(flat), flat.shape[0] ** 2 * flat.shape[1], "flop"),
        "large product": (lambda: square @ square, 2 * 8192**3, "flop"),
    }
    for name, (call, work, unit) in parts.items():
        call()
        backend.synchronize()
        start = time.perf_counter()
        for _ in range(3):
            call()
        backend.synchronize()
        seconds = (time.perf_counter() - start) / 3
        print(f"{name:32s} {1e3 * seconds:9.3f} ms {work / seconds / 1e12:8.2f} T{unit}/s", flush=True)


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--molecules", nargs="+", default=list(MOLECULES))
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES))
    parser.add_argument("--large", choices=LARGE)
    parser.add_argument("--iterations", type=int, default=100, help="of a large molecule")
    parser.add_argument("--bandwidth", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    logging.basicConfig(format="          %(message)s", level=logging.WARNING, stream=sys.stdout)
    warnings.simplefilter("ignore", ConvergenceWarning)
    report("begin")
    backend: Any = get_backend("cuda")
    record: dict[str, Any] = {"benchmark": "gpu_memory", "machine": machine(backend), "total": backend.memory()[1]}
    if options.json and Path(options.json).exists():
        record = json.loads(Path(options.json).read_text()) | record
    if options.bandwidth:
        bandwidth(backend)
    elif options.large:
        large(options.large, backend, record, options.json, options.iterations)
    else:
        sweep(options.molecules, options.shares, backend, record, options.json)
        wrong = [row for row in record["rows"] if abs(row.get("difference", 0.0)) > SAME_ENERGY]
        failed = [row for row in record["rows"] if row.get("error", "").startswith("MemoryError")]
        print(f"{len(record['rows'])} rows, {len(wrong)} with another energy, {len(failed)} with a MemoryError")
        sys.exit(1 if wrong or failed else 0)


if __name__ == "__main__":
    main()
