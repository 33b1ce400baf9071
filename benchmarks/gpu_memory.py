"""Calculations that do not fit the free memory of a GPU: whether they finish, with the same energy, and how fast.

    python benchmarks/gpu_memory.py --json benchmarks/results/gpu_memory_h200.json
    python benchmarks/gpu_memory.py --large valinomycin --json benchmarks/results/gpu_memory_h200.json
    python benchmarks/gpu_memory.py --large water_128 --iterations 3    # whether it fits

Water clusters, RI-B3LYP/def2-SVP, with less and less free memory. The rest of the device is held by an array, a second
process, or an earlier calculation of this process (`memory_holders.py`), in turn. `share` is the free memory in units
of what the plan with all integrals in their fastest form expects. Energies must equal that with all memory to 1e-9
Hartree. If even the smallest plan does not fit, a clear error is expected and recorded. Each case runs twice, because
the first run may compile kernels; `ratio` is its time relative to that of the case with a little more memory.

`--large`: molecules whose integrals exceed the device, at default settings, with the time of each step; rows are added
to the file, each with its machine and date. Kernels are compiled in the background: repeat a command in a new process
for times with full caches.
`--bandwidth` times the products and copies of which K consists, for sizes of valinomycin.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import geometry, machine, save
from memory_holders import ArrayHolder, CalculationHolder, Holder, PoolHolder, ProcessHolder
from scf_systems import OWN

import cuanto
from cuanto.backends.base import get_backend
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting import FUNCTIONS, block_sizes
from cuanto.coulomb.fitting_layout import make_layout
from cuanto.errors import ConvergenceWarning, CuantoError
from cuanto.methods import Request
from cuanto.methods.gaussian import Calculation

SAME_ENERGY = 1e-9
"""Tolerance of energies between memory plans, Hartree."""
MOLECULES = ("water_16", "water_24")
SHARES = (3.0, 2.0, 1.5, 1.2, 1.0, 0.8, 0.65, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2)
"""Free memory in units of that of the fastest plan."""
LONG_RUN = 6.0
"""Seconds of a run above which it is not repeated."""
LAST_START = 210.0
"""Seconds after which no further case begins."""
AUX = "def2-universal-jkfit"
PRINT_ITERATIONS_ABOVE = 1500
"""Basis functions from which iterations are reported."""
LARGE = {
    "valinomycin": (OWN / "valinomycin.xyz", "def2-tzvp"),
    "taxol": (OWN / "taxol.xyz", "def2-tzvp"),
    "water_128": (geometry("water_128"), "def2-svp"),
}


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


class Plans(logging.Handler):
    """Collects the memory plans of a calculation."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: dict[str, str] = {}
        logging.getLogger("cuanto").addHandler(self)
        logging.getLogger("cuanto").setLevel(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the last plan of the fit and of the grid."""
        kind, _, text = record.getMessage().partition(": ")
        if kind in ("density fitting", "quadrature"):
            self.found[kind] = text

    def row(self) -> dict[str, Any]:
        """Form of the plan: stored, blocked or direct integrals, their storage, and the values that are stored."""
        fit, _, storage = self.found.get("density fitting", "").rpartition("; ")
        values = self.found.get("quadrature", "")
        return {"form": fit.partition(":")[0], "storage": storage, "values": values}


def sweep(names: list[str], shares: list[float], backend: Any, record: dict[str, Any], path: str | None) -> None:
    """Water clusters with less and less memory; rows of other clusters in the record are kept."""
    rows = record["rows"] = [row for row in record.get("rows", []) if row["molecule"] not in names]
    plans, process = Plans(), ProcessHolder(backend)
    try:
        for number, name in enumerate(names):
            for row in cluster(name, shares, backend, plans, process, number):
                rows.append(row)
                save(path, record)
    finally:
        process.stop()


def cluster(
    name: str, shares: list[float], backend: Any, plans: Plans, process: ProcessHolder, turn: int
) -> Iterator[dict[str, Any]]:
    """Rows of a cluster; `turn`: the holder of the first."""
    molecule = cuanto.Molecule.from_xyz(geometry(name))
    basis, aux = cuanto.Basis("def2-svp", molecule), cuanto.Basis(AUX, molecule)
    tight = {"energy_tolerance": 1e-10}
    common = {"fitting": "jk", "auxbasis": aux, "backend": backend}

    def prepare(limit: float | None) -> Any:
        return Calculation.of(Request.of(molecule, "b3lyp", basis, max_memory=limit, **common))

    def calculate(limit: float | None) -> Any:
        try:
            return cuanto.energy(molecule, "b3lyp", basis, max_memory=limit, max_iterations=2, **common)
        except CuantoError:  # less than the smallest plan
            return None

    holders: list[Holder] = [ArrayHolder(backend), process]
    holders += [CalculationHolder(backend, prepare), PoolHolder(backend, process, calculate)]
    run(molecule, basis, aux, backend, **tight)  # compiles and loads kernels
    backend.finish_compiling()
    whole, needed = run(molecule, basis, aux, backend, **tight), expected_bytes(basis, aux, backend)
    show({"molecule": name} | whole)
    last = whole["seconds"]
    for number, share in enumerate(shares):
        if time.perf_counter() - BEGIN > LAST_START:
            report(f"{name}: no time for a share of {share}")
            continue
        holder = holders[(number + turn) % len(holders)]
        holder.hold(int(share * needed))
        try:
            row = {"molecule": name, "functions": basis.nbf, "share": share, "expected": needed, "holder": holder.name}
            row |= twice(molecule, basis, aux, backend, **tight) | plans.row()
        finally:
            holder.drop()
        row |= {"whole_seconds": whole["seconds"], "ratio": row["seconds"] / last}
        if row["finished"]:
            last, row["difference"] = row["seconds"], row["energy"] - whole["energy"]
        show(row)
        yield row


def twice(molecule: Any, basis: Any, aux: Any, backend: Any, **options: Any) -> dict[str, Any]:
    """Time an energy after a first run that may compile kernels, unless that takes long."""
    first = run(molecule, basis, aux, backend, **options)
    if not first["finished"] or first["seconds"] > LONG_RUN:
        return first
    backend.finish_compiling()
    return run(molecule, basis, aux, backend, **options) | {"first_seconds": first["seconds"]}


def show(row: dict[str, Any]) -> None:
    what = f"{row['molecule']:10s} {row['free'] / 2**30:7.2f} GiB free {row['seconds']:8.2f} s"
    if not row["finished"]:
        report(f"{what}  {row['error']}")
        return
    notes = [note for note in row["notes"] if note.startswith(("density fitting", "memory"))]
    more = f", {row['holder']}, ratio {row['ratio']:.2f}, {row['storage']}" if "ratio" in row else ""
    report(f"{what}  {row['iterations']} iterations, {row.get('difference', 0.0):+.1e}{more}  {'; '.join(notes)}")


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
    row["machine"] = machine(backend)
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
    logging.basicConfig(format="          %(message)s", stream=sys.stdout)
    logging.getLogger().handlers[0].setLevel(logging.WARNING)
    warnings.simplefilter("ignore", ConvergenceWarning)
    report("begin")
    backend: Any = get_backend("cuda")
    record: dict[str, Any] = {"benchmark": "gpu_memory", "machine": machine(backend), "total": backend.memory()[1]}
    if options.json and Path(options.json).exists():
        there = json.loads(Path(options.json).read_text())
        record = record | there if options.large else there | record
    if options.bandwidth:
        bandwidth(backend)
    elif options.large:
        large(options.large, backend, record, options.json, options.iterations)
    else:
        sweep(options.molecules, options.shares, backend, record, options.json)
        wrong = [row for row in record["rows"] if abs(row.get("difference", 0.0)) > SAME_ENERGY]
        failed = [row for row in record["rows"] if row.get("error", "").startswith("MemoryError")]
        print(f"{len(record['rows'])} rows, {len(wrong)} with another energy, {len(failed)} with a MemoryError")
        for row in sorted(record["rows"], key=lambda row: -row.get("ratio", 0.0))[:3]:
            print(f"ratio {row.get('ratio', 0.0):.2f}: {row['molecule']}, {row['share']}, {row.get('storage')}")
        sys.exit(1 if wrong or failed else 0)


if __name__ == "__main__":
    main()
