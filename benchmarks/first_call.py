"""What a user waits for the first time: import, and all integrals of water/cc-pVDZ from an empty kernel cache.

    python benchmarks/first_call.py [--backend cuda] [--json FILE]

Each figure comes from a process of its own; the second run of the integrals finds the cache filled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from typing import Any

from common import ROOT, geometry, last_number, machine, save

IMPORT = "import time; t = time.perf_counter(); import cuanto; cuanto.Molecule; print(time.perf_counter() - t)"
INTEGRALS = """
import sys, time
start = time.perf_counter()
import cuanto
from cuanto import integrals
molecule = cuanto.Molecule.from_xyz(sys.argv[1])
basis, aux = cuanto.Basis("cc-pvdz", molecule), cuanto.Basis("cc-pvdz-jkfit", molecule)
backend = sys.argv[2]
for function in (integrals.overlap, integrals.kinetic, integrals.dipole):
    function(basis, backend=backend)
integrals.nuclear(basis, molecule, backend=backend)
integrals.eri_2c(aux, backend=backend)
integrals.eri_3c(basis, aux, backend=backend)
print(time.perf_counter() - start)
"""


def run(code: str, *arguments: str, cache: str | None = None) -> float:
    """Seconds that the code prints, in a fresh interpreter."""
    environment = {"PYTHONPATH": str(ROOT / "src")} | ({"CUANTO_CACHE": cache} if cache else {})
    return last_number([sys.executable, "-c", code, *arguments], **environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    from cuanto.backends.base import get_backend

    record: dict[str, Any] = {"benchmark": "first_call", "machine": machine(get_backend(options.backend))}
    run(IMPORT)  # byte code
    record["import_seconds"] = min(run(IMPORT) for _ in range(3))
    water = str(geometry("water_01"))
    with tempfile.TemporaryDirectory() as cache:
        record["empty_cache_seconds"] = run(INTEGRALS, water, options.backend, cache=cache)
        record["filled_cache_seconds"] = run(INTEGRALS, water, options.backend, cache=cache)
    for name in ("import_seconds", "empty_cache_seconds", "filled_cache_seconds"):
        print(f"{name:22s} {record[name]:.2f}")
    save(options.json, record)


if __name__ == "__main__":
    main()
