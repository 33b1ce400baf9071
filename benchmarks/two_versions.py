"""Run the same calculations alternately with two checkouts: medians and minima of seconds, and their ratios.

    git worktree add ../before COMMIT
    python benchmarks/two_versions.py ../before . --backend cuda --json FILE
    taskset -c 0,1 python benchmarks/two_versions.py ../before . --backend cpu
    python benchmarks/two_versions.py ../before . --timing-geometries --backend cuda --json FILE
    python benchmarks/two_versions.py ../before . --together --rounds 4 --repeat 5 --backend cuda
    python benchmarks/two_versions.py ../before . --timing-geometries --processor-time --json FILE

Every round starts one process for each checkout and case; it runs the case once to warm up (kernels are compiled and
cached by then) and then `--repeat` times; with `--together` all cases but `first call`, which is left out, share a
process, which takes less time in all. `first call` is a process from an empty kernel cache, integrals of water.
`--timing-geometries`: PM6 of the nine molecules of tests/data/timing_geometries instead, all in one process.
`--processor-time`: time of the processor with one thread instead, for a CPU that other programs use as well.
Minima do not suffer from a processor that runs at one of two speeds for seconds at a time, as those of some servers do.
Energies that differ by more than 1e-8 Hartree end in exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from common import DATA, ROOT, machine, save

ENERGY = """
import json, sys, time
import cuanto
rows, clock = [], getattr(time, sys.argv[2])
for path, method, basis, settings, quantity, repeat in json.loads(sys.argv[1]):
    molecule, times = cuanto.Molecule.from_xyz(path), []
    for _ in range(repeat + 1):
        start = clock()
        found = getattr(cuanto, quantity)(molecule, method, basis, **settings)
        times.append(clock() - start)
    assert found.converged
    rows.append([found.energy, *times[1:]])
