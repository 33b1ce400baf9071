"""First calculations on two CPU cores with an empty kernel cache, and the same calculations warm, in new processes.

    taskset -c 0,1 python benchmarks/two_core_start.py --json benchmarks/results/two_core_start_cpu.json

Each case runs in a process of its own with an empty cache: one calculation, which is the cold time without the import,
then, after all background compilations, the best of two warm ones. Targets: SO2 direct HF/cc-pVQZ warm + 5 s; caffeine
RI-B3LYP/def2-SVP 1.3 times warm + 3 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import BASIS_PATH, ROOT, geometry, machine, save

CASES: dict[str, tuple[Path, str, str, dict[str, Any]]] = {
    "sulfur dioxide": (ROOT / "benchmarks" / "data" / "sulfur_dioxide.xyz", "hf", "cc-pvqz", {"fitting": "none"}),
    "caffeine": (geometry("caffeine"), "b3lyp", "def2-svp", {"fitting": "jk"}),
}
ALLOWED = {"sulfur dioxide": (1.0, 5.0), "caffeine": (1.3, 3.0)}
"""Factor and seconds that a cold run may take beyond a warm one."""
CHILD = """
import json, sys, time
start = time.perf_counter()
import cuanto
from cuanto.backends.base import get_backend
file, method, name, options = json.loads(sys.argv[1])
imported = time.perf_counter() - start
def run():
    start, cpu = time.perf_counter(), time.process_time()
    molecule = cuanto.Molecule.from_xyz(file)
    result = cuanto.energy(molecule, method, name, backend="cpu", **options)
    return time.perf_counter() - start, time.process_time() - cpu, result.energy
first = run()
get_backend("cpu").finish_compiling()
run()
get_backend("cpu").finish_compiling()
warm = min(run(), run())
print(json.dumps({"import": imported, "cold": first[0], "cold_processor": first[1], "warm": warm[0],
                  "warm_processor": warm[1], "energies": [first[2], warm[2]]}))
"""


def measure(name: str) -> dict[str, Any]:
    """One case in a new process with an empty cache."""
    file, method, basis, options = CASES[name]
    with tempfile.TemporaryDirectory() as cache:
        given = {"CUANTO_CACHE": cache, "PYTHONPATH": str(ROOT / "src"), "CUANTO_BASIS_PATH": BASIS_PATH}
        command = [sys.executable, "-c", CHILD, json.dumps([str(file), method, basis, options])]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **given})
    if done.returncode:
        sys.exit(done.stderr)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    factor, seconds = ALLOWED[name]
    row |= {"case": name, "allowed": factor * row["warm"] + seconds}
    print(f"{name}: cold {row['cold']:.2f} s, warm {row['warm']:.2f} s, allowed {row['allowed']:.2f} s", flush=True)
    return row


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="*", default=list(CASES))
    parser.add_argument("--json")
    options = parser.parse_args()
    from cuanto.backends.base import get_backend

    rows = [measure(name) for name in options.only]
    save(options.json, {"machine": machine(get_backend("cpu")), "load": os.getloadavg()[0], "cases": rows})


if __name__ == "__main__":
    main()
