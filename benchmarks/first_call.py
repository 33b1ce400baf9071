"""Waiting time of a first call: import, all integrals of water/cc-pVDZ and the gradient of water by
RI-B3LYP/def2-SVP (SCF included), both from an empty kernel cache.

    python benchmarks/first_call.py [--backend cuda] [--json FILE]

Each figure comes from a process of its own; second runs find the cache filled. A gradient from an empty cache that
takes longer than 15 s on a CPU or 10 s on a GPU ends in exit status 1.
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
GRADIENT = """
import sys, time
start = time.perf_counter()
import cuanto
molecule = cuanto.Molecule.from_xyz(sys.argv[1])
aux = "def2-universal-jkfit"
found = cuanto.gradient(molecule, "b3lyp", "def2-svp", fitting="jk", auxbasis=aux, backend=sys.argv[2])
assert abs(found.gradient.sum(axis=0)).max() < 1e-8
print(time.perf_counter() - start)
"""
LONGEST = {"cpu": 15.0, "cuda": 10.0}
"""Maximum seconds of a gradient from an empty cache."""


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

    backend = get_backend(options.backend)
    record: dict[str, Any] = {"benchmark": "first_call", "machine": machine(backend)}
    run(IMPORT)  # writes the byte code, so that the next import is faster
    record["import_seconds"] = min(run(IMPORT) for _ in range(3))
    water = str(geometry("water_01"))
    for name, code in (("", INTEGRALS), ("gradient_", GRADIENT)):
        with tempfile.TemporaryDirectory() as cache:
            record[f"{name}empty_cache_seconds"] = run(code, water, backend.name, cache=cache)
            record[f"{name}filled_cache_seconds"] = run(code, water, backend.name, cache=cache)
    for name, value in record.items():
        if name.endswith("seconds"):
            print(f"{name:30s} {value:.2f}")
    save(options.json, record)
    if record["gradient_empty_cache_seconds"] > LONGEST[backend.name]:
        sys.exit("the first gradient takes too long")


if __name__ == "__main__":
    main()