print(json.dumps(rows))
"""
FIRST = """
import json, sys, time
start = time.perf_counter()
import cuanto
from cuanto import integrals
((path, _, basis, settings, *_),) = json.loads(sys.argv[1])
molecule = cuanto.Molecule.from_xyz(path)
aux = cuanto.Basis(settings["auxbasis"], molecule)
integrals.eri_3c(cuanto.Basis(basis, molecule), aux, backend=settings["backend"])
print(json.dumps([[0.0, time.perf_counter() - start]]))
"""
FIRST_CALL = "first call"
JK, J = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit"}, {"fitting": "j", "auxbasis": "def2-universal-jkfit"}
CASES: dict[str, tuple[str, str, str | None, dict[str, Any]]] = {
    "scf: octadecane RI-HF/cc-pVDZ": ("alkane_18", "rhf", "cc-pvdz", JK),
    "scf: ribavirin RI-HF/cc-pVDZ": ("ribavirin", "rhf", "cc-pvdz", JK),
    "dft: ribavirin RI-PBE/def2-TZVP": ("ribavirin", "pbe", "def2-tzvp", J),
    "dft: caffeine RI-B3LYP/def2-SVP": ("caffeine", "b3lyp", "def2-svp", {**J, "fitting": "jk"}),
    "dft: benzene RI-J-r2SCAN/def2-SVP": ("benzene", "r2scan", "def2-svp", J),
    "scf: NO2 UHF/cc-pVDZ": ("NO2", "uhf", "cc-pvdz", {"fitting": "none"}),
    "direct_jk: naphthalene HF/6-31G**": ("naphthalene", "rhf", "6-31gss", {"fitting": "none"}),
    "semiempirical: 512 waters PM6": ("water_512", "pm6", None, {}),
    "semiempirical: ribavirin PM6": ("ribavirin", "pm6", None, {}),
    "semiempirical: C166H334 PM6": ("polyethylene_C166", "pm6", None, {}),
    "gradient: caffeine RI-B3LYP/def2-SVP": ("caffeine", "b3lyp", "def2-svp", {**J, "fitting": "jk"}),
    "gradient: ribavirin RI-PBE/def2-TZVP": ("ribavirin", "pbe", "def2-tzvp", J),
    "gradient: naphthalene HF/6-31G**": ("naphthalene", "rhf", "6-31gss", {"fitting": "none"}),
    "gradient: ribavirin PM6": ("ribavirin", "pm6", None, {}),
    FIRST_CALL: ("water_01", "", "cc-pvdz", {"auxbasis": "cc-pvdz-jkfit"}),
}
TIMING_GEOMETRIES: dict[str, tuple[str, str, str | None, dict[str, Any]]] = {
    f"timing geometry: {path.stem} PM6": (f"timing_geometries/{path.stem}", "pm6", None, {})
    for path in sorted(DATA.glob("timing_geometries/*.xyz"))
}
LARGE = (
    "scf: octadecane RI-HF/cc-pVDZ",
    "dft: ribavirin RI-PBE/def2-TZVP",
    "gradient: ribavirin RI-PBE/def2-TZVP",
    "semiempirical: 512 waters PM6",
)
"""Cases left out on a CPU, where each takes longer than all other cases together."""
SAME_ENERGY = 1e-8
PROCESSOR = "process_time"
"""The function of `time` for `--processor-time`."""


def path_of(name: str) -> Path:
    """A geometry of the test data, by its name, or by folder and name."""
    return next(DATA.glob(f"{name}.xyz" if "/" in name else f"*geometries/{name}.xyz"))


def run(tree: Path, cases: list[str], backend: str, repeat: int, clock: str) -> list[list[float]]:
    """Energy and seconds of every case with a checkout, in one process."""
    given = []
    for case in cases:
        name, method, basis, settings = (CASES | TIMING_GEOMETRIES)[case]
        quantity = "gradient" if case.startswith("gradient") else "energy"
        given.append([str(path_of(name)), method, basis, {**settings, "backend": backend}, quantity, repeat])
    first = cases == [FIRST_CALL]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")} | ({"CUANTO_CACHE": empty} if first else {})
        if clock == PROCESSOR:
            environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", FIRST if first else ENERGY, json.dumps(given), clock]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{done.stderr.strip()}\n{', '.join(cases)} failed with the checkout {tree}")
    numbers: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def compare(trees: tuple[Path, Path], cases: list[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Medians of both checkouts; the first round fills the kernel cache and does not count."""
    clock = PROCESSOR if given.processor_time else "perf_counter"
    seconds: dict[tuple[Path, str], list[float]] = {(tree, case): [] for tree in trees for case in cases}
    energies: dict[str, set[float]] = {case: set() for case in cases}
    warm = cases != [FIRST_CALL]
    for turn in range(given.rounds + warm):
        for tree in trees if turn % 2 else trees[::-1]:
            found = run(tree, cases, given.backend, given.repeat, clock)
            for case, (energy, *times) in zip(cases, found, strict=True):
                energies[case].add(energy)
                if turn or not warm:
                    seconds[tree, case] += times
    rows = []
    for case in cases:
        (before, best_before), (after, best_after) = (
            (median(seconds[tree, case]), min(seconds[tree, case])) for tree in trees
        )
        best = best_after / best_before
        print(f"{case:40s} {before:8.3f} s {after:8.3f} s {after / before:6.2f}, best {best:6.2f}", flush=True)
        difference = max(energies[case]) - min(energies[case])
        row = {"case": case, "before": before, "after": after, "ratio": after / before}
        row |= {"best_before": best_before, "best_after": best_after, "best_ratio": best}
        rows.append(row | {"energy_difference": difference})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="checkout to compare with")
    parser.add_argument("after", type=Path, help="checkout to test", nargs="?", default=ROOT)
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CASES | TIMING_GEOMETRIES, help="these cases")
    parser.add_argument("--timing-geometries", action="store_true", help="the nine molecules of MOPAC's timings")
    parser.add_argument("--together", action="store_true", help="run all cases in one process of each checkout")
    parser.add_argument("--processor-time", action="store_true", help="of one thread, instead of seconds")
    parser.add_argument("--json", help="write the result here")
    given = parser.parse_args()
    from cuanto.backends.base import get_backend

    usual = [case for case in CASES if given.backend == "cuda" or case not in LARGE]
    chosen = given.only or (list(TIMING_GEOMETRIES) if given.timing_geometries else usual)
    record: dict[str, Any] = {"benchmark": "two_versions", "machine": machine(get_backend(given.backend))}
    record |= {"time": "processor, one thread" if given.processor_time else "wall clock", "cases": []}
    trees = given.before.resolve(), given.after.resolve()
    if given.together:
        chosen = [case for case in chosen if case != FIRST_CALL]
    for cases in [chosen] if given.timing_geometries or given.together else [[case] for case in chosen]:
        record["cases"] += compare(trees, cases, given)
        save(given.json, record)
    if any(row["energy_difference"] > SAME_ENERGY for row in record["cases"]):
        sys.exit("energies differ")


if __name__ == "__main__":
    main()
