"""Run the same calculations alternately with two checkouts: medians and minima of seconds, and their ratios.

    git worktree add ../before COMMIT
    python benchmarks/two_versions.py ../before . --backend cuda --json FILE
    taskset -c 0,1 python benchmarks/two_versions.py ../before . --backend cpu
    python benchmarks/two_versions.py ../before . --timing-geometries --backend cuda --json FILE
    python benchmarks/two_versions.py ../before . --together --rounds 4 --repeat 5 --backend cuda
    python benchmarks/two_versions.py ../before . --timing-geometries --processor-time --json FILE

Every round starts one process of each checkout for a case. Each runs the case once to warm up (kernels are compiled and
cached by then), and then both run it alternately, `--repeat` times; with `--together` all cases but `first call`, which
is left out, share these processes, which takes less time in all. `first call` is a process from an empty kernel cache,
integrals of water. `--timing-geometries`: PM6 of the nine molecules of tests/data/timing_geometries instead.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from common import DATA, ROOT, machine, save

WARM = """
import json, sys, time
from functools import cache
import cuanto
clock, molecule = getattr(time, sys.argv[1]), cache(cuanto.Molecule.from_xyz)
for line in sys.stdin:
    path, method, basis, settings, quantity = json.loads(line)
    given = molecule(path)
    start = clock()
    found = getattr(cuanto, quantity)(given, method, basis, **settings)
    seconds = clock() - start
    assert found.converged
    print(json.dumps([found.energy, seconds]), flush=True)
"""
FIRST = """
import json, sys, time
clock = getattr(time, sys.argv[1])
path, _, basis, settings, _ = json.loads(sys.stdin.readline())
start = clock()
import cuanto
from cuanto import integrals
molecule = cuanto.Molecule.from_xyz(path)
aux = cuanto.Basis(settings["auxbasis"], molecule)
integrals.eri_3c(cuanto.Basis(basis, molecule), aux, backend=settings["backend"])
print(json.dumps([0.0, clock() - start]), flush=True)
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


def path_of(name: str) -> Path:
    """A geometry of the test data, by its name, or by folder and name."""
    return next(DATA.glob(f"{name}.xyz" if "/" in name else f"*geometries/{name}.xyz"))


@contextmanager
def checkout(tree: Path, program: str, given: argparse.Namespace) -> Iterator[Callable[[str], tuple[float, float]]]:
    """A function that gives energy and seconds of cases, run by a process with a checkout; `program`: WARM or FIRST."""
    environment, clock = {**os.environ, "PYTHONPATH": str(tree / "src")}, "perf_counter"
    if given.processor_time:
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        clock = "process_time"
    with tempfile.TemporaryDirectory() as empty:
        if program == FIRST:
            environment["CUANTO_CACHE"] = empty
        command, pipe = [sys.executable, "-c", program, clock], subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
            assert process.stdin is not None and process.stdout is not None
            tasks, answers = process.stdin, process.stdout

            def run(case: str) -> tuple[float, float]:
                name, method, basis, settings = (CASES | TIMING_GEOMETRIES)[case]
                quantity = "gradient" if case.startswith("gradient") else "energy"
                task = [str(path_of(name)), method, basis, {**settings, "backend": given.backend}, quantity]
                print(json.dumps(task), file=tasks, flush=True)
                if not (answer := answers.readline()):
                    sys.exit(f"{case} failed with the checkout {tree}")
                energy, seconds = json.loads(answer)
                return energy, seconds

            yield run


def compare(trees: tuple[Path, Path], cases: list[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Medians and minima of both checkouts; the first round fills the kernel cache and does not count."""
    warm = cases != [FIRST_CALL]
    seconds: dict[tuple[Path, str], list[float]] = {(tree, case): [] for tree in trees for case in cases}
    energies: dict[str, set[float]] = {case: set() for case in cases}
    for turn in range(given.rounds + warm):
        with ExitStack() as stack:
            program = WARM if warm else FIRST
            runs = [(tree, stack.enter_context(checkout(tree, program, given))) for tree in trees]
            for case in cases:
                for repeat in range(given.repeat + 1 if warm else 1):
                    for tree, run in runs[:: 1 if (turn + repeat) % 2 else -1]:
                        energy, passed = run(case)
                        energies[case].add(energy)
                        if not warm or (turn and repeat):
                            seconds[tree, case].append(passed)
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
