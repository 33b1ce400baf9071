"""Scaling of calculations on a CPU: seconds, processor seconds and speed-up by number of threads.

    python benchmarks/threads.py --json benchmarks/results/threads.json        # 1, 2, 4, ... threads, then all cores
    python benchmarks/threads.py --only caffeine --threads 1 16                # one case
    python benchmarks/threads.py --busy                                        # while another process keeps a core busy

Each figure is the fastest warm run of a separate process. The last row of a case has default settings: no environment
variable is set. `processes` is the limit of the machine itself: throughput of one single-threaded process per core,
relative to that of one process alone. Energies must not depend on the number of threads: a difference of more than
1e-9 Hartree ends in exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import DATA, ROOT, geometry, machine, save

SAME_ENERGY = 1e-9
"""Tolerance of energies, Hartree."""
VARIABLES = ("CUANTO_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that are removed, so that the last row has default settings."""


@dataclass(frozen=True)
class Case:
    """A calculation; `target`: desired speed-up on 16 idle cores."""

    name: str
    file: Path
    method: str
    basis: str | None = None
    fitting: str | None = None
    target: float | None = None


ASPIRIN = ROOT / "benchmarks" / "data" / "aspirin.xyz"
CASES = [
    Case("caffeine", geometry("caffeine"), "b3lyp", "def2-svp", "jk", target=10.0),
    Case("aspirin", ASPIRIN, "b3lyp", "def2-tzvp", "jk", target=12.0),
    Case("aspirin-direct", ASPIRIN, "hf", "def2-svp", "none", target=12.0),
    Case("water", geometry("water_01"), "b3lyp", "def2-svp", "jk"),
    Case("polyethylene-pm6", DATA / "timing_geometries" / "polyethylene_C333.xyz", "pm6"),
]

CHILD = """
import json, os, sys, time
import cuanto
case, repeat = json.loads(sys.argv[1]), int(sys.argv[2])
molecule = cuanto.Molecule.from_xyz(case["file"])
options = {"backend": "cpu"}
if case["basis"]:
    options |= {"basis": cuanto.Basis(case["basis"], molecule), "fitting": case["fitting"]}
    if case["fitting"] == "jk":
        options["auxbasis"] = cuanto.Basis("def2-universal-jkfit", molecule)
runs = []
for run in range(repeat + 1):
    wall, processor = time.perf_counter(), time.process_time()
    result = cuanto.energy(molecule, case["method"], **options)
    seconds = time.perf_counter() - wall, time.process_time() - processor
    assert result.converged, "not converged"
    if run:  # the first one fills caches
        steps = {name: round(value, 4) for name, value in result.timings.seconds.items()}
        runs.append((*seconds, result.energy, result.iterations, steps))
print(json.dumps(min(runs)))
"""


def start(case: Case, threads: int | None, repeat: int) -> subprocess.Popen[str]:
    """Start a child process with this number of threads, or with default settings."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment["PYTHONPATH"] = str(ROOT / "src")
    if threads is not None:
        environment["CUANTO_THREADS"] = str(threads)
    given = json.dumps({**asdict(case), "file": str(case.file)})
    command = [sys.executable, "-c", CHILD, given, str(repeat)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finish(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a child and return its figures."""
    out, _ = child.communicate()
    if child.returncode != 0:
        sys.exit(f"a child process failed with status {child.returncode}")
    seconds, processor, energy, iterations, steps = json.loads(out.splitlines()[-1])
    return {
        "seconds": seconds,
        "processor_seconds": processor,
        "energy": energy,
        "iterations": iterations,
        "steps": steps,
    }


def measure(case: Case, counts: list[int | None], repeat: int, processes: int) -> dict[str, Any]:
    """Rows by number of threads (None: default settings); finally `processes` concurrent processes, unless 0."""
    rows: list[dict[str, Any]] = []
    for threads in counts:
        row = {"threads": threads, **finish(start(case, threads, repeat))}
        row["speed_up"] = rows[0]["seconds"] / row["seconds"] if rows else 1.0
        rows.append(row)
        label = "default" if threads is None else str(threads)
        print(
            f"{case.name:18s} {label:>8s} {row['seconds']:9.3f} s {row['processor_seconds']:9.3f} s of processors"
            f" {row['speed_up']:6.2f}x {row['energy']:18.10f} {row['iterations']:3d} iterations",
            flush=True,
        )
    found: dict[str, Any] = {"case": case.name, "asked": case.target, "rows": rows}
    if processes:
        children = [start(case, 1, repeat) for _ in range(processes)]
        slowest = max(finish(child)["seconds"] for child in children)
        found["processes"] = processes * rows[0]["seconds"] / slowest
        print(f"{case.name:18s} {processes} processes of one thread: {found['processes']:.2f}x", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--threads", nargs="+", type=int, help="numbers of threads; default: 1, 2, 4 ... all cores")
    parser.add_argument("--repeat", type=int, default=2, help="warm runs")
    parser.add_argument("--processes", action="store_true", help="measure one-thread processes side by side as well")
    parser.add_argument("--busy", action="store_true", help="keep one core busy with another process")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    from cuanto.backends.base import get_backend

    cores = len(os.sched_getaffinity(0))
    counts: list[int | None] = list(options.threads or [2**k for k in range(cores.bit_length()) if 2**k <= cores])
    counts.append(None)
    record: dict[str, Any] = {"benchmark": "threads", "machine": machine(get_backend("cpu")), "cores": cores}
    record |= {"busy": options.busy, "load_before": os.getloadavg()[0], "cases": []}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if options.busy else None
    time.sleep(0.2)
    try:
        for case in CASES:
            if options.only is None or case.name in options.only:
                processes = cores if options.processes else 0
                record["cases"].append(measure(case, counts, options.repeat, processes))
                save(options.json, record)
    finally:
        if busy is not None:
            busy.kill()
    energies = [[row["energy"] for row in case["rows"]] for case in record["cases"]]
    if any(max(some) - min(some) > SAME_ENERGY for some in energies):
        sys.exit("energies depend on the number of threads")


if __name__ == "__main__":
    main()
